"""Definitions of several front-ends, with servers in memory; real ones are in tests/cluster.

Covers: broker/replicated/definitions.py, broker/replicated/agreed.py, broker/replicated/in_force.py
Covers: broker/replicated/watching.py
Covers: broker/vhost/share.py, broker/vhost/agreement.py
"""

from __future__ import annotations

from typing import Any

import pytest
from pika import spec

from burrowmq.broker.definitions import parameters, restore
from burrowmq.broker.exchange.graph import ExchangeDeclaration
from burrowmq.broker.replicated.agreed import AT_ONCE
from burrowmq.broker.replicated.queue import ReplicatedQueue
from burrowmq.broker.rules.auth import Permission
from burrowmq.broker.rules.policy import Policy
from tests.support.bench.client import Client
from tests.support.cluster_bench import ClusterBench
from tests.support.front_ends_bench import FrontEnds, bind, declare_exchange, declare_queue, say
from tests.support.wire_client import publish_bytes


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> FrontEnds:
    return FrontEnds(monkeypatch)


def connected(bench: ClusterBench) -> Client:
    return bench.connect(1)


def declared(ends: FrontEnds, bench: ClusterBench) -> Client:
    """A client there, which has declared a queue, an exchange and what leads from the one to the other."""
    client = connected(bench)
    declare_queue(client)
    ends.settle()
    declare_exchange(client)
    ends.settle()
    bind(client)
    ends.settle()
    assert client.names() == ["Queue.DeclareOk", "Exchange.DeclareOk", "Queue.BindOk"]
    return client


def keys_to(bench: ClusterBench, name: str = "q") -> set[bytes]:
    """Of the bindings from `x` that lead to a queue."""
    found = bench.vhost.bindings_to("queue", name)
    return {binding.routing_key for binding in found if binding.source.name == "x"}


def policy(pattern: str) -> Policy:
    return Policy(name="p", pattern=pattern, definition={"expires": 5_000}, apply_to="queues")


def test_another_stores_the_arguments_that_a_queue_had_before(ends: FrontEnds) -> None:
    one = ends.start()
    declare_queue(connected(one))
    ends.settle()
    queue, former = one.vhost.queues["q"], {"x-queue-mode": "lazy"}
    one.perform(lambda: one.vhost.settle_succession(queue, former))
    ends.settle()
    two = ends.start()
    assert two.vhost.former_arguments == {"q": former}
    again = ends.start(ends.rows(two), is_away=True)
    assert again.vhost.former_arguments == {"q": former}


def test_what_is_declared_at_one_is_at_the_other_and_in_its_store(ends: FrontEnds) -> None:
    one, two = ends.start(), ends.start()
    declared(ends, one)
    assert isinstance(two.vhost.queues["q"], ReplicatedQueue)
    assert keys_to(two) == {b"k"}
    kinds = {kind for kind, key, _ in ends.rows(two) if '"x"' in key}
    assert kinds == {"exchange", "binding"}
    client = connected(two)
    client.send(publish_bytes(1, "x", "k", b"m"))
    ends.settle()
    assert next(iter(ends.world.streams.values())).messages


def test_nothing_is_answered_before_the_servers_have_it(ends: FrontEnds) -> None:
    one = ends.start()
    client = declared(ends, one)
    ends.world.is_silent = True
    declare_exchange(client, "y")
    ends.settle(2.0)
    assert client.names() == []
    assert "y" not in one.vhost.exchanges
    ends.settle(5.0)
    ((_, close),) = client.read()
    assert (close.reply_code, close.reply_text) == (
        541,
        "INTERNAL_ERROR - the metadata store operation timed out:"
        " the cluster has not agreed to it in time",
    )


def test_what_is_not_agreed_is_taken_back(ends: FrontEnds) -> None:
    one = ends.start()
    client = declared(ends, one)
    ends.world.is_silent = True
    bind(client, "more")
    assert keys_to(one) == {b"k", b"more"}
    ends.settle(7.0)
    assert keys_to(one) == {b"k"}
    assert client.names() == ["Connection.Close"]
    client = connected(one)
    say(client, spec.Queue.Unbind(queue="q", exchange="x", routing_key="k"))
    ends.settle(7.0)
    assert keys_to(one) == {b"k"}


