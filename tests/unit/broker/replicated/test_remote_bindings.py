"""Publishes through any exchange to classic queues at another front-end, with servers in memory.

Covers: broker/replicated/remote_bindings.py
"""

from __future__ import annotations

import json
from itertools import chain
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pika import BasicProperties, spec

from burrowmq.broker import inspect
from burrowmq.broker.exchange.binding import Edge
from burrowmq.broker.queue.rules.settings import QueueDeclaration
from burrowmq.broker.replicated import homes as homes_module
from burrowmq.broker.replicated.homes import HOMES
from burrowmq.cluster.wire import encode_publish
from tests.support.bench.client import Client
from tests.support.cluster_bench import QUORUM, ClusterBench
from tests.support.front_ends_bench import FrontEnds, confirming, declare_exchange, homes, say
from tests.support.wire_client import publish_bytes


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> FrontEnds:
    return FrontEnds(monkeypatch)


def bound(
    ends: FrontEnds, client: Client, queue: str = "q", key: str = "k", exchange: str = "x"
) -> None:
    """A classic queue where the client is, bound to an exchange."""
    say(client, spec.Queue.Declare(queue=queue))
    say(client, spec.Queue.Bind(queue=queue, exchange=exchange, routing_key=key))
    ends.settle()
    assert client.names() == ["Queue.DeclareOk", "Queue.BindOk"]


def two(ends: FrontEnds, kind: str = "topic", **options: Any) -> tuple[ClusterBench, ClusterBench]:
    """Two front-ends with the exchange x."""
    both = ends.start(), ends.start()
    client = both[0].connect(1)
    declare_exchange(client, kind=kind, **options)
    ends.settle()
    assert client.names() == ["Exchange.DeclareOk"]
    committed(ends)
    return both


def committed(ends: FrontEnds) -> None:
    """What others have declared is on the disk of each, which confirms of unroutable messages wait for."""
    for end in ends.benches:
        end.engine.require_sync()
        end.scheduler.touch()
    ends.settle()


def told(ends: FrontEnds, client: Client, key: str = "k", **options: Any) -> list[str]:
    """What a mandatory publish to x is answered with."""
    client.send(publish_bytes(1, "x", key, b"body", mandatory=True, **options))
    ends.settle()
    return client.names()


TAKEN, RETURNED = ["Basic.Ack"], ["Basic.Return", "Basic.Ack"]


@pytest.mark.parametrize(
    ("kind", "key", "arguments", "publish_key", "headers"),
    [
        ("direct", "k", {}, "k", None),
        ("topic", "a.*.#", {}, "a.b.c.d", None),
        ("fanout", "", {}, "anything", None),
        ("headers", "", {"x-match": "all", "size": 3}, "", {"size": 3}),
        ("x-consistent-hash", "1", {}, "any", None),
        ("x-modulus-hash", "", {}, "any", None),
        ("x-random", "", {}, "any", None),
        ("direct", "k\x00é", {}, "k\x00é", None),
    ],
)
def test_a_publish_through_any_exchange_reaches_it_as_it_was_published(
    ends: FrontEnds,
    kind: str,
    key: str,
    arguments: dict[str, Any],
    publish_key: str,
    headers: dict[str, Any] | None,
) -> None:
    one, other_end = two(ends, kind)
    client = one.connect(1)
    say(client, spec.Queue.Declare(queue="q", exclusive=True))
    bind = spec.Queue.Bind(queue="q", exchange="x", routing_key=key, arguments=arguments)
    say(client, bind)
    ends.settle()
    assert client.names() == ["Queue.DeclareOk", "Queue.BindOk"]
    other = confirming(other_end)
    assert told(ends, other, publish_key, properties=BasicProperties(headers=headers)) == TAKEN
    say(client, spec.Basic.Get(queue="q", no_ack=True))
    ends.settle()
    ((_, got),) = client.read()
    assert (got.exchange, got.routing_key, got.body) == ("x", publish_key, b"body")
    say(client, spec.Queue.Unbind(queue="q", exchange="x", routing_key=key, arguments=arguments))
    ends.settle()
    assert told(ends, other, publish_key, properties=BasicProperties(headers=headers)) == RETURNED


