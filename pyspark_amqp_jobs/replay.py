"""Parquet back into queues: what was archived, or a part of it, as it was.

Owns no state. A row's `headers_raw` goes out as it is, so header types and x-death come back; its own message id stays.
Where to: `--to-queue`, `--to-exchange` (with the archived routing keys, or one), or `--to-origin`: to the exchange and
the routing key that a dead letter was first published with.

Every message is confirmed and must be routed. A task that fails publishes its rows again: consumers that care compare
message ids. `--rate` is for the whole job: it is divided among the tasks. One task, the default, publishes in the order
in which messages were archived: each queue's own, unless its archive was made with several consumers.
"""

from __future__ import annotations

import argparse
from typing import Any, Final, TextIO

from pyspark_amqp.wire.table import BadTable, encode_table, fields_of, table_of
from pyspark_amqp_jobs.arguments import BadArguments, add_broker, broker_options
from pyspark_amqp_jobs.session import Progress, stage_text

DEATH_HEADERS: Final = (
    "x-death",
    *(
        f"x-{one}-death-{what}"
        for one in ("first", "last")
        for what in ("exchange", "queue", "reason")
    ),
)
MARK: Final = "x-replayed-from"
_KEPT: Final = frozenset(
    [
        "body",
        "exchange",
        "routing_key",
        "content_type",
        "content_encoding",
        "headers",
        "headers_raw",
        "delivery_mode",
        "priority",
        "correlation_id",
        "reply_to",
        "expiration",
        "message_id",
        "timestamp",
        "type",
        "user_id",
        "app_id",
    ]
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--from", dest="archive", required=True, metavar="PARQUET", help="an archive"
    )
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--to-queue", metavar="QUEUE")
    group.add_argument("--to-exchange", metavar="EXCHANGE")
    group.add_argument(
        "--to-origin", action="store_true", help="where dead letters were published first"
    )
    parser.add_argument(
        "--routing-key", metavar="KEY", help="with --to-exchange, instead of the archived ones"
    )
    parser.add_argument(
        "--where",
        metavar="SQL",
        help="only rows for which this holds: \"queue = 'dlq' and priority > 3\"",
    )
    parser.add_argument("--limit", type=int, help="at most so many messages")
    parser.add_argument(
        "--rate", type=int, metavar="N", help="messages a second, of all tasks together"
    )
    parser.add_argument(
        "--tasks",
        type=int,
        default=1,
        help="connections that publish (default 1 keeps the archive's order, which more do not)",
    )
    parser.add_argument(
        "--strip-deaths",
        action="store_true",
        help="without x-death, x-first-death-* and x-last-death-*",
    )
    parser.add_argument("--mark", metavar="TEXT", help=f"add the header {MARK}")
    parser.add_argument(
        "--drop", metavar="COLUMNS", default="", help="leave properties out: expiration,user_id"
    )
    add_broker(parser)


