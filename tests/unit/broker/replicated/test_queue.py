"""Quorum queues as a client meets them, with servers in memory; real ones are in tests/cluster.

Covers: broker/replicated/front_end.py, broker/replicated/intake.py, broker/replicated/overdue.py
Covers: broker/replicated/figures.py, broker/replicated/publishing.py, broker/replicated/wakeup.py
Covers: broker/node/replication.py, broker/queue/placement.py
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import pytest
from pika import BasicProperties, spec

from burrowmq.broker.inspect.queues import queue_row
from burrowmq.broker.node.replication import ALONE
from burrowmq.broker.queue.rules.settings import QueueDeclaration
from burrowmq.broker.replicated import intake as intake_module
from burrowmq.broker.replicated.front_end import OF_NO_USE, servers
from burrowmq.broker.replicated.looks import TRIM_COUNT
from burrowmq.broker.rules.policy import Policy
from burrowmq.cluster.wire import Delivered
from tests.support.bench.client import Client
from tests.support.cluster_bench import QUORUM, ClusterBench
from tests.support.quorum_clients import bodies, consume, publish, publisher
from tests.support.wire_client import method_bytes, publish_bytes


def asked(bench: ClusterBench, client: Client, *methods: Any) -> list[Any]:
    """What is answered at once, and when time has passed."""
    found = client.call(1, *methods)
    bench.settle()
    return [method for _, method in (*found, *client.read())]


def test_a_confirm_waits_for_the_majority_and_declare_for_the_stream(bench: ClusterBench) -> None:
    client = publisher(bench)
    queue = bench.declared(client)
    publish(client, b"1", b"2")
    assert client.names() == []
    bench.settle()
    assert client.names() == ["Basic.Ack"]
    assert (queue.ready_count, len(bench.stream().messages)) == (2, 2)
    (found,) = asked(bench, client, spec.Queue.Declare(queue="q", passive=True))
    assert (found.message_count, found.consumer_count) == (2, 0)


def test_a_queue_may_be_the_millionth_and_publish_without_an_end(bench: ClusterBench) -> None:
    client = publisher(bench)
    assert bench.front_end is not None
    bench.front_end._last_sid = 1_000_000
    queue = bench.declared(client)
    queue._publishing.window._burst_number = 10**12
    publish(client, b"1", b"2")
    bench.settle()
    assert client.names() == ["Basic.Ack"]


def test_a_full_stream_nacks(bench: ClusterBench) -> None:
    client = publisher(bench)
    bench.declared(client, **{"x-max-length": 2, "x-overflow": "reject-publish"})
    publish(client, b"1", b"2", b"3")
    bench.settle()
    assert client.names() == ["Basic.Ack", "Basic.Nack"]


def test_messages_are_taken_as_far_as_prefetch_says_and_acknowledged_in_the_stream(
    bench: ClusterBench,
) -> None:
    client = publisher(bench)
    queue = bench.declared(client)
    publish(client, *[b"x"] * 5)
    bench.settle()
    other = consume(bench, prefetch=2)
    assert bodies(other) == [(1, False), (2, False)]
    assert (queue.ready_count, queue.unacked_count, queue.ram_ready_count) == (3, 2, 0)
    other.call(1, spec.Basic.Ack(2, multiple=True))
    bench.settle()
    assert bodies(other) == [(3, False), (4, False)]
    assert sorted(bench.stream().messages) == [3, 4, 5]
    other.call(1, spec.Basic.Cancel(consumer_tag="c"))
    other.call(1, spec.Basic.Nack(0, multiple=True, requeue=True))
    bench.settle()
    assert (queue.ready_count, queue.unacked_count, queue.ram_ready_count) == (3, 0, 0)
    assert sorted(bench.stream().ready) == [3, 4, 5]  # for whichever front-end has consumers


def test_what_is_acknowledged_is_trimmed_up_to_what_is_not(bench: ClusterBench) -> None:
    client = publisher(bench)
    queue = bench.declared(client)
    publish(client, *[b"x"] * 5)
    bench.settle()
    other = consume(bench)
    other.call(1, spec.Basic.Ack(1), spec.Basic.Ack(2), spec.Basic.Ack(4))
    bench.settle()
    assert sorted(bench.stream().kept) == [1, 2, 4]
    bench.settle(6)
    assert sorted(bench.stream().kept) == [4]
    assert sorted(bench.stream().messages) == [3, 5]
    assert (queue.ready_count, queue.unacked_count) == (0, 2)
    other.call(1, spec.Basic.Ack(0, multiple=True))
    bench.settle(6)
    assert not bench.stream().kept
    assert bench.stream().last == 5


def test_where_its_length_counts_a_stream_keeps_nothing_that_is_acknowledged(
    bench: ClusterBench,
) -> None:
    client = publisher(bench)
    bench.declared(client, **{"x-max-length": 2, "x-overflow": "reject-publish"})
    publish(client, b"1", b"2")
    bench.settle()
    other = consume(bench)
    other.call(1, spec.Basic.Ack(2))
    bench.settle()
    publish(client, b"3")
    bench.settle()
    assert client.names() == ["Basic.Ack", "Basic.Ack"]
    assert (sorted(bench.stream().messages), bench.stream().kept) == ([1, 3], {})


def test_so_much_that_is_acknowledged_is_trimmed_at_once(bench: ClusterBench) -> None:
    client = publisher(bench)
    bench.declared(client)
    consume(bench, no_ack=True)
    for _ in range(TRIM_COUNT // 1_000 + 1):
        client.send(publish_bytes(1, "", "q", b"x") * 1_000)
        bench.settle()
    assert len(bench.stream().kept) < 2_000


def test_what_is_given_back_comes_again_here_with_its_count(bench: ClusterBench) -> None:
    client = publisher(bench)
    bench.declared(client)
    publish(client, b"1")
    bench.settle()
    other = consume(bench)
    assert bodies(other) == [(1, False)]
    for tag in (1, 2):
        ((again),) = asked(bench, other, spec.Basic.Reject(tag, requeue=True))
        assert (again.delivery_tag, again.redelivered) == (tag + 1, True)
    assert bench.world.said == []  # the server has heard nothing of it


def test_beyond_its_limit_a_message_is_a_dead_letter(bench: ClusterBench) -> None:
    client = publisher(bench)
    bench.queue("dead")
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    bench.declared(client, **arguments, **{"x-delivery-limit": 1})
    publish(client, b"1")
    bench.settle()
    other = consume(bench)
    for tag in (1, 2):
        other.call(1, spec.Basic.Reject(tag, requeue=True))
        bench.settle()
    assert bench.vhost.queues["dead"].ready_count == 1
    assert not bench.stream().messages
    assert bench.metrics.dead_lettered_delivery_limit == 1


def test_get_answers_when_the_server_does(bench: ClusterBench) -> None:
    client = publisher(bench)
    bench.declared(client)
    assert client.call(1, spec.Basic.Get(queue="q")) == []
    bench.settle()
    assert client.names() == ["Basic.GetEmpty"]
    publish(client, b"1", b"2")
    bench.settle()
    client.read()
    client.call(1, spec.Basic.Get(queue="q"), spec.Basic.Get(queue="q", no_ack=True))
    bench.settle()
    found = [method for _, method in client.read()]
    assert [(m.delivery_tag, m.message_count) for m in found] == [(1, 1), (2, 0)]
    assert list(bench.stream().messages) == [1]


def test_who_gets_from_a_cluster_that_does_not_answer_is_told_so(bench: ClusterBench) -> None:
    client = publisher(bench)
    bench.declared(client)
    bench.world.is_silent = True
    client.call(1, spec.Basic.Get(queue="q"))
    bench.settle(7)
    ((_, close),) = client.read()
    assert (close.reply_code, close.reply_text) == (
        404,
        "NOT_FOUND - queue 'q' in vhost '/' is inaccessible: no answer",
    )


def test_a_message_that_comes_twice_is_one(bench: ClusterBench) -> None:
    client = publisher(bench)
    bench.declared(client)
    publish(client, b"1")
    bench.settle()
    other = consume(bench)
    assert bodies(other) == [(1, False)]
    bench.world.again(bench.stream(), 1)  # it was not heard of for long
    bench.settle()
    assert bodies(other) == []
    other.call(1, spec.Basic.Ack(1))
    bench.settle()
    assert not bench.stream().messages


def test_what_is_held_for_long_is_said_to_be_worked_on(bench: ClusterBench) -> None:
    client = publisher(bench)
    bench.declared(client)
    publish(client, b"1")
    bench.settle()
    consume(bench)
    bench.settle(10)
    assert bench.world.said
    assert set(bench.world.said) == {b"+WPI"}


def test_a_broken_connection_is_made_good(bench: ClusterBench) -> None:
    client = publisher(bench)
    bench.declared(client)
    other = consume(bench)
    publish(client, b"1")
    bench.link.lose()
    bench.settle()
    assert client.names() == []
    found = asked(bench, client, spec.Queue.Declare(queue="q", passive=True))
    assert [method.NAME for method in found] == ["Channel.Close"]
    bench.link.open()
    bench.settle()
    assert bodies(other) == [(1, False)]


def test_a_bug_in_one_queue_is_told_and_costs_no_other(
    bench: ClusterBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = publisher(bench)
    broken = bench.declared(client, "broken")
    queue = bench.declared(client)

    def stumble(*_: object) -> None:
        raise LookupError("a bug")

    monkeypatch.setattr(broken, "cluster_opened", stumble)
    monkeypatch.setattr(broken, "cluster_lost", stumble)
    broken.ask(stumble)
    bench.settle()
    other = consume(bench)
    bench.link.lose()
    publish(client, b"1")
    bench.link.open()
    bench.settle(2)
    assert bodies(other) == [(1, False)]
    assert queue.unacked_count == 1
    found = [str(error) for _, error in bench.observer.named("bug_found")]
    assert found == ["a bug"] * 3


def test_purge_and_delete_wait_for_the_cluster(bench: ClusterBench) -> None:
    client = publisher(bench)
    bench.declared(client)
    publish(client, b"1", b"2")
    bench.settle()
    client.read()
    (found,) = asked(bench, client, spec.Queue.Purge(queue="q"))
    assert (found.message_count, len(bench.stream().messages)) == (2, 0)
    client.call(1, spec.Queue.Delete(queue="q", if_empty=True))
    assert "q" in bench.vhost.queues
    bench.settle()
    assert client.names() == ["Queue.DeleteOk"]
    assert not bench.world.streams
    assert not bench.vhost.queues


def test_a_queue_that_cannot_be_made_is_none_though_its_client_is_gone(
    bench: ClusterBench,
) -> None:
    client = publisher(bench)
    bench.world.is_silent = True
    client.call(1, spec.Queue.Declare(queue="q", durable=True, arguments=QUORUM))
    client.lose()
    assert "q" in bench.vhost.queues
    bench.settle(7)
    assert not bench.vhost.queues


@pytest.mark.parametrize("is_closed", [False, True])
def test_a_queue_whose_client_goes_while_its_stream_is_deleted_goes_too(
    bench: ClusterBench, is_closed: bool
) -> None:
    client = publisher(bench)
    bench.declared(client)
    publish(client, b"1")
    bench.settle()
    client.read()
    deleting = bench.connect(1)
    deleting.call(1, spec.Queue.Delete(queue="q"))
    while bench.world.streams:
        assert bench.world.run()
        bench.run()
    if is_closed:
        deleting.call(1, spec.Channel.Close(200, "", 0, 0))
    else:
        deleting.lose()
    bench.settle()
    assert not bench.vhost.queues
    declare = spec.Queue.Declare(queue="q", durable=True, arguments=QUORUM)
    (found,) = asked(bench, client, declare)
    assert (found.NAME, found.message_count) == ("Queue.DeclareOk", 0)
    publish(client, b"2")
    bench.settle()
    assert client.names() == ["Basic.Ack"]


def test_a_queue_that_cannot_be_made_is_none_and_its_stream_is_left_alone(
    bench: ClusterBench,
) -> None:
    client = publisher(bench)
    bench.declared(client)
    publish(client, b"1")
    bench.settle()
    client.read()
    bench.world.is_silent = True
    client.call(1, spec.Queue.Declare(queue="p", durable=True, arguments=QUORUM))
    bench.settle(7)
    assert [method.NAME for _, method in client.read()] == ["Channel.Close"]
    assert list(bench.vhost.queues) == ["q"]
    bench.world.is_silent = False
    bench.settle(3)
    assert len(bench.stream().messages) == 1


def test_a_queue_that_goes_with_its_virtual_host_takes_its_stream(bench: ClusterBench) -> None:
    client = publisher(bench)
    queue = bench.declared(client)
    bench.world.is_silent = True
    bench.vhost.delete_queue(queue)
    bench.settle(7)
    assert bench.world.streams
    declare = spec.Queue.Declare(queue="q", durable=True, arguments=QUORUM)
    client.call(1, declare)
    bench.settle(7)
    assert client.names() == ["Channel.Close"]
    bench.world.is_silent = False
    old = bench.stream()
    bench.settle(8)
    client.call(1, spec.Channel.CloseOk(), spec.Channel.Open())
    assert [method.NAME for method in asked(bench, client, declare)] == ["Queue.DeclareOk"]
    assert bench.stream() is not old
    assert bench.stream().has_consumer


def test_global_prefetch_and_foreign_arguments_are_refused(bench: ClusterBench) -> None:
    client = publisher(bench)
    bench.declared(client)
    shared = bench.connect(1)
    shared.call(1, spec.Basic.Qos(prefetch_count=1, global_qos=True))
    ((_, close),) = shared.call(1, spec.Basic.Consume(queue="q"))
    text = "NOT_IMPLEMENTED - queue 'q' in vhost '/' does not support global qos"
    assert (close.reply_code, close.reply_text) == (540, text)


def test_a_restart_finds_the_queue_and_without_a_cluster_it_is_left_alone(
    bench: ClusterBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = publisher(bench)
    bench.declared(client)
    publish(client, b"1")
    bench.settle()
    bench.link.lose()
    rows = [(*key, value) for key, value in bench.engine.definitions.rows.items()]
    later = ClusterBench(monkeypatch, rows)
    later.world.streams.update(bench.world.streams)
    later.link.open()
    later.settle()
    assert later.vhost.queues["q"].ready_count == 1
    away = ClusterBench(monkeypatch, rows)
    away.link.lose()
    away.world.streams.update(later.world.streams)
    away.vhost.delete_queue(away.vhost.queues["q"])
    away.settle(2)
    assert away.world.streams
    away.link.open()
    away.settle(2)
    assert not away.world.streams  # it is deleted as soon as somebody answers
    with pytest.raises(ValueError, match=r"a quorum queue needs cluster\.urls"):
        ALONE.make_queue(QueueDeclaration(name="q", arguments=QUORUM), None, None)  # type: ignore[arg-type]


def test_a_persistent_message_to_both_kinds_waits_for_both(bench: ClusterBench) -> None:
    client = publisher(bench)
    bench.declared(client)
    bench.queue("here", durable=True)
    for name in ("q", "here"):
        client.call(1, spec.Queue.Bind(queue=name, exchange="amq.fanout"))
        bench.settle()
    client.read()
    bench.world.is_silent = True
    properties = BasicProperties(delivery_mode=2)
    client.send(publish_bytes(1, "amq.fanout", "", b"x", properties=properties))
    bench.settle()
    assert client.names() == []
    bench.world.is_silent = False
    bench.settle(2)
    assert client.names() == ["Basic.Ack"]


def test_what_another_front_end_does_shows_in_the_counts_of_an_idle_one(
    bench: ClusterBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = publisher(bench)
    bench.declared(client)
    idle = ClusterBench(monkeypatch, world=bench.world)
    idle_queue = idle.declared(publisher(idle))

    def pass_time(seconds: float) -> None:
        for _ in range(int(seconds * 10)):
            bench.settle()
            idle.settle()

    pass_time(30)
    publish(client, b"1", b"2", b"3")
    pass_time(2)
    assert idle_queue.ready_count == 3
    bench.vhost.queues["q"].purge()
    pass_time(8)
    assert idle_queue.ready_count == 0
    looks = bench.world.look_count
    pass_time(30)
    assert bench.world.look_count == looks  # nobody asks while nothing happens
    bench.world.streams.popitem()[1].purge(4)
    pass_time(120)
    assert bench.world.look_count > looks  # but once in a while


def test_who_keeps_a_queue_is_shown(bench: ClusterBench) -> None:
    queue = bench.declared(publisher(bench))
    assert queue.placement == ("n2", ("n1", "n2", "n3"), ("n1", "n2", "n3"))
    node: Any = None  # these columns do not ask it
    row = queue_row(node, bench.vhost, queue, ("leader", "members", "online"))
    assert row == {"leader": "n2", "members": ["n1", "n2", "n3"], "online": ["n1", "n2", "n3"]}
    assert queue_row(node, bench.vhost, bench.queue("c"), ("members",)) == {"members": None}


def test_what_a_refused_look_leaves_is_looked_at_again_soon(bench: ClusterBench) -> None:
    queue = bench.declared(publisher(bench))
    bench.settle(1.0)
    bench.world.is_leaderless = True
    told: list[object] = []
    queue.ask(told.append)
    bench.settle()
    assert told != [None]
    assert queue.placement == ("", ("n1", "n2", "n3"), ())
    looks = bench.world.look_count
    bench.settle(11.0)
    assert bench.world.look_count == looks, "the fake counts those that it answers"
    bench.world.is_leaderless = False
    bench.settle(5.2)
    assert queue.placement == ("n2", ("n1", "n2", "n3"), ("n1", "n2", "n3"))
    looks = bench.world.look_count
    bench.settle(30.0)
    assert bench.world.look_count - looks <= 1, "an idle queue is left alone again"


@pytest.mark.parametrize("server_count", [1, 3])
def test_a_server_with_nobody_behind_it_is_left_if_there_are_others(
    bench: ClusterBench, server_count: int
) -> None:
    queue = bench.declared(publisher(bench))
    front_end = bench.front_end
    assert front_end is not None
    front_end._servers = tuple(servers(["nats://fake"] * server_count, None, None))
    bench.world.is_leaderless = True
    queue.ask(lambda _: None)
    bench.settle(12.0)
    assert bench.link.left == []
    bench.settle(12.0)
    assert bench.link.left == [OF_NO_USE] * (server_count > 1)
    bench.settle(15.0)
    assert len(bench.link.left) == (server_count > 1), "longer each time"
    bench.world.is_leaderless = False
    bench.settle(60.0)
    assert len(bench.link.left) == (server_count > 1)


def test_without_a_prefetch_a_consumer_holds_two_thousand(bench: ClusterBench) -> None:
    """As RabbitMQ's quorum queues have it; nobody who acknowledges by himself has a limit."""
    client = publisher(bench)
    queue = bench.declared(client)
    publish(client, *[b"m"] * 2_500)
    bench.settle()
    consumer = consume(bench)
    bench.settle(1)
    assert len(bodies(consumer)) == 2_000
    consumer.send(method_bytes(1, spec.Basic.Ack(100, multiple=True)))
    bench.settle(1)
    assert len(bodies(consumer)) == 100
    assert queue.ready_count == 400
    consume(bench, no_ack=True)
    bench.settle(1)
    assert queue.ready_count == 0


