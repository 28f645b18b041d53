"""Queues to Parquet: what they hold now, or everything from now on.

Owns no state; the query's checkpoint and spool are beside the archive unless said otherwise. Each row is a whole
message, `headers_raw` included, so that `replay` can send it as it was. A message is acknowledged once it is in the
spool on disk, and appears once in the archive when it has a message id (docs/spark.md says what a crash can do).

Read an archive with Spark: the files of a batch that was interrupted lie there too, and only Spark's log tells.
"""

from __future__ import annotations

import argparse
from typing import Any, TextIO

from pyspark_amqp.wire.consumer import PREFETCH_MAX
from pyspark_amqp_jobs.arguments import BadArguments, add_broker, broker_options
from pyspark_amqp_jobs.session import Progress

BATCH_ROWS = PREFETCH_MAX
"""Large enough that one task takes a queue's share of a batch: several at a time would lose the order."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--queue", required=True, metavar="QUEUES", help="one or more, separated by commas"
    )
    parser.add_argument("--to", required=True, metavar="DIR", help="the archive, made or added to")
    parser.add_argument(
        "--spool",
        metavar="DIR",
        help="a POSIX folder that all machines share (default: DIR/_spool)",
    )
    parser.add_argument("--checkpoint", metavar="DIR", help="default: DIR/_checkpoint")
    parser.add_argument(
        "--keep-running", metavar="SECONDS", type=float, help="go on, a batch every so often"
    )
    parser.add_argument(
        "--batch-rows",
        type=int,
        default=BATCH_ROWS,
        help=f"rows of a batch (default {BATCH_ROWS}; of one queue's, more are taken by several tasks, in no order)",
    )
    parser.add_argument(
        "--consumers",
        type=int,
        default=1,
        help="tasks for each queue (default 1 keeps its order, more are faster where there are cores)",
    )
    add_broker(parser)


def run(spark: Any, arguments: argparse.Namespace, out: TextIO) -> int:
    """Archive."""
    if arguments.keep_running is not None and arguments.keep_running <= 0:
        raise BadArguments("--keep-running takes a number of seconds above 0")
    query = start(spark, arguments)
    count = Count(query)
    with Progress("archiving", lambda: f"{count.rows():,} messages"):
        try:
            query.awaitTermination()
        except KeyboardInterrupt:
            query.stop()
    out.write(f"archived {count.rows():,} messages of {arguments.queue} in {arguments.to}\n")
    return 0


def start(spark: Any, arguments: argparse.Namespace) -> Any:
    """Return the running query."""
    from pyspark.sql import functions as sql

    target = arguments.to.rstrip("/")
    options = {
        "maxRecordsPerTrigger": str(arguments.batch_rows),
        "consumersPerQueue": str(arguments.consumers),
        **broker_options(arguments),
        "queue": arguments.queue,
        "spoolLocation": arguments.spool or f"{target}/_spool",
        "includeHeadersRaw": "true",
    }
    frame = spark.readStream.format("amqp").options(**options).load()
    frame = frame.withColumn("archived_at", sql.current_timestamp())
    writer = (
        frame.withColumn("archived_on", sql.to_date("archived_at"))
        .writeStream.format("parquet")
        .partitionBy("archived_on")
        .option("path", target)
        .option("checkpointLocation", arguments.checkpoint or f"{target}/_checkpoint")
    )
    if arguments.keep_running is None:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{arguments.keep_running} seconds").start()


class Count:
    """How many rows a query has read: Spark itself remembers only the last hundred batches."""

    def __init__(self, query: Any) -> None:
        self._query = query
        self._batches: dict[int, int] = {}

    def rows(self) -> int:
        """Look, and return the sum."""
        for progress in self._query.recentProgress:
            self._batches[int(progress["batchId"])] = int(progress["numInputRows"])
        return sum(self._batches.values())