def run(spark: Any, arguments: argparse.Namespace, out: TextIO) -> int:
    """Replay."""
    check(arguments)
    frame = chosen(spark.read.parquet(arguments.archive), arguments)
    frame = frame.coalesce(arguments.tasks)
    options = {"confirmWindow": "2000", **broker_options(arguments), **_target(arguments)}
    options["messageIdMode"] = "none" if "message_id" in dropped(arguments) else "deterministic"
    if "message_id" in frame.columns and options["messageIdMode"] != "none":
        # Rows go out as they are: those without an id get none.
        options["messageIdMode"] = "column"
    if arguments.rate:
        options["maxRatePerTask"] = str(max(1, arguments.rate // arguments.tasks))
    change = Change(arguments)
    if change.is_needed and "headers_raw" in frame.columns:
        from pyspark.sql import functions as sql
        from pyspark.sql.types import BinaryType

        # A plain function, row by row: Spark's Arrow functions want pandas.
        changed = sql.udf(change, BinaryType(), useArrow=False)
        frame = frame.withColumn("headers_raw", changed("headers_raw"))
    with Progress("replaying", lambda: stage_text(spark)):
        count = frame.select("body").count()
        frame.write.format("amqp").options(**options).mode("append").save()
    out.write(f"replayed {count:,} messages of {arguments.archive}\n")
    return 0


def check(arguments: argparse.Namespace) -> None:
    """Refuse what does not go together. Raises: BadArguments."""
    if arguments.routing_key is not None and arguments.to_exchange is None:
        raise BadArguments("--routing-key goes with --to-exchange")
    for name in ("limit", "rate", "tasks"):
        value = getattr(arguments, name)
        if value is not None and value < 1:
            raise BadArguments(f"--{name} is at least 1")
    if arguments.rate is not None and arguments.rate < arguments.tasks:
        raise BadArguments(
            "--rate is at least --tasks: each of them publishes one message a second"
        )
    unknown = [name for name in dropped(arguments) if name not in _KEPT - {"body"}]
    if unknown:
        raise BadArguments(f"--drop: messages have no property {', '.join(unknown)}")


def dropped(arguments: argparse.Namespace) -> list[str]:
    """Return the properties that are left out."""
    return [name.strip() for name in arguments.drop.split(",") if name.strip()]


def chosen(frame: Any, arguments: argparse.Namespace) -> Any:
    """Return the rows and columns that are sent."""
    from pyspark.sql import functions as sql

    if arguments.where:
        frame = frame.where(arguments.where)
    if arguments.to_origin:
        first = sql.element_at("x_death", -1)
        frame = frame.where(sql.size("x_death") > 0)
        frame = frame.withColumn("exchange", first["exchange"])
        frame = frame.withColumn("routing_key", sql.get(first["routing_keys"], sql.lit(0)))
    if {"headers", "headers_raw"} <= set(frame.columns):
        # Both columns say the same. If all headers are removed from the octets, the texts must not bring them back.
        texts = sql.when(sql.col("headers_raw").isNull(), sql.col("headers"))
        frame = frame.withColumn("headers", texts)
    if arguments.tasks == 1:
        frame = in_order(frame)
    if arguments.limit:
        frame = frame.limit(arguments.limit)
    gone = set(dropped(arguments))
    if arguments.to_queue is not None:
        gone |= {"exchange", "routing_key"}
    elif arguments.to_exchange is not None:
        gone |= {"exchange"} | ({"routing_key"} if arguments.routing_key is not None else set())
    if "headers" in gone:
        gone.add("headers_raw")
    return frame.select(*[name for name in frame.columns if name in _KEPT and name not in gone])


def in_order(frame: Any) -> Any:
    """Return the rows in the order of their archiving, as one partition.

    Spark reads the largest files first. A batch has one time, and its files have the numbers of its tasks.
    """
    batch = ["archived_at"] if "archived_at" in frame.columns else []
    return frame.coalesce(1).sortWithinPartitions(
        *batch, "_metadata.file_path", "_metadata.row_index"
    )


def _target(arguments: argparse.Namespace) -> dict[str, str]:
    if arguments.to_queue is not None:
        return {"routingKey": arguments.to_queue}
    if arguments.to_exchange is None:
        return {}
    found = {"exchange": arguments.to_exchange}
    if arguments.routing_key is not None:
        found["routingKey"] = arguments.routing_key
    return found


class Change:
    """What is done to header tables on their way; runs in Spark's workers."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._strip = DEATH_HEADERS if arguments.strip_deaths else ()
        self._mark = arguments.mark

    @property
    def is_needed(self) -> bool:
        """Whether anything is done to them."""
        return bool(self._strip or self._mark)

    def __call__(self, octets: bytes | None) -> bytes | None:
        """Return the table as it goes out, what stays in it octet by octet; None for an empty one."""
        try:
            fields = fields_of(bytes(octets)) if octets else []
        except BadTable:
            return octets  # sent as it came, or refused by the sink
        gone = {*self._strip, *([MARK] if self._mark else [])}
        kept = [field for name, field in fields if name not in gone]
        if self._mark:
            kept += [field for _, field in fields_of(encode_table({MARK: self._mark}))]
        return table_of(kept) if kept else None