@pytest.mark.parametrize("small_count", [0, 400])
def test_what_is_pulled_ahead_has_a_limit_of_octets(
    bench: ClusterBench, monkeypatch: pytest.MonkeyPatch, small_count: int
) -> None:
    """Also where nothing is known of their size, or those before were small."""
    most = 4 << 20
    monkeypatch.setattr(intake_module, "AHEAD_BYTES", most)
    client = publisher(bench)
    queue = bench.declared(client)
    consumer = consume(bench, prefetch=100)
    for _ in range(small_count // 100):
        publish(client, *[b"s"] * 100)
        bench.settle()
        assert len(bodies(consumer)) == 100
        consumer.send(method_bytes(1, spec.Basic.Ack(0, multiple=True)))
        bench.settle()
    publish(client, *[b"x" * 100_000] * 400)
    bench.settle()
    count, ahead = 0, queue._shelf.size
    for _ in range(100):
        count += len(bodies(consumer))
        consumer.send(method_bytes(1, spec.Basic.Ack(0, multiple=True)))
        bench.settle(0.05)
        ahead = max(ahead, queue._shelf.size)
    assert count == 400
    assert ahead <= 2 * most + 100_000, "two requests may be open"


DEAD = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}


def test_what_nobody_consumes_expires_in_the_stream_in_its_time(bench: ClusterBench) -> None:
    client = publisher(bench)
    dead = bench.queue("dead")
    queue = bench.declared(client, **DEAD, **{"x-message-ttl": 3_000})
    publish(client, b"1", b"2")
    bench.settle(1)
    publish(client, *[b"x"] * 100)
    bench.settle(1.5)
    assert (queue.ready_count, dead.ready_count) == (102, 0)
    assert bench.world.said == []  # nobody was given anything
    bench.settle(1)
    assert (queue.ready_count, dead.ready_count) == (100, 2)
    bench.settle(1)
    assert (queue.ready_count, dead.ready_count) == (0, 102)
    assert set(bench.world.said) == {b"ack"}
    assert bench.metrics.dead_lettered_expired == 102
    looks = bench.world.look_count
    bench.settle(20)
    assert bench.world.look_count < looks + 5  # nobody asks while nothing is there