def test_through_an_exchange_that_is_bound_to_another(ends: FrontEnds) -> None:
    one, other_end = two(ends)
    client = other_end.connect(1)
    declare_exchange(client, "y", "fanout")
    say(client, spec.Exchange.Bind(destination="y", source="x", routing_key="k"))
    ends.settle()
    bound(ends, one.connect(1), exchange="y")
    assert told(ends, confirming(other_end)) == TAKEN
    assert one.vhost.queues["q"].ready_count == 1


def test_each_of_several_queues_anywhere_has_it_once(ends: FrontEnds) -> None:
    one, other_end = two(ends, "fanout")
    client, other = one.connect(1), confirming(other_end)
    bound(ends, client, "a", "one")
    say(client, spec.Queue.Bind(queue="a", exchange="x", routing_key="two"))
    bound(ends, other, "b")
    say(other, spec.Queue.Declare(queue="r", durable=True, arguments=QUORUM))
    say(other, spec.Queue.Bind(queue="r", exchange="x", routing_key=""))
    ends.settle()
    other.names()
    assert told(ends, other) == TAKEN
    counts = [end.vhost.queues[name].ready_count for end, name in ((one, "a"), (other_end, "b"))]
    assert counts == [1, 1]
    assert other_end.vhost.queues["r"].ready_count == 1


def test_a_transaction_is_committed_when_it_is_there(ends: FrontEnds) -> None:
    one, other_end = two(ends)
    bound(ends, one.connect(1))
    other = other_end.connect(1)
    say(other, spec.Tx.Select())
    ends.settle()
    other.send(publish_bytes(1, "x", "k", b"a"), publish_bytes(1, "x", "k", b"b"))
    ends.settle()
    assert other.names() == ["Tx.SelectOk"]
    assert one.vhost.queues["q"].ready_count == 0
    say(other, spec.Tx.Commit())
    assert other.names() == []
    ends.settle()
    assert other.names() == ["Tx.CommitOk"]
    assert one.vhost.queues["q"].ready_count == 2


@pytest.mark.parametrize("exchange", ["x", ""])
def test_a_dead_letter_goes_there(ends: FrontEnds, exchange: str) -> None:
    one, other_end = two(ends)
    bound(ends, one.connect(1), key="q")
    client = other_end.connect(1)
    arguments = {"x-dead-letter-exchange": exchange, "x-dead-letter-routing-key": "q"}
    say(client, spec.Queue.Declare(queue="work", arguments=arguments))
    ends.settle()
    client.send(publish_bytes(1, "", "work", b"body"))
    say(client, spec.Basic.Get(queue="work"))
    ends.settle()
    say(client, spec.Basic.Nack(delivery_tag=1, requeue=False))
    ends.settle()
    assert one.vhost.queues["q"].ready_count == 1


@pytest.mark.parametrize(
    "end", ["unbound", "queue deleted", "client gone", "home stops", "silence"]
)
def test_what_is_not_there_any_more_is_returned(ends: FrontEnds, end: str) -> None:
    one, other_end = two(ends)
    client = one.connect(1)
    say(client, spec.Queue.Declare(queue="q", exclusive=True))
    say(client, spec.Queue.Bind(queue="q", exchange="x", routing_key="k"))
    ends.settle()
    client.names()
    other = confirming(other_end)
    assert told(ends, other) == TAKEN
    match end:
        case "unbound":
            say(client, spec.Queue.Unbind(queue="q", exchange="x", routing_key="k"))
        case "queue deleted":
            say(client, spec.Queue.Delete(queue="q"))
        case "client gone":
            client.lose()
        case "home stops":
            homes(one).cluster_closing()
        case _:
            ends.benches.remove(one)
            one.own_link.is_open = False
            ends.settle(7.0)
    ends.settle()
    assert told(ends, other) == RETURNED
    assert not other_end.vhost.exchanges["x"].bindings


def test_what_is_unbound_and_bound_again_at_once_is_bound(ends: FrontEnds) -> None:
    one, other_end = two(ends)
    client = one.connect(1)
    bound(ends, client)
    binding = {"queue": "q", "exchange": "x", "routing_key": "k"}
    say(client, spec.Queue.Unbind(**binding), spec.Queue.Bind(**binding))
    ends.settle()
    assert told(ends, confirming(other_end)) == TAKEN


