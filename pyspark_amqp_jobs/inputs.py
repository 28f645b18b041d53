"""Messages for a report: from an archive, by looking at queues, or out of a store.

Owns no state. Only the columns that a job asks for are read.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from pyspark_amqp_jobs.arguments import broker_options


def messages(spark: Any, arguments: argparse.Namespace, columns: Sequence[str]) -> Any:
    """Return a frame with these columns of every message."""
    if arguments.archive:
        return spark.read.parquet(arguments.archive).select(*columns)
    if getattr(arguments, "store", None):
        from pyspark_amqp.columns import struct_of
        from pyspark_amqp_store.columns import MESSAGES, columns_of

        reader = spark.read.format("amqp-store").schema(struct_of(columns_of(MESSAGES, columns)))
        if arguments.queues:
            reader = reader.option("queues", arguments.queues)
        return reader.load(arguments.store)
    options = {"limit": str(arguments.limit), **broker_options(arguments), "queue": arguments.queue}
    reader = spark.read.format("amqp").options(**options).option("includeHeadersRaw", "true")
    return reader.load().select(*columns)


def limit_note(arguments: argparse.Namespace, count: int) -> str:
    """Return the line by which a report of so many messages says that there may be more; else nothing."""
    if not arguments.queue or count < arguments.limit:
        return ""
    return f"at most {arguments.limit:,} messages of each queue were looked at (--limit)\n"
