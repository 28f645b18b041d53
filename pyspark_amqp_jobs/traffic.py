"""Traffic: who publishes and gets how much, out of the firehose.

Owns no state. `burrowctl trace_on` copies what is published and delivered to the exchange `amq.rabbitmq.trace`; a queue
bound to it with `#` is read here, as it stands (`--queue`), or as an archive of it (`--from`). An archived copy has the
time of its archiving; nothing else in a copy says when it was, so windows of time need an archive that keeps running.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from pyspark_amqp_jobs import page
from pyspark_amqp_jobs.arguments import BadArguments, add_html, add_input
from pyspark_amqp_jobs.inputs import limit_note, messages
from pyspark_amqp_jobs.session import Progress, stage_text
from pyspark_amqp_jobs.table import text_table

BY = ("exchange", "queue", "user", "connection", "routing_key")
_COLUMNS = ["routing_key", "headers", "body"]


class Row(NamedTuple):
    """One line: what was counted, in which direction, when."""

    window: str
    kind: str
    name: str
    messages: int
    bytes: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_input(parser, has_store=False)
    parser.add_argument(
        "--by",
        choices=BY,
        default="exchange",
        help="what publishes and deliveries are counted by (default exchange); by queue, a publish counts for all "
        "the queues that it was routed to, as one list",
    )
    parser.add_argument(
        "--window",
        metavar="TEXT",
        help="with --from: a row for each window of time, such as '1 minute'",
    )
    add_html(parser)


def run(spark: Any, arguments: argparse.Namespace, out: TextIO) -> int:
    """Report."""
    if arguments.window and not arguments.archive:
        raise BadArguments(
            "--window goes with --from: a queue's copies do not say when they were made"
        )
    has_window = bool(arguments.window)
    columns = [*_COLUMNS, *(["archived_at"] if has_window else [])]
    with Progress("counting", lambda: stage_text(spark)):
        rows = count(
            messages(spark, arguments, columns),
            arguments.by,
            arguments.window if has_window else None,
        )
    columns_shown = ("window (UTC)", "kind", arguments.by, "messages", "bytes")
    out.write((text_table(columns_shown, rows) if rows else "no traced messages") + "\n")
    out.write(limit_note(arguments, _sum(rows, "", None)))
    if arguments.html:
        where = arguments.archive or arguments.queue
        Path(arguments.html).write_text(html(rows, columns_shown, where), encoding="utf-8")
        out.write(f"written as a page to {arguments.html}\n")
    return 0


def count(frame: Any, by: str, window: str | None) -> list[Row]:
    """Return the report's rows of a frame of traced messages."""
    from pyspark.sql import functions as sql

    kind = sql.substring_index("routing_key", ".", 1)
    rest = sql.expr("substring(routing_key, length(substring_index(routing_key, '.', 1)) + 2)")
    headers = sql.col("headers")
    keys = sql.from_json(headers["routing_keys"], "array<string>")
    names = {
        "exchange": headers["exchange_name"],
        "queue": sql.when(kind == "deliver", rest).otherwise(headers["routed_queues"]),
        "user": headers["user"],
        "connection": headers["connection"],
        "routing_key": sql.get(keys, sql.lit(0)),
    }
    start = sql.window("archived_at", window)["start"].cast("string") if window else sql.lit("")
    found = (
        frame.where(kind.isin("publish", "deliver"))
        .select(
            start.alias("window"),
            kind.alias("kind"),
            sql.coalesce(names[by], sql.lit("")).alias("name"),
            sql.length("body").alias("size"),
        )
        .groupBy("window", "kind", "name")
        .agg(sql.count(sql.lit(1)).alias("messages"), sql.sum("size").alias("bytes"))
        .orderBy("window", "kind", sql.desc("messages"), "name")
    )
    return [Row(*row) for row in found.collect()]


def html(rows: list[Row], columns: tuple[str, ...], where: str) -> str:
    """Return the report as a page."""
    names = sorted({row.name for row in rows}, key=lambda name: -_sum(rows, "", name))[:40]
    bars = page.Bars(
        [name or "(default)" for name in names],
        {
            kind: [_sum(rows, kind, name) for name in names]
            for kind in sorted({row.kind for row in rows})
        },
    )
    parts = [
        page.figures(
            {
                "published": _sum(rows, "publish", None),
                "delivered": _sum(rows, "deliver", None),
                "bytes": sum(row.bytes for row in rows),
            }
        ),
        page.chart(f"Messages by {columns[2]}", bars),
        page.table("All", columns, rows),
    ]
    return page.page("Traffic", f"{where}; traced by amq.rabbitmq.trace", parts)


def _sum(rows: list[Row], kind: str, name: str | None) -> int:
    return sum(
        row.messages for row in rows if row.kind == (kind or row.kind) and name in (None, row.name)
    )