def test_a_message_has_its_own_expiration_which_counts_at_the_head(bench: ClusterBench) -> None:
    client = publisher(bench)
    bench.declared(client)
    for body, expiration in ((b"1", "5000"), (b"2", "1000"), (b"3", None), (b"4", "1")):
        properties = BasicProperties(expiration=expiration)
        client.send(publish_bytes(1, "", "q", body, properties=properties))
        bench.settle()
    bench.settle(3)
    assert sorted(bench.stream().messages) == [1, 2, 3, 4]
    bench.settle(4)
    assert sorted(bench.stream().messages) == [3, 4]  # behind one that stays


def test_what_a_consumer_has_no_credit_for_expires_and_what_it_has_does_not(
    bench: ClusterBench,
) -> None:
    client = publisher(bench)
    bench.declared(client, **{"x-message-ttl": 2_000})
    other = consume(bench, prefetch=1)
    publish(client, b"1", b"2", b"3")
    bench.settle(3)
    assert bodies(other) == [(1, False)]
    assert list(bench.stream().messages) == [1]
    other.call(1, spec.Basic.Nack(1, requeue=True))
    bench.settle()
    assert bodies(other) == []  # it expired when it came back
    assert not bench.stream().messages


def test_nobody_gets_what_has_expired(bench: ClusterBench) -> None:
    client = publisher(bench)
    dead = bench.queue("dead")
    queue = bench.declared(client, **DEAD, **{"x-message-ttl": 1_000})
    publish(client, b"1", b"2")
    bench.settle(0.9)
    client.read()
    bench.link.lose()
    bench.settle(1)  # both are due, and nobody can look
    publish(client, b"3")
    bench.link.open()
    found = asked(bench, client, spec.Basic.Get(queue="q"), spec.Basic.Get(queue="q"))
    got = [method for method in found if method.NAME != "Basic.Ack"]
    assert [method.NAME for method in got] == ["Basic.GetOk", "Basic.GetEmpty"]
    assert list(bench.stream().messages) == [3]
    assert (queue.unacked_count, dead.ready_count) == (1, 2)


