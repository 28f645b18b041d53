"""Stream queues for Spark: ranges of offsets, read as often as Spark likes; no spool, nothing is taken.

State: in the process that Spark runs for a query, the first offset and where the streams end. Copies that were pickled
for executors have options and columns only.

A micro-batch is a range of each stream (ranges.py), which Spark makes durable before it is read. So a batch that is
tried again has the same rows, whatever was killed; once with a sink that replays.

Invariants: a task yields the messages of its range in order, each once, also when its connection breaks meanwhile;
where the stream does not have them any more (retention) it fails, unless failOnDataLoss=false. Errors in options are
raised by the first method that Spark calls (see stream.py).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from pyspark_amqp.columns import arrow_schema
from pyspark_amqp.convert import Reader
from pyspark_amqp.convert.reading import BATCH_ROWS
from pyspark_amqp.options import StreamQueueOptions, read_stream_queue_options
from pyspark_amqp.options.connection import may_rotate
from pyspark_amqp.source.patience import persist
from pyspark_amqp.source.ranges import Range, Ranges
from pyspark_amqp.source.retention import OffsetsGone, Retention, end_now, first_now, tell_others
from pyspark_amqp.source.tail import Tail
from pyspark_amqp.wire import Connection, Deliveries, StepTimeout, WireError, connect
from pyspark_amqp.wire.stream_queue import FIRST, StreamConsumer, offset_of

_LOG: Final = logging.getLogger("pyspark_amqp")
CHUNK_BYTES: Final = 16 << 20
# For a fuller record batch. It is also what the last one of a range waits, where offsets have gaps: a range that ends
# where the stream does has fewer messages than offsets, and none comes after them.
_LINGER_S: Final = 0.05

Json = dict[str, Any]


class RangePartition(InputPartition):
    """One task's range of a stream."""

    def __init__(self, range_: Range) -> None:
        self.range = range_


class StreamQueueReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads stream queues in micro-batches."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._refusal: ValueError | None = None
        self._tail_once: Tail | None = None
        self._last_ends: dict[str, int] | None = None
        self._stop_at: dict[str, int] | None = None
        try:
            self._options = read_stream_queue_options(options)
            self._schema = arrow_schema(schema)
        except ValueError as error:
            self._refusal = error

    def __getstate__(self) -> Json:
        """Leave connections out."""
        return {**self.__dict__, "_tail_once": None}

    # ---- on the driver --------------------------------------------------------------------------

    def initialOffset(self) -> Json:
        """Return the offset of a new checkpoint: it names no stream yet."""
        self._checked()
        return Ranges().to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit that the query's options set."""
        limit = self._checked().record_limit
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def prepareForTriggerAvailableNow(self) -> None:
        """Note where the streams end now: the query ends there."""
        self._stop_at = self._tail().ends()

    def latestOffset(self, start: Json, limit: ReadLimit) -> Json:
        """Return the offset that names the next batch's ranges, `start` when there is nothing new."""
        at = Ranges.from_json(start)
        starting = self._checked().starting
        unknown = {queue: each for queue, each in starting.items() if queue not in at.ends}
        begins = self._tail().begins(unknown) if unknown else {}
        self._last_ends = ends = self._tail().ends(self._read(at))
        others = self._tail().others
        if others:
            fails = self._checked().fails_on_data_loss
            tell_others(
                {queue: (known, ends[queue]) for queue, known in others.items()}, fails=fails
            )
            at = at.without(others)
            begins |= self._tail().begins(dict.fromkeys(others, FIRST))
            others.clear()
        if self._stop_at is not None:
            ends = {queue: min(end, self._stop_at.get(queue, 0)) for queue, end in ends.items()}
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        named = {queue: end for queue, end in ends.items() if queue in starting}
        batch = at.following(begins, named, most)
        if batch is at or most is None:
            return batch.to_json()
        tail = self._tail()
        return batch.reaching(
            lambda q, start, count: tail.reach(q, start, count, named[q])
        ).to_json()

    def reportLatestOffset(self) -> Json | None:
        """Return where the streams ended when they were asked last: Spark shows it as progress."""
        return None if self._last_ends is None else {"end": self._last_ends}

    def partitions(self, start: Json, end: Json) -> Sequence[InputPartition]:
        """Return the ranges that the end offset names."""
        options = self._checked()
        if start == end:
            return []
        return _partitions(Ranges.from_json(end), options)

    def commit(self, end: Json) -> None:
        """Do nothing: a stream keeps its messages."""

    def stop(self) -> None:
        """Close the connections; Spark may also end the process without calling this."""
        if self._tail_once is not None:
            self._tail_once.close()

    # ---- on the executors -----------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield a range's rows."""
        return _rows(partition, self._checked(), self._schema)

    # ---- inner steps ----------------------------------------------------------------------------

    def _checked(self) -> StreamQueueOptions:
        if self._refusal is not None:
            raise self._refusal
        return self._options

    def _read(self, at: Ranges) -> dict[str, int]:
        """Up to where streams were read; a number that the query was given to begin with says nothing of them."""
        starting = self._checked().starting
        return {
            queue: end
            for queue, end in at.ends.items()
            if queue in starting and starting[queue] != end
        }

    def _tail(self) -> Tail:
        if self._tail_once is None:
            options = self._checked()
            self._tail_once = Tail(options)
        return self._tail_once