def test_of_two_that_declare_a_name_differently_at_once_one_is_told_so(ends: FrontEnds) -> None:
    one, two = ends.start(), ends.start()
    first, second = connected(one), connected(two)
    declare_exchange(first, kind="topic")
    declare_exchange(second, kind="fanout")
    ends.settle()
    assert first.names() == ["Exchange.DeclareOk"]
    ((_, close),) = second.read()
    assert (close.reply_code, close.reply_text) == (
        406,
        "PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'x' in vhost '/':"
        " received 'fanout' but current is 'topic'",
    )
    assert {bench.vhost.exchanges["x"].type for bench in (one, two)} == {"topic"}
    first, second = connected(one), connected(two)
    declare_queue(first, **{"x-delivery-limit": 3})
    declare_queue(second)
    ends.settle()
    assert first.names() == ["Queue.DeclareOk"]
    ((_, close),) = second.read()
    assert (close.reply_code, close.reply_text) == (
        406,
        "PRECONDITION_FAILED - inequivalent arg 'x-delivery-limit' for queue 'q' in vhost '/':"
        " received none but current is the value '3' of type 'signedint'",
    )
    assert two.vhost.queues["q"].arguments["x-delivery-limit"] == 3


def test_of_two_that_declare_the_same_at_once_both_have_it(ends: FrontEnds) -> None:
    one, two = ends.start(), ends.start()
    clients = [connected(one), connected(two)]
    for client in clients:
        declare_queue(client)
        declare_exchange(client)
    ends.settle(0.5)
    for client in clients:
        assert client.names() == ["Queue.DeclareOk", "Exchange.DeclareOk"]
        bind(client)
    ends.settle()
    assert [client.names() for client in clients] == [["Queue.BindOk"]] * 2
    assert keys_to(one) == keys_to(two) == {b"k"}


def test_two_on_one_front_end_wait_for_one_answer(ends: FrontEnds) -> None:
    one = ends.start()
    clients = [connected(one), connected(one)]
    for client in clients:
        declare_queue(client)
    ends.settle()
    assert [client.names() for client in clients] == [["Queue.DeclareOk"]] * 2


@pytest.mark.parametrize(("error", "stays"), [(10005, False), (10008, True)])
def test_a_queue_that_cannot_be_made_stays_unless_nobody_can_have_it(
    ends: FrontEnds, error: int, stays: bool
) -> None:
    one, two = ends.start(), ends.start()
    ends.world.refused_streams = error
    client = connected(one)
    declare_queue(client)
    ends.settle()
    ((_, close),) = client.read()
    assert (close.reply_code, close.reply_text) == (
        404,
        "NOT_FOUND - queue 'q' in vhost '/' is inaccessible: no",
    )
    assert {"q" in bench.vhost.queues for bench in (one, two)} == {stays}


def test_streams_are_shared_as_well(ends: FrontEnds) -> None:
    one, two = ends.start(), ends.start()
    client = connected(one)
    arguments = {"x-queue-type": "stream"}
    say(client, spec.Queue.Declare(queue="s", durable=True, arguments=arguments))
    ends.settle()
    assert client.names() == ["Queue.DeclareOk"]
    assert two.vhost.queues["s"].kind == "stream"
    say(connected(two), spec.Queue.Delete(queue="s"))
    ends.settle()
    assert "s" not in one.vhost.queues
    assert ends.world.streams == {}


def test_what_is_deleted_at_one_is_gone_at_the_other(ends: FrontEnds) -> None:
    one, two = ends.start(), ends.start()
    client = declared(ends, one)
    say(client, spec.Queue.Unbind(queue="q", exchange="x", routing_key="k"))
    ends.settle()
    assert keys_to(two) == set()
    bind(client)
    ends.settle()
    assert keys_to(two) == {b"k"}
    say(client, spec.Exchange.Delete(exchange="x"))
    ends.settle()
    assert client.names() == ["Queue.UnbindOk", "Queue.BindOk", "Exchange.DeleteOk"]
    assert "x" not in one.vhost.exchanges
    assert "x" not in two.vhost.exchanges
    assert not [row for row in ends.rows(two) if row[0] == "binding"]
    second = connected(two)
    say(second, spec.Queue.Delete(queue="q"))
    ends.settle()
    assert second.names() == ["Queue.DeleteOk"]
    assert "q" not in one.vhost.queues
    assert ends.world.streams == {}