def test_what_was_pulled_ahead_expires_too(bench: ClusterBench) -> None:
    client = publisher(bench)
    queue = bench.declared(client, **{"x-message-ttl": 2_000})
    other = consume(bench, prefetch=100)
    publish(client, *[b"x"] * 150)
    bench.settle(1)
    assert queue.ram_ready_count == 50
    publish(client, b"y")
    bench.settle(1.5)
    assert len(bodies(other)) == 100
    assert queue.ram_ready_count == 1
    (last,) = asked(bench, other, spec.Basic.Ack(0, multiple=True))
    assert (last.delivery_tag, last.redelivered) == (101, False)


def test_a_policy_sets_the_time_to_live_and_takes_it_away(bench: ClusterBench) -> None:
    client = publisher(bench)
    queue = bench.declared(client)
    publish(client, b"1")
    bench.settle(1)
    queue.change_settings(replace(queue.settings, message_ttl_ms=60_000))
    bench.settle(1)
    queue.change_settings(replace(queue.settings, message_ttl_ms=3_000))
    bench.settle(1.5)
    assert not bench.stream().messages


def test_what_another_front_end_pulls_is_left_to_it(
    bench: ClusterBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = publisher(bench)
    bench.declared(client, **{"x-message-ttl": 60_000})
    other = ClusterBench(monkeypatch, world=bench.world)
    other.declared(publisher(other), **{"x-message-ttl": 60_000})
    taker = consume(other, prefetch=1)
    publish(client, b"1")
    for _ in range(100):
        bench.settle()
        other.settle()
    assert bodies(taker) == [(1, False)]
    assert bench.world.said.count(b"-NAK") == 0


def test_who_publishes_more_than_the_cluster_takes_is_not_read_and_what_nobody_takes_is_refused(
    bench: ClusterBench,
) -> None:
    client = publisher(bench)
    bench.declared(client)
    bench.world.is_silent = True
    run = publish_bytes(1, "", "q", b"x" * 10) * 1000
    for _ in range(18):
        client.send(run)
    assert list(client.pauses) == ["cluster"]
    bench.settle(3)
    assert not client.pauses  # it is not a matter of load
    client.send(run)
    assert client.names() == ["Basic.Nack"] * 1000  # at once: only those before may still be stored
    bench.world.is_silent = False
    bench.settle(3)
    client.send(run)
    bench.settle(2)
    assert "Basic.Nack" not in client.names()
    assert not client.pauses
    assert len(bench.stream().messages) == 19_000


def test_a_queue_with_too_much_holds_back_only_those_who_publish_to_it(
    bench: ClusterBench,
) -> None:
    client = bench.connect(1)
    bench.declared(client)
    bench.declared(client, "other")
    bench.queue("classic")
    bench.world.is_silent = True
    client.send(publish_bytes(1, "", "q", b"x") * 17_000)
    assert list(client.pauses) == ["cluster"]
    for key in ("classic", "other"):
        elsewhere = bench.connect(1)
        elsewhere.send(publish_bytes(1, "", key, b"x"))
        assert not elsewhere.pauses
    late = publisher(bench)
    late.send(publish_bytes(1, "", "classic", b"x") + publish_bytes(1, "", "q", b"x"))
    assert list(late.pauses) == ["cluster"]
    bench.vhost.delete_queue(bench.vhost.queues["q"])
    assert not client.pauses


def test_what_is_published_without_a_connection_is_refused_after_thirty_seconds(
    bench: ClusterBench,
) -> None:
    client = publisher(bench)
    bench.declared(client)
    bench.link.lose()
    publish(client, b"1", b"2")
    bench.settle(29.5)
    assert client.names() == []
    bench.settle(1)
    assert client.names() == ["Basic.Nack"]


def test_without_a_connection_a_declaration_is_refused_at_once(bench: ClusterBench) -> None:
    client = publisher(bench)
    bench.link.lose()
    declare = spec.Queue.Declare(queue="q", durable=True, arguments=QUORUM)
    assert [method.NAME for method in asked(bench, client, declare)] == ["Channel.Close"]
    assert not bench.vhost.queues
    bench.link.open()
    bench.settle(2)
    client.call(1, spec.Channel.CloseOk(), spec.Channel.Open())
    assert [method.NAME for method in asked(bench, client, declare)] == ["Queue.DeclareOk"]


def test_a_consumer_that_is_gone_is_made_again(bench: ClusterBench) -> None:
    client = publisher(bench)
    bench.declared(client)
    other = consume(bench)
    stream = bench.stream()
    stream.has_consumer = False
    link, reply, _ = stream.pulls.popleft()
    status = b"NATS/1.0 409 Consumer Deleted\r\n\r\n"
    link.owner.received([Delivered(link.sid_of(reply), reply, b"", status, b"")])
    bench.settle(2)
    assert stream.has_consumer
    publish(client, b"1")
    bench.settle()
    assert bodies(other) == [(1, False)]


def test_what_is_none_of_ours_is_left_out(bench: ClusterBench) -> None:
    client = publisher(bench)
    bench.declared(client)
    stream = bench.stream()
    stream.last, stream.messages = 1, {1: b"nonsense"}
    stream.ready.append(1)
    publish(client, b"1")
    other = consume(bench)
    assert len(bodies(other)) == 1
    (found,) = bench.observer.named("record_unreadable")
    assert found[:3] == ("/", "q", 1)
    assert list(stream.messages) == [2]


def test_what_comes_for_a_consumer_that_has_left_goes_back(bench: ClusterBench) -> None:
    client = publisher(bench)
    bench.declared(client)
    other = consume(bench)
    publish(client, b"1")
    other.call(1, spec.Basic.Cancel(consumer_tag="c"))
    bench.settle()
    assert list(bench.stream().ready) == [1]


def test_who_declares_or_consumes_as_a_quorum_queue_does_not_allow_is_told_so(
    bench: ClusterBench,
) -> None:
    client = publisher(bench)
    queue = bench.declared(client)
    consume = functools.partial(spec.Basic.Consume, queue="q")
    for method, text in (
        (
            spec.Queue.Declare(queue="", durable=True, arguments=QUORUM),
            "PRECONDITION_FAILED - Cannot declare a server-named queue for type rabbit_quorum_queue",
        ),
        (
            spec.Queue.Declare(queue="q", durable=True, arguments={"x-queue-type": "classic"}),
            "PRECONDITION_FAILED - inequivalent arg 'x-queue-type' for queue 'q' in vhost '/':"
            " received 'classic' but current is 'quorum'",
        ),
        (
            consume(arguments={"x-stream-offset": "last"}),
            "PRECONDITION_FAILED - invalid arg 'x-stream-offset' for queue 'q' in vhost '/'"
            " of queue type rabbit_quorum_queue",
        ),
        (
            consume(arguments={"x-cancel-on-ha-failover": True}),
            "PRECONDITION_FAILED - invalid arg 'x-cancel-on-ha-failover' for queue 'q' in vhost '/'"
            " of queue type rabbit_quorum_queue",
        ),
        (
            consume(arguments={"x-priority": "important"}),
            "PRECONDITION_FAILED - invalid arg 'x-priority' for queue 'q' in vhost '/':"
            ' "expected integer, got longstr"',
        ),
    ):
        ((_, close),) = client.call(1, method)
        assert close.reply_text == text
        client.call(1, spec.Channel.CloseOk(), spec.Channel.Open())
    assert queue.consumer_count == 0


def test_a_policy_for_quorum_queues_sets_the_limit_of_deliveries_and_takes_it_away(
    bench: ClusterBench,
) -> None:
    client = publisher(bench)
    bench.queue("dead")
    bench.declared(client, **DEAD)
    publish(client, b"1", b"2")
    bench.settle()
    policies = bench.vhost.policies
    policies.policies["p"] = Policy(
        name="p", pattern="^q$", apply_to="quorum_queues", definition={"delivery-limit": 0}
    )
    bench.vhost.policies_changed()
    bench.settle()
    other = consume(bench)
    other.call(1, spec.Basic.Reject(1, requeue=True))
    bench.settle()
    assert bench.vhost.queues["dead"].ready_count == 1
    policies.policies.clear()
    bench.vhost.policies_changed()
    bench.settle()
    for tag in (2, 3, 4):
        other.call(1, spec.Basic.Reject(tag, requeue=True))
        bench.settle()
    assert bench.vhost.queues["dead"].ready_count == 1
    assert list(bench.stream().messages) == [2]


def test_the_consumer_of_the_highest_priority_that_has_credit_is_served(
    bench: ClusterBench,
) -> None:
    client = publisher(bench)
    bench.declared(client)
    low = consume(bench, prefetch=2)
    high = consume(bench, prefetch=2, arguments={"x-priority": 10})
    for expected in ((0, 1), (0, 1), (1, 0)):
        publish(client, b"x")
        bench.settle()
        assert (len(bodies(low)), len(bodies(high))) == expected
    high.call(1, spec.Basic.Ack(1))
    publish(client, b"x")
    bench.settle()
    assert (len(bodies(low)), len(bodies(high))) == (0, 1)


def test_what_a_consumer_gives_back_as_it_leaves_is_there_for_the_next(bench: ClusterBench) -> None:
    client = publisher(bench)
    bench.declared(client)
    publish(client, b"1")
    other = consume(bench)
    assert bodies(other) == [(1, False)]
    other.call(1, spec.Basic.Reject(1, requeue=True), spec.Basic.Cancel(consumer_tag="c"))
    bench.settle(1)
    other.read()
    (found,) = asked(bench, client, spec.Queue.Declare(queue="q", passive=True))[-1:]
    assert (found.message_count, found.consumer_count) == (1, 0)
    assert bodies(consume(bench)) == [(1, True)]


def test_a_tag_is_used_again_while_what_it_was_given_is_unacknowledged(
    bench: ClusterBench,
) -> None:
    client = publisher(bench)
    queue = bench.declared(client)
    publish(client, b"1")
    other = consume(bench)
    assert bodies(other) == [(1, False)]
    other.call(1, spec.Basic.Cancel(consumer_tag="c"))
    other.call(1, spec.Basic.Consume(queue="q", consumer_tag="c"))
    publish(client, b"2")
    bench.settle()
    assert bodies(other) == [(2, False)]
    other.call(1, spec.Basic.Ack(1, multiple=True))
    other.call(1, spec.Basic.Cancel(consumer_tag="c"))
    other.call(1, spec.Basic.Ack(2))
    bench.settle()
    assert (queue.ready_count, queue.unacked_count) == (0, 0)
    assert not bench.stream().messages


def test_a_condition_keeps_a_queue_that_is_used_or_has_messages(bench: ClusterBench) -> None:
    client = publisher(bench)
    bench.declared(client)
    publish(client, b"1")
    consume(bench, prefetch=1)
    publish(client, b"2")
    bench.settle()
    client.read()
    for method, text in (
        (spec.Queue.Delete(queue="q", if_empty=True), "not empty"),
        (spec.Queue.Delete(queue="q", if_unused=True), "in use"),
    ):
        (close,) = asked(bench, client, method)
        assert close.reply_text == f"PRECONDITION_FAILED - queue 'q' in vhost '/' {text}"
        client.call(1, spec.Channel.CloseOk(), spec.Channel.Open())


def test_headers_come_as_they_went(bench: ClusterBench) -> None:
    client = publisher(bench)
    bench.declared(client)
    for headers in (None, {}, {"a": 1}):
        properties = BasicProperties(headers=headers)
        client.send(publish_bytes(1, "", "q", b"x", properties=properties))
    bench.settle()
    client.read()
    found = []
    for _ in range(3):
        ((got),) = asked(bench, client, spec.Basic.Get(queue="q", no_ack=True))
        properties = BasicProperties()
        properties.decode(got.raw_header[12:])
        found.append(properties.headers)
    assert found == [None, {}, {"a": 1}]


@pytest.mark.parametrize("is_quorum", [True, False])
def test_dead_letters_go_from_one_type_to_the_other(bench: ClusterBench, is_quorum: bool) -> None:
    client = publisher(bench)
    if is_quorum:
        bench.declared(client, **DEAD)
        dead = bench.queue("dead", durable=True)
    else:
        bench.queue("q", durable=True, arguments=DEAD)
        dead = bench.declared(client, "dead")  # type: ignore[assignment]
    publish(client, b"1")
    bench.settle()
    client.read()
    (got,) = asked(bench, client, spec.Basic.Get(queue="q"))
    client.call(1, spec.Basic.Reject(got.delivery_tag, requeue=False))
    bench.settle(1)
    assert dead.ready_count == 1
    assert bench.vhost.queues["q"].ready_count == 0


def test_a_default_type_is_that_of_what_can_be_it(bench: ClusterBench) -> None:
    client = publisher(bench)
    bench.vhost.default_queue_type = "quorum"
    for name, fields in (
        ("q", {"durable": True}),
        ("transient", {}),
        ("gone-with-its-last", {"durable": True, "auto_delete": True}),
        ("own", {"durable": True, "exclusive": True}),
        ("said", {"durable": True, "arguments": {"x-queue-type": "classic"}}),
    ):
        asked(bench, client, spec.Queue.Declare(queue=name, **fields))
        expected = "quorum" if name == "q" else "classic"
        assert bench.vhost.queues[name].kind == expected
        assert bench.vhost.queues[name].arguments == {"x-queue-type": expected}


def test_what_was_acknowledged_to_a_server_that_died_is_acknowledged_again_and_given_to_nobody(
    bench: ClusterBench,
) -> None:
    client = publisher(bench)
    queue = bench.declared(client)
    publish(client, b"1", b"2", b"3")
    bench.settle()
    other = consume(bench)
    assert len(bodies(other)) == 3
    bench.world.loses_acks = True
    other.call(1, spec.Basic.Ack(2, multiple=True))
    bench.settle(1.0)
    assert sorted(bench.stream().messages) == [1, 2, 3]
    bench.world.loses_acks = False
    bench.world.again(bench.stream(), 2)
    bench.settle(0.1)
    assert bodies(other) == []
    assert sorted(bench.stream().messages) == [1, 3], "its acknowledgement was repeated at once"
    bench.settle(2.0)
    assert sorted(bench.stream().messages) == [3]
    assert queue.unacked_count == 1
    bench.world.again(bench.stream(), 3)
    other.call(1, spec.Basic.Ack(3))
    bench.settle(0.1)
    assert bodies(other) == []
    said = bench.world.said.count(b"ack")
    bench.settle(10.0)
    assert bench.world.said.count(b"ack") == said == 5, "what is answered is not said again"


def test_acknowledgements_that_a_broken_connection_took_along_go_by_the_next_one(
    bench: ClusterBench,
) -> None:
    client = publisher(bench)
    bench.declared(client)
    publish(client, b"1", b"2")
    bench.settle()
    other = consume(bench)
    assert len(bodies(other)) == 2
    bench.world.loses_acks = True
    other.call(1, spec.Basic.Ack(0, multiple=True))
    bench.settle(0.1)
    bench.link.lose()
    bench.world.loses_acks = False
    bench.settle(0.5)
    bench.link.open()
    bench.settle(0.1)
    assert not bench.stream().messages


def test_what_is_held_of_a_stream_that_was_deleted_and_made_again_acknowledges_nothing_there(
    bench: ClusterBench,
) -> None:
    """By another front-end; this one meets the new stream when it connects, or with a look."""
    client = publisher(bench)
    queue = bench.declared(client)
    publish(client, *[b"x"] * 6)
    bench.settle()
    other = consume(bench, prefetch=3)
    assert len(bodies(other)) == 3
    old = bench.stream()
    bench.link.lose()
    name = str(old.config["name"])
    new = bench.world.streams[name] = type(old)(old.config)
    new.has_consumer = True
    assert new.created != old.created
    new.messages = dict(old.messages)
    new.last = old.last
    new.counts = dict.fromkeys(new.messages, 1)  # all are handed out elsewhere
    bench.link.open()
    bench.settle()
    other.call(1, spec.Basic.Ack(2, multiple=True), spec.Basic.Nack(3, requeue=True))
    bench.settle()
    assert len(new.messages) == 6
    assert bodies(other) == []
    assert queue.unacked_count == 0
    new.ready.append(3)
    bench.settle()
    assert bodies(other) == [(4, True)]
