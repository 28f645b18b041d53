"""How far a reader reads ahead: the rest is in test_stream_queue."""

from __future__ import annotations

from typing import Any, cast

from burrowmq.broker.queue.rules.stream import OffsetSpec
from burrowmq.broker.queue.serve.consumer import Consumer
from burrowmq.broker.replicated.reader import AHEAD_BYTES, Reader, start_of
from burrowmq.cluster import retained
from burrowmq.cluster.api import Document, Request
from burrowmq.cluster.chunk import pack_chunk
from burrowmq.cluster.record import pack
from burrowmq.cluster.wire import Delivered
from burrowmq.protocol.codec import join_address
from burrowmq.protocol.properties import Properties, build

RECORD = pack(build(join_address(b"", b"s"), Properties(), b"x" * 1000))


class Servers:
    """A front-end whose servers answer at once, and deliver what `deliver` says."""

    def __init__(self) -> None:
        self.token = b"t"
        self.written: list[bytes] = []
        self.handler: Any = None
        self.sequence = 0

    def now_ms(self) -> float:
        return 1_000.0

    def subscribe(self, handler: Any) -> tuple[int, bytes]:
        self.handler = handler
        return 7, b"in.7"

    def unsubscribe(self, sid: int) -> None:
        assert sid == 7

    def ask(self, request: Request, then: Any) -> None:
        found: Document = {"delivered": {"stream_seq": 0}}
        then(found)

    def write(self, data: bytes) -> None:
        if data:
            self.written.append(data)

    def deliver(self, count: int, messages: int) -> None:
        payload = pack_chunk([RECORD] * messages)
        deliveries = []
        for _ in range(count):
            self.sequence += 1
            reply = b"$JS.ACK.S.r.1.%d.%d.1.0" % (self.sequence, self.sequence)
            deliveries.append(Delivered(7, b"S.1", reply, b"", payload))
        self.handler(deliveries)


def ignore(*_: object) -> None:
    """Nothing is to be done."""


def opened() -> tuple[Servers, Reader]:
    servers = Servers()
    told: list[str] = []
    reader = Reader(
        Consumer("c", cast("Any", None)),
        "S",
        cast("Any", servers),
        (retained.FIRST, 0),
        None,
        changed=ignore,
        on_lost=ignore,
        on_unreadable=ignore,
    )
    reader.begin(told.append)
    assert told == [""]
    return servers, reader


def test_large_chunks_are_asked_for_one_by_one_and_no_more_than_there_is_room_for() -> None:
    servers, reader = opened()
    for _ in range(20):
        reader.send(1_000.0)
        if not reader.asked_count:
            break
        servers.deliver(reader.asked_count, 400)
    assert reader.size <= 2 * AHEAD_BYTES
    run, looked = reader.take(1, 1 << 20)
    assert run is not None
    assert (len(run.messages), looked) == (1, len(pack_chunk([RECORD] * 400)))


def test_small_chunks_are_asked_for_many_at_once() -> None:
    servers, reader = opened()
    for _ in range(20):
        reader.send(1_000.0)
        servers.deliver(max(1, reader.asked_count // 2), 1)
        while reader.has_more:
            reader.take(100, 1 << 20)
    reader.send(1_000.0)
    assert reader.asked_count > 30


def test_a_run_is_as_large_as_there_is_credit_and_room() -> None:
    servers, reader = opened()
    reader.send(1_000.0)
    servers.deliver(1, 10)
    for count, size, expected in ((3, 1 << 20, 3), (9, 1, 1), (9, 2_500, 2), (9, 1 << 20, 4)):
        run, _ = reader.take(count, size)
        assert run is not None
        assert len(run.messages) == expected
    assert not reader.has_more


def test_where_it_begins() -> None:
    assert start_of(OffsetSpec("", offset=4096 + 7), 0) == (retained.at_sequence(2), 4103)
    assert start_of(OffsetSpec("", offset=-3), 0) == (retained.at_sequence(1), 0)
    assert start_of(OffsetSpec("", ago_ms=5), 12) == (retained.at_time(7), 0)
    assert start_of(OffsetSpec("", at_ms=5), 12) == (retained.at_time(5), 0)
    assert start_of(OffsetSpec("last"), 0) == (retained.LAST, 0)


def test_only_who_has_waited_for_long_for_what_is_there_is_given_another_place() -> None:
    servers, reader = opened()
    reader.send(1_000.0)
    servers.deliver(1, 1)
    reader.take(1, 1 << 20)
    assert not reader.looked(1, 1, 2_000.0)  # it has all
    assert not reader.looked(6, 5, 9_000.0)  # what was to come has gone
    assert reader.looked(1, 2, 10_000.0)
    servers.deliver(1, 1)
    reader.take(1, 1 << 20)
    assert reader.looked(1, 3, 15_000.0)  # it comes, if slowly
    reader.send(15_000.0)
    assert reader.asked_count
    assert reader.looked(1, 3, 19_000.0)
    assert not reader.asked_count
    assert not reader.looked(1, 3, 30_000.0)  # it has no place to be behind at
    reader.send(30_000.0)
    reader.send(30_000.0)
    assert reader.asked_count