def test_a_queue_that_another_has_deleted_takes_no_new_stream_with_it(ends: FrontEnds) -> None:
    one, two = ends.start(), ends.start()
    client = declared(ends, one)
    say(client, spec.Queue.Delete(queue="q"))
    ends.settle()
    declare_queue(client)
    ends.settle()
    assert client.names() == ["Queue.DeleteOk", "Queue.DeclareOk"]
    assert "q" in two.vhost.queues
    assert len(ends.world.streams) == 1


def test_a_start_without_the_cluster_has_the_last_state_and_takes_up_what_has_changed(
    ends: FrontEnds,
) -> None:
    one, two = ends.start(), ends.start()
    declared(ends, one)
    rows = ends.rows(two)
    two.own_link.lose()
    ends.benches.remove(two)
    client = connected(one)
    say(client, spec.Exchange.Delete(exchange="x"))
    declare_exchange(client, "new")
    ends.settle()

    again = ends.start(rows, is_away=True)
    assert "q" in again.vhost.queues
    assert keys_to(again) == {b"k"}
    ends.settle(2.0)
    second = connected(again)
    declare_exchange(second, "other")
    ends.settle()
    ((_, close),) = second.read()
    assert (close.reply_code, close.reply_text) == (
        541,
        "INTERNAL_ERROR - the metadata store operation timed out: the cluster is out of reach",
    )
    second = connected(again)
    bind(second, "other")
    ends.settle()
    assert second.names() == ["Connection.Close"]
    assert keys_to(again) == {b"k"}
    second = connected(again)
    say(second, spec.Queue.Declare(queue="classic", durable=True))
    ends.settle()
    assert second.names() == ["Queue.DeclareOk"]

    again.own_link.open()
    ends.settle()
    assert set(again.vhost.exchanges) & {"x", "new", "other"} == {"new"}
    assert {"q", "classic"} <= set(again.vhost.queues)


def test_what_was_replaced_meanwhile_is_replaced_with_what_leads_to_it(ends: FrontEnds) -> None:
    one, two = ends.start(), ends.start()
    client = declared(ends, one)
    consumer = connected(two)
    say(consumer, spec.Basic.Consume(queue="q", consumer_tag="c"))
    ends.settle()
    consumer.read()
    two.own_link.lose()
    say(client, spec.Queue.Delete(queue="q"))
    ends.settle()
    declare_queue(client, **{"x-delivery-limit": 7})
    ends.settle()
    bind(client, "other")
    ends.settle()
    say(client, spec.Exchange.Delete(exchange="x"))
    ends.settle()
    declare_exchange(client, kind="direct")
    ends.settle()
    bind(client, "third")
    ends.settle()
    two.own_link.open()
    ends.settle()
    assert two.vhost.queues["q"].arguments["x-delivery-limit"] == 7
    assert two.vhost.exchanges["x"].type == "direct"
    assert keys_to(two) == {b"third"}
    assert two.vhost.queues["q"].consumer_count == 0


def test_the_first_start_offers_what_it_has_and_a_later_one_takes_what_is_there(
    ends: FrontEnds,
) -> None:
    one = ends.start()
    assert {row[0] for row in ends.rows(one)} == {"vhost", "user", "permission", "parameter"}
    one.auth.set_password("guest", "other")
    one.auth.set_password("alice", "alice")
    one.scheduler.touch()
    ends.settle()
    two = ends.start()
    assert two.auth.users == one.auth.users
    one.auth.delete_user("guest")
    ends.settle()
    assert set(two.auth.users) == {"alice"}
    assert set(ends.start().auth.users) == {"alice"}, "what a first start makes is no definition"