def test_a_queue_made_anew_has_none_of_the_bindings_it_had(ends: FrontEnds) -> None:
    one, other_end = two(ends)
    client = one.connect(1)
    bound(ends, client)
    say(client, spec.Queue.Bind(queue="q", exchange="x", routing_key="l"))
    say(client, spec.Queue.Delete(queue="q"), spec.Queue.Declare(queue="q"))
    ends.settle()
    other = confirming(other_end)
    assert told(ends, other) == told(ends, other, "l") == RETURNED


def test_who_comes_later_or_has_missed_something_learns_all(
    ends: FrontEnds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(homes_module, "AT_ONCE", 2)  # so that all takes several messages
    one, other_end = two(ends)
    client = one.connect(1)
    for number in range(3):
        bound(ends, client, f"q{number}", f"k{number}")
    late = ends.start()
    committed(ends)
    homes(one)._number += 1  # one that has not come
    bound(ends, client, "q3", "k3")
    ends.settle(2.0)
    for end in (other_end, late):
        other = confirming(end)
        assert [told(ends, other, f"k{each}") for each in range(5)] == [*[TAKEN] * 4, RETURNED]
    one.own_link.lose()
    say(client, spec.Queue.Unbind(queue="q0", exchange="x", routing_key="k0"))
    say(client, spec.Queue.Delete(queue="q1"))
    ends.settle()
    assert client.names() == ["Queue.UnbindOk", "Queue.DeleteOk"]
    bound(ends, client, "q4", "k4")
    one.own_link.open()
    ends.settle()
    for end in (other_end, late):
        other = confirming(end)
        found = [told(ends, other, f"k{each}") for each in range(5)]
        assert found == [RETURNED, RETURNED, TAKEN, TAKEN, TAKEN]
    assert [len(end.vhost.exchanges["x"].bindings) for end in ends.benches] == [3, 3, 3]


@pytest.mark.parametrize("at", range(12))
def test_what_goes_while_all_is_told_is_not_told_afterwards(
    ends: FrontEnds, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    monkeypatch.setattr(homes_module, "AT_ONCE", 1)
    one, other_end = two(ends)
    client = one.connect(1)
    for number in range(3):
        bound(ends, client, f"q{number}", "k")
        say(client, spec.Queue.Bind(queue=f"q{number}", exchange="x", routing_key="l"))
        ends.settle()
        assert client.names() == ["Queue.BindOk"]
    telling = homes(one)
    telling._say_all()
    for _ in range(at):
        telling._tell()
    vhost = one.vhost
    for number in range(3):
        vhost.unbind(Edge("x", "queue", f"q{number}", b"l", {}))
    vhost.delete_queue(vhost.queues["q1"])
    vhost.declare_queue(QueueDeclaration(name="q1"))
    vhost.delete_queue(vhost.queues["q2"])
    ends.settle(2.0)
    found = [each.destination.name for each in other_end.vhost.exchanges["x"].bindings]
    assert found == ["q0"]
    assert homes(other_end).elsewhere_count == 2


def test_nobody_is_unreachable_while_all_is_told_again(
    ends: FrontEnds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(homes_module, "AT_ONCE", 1)
    one, other_end = two(ends)
    bound(ends, one.connect(1))
    known = homes(other_end)
    who = one.front_end.token.decode()
    number = homes(one)._number
    known._hear({"who": who, "all": [["n"]], "n": number + 1})
    other = confirming(other_end)
    assert told(ends, other) == TAKEN
    known._hear({"who": who, "n": number + 2, "add": [["/", "other", ""]]})
    assert told(ends, other) == TAKEN
    known._hear({"who": who, "n": number + 3, "last": []})
    assert told(ends, other) == RETURNED
    assert known.elsewhere_count == 1


def test_an_exchange_that_comes_later_has_them(ends: FrontEnds) -> None:
    """Transient ones are each front-end's own: of one name they lead to the queues of both."""
    one, other_end = ends.start(), ends.start()
    client, other = one.connect(1), confirming(other_end)
    declare_exchange(client, durable=False)
    ends.settle()
    client.names()
    bound(ends, client)
    for _ in range(2):
        declare_exchange(other, durable=False)
        ends.settle()
        assert other.names() == ["Exchange.DeclareOk"]
        assert told(ends, other) == TAKEN
        say(other, spec.Exchange.Delete(exchange="x"))
        ends.settle()
        assert other.names() == ["Exchange.DeleteOk"]
    assert one.vhost.queues["q"].ready_count == 2


def test_a_transient_exchange_of_another_type_takes_what_it_can(ends: FrontEnds) -> None:
    one, other_end = ends.start(), ends.start()
    client, other = one.connect(1), confirming(other_end)
    declare_exchange(client, durable=False)
    declare_exchange(other, kind="x-consistent-hash", durable=False)
    ends.settle()
    assert [*client.names(), *other.names()] == ["Exchange.DeclareOk"] * 2
    bound(ends, client, "q", "no weight")
    assert told(ends, other) == RETURNED
    bound(ends, client, "p", "1")
    assert told(ends, other) == TAKEN


def test_a_virtual_host_that_comes_again_has_them(ends: FrontEnds) -> None:
    one, other_end = two(ends)
    bound(ends, one.connect(1), exchange="amq.topic")
    assert other_end.vhost.exchanges["amq.topic"].bindings
    made = other_end.make_vhost("/")
    assert [each.destination.name for each in made.exchanges["amq.topic"].bindings] == ["q"]


def test_an_exchange_is_in_use_as_long_as_anybodys_queue_is_bound(ends: FrontEnds) -> None:
    one, other_end = two(ends)
    client = one.connect(1)
    bound(ends, client)
    delete = spec.Exchange.Delete(exchange="x", if_unused=True)
    assert other_end.connect(1).refused(1, delete) == (
        406,
        "PRECONDITION_FAILED - exchange 'x' in vhost '/' in use",
    )
    say(client, spec.Queue.Delete(queue="q"))
    ends.settle()
    other = other_end.connect(1)
    say(other, delete)
    ends.settle()
    assert other.names() == ["Exchange.DeleteOk"]


def test_an_auto_delete_exchange_goes_with_the_last_binding_of_all(ends: FrontEnds) -> None:
    one, other_end = two(ends, auto_delete=True)
    client, other = one.connect(1), other_end.connect(1)
    bound(ends, client, "a")
    bound(ends, other, "b")
    say(client, spec.Queue.Delete(queue="a"))
    ends.settle()
    assert all("x" in end.vhost.exchanges for end in ends.benches)
    say(other, spec.Queue.Unbind(queue="b", exchange="x", routing_key="k"))
    ends.settle()
    assert not any("x" in end.vhost.exchanges for end in ends.benches)


def test_an_auto_delete_exchange_outlives_a_home_that_is_not_heard_of(ends: FrontEnds) -> None:
    one, other_end = two(ends, auto_delete=True)
    bound(ends, one.connect(1))
    ends.benches.remove(one)
    one.own_link.is_open = False
    ends.settle(7.0)
    assert "x" in other_end.vhost.exchanges
    assert not other_end.vhost.exchanges["x"].bindings


def test_a_queue_here_comes_before_one_elsewhere(ends: FrontEnds) -> None:
    one, other_end = two(ends)
    client, other = one.connect(1), confirming(other_end)
    for each in (client, other):
        say(each, spec.Queue.Declare(queue="q"))  # at once: neither knows of the other
        say(each, spec.Queue.Bind(queue="q", exchange="x", routing_key="k"))
    committed(ends)
    assert [*client.names(), *other.names()] == ["Queue.DeclareOk", "Queue.BindOk"] * 2
    assert told(ends, other) == TAKEN
    counts = [end.vhost.queues["q"].ready_count for end in ends.benches]
    assert counts == [0, 1]
    say(other, spec.Queue.Delete(queue="q"))
    ends.settle()
    assert other.names() == ["Queue.DeleteOk"]
    assert told(ends, other) == TAKEN
    assert one.vhost.queues["q"].ready_count == 1


def test_of_two_homes_the_other_is_found_when_the_first_is_gone(ends: FrontEnds) -> None:
    one, other_end = two(ends)
    clients = [one.connect(1), other_end.connect(1)]
    for client in clients:
        say(client, spec.Queue.Declare(queue="q"))
        say(client, spec.Queue.Bind(queue="q", exchange="x", routing_key="k"))
    ends.settle()
    third = ends.start()
    committed(ends)
    other = confirming(third)
    assert told(ends, other) == TAKEN
    holder = 0 if one.vhost.queues["q"].ready_count else 1
    say(clients[holder], spec.Queue.Delete(queue="q"))
    ends.settle()
    assert told(ends, other) == TAKEN
    assert ends.benches[1 - holder].vhost.queues["q"].ready_count == 1


def test_nobody_lists_stores_or_exports_what_another_has(ends: FrontEnds) -> None:
    one, other_end = two(ends)
    bound(ends, one.connect(1))
    vhost = other_end.vhost
    assert vhost.exchanges["x"].bindings
    assert not list(inspect.bindings_from(vhost, "x"))
    assert len(inspect.bound_from(vhost, "x")) == 0
    assert not [row for row in ends.rows(other_end) if row[0] == "binding"]
    assert len(list(inspect.bindings_from(one.vhost, "x"))) == 1


@pytest.mark.parametrize(
    "method",
    [
        spec.Queue.Bind(queue="q", exchange="x", routing_key="l"),
        spec.Queue.Unbind(queue="q", exchange="x", routing_key="k"),
    ],
    ids=lambda method: method.NAME,
)
def test_binding_is_for_the_home(ends: FrontEnds, method: object) -> None:
    one, other_end = two(ends)
    bound(ends, one.connect(1))
    assert other_end.connect(1).refused(1, method) == (
        404,
        "NOT_FOUND - home node 'rabbit@test' of queue 'q' in vhost '/' is down or inaccessible",
    )


def test_it_is_told_where_a_message_would_go(ends: FrontEnds) -> None:
    one, other_end = two(ends)
    bound(ends, one.connect(1))
    other = other_end.connect(1)
    say(other, spec.Queue.Declare(queue="r", durable=True, arguments=QUORUM))
    say(other, spec.Queue.Bind(queue="r", exchange="x", routing_key="k"))
    ends.settle()
    assert kinds_of(other_end, "x", "k") == {"q": "queue elsewhere", "r": "queue"}
    say(one.connect(1), spec.Basic.Consume(queue="amq.rabbitmq.reply-to", no_ack=True))
    ends.settle()
    (key,) = (name for _, name in homes(one)._mine if name != "q")
    assert kinds_of(other_end, "", key) == {key: "direct reply"}


def kinds_of(bench: ClusterBench, exchange: str, key: str) -> dict[str, str]:
    """Where it says that a message would go."""
    question = inspect.Question(routing_key=key)
    telling = inspect.explain(bench.vhost, bench.vhost.exchanges[exchange], question)
    with pytest.raises(StopIteration) as end:
        while True:
            next(telling)
    return {row["name"]: row["kind"] for row in end.value.value["queues"]}


def test_what_is_told_at_once_is_bounded_in_number_and_size(ends: FrontEnds) -> None:
    one, _ = two(ends)
    vhost = one.vhost
    vhost.declare_queue(QueueDeclaration(name="q"))
    for number in range(1_200):
        arguments = {"a": "é" * 4000, "n": number} if number < 200 else {}
        vhost.bind(Edge("x", "queue", "q", b"%d" % number, arguments))
    parts = list(chain(*homes(one)._parts(homes(one)._rows())))
    assert sum(len(rows) for _, rows in parts) == 1_201
    assert max(len(rows) for _, rows in parts) <= homes_module.AT_ONCE
    assert max(sum(map(len, rows)) for _, rows in parts) < 2 * homes_module.PART_SIZE
    one.front_end.payload_max = 40_000
    parts = list(chain(*homes(one)._parts(homes(one)._rows())))
    assert sum(len(rows) for _, rows in parts) == 1_201, "in as many parts as it takes"
    assert (
        max(sum(map(len, rows)) + len(rows) for _, rows in parts) <= 40_000 - homes_module.HEAD_SIZE
    )


@pytest.mark.parametrize(
    "row",
    [
        {},
        [],
        "row",
        {"vhost": "/", "source": "x", "kind": "exchange", "destination": "x", "routing_key": "", "arguments": ""},
        {"vhost": "/", "source": "", "kind": "queue", "destination": "q", "routing_key": "", "arguments": ""},
        {"vhost": "/", "source": "x", "kind": "queue", "destination": "q", "routing_key": 3, "arguments": ""},
        {"vhost": "/", "source": "x", "kind": "queue", "destination": "q", "routing_key": "", "arguments": "!"},
        {"vhost": "/", "source": "x", "kind": "queue", "destination": "q", "routing_key": "", "arguments": "AAAA"},
        {"vhost": "/", "source": "x", "kind": "queue", "destination": "q", "routing_key": "", "arguments": "", "place": "p"},
        {"vhost": "/", "source": "x", "kind": "queue", "destination": "none", "routing_key": "", "arguments": ""},
        {"vhost": "none", "source": "x", "kind": "queue", "destination": "q", "routing_key": "", "arguments": ""},
    ],
)  # fmt: skip
@pytest.mark.parametrize("verb", ["bind", "unbind"])
def test_what_others_write_there_harms_nobody(ends: FrontEnds, row: Any, verb: str) -> None:
    one, other_end = two(ends)
    client = one.connect(1)
    bound(ends, client)
    who = one.front_end.token.decode()
    payload = {"who": who, "n": homes(one)._number + 1, verb: [row]}
    one.own_link.write(encode_publish(HOMES, json.dumps(payload).encode()))
    ends.settle(2.0)
    other = confirming(other_end)
    assert told(ends, other) == TAKEN
    bound(ends, client, "p", "l")
    assert told(ends, other, "l") == TAKEN


NAMES = ("q", "r", "s")
OPERATIONS = (
    "declare",
    "bind",
    "bind",
    "unbind",
    "delete",
    "lose",
    "open",
    "exchange",
    "forget",
    "settle",
)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from(OPERATIONS), *[st.integers(0, 2)] * 3), max_size=40))
def test_all_have_the_same_bindings_whatever_happens(
    steps: list[tuple[str, int, int, int]],
) -> None:
    """Queues of different names at three front-ends, whose connections break; in the end all lead to all."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(homes_module, "AT_ONCE", 2)
        ends = FrontEnds(monkeypatch)
        clients = [ends.start().connect(1) for _ in range(3)]
        for client in clients:
            declare_exchange(client, "x0")
            declare_exchange(client, "x1", durable=False)
            ends.settle()
        expected: dict[tuple[int, str], set[tuple[str, str]]] = {}
        for verb, at, which, key in steps:
            client, name = clients[at], f"{NAMES[which]}{at}"
            binding = {"queue": name, "exchange": f"x{key % 2}", "routing_key": f"k{key}"}
            match verb:
                case "declare":
                    say(client, spec.Queue.Declare(queue=name))
                    expected.setdefault((at, name), set())
                case "bind" if (at, name) in expected:
                    say(client, spec.Queue.Bind(**binding))
                    expected[at, name].add((binding["exchange"], binding["routing_key"]))
                case "unbind" if (at, name) in expected:
                    say(client, spec.Queue.Unbind(**binding))
                    expected[at, name].discard((binding["exchange"], binding["routing_key"]))
                case "delete":
                    say(client, spec.Queue.Delete(queue=name))
                    expected.pop((at, name), None)
                case "lose" if ends.benches[at].own_link.is_open:
                    ends.benches[at].own_link.lose()
                case "open" if not ends.benches[at].own_link.is_open:
                    ends.benches[at].own_link.open()
                case "exchange" if ends.benches[at].own_link.is_open:
                    # Each front-end's own: what others have bound to it is theirs.
                    say(client, spec.Exchange.Delete(exchange="x1"))
                    declare_exchange(client, "x1", durable=False)
                    for (where, _), bindings in expected.items():
                        if where == at:
                            bindings -= {each for each in bindings if each[0] == "x1"}
                case "forget":
                    homes(ends.benches[at])._number += 1
                case "settle":
                    ends.settle(2.0 * which)
                case _:
                    pass
        for bench in ends.benches:
            if not bench.own_link.is_open:
                bench.own_link.open()
        ends.settle(3.0)
        wanted = {(name, *each) for (_, name), each_of in expected.items() for each in each_of}
        for bench in ends.benches:
            found = [
                (each.destination.name, exchange, each.routing_key.decode())
                for exchange in ("x0", "x1")
                for each in bench.vhost.exchanges[exchange].bindings
            ]
            assert sorted(found) == sorted(wanted)
