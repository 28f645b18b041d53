"""Stream queues where there are none; with streams: tests/spark/test_stream_queues.py.

Covers: pyspark_amqp/source/tail.py
"""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark", reason="needs Spark: run by `make test-spark`")

from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.streaming.datasource import ReadAllAvailable

from pyspark_amqp.columns import struct_of
from pyspark_amqp.datasource import AmqpDataSource
from pyspark_amqp.options import BadOptions
from pyspark_amqp.source.ranges import Range, Ranges
from pyspark_amqp.source.stream_queue import RangePartition, ReplayReader, StreamQueueReader
from pyspark_amqp.wire import UnsuitableQueue


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