def test_who_comes_with_definitions_of_an_earlier_life_adds_them(ends: FrontEnds) -> None:
    alone = FrontEnds(ends._monkeypatch)
    client = declared(alone, alone.start())
    declare_exchange(client, "mine", "fanout")
    alone.settle()
    rows = [row for row in alone.rows(alone.benches[0]) if row[0] != "parameter"]

    one = ends.start()
    declare_exchange(connected(one), "x", "headers")
    ends.settle()
    two = ends.start(rows)
    for bench in (one, two):
        assert bench.vhost.exchanges["mine"].type == "fanout"
        assert bench.vhost.exchanges["x"].type == "headers", "the first stays"
        assert keys_to(bench) == {b"k"}
    again = ends.start([*ends.rows(two), ("exchange", '["/","gone"]', _row("gone"))])
    assert "gone" not in again.vhost.exchanges, "it was removed while nobody was there"


def _row(name: str) -> dict[str, Any]:
    return {
        "vhost": "/", "name": name, "type": "topic", "auto_delete": False, "internal": False,
        "arguments": "",
    }  # fmt: skip


def test_what_operators_lay_down_is_everywhere_and_the_last_word_counts(ends: FrontEnds) -> None:
    one, two = ends.start(), ends.start()
    one.create_vhost("other")
    restore.put_vhost(one.vhosts["other"], one.engine.definitions)
    one.auth.set_password("bob", "bob")
    one.auth.set_permission("other", "bob", Permission(configure="a", write="b", read="c"))
    parameters.set_vhost_limits(one.vhost, {"max-queues": 5})
    one.parameters.put("color", "red")
    ends.settle()
    assert two.auth.permissions["other", "bob"].write == "b"
    assert two.vhost.limits == {"max-queues": 5}
    assert two.parameters.values["color"] == "red"
    parameters.set_policy(one.vhost, policy("^a"))
    parameters.set_policy(two.vhost, policy("^b"))
    ends.settle()
    patterns = {
        bench.vhost.policies.of_kind(is_operator=False)["p"].pattern for bench in (one, two)
    }
    assert len(patterns) == 1
    parameters.clear_policy(two.vhost, "p")
    two.parameters.remove("color")
    ends.settle()
    assert not one.vhost.policies.of_kind(is_operator=False)
    assert "color" not in one.parameters.values


def test_who_is_deleted_elsewhere_is_sent_away_here(ends: FrontEnds) -> None:
    one, two = ends.start(), ends.start()
    one.create_vhost("other")
    restore.put_vhost(one.vhosts["other"], one.engine.definitions)
    one.auth.set_password("bob", "bob")
    for vhost in ("/", "other"):
        everything = Permission(configure=".*", write=".*", read=".*")
        one.auth.set_permission(vhost, "bob", everything)
        one.auth.set_permission(vhost, "guest", everything)
    ends.settle()
    clients = []
    for user, vhost in (("bob", "/"), ("guest", "other"), ("guest", "/")):
        client = two.socket()
        client.open(user=user, vhost=vhost)
        clients.append(client)
    one.auth.delete_user("bob")
    restore.delete_vhost(one.vhosts["other"], one.vhosts, one.auth, one.engine.definitions)
    ends.settle()
    texts = [[method.reply_text for _, method in client.read()] for client in clients]
    assert texts == [
        ["CONNECTION_FORCED - user 'bob' is deleted"],
        ["CONNECTION_FORCED - vhost 'other' is deleted"],
        [],
    ]
    assert set(two.vhosts) == {"/"}


def test_a_change_outlives_a_connection_that_breaks(ends: FrontEnds) -> None:
    one, two = ends.start(), ends.start()
    client = declared(ends, one)
    bind(client, "before")
    one.own_link.lose()
    bind(client, "while")
    declare_queue(client, "r")
    one.own_link.open()
    ends.settle()
    assert client.names() == ["Queue.BindOk", "Queue.BindOk", "Queue.DeclareOk"]
    assert keys_to(two) == {b"k", b"before", b"while"}
    assert "r" in two.vhost.queues


def test_an_import_of_very_many_is_sent_some_at_a_time_and_agreed_whole(ends: FrontEnds) -> None:
    one, two = ends.start(), ends.start()
    share = one.replication.share
    assert share is not None
    sent = 0
    for number in range(2 * AT_ONCE + 500):
        one.vhost.declare_exchange(ExchangeDeclaration(name=f"e{number}", durable=True))
        sent = max(sent, share.rows._sent_count)
    assert sent == AT_ONCE
    ends.settle()
    assert not share.is_waiting
    assert set(two.vhost.exchanges) == set(one.vhost.exchanges)
    assert len(two.vhost.exchanges) > 2 * AT_ONCE


