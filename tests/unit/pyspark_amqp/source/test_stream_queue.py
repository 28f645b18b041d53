"""Stream queues where there are none, and some in memory; with a broker's: tests/spark/test_stream_queues.py.

Covers: pyspark_amqp/source/tail.py
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn, Self

import pytest

pytest.importorskip("pyspark", reason="needs Spark: run by `make test-spark`")

from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from pyspark_amqp.columns import struct_of
from pyspark_amqp.datasource import AmqpDataSource
from pyspark_amqp.options import BadOptions
from pyspark_amqp.source import tail as tail_module
from pyspark_amqp.source.ranges import Range, Ranges
from pyspark_amqp.source.retention import OffsetsGone
from pyspark_amqp.source.stream_queue import RangePartition, ReplayReader, StreamQueueReader
from pyspark_amqp.wire import ConnectionLost, UnsuitableQueue
from pyspark_amqp.wire.stream_queue import FIRST


def source(url: str, queue: str, **more: str) -> AmqpDataSource:
    found = {"amqp.uri": url, "queue": queue, "retryTimeoutMs": "0", **more}
    return AmqpDataSource(CaseInsensitiveDict(found))


def test_a_message_has_its_offset(broker_url: str, queue: str) -> None:
    assert "stream_offset" in source(broker_url, queue, startingOffsets="first").schema().names
    assert "stream_offset" in source(broker_url, queue, mode="replay").schema().names
    assert "stream_offset" not in source(broker_url, queue, spoolLocation="/x").schema().names


def test_a_queue_that_is_no_stream_is_refused(broker_url: str, queue: str) -> None:
    made = source(broker_url, queue, startingOffsets="first")
    reader = made.streamReader(made.schema())
    assert isinstance(reader, StreamQueueReader)
    start = reader.initialOffset()
    assert start == Ranges().to_json()
    assert reader.partitions(start, start) == []
    with pytest.raises(UnsuitableQueue, match=f"reading '{queue}': it is no stream"):
        reader.latestOffset(start, ReadAllAvailable())
    with pytest.raises(UnsuitableQueue):
        list(reader.read(RangePartition(Range(queue, 0, 5))))
    reader.stop()
    batch = source(broker_url, queue, mode="replay").reader(struct_of())
    assert isinstance(batch, ReplayReader)
    with pytest.raises(UnsuitableQueue):
        batch.partitions()


def test_wrong_options_are_told_by_the_first_call(broker_url: str, queue: str) -> None:
    made = source(broker_url, queue, startingOffsets="oldest")
    with pytest.raises(BadOptions, match="'oldest' is none of first, last, next"):
        made.streamReader(struct_of()).initialOffset()
    with pytest.raises(BadOptions, match="'oldest' is none of"):
        made.schema()


# -- streams in memory ------------------------------------------------------------------------------------------------


@dataclass
class Stream:
    """Its messages are those from `first` to before `end`; what is asked for is there at once."""

    first: int = 0
    end: int = 0
    late: int = 0
    """So many of the last ones come only to who asks for them, as while a server is slow."""

    def at(self, position: object) -> int | None:
        at = position if isinstance(position, int) else self.end if position == "next" else 0
        found = max(at, self.first)
        return found if found < self.end else None


class Found(list[int]):
    """What a read has brought; offsets stand where property blocks do."""

    @property
    def properties(self) -> list[int]:
        return self


class Broker:
    """In place of connections: streams by name."""

    def __init__(self) -> None:
        self.streams: dict[str, Stream] = {}
        self.asked: list[str] = []

    def declare(self, queue: str, first: int, end: int) -> Stream:
        """Also anew: who reads the former one has lost it."""
        self.streams[queue] = Stream(first, end)
        return self.streams[queue]

    def connect(self, _addresses: object) -> Broker:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is open."""

    def close(self) -> None:
        """Nothing is open."""

    def end_offset(self, _: object, queue: str) -> int | None:
        self.asked.append(queue)
        stream = self.streams[queue]
        end = stream.end - stream.late
        return end if end > stream.first else None

    def offset_at(self, _: object, queue: str, position: object) -> int | None:
        return self.streams[queue].at(position)

    def consumer(self, _: object, queue: str, position: object, _window: int) -> Consumer:
        return Consumer(self, queue, self.streams[queue], position)


@dataclass
class Consumer:
    """Waits at one position of a stream."""

    broker: Broker
    queue: str
    stream: Stream
    position: object

    def read(self, _count: int, *, idle_timeout_s: float) -> Found:
        if self.broker.streams[self.queue] is not self.stream:
            raise ConnectionLost("here", "reading", "the broker ended it")
        found = self.stream.at(self.position)
        return Found([] if found is None else [found])


@pytest.fixture
def streams(monkeypatch: pytest.MonkeyPatch) -> Broker:
    found = Broker()
    for name, fake in (
        ("connect", found.connect),
        ("end_offset", found.end_offset),
        ("offset_at", found.offset_at),
        ("StreamConsumer", found.consumer),
        ("offset_of", lambda block: block),
        ("counted_to", not_asked),
    ):
        monkeypatch.setattr(tail_module, name, fake)
    return found


def not_asked(*_: object) -> NoReturn:
    raise AssertionError("nothing is counted here")


Made = Callable[..., StreamQueueReader]


@pytest.fixture
def query() -> Made:
    """Begins a query, or goes on with one: it is another process then."""

    def made(queue: str = "s", **more: str) -> StreamQueueReader:
        found = source("amqp://nowhere", queue, **{"startingOffsets": "first", **more})
        reader = found.streamReader(struct_of())
        assert isinstance(reader, StreamQueueReader)
        return reader

    return made


