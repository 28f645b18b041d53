"""Streams as a client meets them, with servers in memory; real ones are in tests/cluster.

Covers: broker/replicated/retained_stream.py, broker/replicated/stream_figures.py
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pika import BasicProperties, spec

from burrowmq.broker.inspect.queues import queue_row
from burrowmq.broker.node.replication import ALONE
from burrowmq.broker.queue.rules.settings import QueueDeclaration
from burrowmq.broker.replicated.stream_queue import StreamQueue
from burrowmq.broker.rules.policy import Policy
from burrowmq.cluster.chunk import unpack_chunk
from burrowmq.cluster.wire import Delivered
from burrowmq.protocol.properties import decode
from tests.support.bench.client import Client
from tests.support.cluster_bench import ClusterBench
from tests.support.wire_client import publish_bytes

STREAM = {"x-queue-type": "stream"}


def publisher(bench: ClusterBench) -> Client:
    client = bench.connect(1)
    client.call(1, spec.Confirm.Select())
    return client


def declared(bench: ClusterBench, client: Client, **arguments: Any) -> StreamQueue:
    client.call(1, spec.Queue.Declare(queue="s", durable=True, arguments=STREAM | arguments))
    bench.settle()
    assert client.names() == ["Queue.DeclareOk"]
    found = bench.vhost.queues["s"]
    assert isinstance(found, StreamQueue)
    return found


def publish(bench: ClusterBench, client: Client, *bodies: bytes, **headers: Any) -> None:
    properties = BasicProperties(headers=headers) if headers else None
    client.send(*[publish_bytes(1, "", "s", body, properties=properties) for body in bodies])
    bench.settle()
    assert client.names() == ["Basic.Ack"]


def consume(
    bench: ClusterBench, offset: Any = "first", *, prefetch: int = 100, **arguments: Any
) -> Client:
    client = bench.connect(1)
    client.call(1, spec.Basic.Qos(prefetch_count=prefetch))
    found = arguments | ({} if offset is None else {"x-stream-offset": offset})
    client.call(1, spec.Basic.Consume(queue="s", consumer_tag="c", arguments=found))
    bench.settle()
    return client


def deliveries(client: Client) -> list[Any]:
    return [method for _, method in client.read() if method.NAME == "Basic.Deliver"]


def bodies(client: Client) -> list[bytes]:
    return [each.body for each in deliveries(client)]


def offset_in(delivery: Any) -> Any:
    header = delivery.raw_header
    frame = b"\2\0\1" + len(header).to_bytes(4, "big") + header + b"\xce"
    return (decode(frame).headers or {})["x-stream-offset"]


def stream(bench: ClusterBench) -> Any:
    return bench.stream().retained


def test_messages_go_in_chunks_and_are_confirmed_together(bench: ClusterBench) -> None:
    client = publisher(bench)
    queue = declared(bench, client)
    client.send(*[publish_bytes(1, "", "s", b"%d" % number) for number in range(30)])
    assert client.names() == []
    bench.settle()
    assert client.names() == ["Basic.Ack"]
    assert list(stream(bench).subjects.values()) == [f"{bench.stream().config['name']}.30"]
    assert len(unpack_chunk(stream(bench).held[1])) == 30
    assert (queue.ready_count, queue.unacked_count) == (30, 0)
    assert bench.stream().config["subjects"] == [f"{bench.stream().config['name']}.*"]


def test_each_consumer_has_all_from_where_it_wants_and_nothing_is_taken_out(
    bench: ClusterBench,
) -> None:
    client = publisher(bench)
    queue = declared(bench, client)
    publish(bench, client, b"0", b"1")
    publish(bench, client, b"2", b"3")
    first = consume(bench)
    found = deliveries(first)
    assert [each.body for each in found] == [b"0", b"1", b"2", b"3"]
    assert [offset_in(each) for each in found] == [0, 1, 4096, 4097]
    assert not any(each.redelivered for each in found)
    assert bodies(consume(bench, 1)) == [b"1", b"2", b"3"]
    assert bodies(consume(bench, 2)) == [b"2", b"3"]  # offsets have gaps
    assert bodies(consume(bench, 4097)) == [b"3"]
    assert bodies(consume(bench, "last")) == [b"2", b"3"]
    waiting = [consume(bench, offset) for offset in ("next", None, 9 * 4096)]
    assert [bodies(each) for each in waiting] == [[], [], []]
    first.call(1, spec.Basic.Ack(0, multiple=True))
    publish(bench, client, b"4")
    assert [bodies(each) for each in (first, *waiting)] == [[b"4"], [b"4"], [b"4"], []]
    assert (queue.ready_count, queue.unacked_count) == (5, 0)
    assert (queue.metrics.ack, queue.consumer_count) == (4, 8)
    assert len(stream(bench).held) == 3


def test_a_consumer_begins_at_an_instant_or_some_time_ago(bench: ClusterBench) -> None:
    client = publisher(bench)
    declared(bench, client)
    publish(bench, client, b"old")
    bench.settle(20)
    publish(bench, client, b"new")
    now_s = bench.scheduler.wall_ms() // 1000
    for age, expected in (("10s", [b"new"]), ("1h", [b"old", b"new"])):
        assert bodies(consume(bench, age)) == expected
    for at_s, expected in (
        (now_s - 10, [b"new"]),
        (now_s - 100, [b"old", b"new"]),
        (now_s + 9, []),
    ):
        assert bodies(consume(bench, _timestamp(at_s))) == expected


def _timestamp(at_s: int) -> Any:
    return datetime.fromtimestamp(at_s, UTC).replace(tzinfo=None)


def test_acknowledgements_are_credit_whatever_they_say(bench: ClusterBench) -> None:
    client = publisher(bench)
    queue = declared(bench, client)
    publish(bench, client, *[b"%d" % number for number in range(9)])
    other = consume(bench, prefetch=2)
    assert bodies(other) == [b"0", b"1"]
    expected = iter(range(2, 9))
    for answer in (
        spec.Basic.Ack(1),
        spec.Basic.Nack(2, requeue=True),
        spec.Basic.Nack(3, requeue=False),
        spec.Basic.Reject(4, requeue=True),
        spec.Basic.Reject(5, requeue=False),
    ):
        found = other.call(1, answer)
        bench.settle()
        ((_, found),) = [*found, *other.read()]
        assert (found.body, found.redelivered) == (b"%d" % next(expected), False)
    assert queue.ready_count == 9
    # One out of order is one.
    ((_, last),) = other.call(1, spec.Basic.Ack(7))
    assert last.body == b"7"


def test_what_a_consumer_holds_as_it_leaves_is_nobodys(bench: ClusterBench) -> None:
    client = publisher(bench)
    queue = declared(bench, client)
    publish(bench, client, b"0", b"1", b"2")
    other = consume(bench, prefetch=2)
    assert bodies(other) == [b"0", b"1"]
    other.call(1, spec.Basic.Cancel(consumer_tag="c"))
    other.call(1, spec.Basic.Nack(0, multiple=True, requeue=True))
    bench.settle()
    assert bodies(other) == []
    assert (queue.consumer_count, queue.ready_count, stream(bench).readers) == (0, 3, {})
    another = consume(bench, prefetch=1)
    another.lose()
    bench.settle()
    assert (queue.consumer_count, queue.counts.unacked_count, stream(bench).readers) == (0, 0, {})


def test_whoever_asks_for_what_a_stream_does_not_do_is_told_so(bench: ClusterBench) -> None:
    client = publisher(bench)
    declared(bench, client)
    where = "queue 's' in vhost '/'"
    assert client.refused(1, spec.Basic.Consume(queue="s")) == (
        406,
        f"PRECONDITION_FAILED - consumer prefetch count is not set for '{where}'",
    )
    assert client.refused(
        1, spec.Basic.Consume(queue="s", arguments={"x-stream-offset": "soon"})
    ) == (
        406,
        f"PRECONDITION_FAILED - invalid arg 'x-stream-offset' for {where}:"
        ' {invalid_stream_offset_arg,{longstr,<<"soon">>}}',
    )
    assert client.refused(1, spec.Basic.Consume(queue="s", arguments={"x-priority": 1})) == (
        406,
        f"PRECONDITION_FAILED - invalid arg 'x-priority' for {where} of queue type rabbit_stream_queue",
    )
    for methods, text in (
        ([spec.Basic.Get(queue="s")], f"basic.get not supported by stream queues {where}"),
        ([spec.Queue.Purge(queue="s")], f"queue.purge not supported by stream queues {where}"),
        (
            [spec.Basic.Qos(prefetch_count=1), spec.Basic.Consume(queue="s", no_ack=True)],
            f"automatic acknowledgement not supported by stream queues {where}",
        ),
        (
            [
                spec.Basic.Qos(prefetch_count=1),
                spec.Basic.Qos(prefetch_count=1, global_qos=True),
                spec.Basic.Consume(queue="s"),
            ],
            f"{where} does not support global qos",
        ),
    ):
        other = bench.connect(1)
        found = other.call(1, *methods)
        bench.settle()
        (_, close) = [*found, *other.read()][-1]
        assert (close.NAME, close.reply_code) == ("Connection.Close", 540)
        assert close.reply_text == f"NOT_IMPLEMENTED - {text}"


def test_a_stream_has_a_name_and_is_declared_as_it_was(bench: ClusterBench) -> None:
    client = publisher(bench)
    declared(bench, client, **{"x-max-age": "1h"})
    assert client.refused(1, spec.Queue.Declare(queue="", durable=True, arguments=STREAM)) == (
        406,
        "PRECONDITION_FAILED - Cannot declare a server-named queue for type rabbit_stream_queue",
    )
    code, text = client.refused(1, spec.Queue.Declare(queue="s", durable=True, arguments=STREAM))
    assert (code, "inequivalent arg 'x-max-age'" in text) == (406, True)


def test_consume_ok_comes_when_the_place_is_known_and_a_place_is_kept_if_its_server_starts_again(
    bench: ClusterBench,
) -> None:
    client = publisher(bench)
    declared(bench, client)
    publish(bench, client, b"0")
    other = bench.connect(1)
    other.call(1, spec.Basic.Qos(prefetch_count=9))
    assert other.call(1, spec.Basic.Consume(queue="s")) == []
    bench.settle()
    assert other.names() == ["Basic.ConsumeOk"]
    # What comes next is a sequence from here on, whatever becomes of the server's memory.
    assert stream(bench).made[-1]["opt_start_seq"] == 2
    publish(bench, client, b"1")
    assert bodies(other) == [b"1"]


@pytest.mark.parametrize("is_closed", [True, False])
def test_who_leaves_before_the_place_is_known_leaves_nothing(
    bench: ClusterBench, is_closed: bool
) -> None:
    client = publisher(bench)
    queue = declared(bench, client)
    other = bench.connect(1)
    other.call(1, spec.Basic.Qos(prefetch_count=9))
    assert other.call(1, spec.Basic.Consume(queue="s")) == []
    if is_closed:
        other.lose()
    else:
        queue.delete()
    bench.settle()
    assert (queue.consumer_count, queue._readers) == (0, {})
    if is_closed:
        assert stream(bench).readers == {}
    else:
        (_, close) = other.read()[-1]
        assert (close.reply_code, "is inaccessible" in close.reply_text) == (404, True)


def test_without_a_connection_nobody_consumes(bench: ClusterBench) -> None:
    client = publisher(bench)
    declared(bench, client)
    bench.link.lose()
    other = bench.connect(1)
    other.call(1, spec.Basic.Qos(prefetch_count=9))
    found = other.call(1, spec.Basic.Consume(queue="s"))
    bench.settle()
    (_, close) = [*found, *other.read()][-1]
    assert (close.NAME, close.reply_code) == ("Channel.Close", 404)
    assert close.reply_text.startswith("NOT_FOUND - queue 's' in vhost '/' is inaccessible")


def test_after_a_broken_connection_it_goes_on_behind_what_has_come(bench: ClusterBench) -> None:
    client = publisher(bench)
    declared(bench, client)
    publish(bench, client, b"0", b"1")
    other = consume(bench)
    waiting = consume(bench, "next")
    assert bodies(other) == [b"0", b"1"]
    client.send(publish_bytes(1, "", "s", b"2"))
    bench.link.lose()
    bench.settle()
    assert client.names() == []
    bench.link.open()
    bench.settle(2)
    assert client.names() == ["Basic.Ack"]
    assert (bodies(other), bodies(waiting)) == ([b"2"], [b"2"])


def test_a_reader_that_the_servers_have_lost_is_made_anew(bench: ClusterBench) -> None:
    client = publisher(bench)
    declared(bench, client)
    publish(bench, client, b"0", b"1")
    other = consume(bench)
    assert bodies(other) == [b"0", b"1"]
    stream(bench).readers.clear()  # the server that had it is gone: nobody answers
    publish(bench, client, b"2")
    assert bodies(other) == []
    bench.settle(12)
    assert bodies(other) == [b"2"]


def test_a_delivery_that_was_lost_comes_again_and_none_twice(bench: ClusterBench) -> None:
    client = publisher(bench)
    declared(bench, client)
    publish(bench, client, b"0")
    other = consume(bench)
    (reader,) = stream(bench).readers.values()
    reader.number += 1  # one that did not come
    reader.next_sequence += 1
    publish(bench, client, b"1")
    publish(bench, client, b"2")
    bench.settle(2)
    assert bodies(other) == [b"0", b"1", b"2"]
    # A server that is started again begins with what it was asked for.
    (reader,) = stream(bench).readers.values()
    reader.number, reader.next_sequence = 0, 1
    publish(bench, client, b"3")
    bench.settle(2)
    assert bodies(other) == [b"3"]


def test_a_reader_whose_server_says_nothing_is_made_anew(bench: ClusterBench) -> None:
    client = publisher(bench)
    declared(bench, client)
    publish(bench, client, b"0")
    other = consume(bench)
    assert bodies(other) == [b"0"]
    (reader,) = stream(bench).readers.values()
    reader.pulls.clear()  # it stands still, and what it was asked for with it
    publish(bench, client, b"1")
    bench.settle(6)
    assert bodies(other) == []
    bench.settle(6)
    assert bodies(other) == [b"1"]


def test_a_reader_at_a_copy_that_is_behind_is_made_anew(bench: ClusterBench) -> None:
    client = publisher(bench)
    declared(bench, client)
    publish(bench, client, b"0")
    other, waiting = consume(bench), consume(bench, 9 * 4096)
    assert bodies(other) == [b"0"]
    made = len(stream(bench).made)
    for reader in stream(bench).readers.values():
        reader.next_sequence = 99  # it has nothing for now, and says that it is there
    publish(bench, client, b"1")
    for _ in range(14):  # heartbeats come meanwhile
        for reader in stream(bench).readers.values():
            for link, inbox, _ in list(reader.pulls):
                beat = Delivered(link.sid_of(inbox), inbox, b"", b"NATS/1.0 100 Idle\r\n\r\n", b"")
                link.owner.received([beat])
        bench.settle(1)
    assert bodies(other) == [b"1"]
    assert bodies(waiting) == []
    assert len(stream(bench).made) == made + 1  # who waits for what is not there is left alone


def test_a_stream_that_was_deleted_elsewhere_is_another_one_and_read_from_its_beginning(
    bench: ClusterBench,
) -> None:
    client = publisher(bench)
    queue = declared(bench, client)
    for body in (b"0", b"1", b"2"):
        publish(bench, client, body)
    other = consume(bench)
    assert len(bodies(other)) == 3
    (name,) = bench.world.streams
    del bench.world.streams[name]
    client.send(publish_bytes(1, "", "s", b"new"))
    bench.settle(12)
    assert client.names() == ["Basic.Ack"]
    assert bodies(other) == [b"new"]
    assert queue.ready_count == 1


def test_what_is_no_chunk_is_told_and_passed_over(bench: ClusterBench) -> None:
    client = publisher(bench)
    declared(bench, client)
    publish(bench, client, b"0")
    publish(bench, client, b"1")
    stream(bench).held[1] = b"odd"
    assert bodies(consume(bench)) == [b"1"]
    assert [each for each in bench.observer.events if each[0] == "record_unreadable"]


def test_limits_are_the_streams_and_what_is_larger_than_all_of_it_is_nacked(
    bench: ClusterBench,
) -> None:
    client = publisher(bench)
    queue = declared(bench, client, **{"x-max-length-bytes": 10_000, "x-max-age": "2m"})
    config = bench.stream().config
    assert (config["max_bytes"], config["max_age"]) == (10_000, 120_000_000_000)
    for _ in range(5):
        publish(bench, client, *[b"x" * 100] * 100)
    bench.settle(6)
    assert 20 < queue.ready_count < 100
    assert sum(map(len, stream(bench).held.values())) <= 10_000
    client.send(publish_bytes(1, "", "s", b"x" * 9_900))
    bench.settle()
    assert client.names() == ["Basic.Nack"]
    bench.settle(300)
    assert queue.ready_count == 0


def test_a_policy_limits_a_stream_and_changes_nothing_else(bench: ClusterBench) -> None:
    client = publisher(bench)
    queue = declared(bench, client)
    publish(bench, client, b"0")
    bench.stream().config["num_replicas"] = 5  # an operator's
    policies = bench.vhost.policies

    def set_policy(apply_to: Any, **definition: Any) -> dict[str, Any]:
        policies.policies.clear()
        policies.policies["p"] = Policy(
            name="p", pattern="", definition=definition, apply_to=apply_to
        )
        policies.changed()
        bench.vhost.policies_changed()
        bench.settle()
        return bench.stream().config

    config = set_policy("streams", **{"max-age": "1D", "max-length-bytes": 50_000})
    assert (config["max_age"], config["max_bytes"]) == (86_400_000_000_000, 50_000)
    assert (config["num_replicas"], queue.settings.max_age_ms) == (5, 86_400_000)
    assert set_policy("quorum_queues", **{"max-age": "1D"})["max_age"] == 0
    assert set_policy("queues", **{"message-ttl": 5, "max-age": "1D"})["max_age"] == 0
    assert bench.vhost.effective_policy(queue).policy is None
    bench.link.lose()
    set_policy("all", **{"max-age": "2D"})
    bench.link.open()
    bench.settle()
    assert bench.stream().config["max_age"] == 2 * 86_400_000_000_000


def test_a_front_end_without_a_policy_leaves_limits_as_they_are(
    bench: ClusterBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = publisher(bench)
    declared(bench, client)
    bench.stream().config["max_age"] = 5_000_000_000
    other = ClusterBench(monkeypatch, world=bench.world)
    declared(other, publisher(other))
    other.settle()
    assert bench.stream().config["max_age"] == 5_000_000_000


def test_a_policy_says_how_many_servers_keep_a_new_one(bench: ClusterBench) -> None:
    bench.vhost.policies.policies["p"] = Policy(
        name="p", pattern="", definition={"initial-cluster-size": 1}
    )
    client = publisher(bench)
    declared(bench, client, **{"x-initial-cluster-size": 3})
    assert bench.stream().config["num_replicas"] == 1


@pytest.mark.parametrize(("size", "replicas"), [(1, 1), (2, 2), (9, 5), (None, 3)])
def test_so_many_servers_keep_it(bench: ClusterBench, size: int | None, replicas: int) -> None:
    declared(bench, publisher(bench), **({} if size is None else {"x-initial-cluster-size": size}))
    assert bench.stream().config["num_replicas"] == replicas


def test_a_consumer_is_given_what_it_wants(bench: ClusterBench) -> None:
    client = publisher(bench)
    declared(bench, client)
    publish(bench, client, b"a", b"b", **{"x-stream-filter-value": "apple"})
    publish(bench, client, b"c", **{"x-stream-filter-value": "banana"})
    publish(bench, client, b"d")
    assert bodies(consume(bench, **{"x-stream-filter": "banana"})) == [b"c"]
    assert bodies(consume(bench, **{"x-stream-filter": ["apple", "banana"]})) == [b"a", b"b", b"c"]
    unfiltered = {"x-stream-filter": "banana", "x-stream-match-unfiltered": True}
    assert bodies(consume(bench, **unfiltered)) == [b"c", b"d"]
    assert bodies(consume(bench, **{"x-stream-filter": "cherry"}, prefetch=1)) == []


def test_what_one_does_not_want_takes_none_of_its_credit(bench: ClusterBench) -> None:
    client = publisher(bench)
    declared(bench, client)
    for _ in range(30):
        publish(bench, client, *[b"x"] * 40, **{"x-stream-filter-value": "apple"})
    publish(bench, client, b"y", **{"x-stream-filter-value": "banana"})
    assert bodies(consume(bench, **{"x-stream-filter": "banana"}, prefetch=1)) == [b"y"]


def test_headers_come_as_they_went_with_one_more(bench: ClusterBench) -> None:
    client = publisher(bench)
    declared(bench, client)
    properties = BasicProperties(
        content_type="a/b", content_encoding="c", headers={"k": "v"}, expiration="500", priority=3
    )
    client.send(publish_bytes(1, "", "s", b"0", properties=properties))
    again = BasicProperties(headers={"x-stream-offset": 99, "k": "v"})
    client.send(publish_bytes(1, "", "s", b"1", properties=again))
    bench.settle()
    one, two = deliveries(consume(bench))
    frame = b"\2\0\1" + len(one.raw_header).to_bytes(4, "big") + one.raw_header + b"\xce"
    found = decode(frame)
    assert (found.content_type, found.content_encoding, found.expiration) == ("a/b", "c", "500")
    assert (found.priority, found.headers) == (3, {"k": "v", "x-stream-offset": 0})
    assert offset_in(two) == 1  # its own, not the one that it came with


def test_a_consumer_is_told_of_the_end_and_the_stream_goes(bench: ClusterBench) -> None:
    client = publisher(bench)
    declared(bench, client)
    publish(bench, client, b"0")
    other = bench.socket()
    other.open({"consumer_cancel_notify": True})
    other.call(1, spec.Channel.Open())
    other.call(1, spec.Basic.Qos(prefetch_count=9))
    other.call(1, spec.Basic.Consume(queue="s", consumer_tag="c"))
    bench.settle()
    other.read()
    client.call(1, spec.Queue.Delete(queue="s"))
    bench.settle()
    assert client.names() == ["Queue.DeleteOk"]
    assert other.names() == ["Basic.Cancel"]
    assert not bench.world.streams
    assert "s" not in bench.vhost.queues


def test_a_condition_keeps_a_stream_that_is_used_or_has_messages(bench: ClusterBench) -> None:
    client = publisher(bench)
    declared(bench, client)
    publish(bench, client, b"0")
    consume(bench)
    for condition, text in (("if_empty", "not empty"), ("if_unused", "in use")):
        client.call(1, spec.Queue.Delete(queue="s", **{condition: True}))
        bench.settle()
        ((_, close),) = client.read()
        assert close.reply_text == f"PRECONDITION_FAILED - queue 's' in vhost '/' {text}"
        client.call(1, spec.Channel.CloseOk(), spec.Channel.Open())


def test_a_restart_finds_the_stream(bench: ClusterBench, monkeypatch: pytest.MonkeyPatch) -> None:
    client = publisher(bench)
    declared(bench, client)
    publish(bench, client, b"0", b"1")
    rows = [(*key, value) for key, value in bench.engine.definitions.rows.items()]
    later = ClusterBench(monkeypatch, rows)
    later.world.streams.update(bench.world.streams)
    later.link.lose()
    later.link.open()
    later.settle()
    assert later.vhost.queues["s"].ready_count == 2
    assert bodies(consume(later)) == [b"0", b"1"]
    with pytest.raises(ValueError, match=r"a stream needs cluster\.urls"):
        ALONE.make_stream(QueueDeclaration(name="s", arguments=STREAM), None, None)  # type: ignore[arg-type]


def test_dead_letters_of_a_classic_queue_go_into_a_stream(bench: ClusterBench) -> None:
    client = publisher(bench)
    queue = declared(bench, client)
    to_stream = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "s"}
    client.call(1, spec.Queue.Declare(queue="source", arguments=to_stream))
    client.send(publish_bytes(1, "", "source", b"0"))
    bench.settle()
    client.read()
    client.call(1, spec.Basic.Get(queue="source"))
    client.call(1, spec.Basic.Nack(1, requeue=False))
    bench.settle()
    assert queue.ready_count == 1
    (found,) = deliveries(consume(bench))
    assert found.body == b"0"


def test_a_row_says_what_it_is(bench: ClusterBench) -> None:
    client = publisher(bench)
    queue = declared(bench, client)
    publish(bench, client, b"0")
    consume(bench, prefetch=1)
    columns = (
        "type",
        "messages",
        "messages_ready",
        "messages_unacknowledged",
        "leader",
        "consumers",
    )
    row = queue_row(None, bench.vhost, queue, columns)  # type: ignore[arg-type]
    assert list(row.values()) == ["stream", 1, 1, 0, "n2", 1]
    assert queue.flow.stored_count == 1
    assert queue.memory_bytes > 0


def test_a_default_type_is_a_stream_where_that_can_be(bench: ClusterBench) -> None:
    bench.vhost.default_queue_type = "stream"
    client = publisher(bench)
    client.call(1, spec.Queue.Declare(queue="s", durable=True))
    client.call(1, spec.Queue.Declare(queue="c", exclusive=True))
    bench.settle()
    assert client.names() == ["Queue.DeclareOk"] * 2
    assert [bench.vhost.queues[name].kind for name in "sc"] == ["stream", "classic"]