def test_what_has_changed_while_the_watch_had_a_hole_is_read_anew(ends: FrontEnds) -> None:
    one, two = ends.start(), ends.start()
    declared(ends, one)
    (_, watcher) = ends.bucket.watchers.values()
    watcher.count += 1  # one that has not come
    declare_exchange(connected(one), "y")
    ends.settle()
    assert "y" in two.vhost.exchanges
    assert len(ends.bucket.watchers) == 2, "the former one is ended"


def test_a_name_that_was_removed_long_ago_can_be_had_again(ends: FrontEnds) -> None:
    one, two = ends.start(), ends.start()
    client = declared(ends, one)
    say(client, spec.Exchange.Delete(exchange="x"))
    ends.settle()
    declare_exchange(client)  # the marker is there
    ends.settle()
    say(client, spec.Exchange.Delete(exchange="x"))
    ends.settle()
    for subject in [each[0] for each in ends.bucket.messages.values() if not each[2]]:
        ends.bucket.forget(subject)
    declare_exchange(client)
    ends.settle()
    assert client.names()[-1] == "Exchange.DeclareOk"
    assert "x" in two.vhost.exchanges


def test_classic_queues_and_what_leads_to_them_are_each_front_ends_own(ends: FrontEnds) -> None:
    one, two = ends.start(), ends.start()
    client = declared(ends, one)
    say(
        client,
        spec.Queue.Declare(queue="classic", durable=True),
        spec.Queue.Bind(queue="classic", exchange="x", routing_key="c"),
        spec.Exchange.Declare(exchange="short", type="fanout"),
    )
    ends.settle()
    assert "classic" not in two.vhost.queues
    assert "short" not in two.vhost.exchanges
    second = connected(two)
    say(second, spec.Queue.Declare(queue="late", durable=True))
    declare_queue(connected(one), "late")
    ends.settle()
    assert not isinstance(two.vhost.queues["late"], ReplicatedQueue)
    assert two.observer.named("definition_unusable")


def test_a_classic_queue_in_the_way_of_a_shared_one_goes_alone(ends: FrontEnds) -> None:
    one, two = ends.start(), ends.start()
    first, client = connected(one), connected(two)
    say(client, spec.Queue.Declare(queue="q", durable=True))
    declare_queue(first)  # at once: neither knows of the other
    ends.settle()
    declare_exchange(first)
    ends.settle()
    bind(first)
    ends.settle()
    assert first.names() == ["Queue.DeclareOk", "Exchange.DeclareOk", "Queue.BindOk"]
    assert keys_to(two) == set()
    assert not isinstance(two.vhost.queues["q"], ReplicatedQueue)
    say(client, spec.Queue.Bind(queue="q", exchange="x", routing_key="own"))
    ends.settle()
    assert keys_to(one) == {b"k"}
    say(client, spec.Queue.Delete(queue="q"))
    ends.settle()
    assert isinstance(one.vhost.queues["q"], ReplicatedQueue), "nobody has deleted that"
    assert isinstance(two.vhost.queues["q"], ReplicatedQueue), "nothing is in its way any more"
    assert keys_to(one) == keys_to(two) == {b"k"}


def test_what_a_start_has_kept_of_a_classic_queue_is_in_the_way_of_a_shared_one_too(
    ends: FrontEnds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its row stays: with another one the next start would find nobody to keep the messages for."""
    one, two = ends.start(), ends.start()
    monkeypatch.setattr(two.engine, "kept_level", lambda _, name: -1 if name != "q" else 0)
    declare_queue(connected(one))
    ends.settle()
    assert "q" not in two.vhost.queues
    assert [key for kind, key, _ in ends.rows(two) if kind == "queue"] == []
    client = connected(two)
    say(client, spec.Queue.Declare(queue="q", durable=True))
    monkeypatch.setattr(two.engine, "kept_level", lambda *_: -1)
    say(client, spec.Queue.Delete(queue="q"))
    ends.settle()
    assert client.names() == ["Queue.DeclareOk", "Queue.DeleteOk"]
    assert isinstance(two.vhost.queues["q"], ReplicatedQueue), "nothing is in its way any more"