EVERYTHING = ReadAllAvailable()


def batch(start: int, end: int, queue: str = "s") -> dict[str, Any]:
    return Ranges({queue: start}, {queue: end}).to_json()


@pytest.mark.parametrize("is_running", [False, True], ids=["checkpoint", "running"])
def test_a_stream_that_was_declared_anew_ends_the_query(
    streams: Broker, query: Made, is_running: bool
) -> None:
    """It stood still without a word until as many messages had come as before."""
    streams.declare("s", 0, 100)
    first = query()
    read = first.latestOffset(first.initialOffset(), EVERYTHING)
    assert read == batch(0, 100)
    streams.declare("s", 0, 40)
    second = first if is_running else query()
    for _ in range(2):
        with pytest.raises(OffsetsGone, match="stream 's' ends before 40 now, and did before 100"):
            second.latestOffset(read, EVERYTHING)


@pytest.mark.parametrize("is_running", [False, True], ids=["checkpoint", "running"])
def test_or_is_read_from_its_beginning(
    streams: Broker, query: Made, is_running: bool, caplog: pytest.LogCaptureFixture
) -> None:
    streams.declare("s", 0, 100)
    first = query(failOnDataLoss="false")
    read = first.latestOffset(first.initialOffset(), EVERYTHING)
    stream = streams.declare("s", 10, 40)
    second = first if is_running else query(failOnDataLoss="false")
    with caplog.at_level(logging.WARNING, "pyspark_amqp"):
        again = second.latestOffset(read, EVERYTHING)
        assert again == batch(10, 40)
        assert second.latestOffset(again, EVERYTHING) == again
        stream.end = 45
        assert second.latestOffset(again, EVERYTHING) == batch(40, 45)
    assert caplog.messages == [
        "stream 's' ends before 40 now, and did before 100. It was deleted and declared again, or has lost its end:"
        " it is read from its first message on"
    ]


def test_what_was_not_read_yet_of_the_former_one_is_told_as_well(
    streams: Broker, query: Made
) -> None:
    """Of the new one as much is there as was read of the former: what is behind it was never read."""
    streams.declare("s", 0, 100)
    reader = query(maxRecordsPerTrigger="30")
    read = reader.latestOffset(reader.initialOffset(), ReadMaxRows(100))
    streams.declare("s", 0, 99)
    assert read == batch(0, 100)
    partly = batch(0, 30)
    with pytest.raises(OffsetsGone, match="ends before 99 now, and did before 100"):
        reader.latestOffset(partly, EVERYTHING)


def test_with_available_now_too(streams: Broker, query: Made) -> None:
    streams.declare("s", 0, 40)
    for fails in ("true", "false"):
        reader = query(failOnDataLoss=fails)
        reader.prepareForTriggerAvailableNow()
        if fails == "true":
            with pytest.raises(OffsetsGone, match="ends before 40 now, and did before 100"):
                reader.latestOffset(batch(0, 100), EVERYTHING)
        else:
            assert reader.latestOffset(batch(0, 100), EVERYTHING) == batch(0, 40)


def test_other_streams_of_the_query_go_on(streams: Broker, query: Made) -> None:
    streams.declare("s", 0, 40)
    streams.declare("t", 0, 70)
    reader = query('["s", "t"]', failOnDataLoss="false")
    read = Ranges({"s": 0, "t": 0}, {"s": 100, "t": 60}).to_json()
    found = reader.latestOffset(read, EVERYTHING)
    assert found == Ranges({"s": 0, "t": 60}, {"s": 40, "t": 70}).to_json()


def test_a_stream_that_is_slow_to_say_what_it_has_is_the_same(streams: Broker, query: Made) -> None:
    stream = streams.declare("s", 0, 100)
    stream.late = 30
    reader = query()
    assert reader.latestOffset(batch(0, 100), EVERYTHING) == batch(0, 100)
    asked = len(streams.asked)
    reader.latestOffset(batch(0, 100), EVERYTHING)
    assert len(streams.asked) == asked, "it waits behind what was read"
    stream.end = 110
    stream.late = 0
    assert reader.latestOffset(batch(0, 100), EVERYTHING) == batch(100, 110)


def test_a_stream_whose_messages_are_all_gone_is_waited_for(streams: Broker, query: Made) -> None:
    """Retention has removed them, or it is another one: the first message that comes tells."""
    stream = streams.declare("s", 100, 100)
    reader = query()
    read = batch(0, 100)
    assert reader.latestOffset(read, EVERYTHING) == read
    stream.end = 105
    assert reader.latestOffset(read, EVERYTHING) == batch(100, 105)
    reader = query()
    stream.first = stream.end = 0
    assert reader.latestOffset(read, EVERYTHING) == read
    stream.end = 1
    with pytest.raises(OffsetsGone, match="ends before 1 now, and did before 100"):
        reader.latestOffset(read, EVERYTHING)


def test_an_offset_to_begin_with_may_be_to_come(streams: Broker, query: Made) -> None:
    stream = streams.declare("s", 0, 40)
    reader = query(startingOffsets="1000")
    begun = reader.latestOffset(reader.initialOffset(), EVERYTHING)
    assert begun == batch(1000, 1000)
    assert query(startingOffsets="1000").latestOffset(begun, EVERYTHING) == begun
    stream.end = 1002
    assert query(startingOffsets="1000").latestOffset(begun, EVERYTHING) == batch(1000, 1002)


def test_positions_are_words_too() -> None:
    assert Stream(5, 9).at(FIRST) == 5
