# ruff: noqa: E402 - without Spark the file is skipped before its imports
"""Spark's writers, called as Spark calls them, without a JVM."""

from __future__ import annotations

import logging
import pickle

import pytest

pa = pytest.importorskip("pyarrow", reason="needs pyarrow: run by `make test-spark`")
pytest.importorskip("pyspark", reason="needs Spark: run by `make test-spark`")

from pyspark.sql.types import StringType, StructField, StructType

from pyspark_amqp.columns import struct_of
from pyspark_amqp.convert import schema_of
from pyspark_amqp.options import BadOptions, read_sink_options
from pyspark_amqp.sink.writers import BatchWriter, StreamWriter
from pyspark_amqp.wire import connect, peek
from pyspark_amqp.wire.properties import message_id

BODY = StructType([StructField("body", StringType())])


def batches(*bodies: str) -> list[pa.RecordBatch]:
    return [pa.RecordBatch.from_pydict({"body": list(bodies)})]


def ids(url: str, queue: str) -> list[str | None]:
    with connect(url) as connection:
        return [message_id(block) for block in peek(connection, queue, 100).properties]


@pytest.mark.parametrize(
    ("options", "columns", "overwrite", "problem"),
    [
        ({"routingKey": "q"}, ["body"], True, "cannot be overwritten"),
        ({"routingKey": "q"}, ["value"], False, "there is no column body"),
        ({"routingKey": "q"}, ["body", "routingkey"], False, "no column routingkey; drop them"),
        ({}, ["body"], False, "nothing says where to"),
    ],
)
def test_what_cannot_be_published_is_refused_before_a_task_runs(
    options: dict[str, str], columns: list[str], overwrite: bool, problem: str
) -> None:
    schema = StructType([StructField(name, StringType()) for name in columns])
    for writer in (BatchWriter, StreamWriter):
        with pytest.raises(BadOptions, match=problem):
            writer(read_sink_options(options), schema, overwrite=overwrite)


def test_rows_of_the_source_can_be_written_as_they_are() -> None:
    BatchWriter(read_sink_options({}), struct_of(schema_of(has_headers_raw=True)), overwrite=False)


def test_a_task_that_runs_again_gives_the_same_ids(broker_url: str, queue: str) -> None:
    options = read_sink_options({"amqp.uri": broker_url, "routingKey": queue})
    writer = BatchWriter(options, BODY, overwrite=False)
    for _ in range(2):
        pickle.loads(pickle.dumps(writer)).write(iter(batches("a", "b")))
    first, second, *again = ids(broker_url, queue)
    assert [first, second] == again
    assert first != second


def test_the_prefix_of_ids_can_be_given(broker_url: str, queue: str) -> None:
    options = read_sink_options(
        {"amqp.uri": broker_url, "routingKey": queue, "messageIdPrefix": "load-7"}
    )
    BatchWriter(options, BODY, overwrite=False).write(iter(batches("a")))
    assert ids(broker_url, queue) == ["load-7-0-0"]


def test_what_came_back_is_told(broker_url: str, caplog: pytest.LogCaptureFixture) -> None:
    options = read_sink_options(
        {"amqp.uri": broker_url, "routingKey": "nowhere", "onReturn": "count"}
    )
    writer = StreamWriter(options, BODY, overwrite=False)
    message = pickle.loads(pickle.dumps(writer.write(iter(batches("a", "b")))))
    with caplog.at_level(logging.WARNING, "pyspark_amqp"):
        writer.commit([message, None], 3)
        writer.abort([message, None], 3)
    assert "2 messages came back unrouted; the first: 312 NO_ROUTE" in caplog.text
    assert "2 messages of tasks that ended well are published" in caplog.text