class ReplayReader(DataSourceReader):
    """Reads ranges of stream queues as a batch; with both ends named, the same rows each time."""

    def __init__(self, options: StreamQueueOptions, schema: StructType) -> None:
        self._options = options
        self._schema = arrow_schema(schema)

    def partitions(self) -> Sequence[InputPartition]:
        """Return the ranges between the two offsets of each stream."""
        options = self._options
        tail = Tail(options)
        try:
            begins = tail.begins(options.starting)
            ends = tail.ends()
            wanted = tail.begins(options.ending)
            ends = {queue: min(end, wanted.get(queue, end)) for queue, end in ends.items()}
        finally:
            tail.close()
        return _partitions(Ranges().following(begins, ends, None), options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield a range's rows."""
        return _rows(partition, self._options, self._schema)


def _partitions(ranges: Ranges, options: StreamQueueOptions) -> list[InputPartition]:
    return [RangePartition(each) for each in ranges.pieces(options.consumer_count)]


def _rows(
    partition: InputPartition, options: StreamQueueOptions, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield a range's rows. Raises: OffsetsGone, WireError, BadMessage."""
    if not isinstance(partition, RangePartition):
        return  # without partitions Spark makes an empty one
    reader = Reader(schema, is_strict=options.fails_on_malformed)
    messages = RangeReader(options, partition.range)
    try:
        while (chunk := messages.next()) is not None:
            yield from reader.batches(chunk)
    finally:
        messages.close()


class RangeReader:
    """Reads one range; goes on behind its last message when the connection broke."""

    def __init__(self, options: StreamQueueOptions, range_: Range) -> None:
        self._options = options
        self._queue, self._at, self._end = range_
        self._retention = Retention(
            range_,
            lambda: first_now(options, range_.queue),
            lambda: end_now(options, range_.queue),
            fails=options.fails_on_data_loss,
        )
        self._connection: Connection | None = None
        self._consumer: StreamConsumer | None = None

    def next(self) -> Deliveries | None:
        """Return the next messages, None at the range's end. Raises: OffsetsGone, WireError."""
        if self._at >= self._end:
            return None
        options = self._options
        rotates = may_rotate(options.addresses)
        try:
            chunk = persist(self._read, options.retry_timeout_s, may_rotate=rotates)
        except StepTimeout:
            if not self._retention.has_ended(self._at):
                raise
            return None
        offsets = [_number(block) for block in chunk.properties]
        first = sum(offset < self._at for offset in offsets)
        past = sum(offset < self._end for offset in offsets)
        if first < len(offsets):
            self._retention.note(self._at, offsets[first:])
            self._at = offsets[-1] + 1
        return chunk.between(first, max(first, past))

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
        self._connection = self._consumer = None

    def _read(self) -> Deliveries:
        """Return some messages. Raises: WireError, after which the next call connects again."""
        try:
            chunk = self._open().read(
                min(BATCH_ROWS, self._end - self._at),
                idle_timeout_s=self._options.idle_timeout_s,
                size_limit=CHUNK_BYTES,
                linger_s=_LINGER_S,
            )
        except WireError:
            self.close()
            raise
        if len(chunk):
            return chunk
        self.close()
        place, step = self._options.addresses[0].place, f"reading '{self._queue}'"
        reason = f"nothing came in {self._options.idle_timeout_s:g} s at offset {self._at} of a range up to {self._end}"
        raise StepTimeout(place, step, reason)

    def _open(self) -> StreamConsumer:
        if self._consumer is None:
            options = self._options
            name = f"{options.addresses[0].connection_name} {self._queue} {self._at}"
            self._connection = connect([address.named(name) for address in options.addresses])
            self._consumer = StreamConsumer(self._connection, self._queue, self._at, options.window)
        return self._consumer


def _number(block: bytes) -> int:
    found = offset_of(block)
    if found is None:
        raise OffsetsGone("a message of a stream without its offset")
    return found
