"""Spark's writers: what a task publishes with, and what the driver reports at the end.

State: the options, and for batch writes the random prefix of the message ids, made once on the driver and
pickled with the writer to every task and every attempt.

Invariants: `append` is the only mode, since a queue cannot be overwritten; columns that are no part of a
message are refused, for a misspelt `routing_key` must not send everything to the option's key. Nothing can be
taken back: what tasks published before an `abort` stays.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from pyspark_amqp.convert import schema_of
from pyspark_amqp.options.reading import BadOptions
from pyspark_amqp.options.sink import DETERMINISTIC, SinkOptions
from pyspark_amqp.sink.identity import Identity
from pyspark_amqp.sink.task import Outcome, publish

_LOG: Final = logging.getLogger("pyspark_amqp")
_QUERY_ID: Final = "sql.streaming.queryId"
_BATCH_ID: Final = "streaming.sql.batchId"


class Written(WriterCommitMessage):
    """A task's outcome on its way to the driver."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome


class BatchWriter(DataSourceArrowWriter):
    """Publishes a DataFrame."""

    def __init__(self, options: SinkOptions, schema: StructType, *, overwrite: bool) -> None:
        check(options, schema, overwrite=overwrite)
        self._options = options
        self._prefix = options.message_id_prefix or uuid.uuid4().hex

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Publish a task's rows."""
        return _write(iterator, self._options, self._prefix)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Say what came back."""
        _tell(messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Say what cannot be taken back."""
        _tell_abort(messages)


class StreamWriter(DataSourceStreamArrowWriter):
    """Publishes the micro-batches of a stream."""

    def __init__(self, options: SinkOptions, schema: StructType, *, overwrite: bool) -> None:
        check(options, schema, overwrite=overwrite)
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Publish a task's rows; ids are the same when the batch runs again."""
        context = TaskContext.get()
        query = context.getLocalProperty(_QUERY_ID) if context else None
        batch = context.getLocalProperty(_BATCH_ID) if context else None
        prefix = f"{self._options.message_id_prefix or query or uuid.uuid4().hex}-{batch}"
        return _write(iterator, self._options, prefix)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Say what came back."""
        _tell(messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Say what cannot be taken back."""
        _tell_abort(messages)


def check(options: SinkOptions, schema: StructType, *, overwrite: bool) -> None:
    """Refuse what cannot be published, before any task runs.

    Raises: BadOptions.
    """
    problems = []
    names = list(schema.fieldNames())
    known = schema_of(has_headers_raw=True, has_stream_offset=True).names
    if overwrite:
        problems.append("a queue cannot be overwritten: use mode 'append'")
    if "body" not in names:
        problems.append("there is no column body (binary or string)")
    unknown = [name for name in names if name not in known]
    if unknown:
        problems.append(
            f"messages have no column {', '.join(unknown)}; drop them, or put them into body or "
            f"headers; known: {', '.join(known)}"
        )
    if not options.has_routing_key and "routing_key" not in names and not options.exchange:
        problems.append(
            "nothing says where to: set option 'routingKey' (a queue's name), option 'exchange', "
            "or have a column routing_key"
        )
    if problems:
        raise BadOptions('write.format("amqp")', problems)


def _write(
    batches: Iterator[pa.RecordBatch], options: SinkOptions, prefix: str
) -> WriterCommitMessage:
    context = TaskContext.get()
    partition = context.partitionId() if context else 0
    identity = Identity(prefix, partition) if options.message_ids == DETERMINISTIC else None
    return Written(publish(batches, options, identity, f"sink {partition}"))


def _tell(messages: Sequence[WriterCommitMessage | None]) -> None:
    outcomes = [message.outcome for message in messages if isinstance(message, Written)]
    returned_count = sum(outcome.returned_count for outcome in outcomes)
    if returned_count:
        first = next(o.first_returned for o in outcomes if o.first_returned is not None)
        _LOG.warning(
            "%d messages came back unrouted; the first: %d %s, exchange '%s', routing key '%s'",
            returned_count,
            first.reply_code,
            first.reply_text,
            first.exchange,
            first.routing_key,
        )


def _tell_abort(messages: Sequence[WriterCommitMessage | None]) -> None:
    count = sum(m.outcome.published_count for m in messages if isinstance(m, Written))
    _LOG.warning(
        "the write failed; %d messages of tasks that ended well are published and stay, "
        "and an unknown number of the tasks that failed",
        count,
    )
