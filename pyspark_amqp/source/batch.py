"""Spark's batch readers: looking at queues, and taking what they hold, whole.

State: options and columns; both readers are pickled.

Spark plans and reads a batch source again for every action and for every task that failed. Looking
may answer differently each time. Draining must not: its plan is a file in the spool, published by the
first who planned under this `drainId`, and its pieces are spool files. So `count()` and then `write()`
see the same rows, and a drain that was killed goes on under the same id.

Invariants: peeking acknowledges nothing; draining never takes more than the plan says, however often it
runs. Its files stay until somebody removes the drain (`forget`): only whoever reads knows when the rows are
safe.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from pyspark_amqp.columns import arrow_schema
from pyspark_amqp.convert import Reader
from pyspark_amqp.options import DrainOptions, PeekOptions
from pyspark_amqp.source.listing import Listing
from pyspark_amqp.source.planning import Counts, Planner
from pyspark_amqp.source.tasks import PiecePartition, partitions_of, rows_of, spool_at
from pyspark_amqp.spool import Offset, Spool, check, open_store
from pyspark_amqp.wire import ChannelClosed, UnsuitableQueue, connect, peek, queue_type

_NOT_FOUND = 404
_NO_RETRY_S = 0.0
_QUORUM = (
    "it is a quorum queue: each look counts as a delivery of each message, and at the queue's delivery limit "
    "messages are dropped or dead-lettered; set allowRedelivery=true to look all the same, or use mode=drain"
)


class QueuePartition(InputPartition):
    """One queue to look at."""

    def __init__(self, queue: str) -> None:
        self.queue = queue


class PeekReader(DataSourceReader):
    """Looks at the first messages of each queue."""

    def __init__(self, options: PeekOptions, schema: StructType) -> None:
        self._options = options
        self._schema = arrow_schema(schema)

    def partitions(self) -> Sequence[InputPartition]:
        """Return a partition for each queue."""
        options = self._options
        return [QueuePartition(queue) for queue in Listing(options.addresses, options.queues)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the queue's first messages, which stay where they are."""
        if not isinstance(partition, QueuePartition):
            return  # no queue matches: Spark has one empty partition
        options = self._options
        try:
            self._refuse_harm(partition.queue)
            with connect(options.addresses) as connection:
                found = peek(connection, partition.queue, options.limit, options.byte_limit)
        except ChannelClosed as error:
            if error.reply_code == _NOT_FOUND and not options.fails_on_missing_queue:
                return
            raise
        yield from Reader(self._schema, is_strict=options.fails_on_malformed).batches(found)

    def _refuse_harm(self, queue: str) -> None:
        """A quorum queue counts what is put back as a delivery, and drops a message at its delivery limit."""
        options = self._options
        with connect(options.addresses) as connection:
            kind = queue_type(connection, queue)
            if kind == "quorum" and not options.allows_redelivery:
                raise UnsuitableQueue(
                    connection.place,
                    f"looking into '{queue}'",
                    _QUORUM,
                )
            if kind == "stream":
                raise UnsuitableQueue(
                    connection.place,
                    f"looking into '{queue}'",
                    "it is a stream: mode=replay reads it",
                )


class DrainReader(DataSourceReader):
    """Takes what is ready when the drain is first planned."""

    def __init__(self, options: DrainOptions, schema: StructType) -> None:
        self._options = options
        self._schema = arrow_schema(schema)

    def partitions(self) -> Sequence[InputPartition]:
        """Return the drain's pieces: those of the plan that was made first."""
        options = self._options
        spool = spool_at(options.task.spool)
        plan = spool.plan(stream_of(options.drain_id), lambda: self._new_plan(spool))
        return partitions_of(spool, plan.pieces(), options.task.task_bytes, None)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield a piece's rows."""
        if not isinstance(partition, PiecePartition):
            return iter(())  # nothing was ready: Spark has one empty partition
        return rows_of(partition, self._options.task, self._schema)

    def _new_plan(self, spool: Spool) -> Offset:
        options = self._options
        check(spool.store)
        counts = Counts(
            options.task.addresses,
            Listing(options.task.addresses, options.queues),
            retry_timeout_s=_NO_RETRY_S,
            fails_on_missing_queue=options.fails_on_missing_queue,
        )
        planner = Planner(
            counts,
            spool,
            consumer_count=options.consumer_count,
            prefetch_count=options.prefetch_count,
        )
        try:
            return planner.following(Offset(stream_of(options.drain_id)), options.limit)
        finally:
            planner.close()


def stream_of(drain_id: str) -> str:
    """Return the name of a drain's stream in the spool; no stream of a query can have it."""
    return f"drain {drain_id}"


def forget(
    spool_location: str,
    drain_id: str,
    *,
    endpoint: str | None = None,
    region: str | None = None,
    is_http_allowed: bool = False,
) -> bool:
    """Remove a drain's files, when its rows are safe elsewhere; False if there were none.

    The same id drains again afterwards.
    """
    store = open_store(
        spool_location, endpoint=endpoint, region=region, is_http_allowed=is_http_allowed
    )
    return Spool(store).remove_stream(stream_of(drain_id))
