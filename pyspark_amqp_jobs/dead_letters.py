"""The dead-letter report: how many messages died in which queue, why, and when.

Owns no state. The last death of each message counts: the first entry of its x-death. Messages without one (published
to the queue by somebody) are counted as `never died`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from pyspark_amqp_jobs import page
from pyspark_amqp_jobs.arguments import add_html, add_input
from pyspark_amqp_jobs.inputs import limit_note, messages
from pyspark_amqp_jobs.session import Progress, stage_text
from pyspark_amqp_jobs.table import text_table

COLUMNS = ("queue", "reason", "hour (UTC)", "messages", "deaths")
NEVER = "never died"
_HOUR_S = 3600
# What each reason is drawn in, so that two reports can be laid side by side.
REASONS = {"expired": 0, "rejected": 1, "maxlen": 2, "delivery_limit": 3}


class Row(NamedTuple):
    """One line of the report; `deaths` is how often these messages died there altogether."""

    queue: str
    reason: str
    hour: datetime | None
    messages: int
    deaths: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_input(parser)
    add_html(parser)


def run(spark: Any, arguments: argparse.Namespace, out: TextIO) -> int:
    """Report."""
    with Progress("counting", lambda: stage_text(spark)):
        rows = count(messages(spark, arguments, ["x_death"]))
    out.write(f"{text(rows)}\n{limit_note(arguments, sum(row.messages for row in rows))}")
    if arguments.html:
        where = arguments.archive or arguments.queue or arguments.store
        Path(arguments.html).write_text(html(rows, where), encoding="utf-8")
        out.write(f"written as a page to {arguments.html}\n")
    return 0


def count(frame: Any) -> list[Row]:
    """Return the report's rows of a frame with a column `x_death`."""
    from pyspark.sql import functions as sql

    death = sql.get(sql.col("x_death"), sql.lit(0))
    # Numbers: as timestamps they would come in the time zone of this machine.
    hour = (sql.floor(sql.unix_seconds("death.time") / _HOUR_S) * _HOUR_S).alias("hour")
    found = (
        frame.select(death.alias("death"))
        .select(
            sql.coalesce("death.queue", sql.lit("")).alias("queue"),
            sql.coalesce("death.reason", sql.lit(NEVER)).alias("reason"),
            hour,
            sql.coalesce("death.count", sql.lit(0)).alias("count"),
        )
        .groupBy("queue", "reason", "hour")
        .agg(sql.count(sql.lit(1)).alias("messages"), sql.sum("count").alias("deaths"))
        .orderBy("queue", "reason", "hour")
    )
    return [
        Row(row.queue, row.reason, hour_at(row.hour), row.messages, row.deaths)
        for row in found.collect()
    ]


def hour_at(seconds: int | None) -> datetime | None:
    """Return an hour of UTC, as rows have it."""
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)


def text(rows: Sequence[Row]) -> str:
    """Return the report as a table."""
    if not rows:
        return "no messages"
    whole = sum(row.messages for row in rows)
    return f"{text_table(COLUMNS, [_cells(row) for row in rows])}\n{whole:,} messages"


def _cells(row: Row) -> tuple[str, str, str, int, int]:
    return row.queue, row.reason, hour_text(row.hour), row.messages, row.deaths


def hour_text(hour: datetime | None) -> str:
    """Return an hour as it is shown."""
    return "" if hour is None else hour.strftime("%Y-%m-%d %H:00")


def html(rows: Sequence[Row], where: str) -> str:
    """Return the report as a page."""
    reasons = sorted(
        {row.reason for row in rows}, key=lambda reason: (REASONS.get(reason, 9), reason)
    )
    colours = [page.PALETTE[REASONS.get(reason, 4 + at % 3)] for at, reason in enumerate(reasons)]
    hours = sorted({row.hour for row in rows if row.hour is not None})
    queues = sorted({row.queue for row in rows if row.queue})
    by_hour = {
        reason: [
            sum(r.messages for r in rows if (r.reason, r.hour) == (reason, hour)) for hour in hours
        ]
        for reason in reasons
        if reason != NEVER
    }
    by_queue = {
        reason: [
            sum(r.messages for r in rows if (r.reason, r.queue) == (reason, queue))
            for queue in queues
        ]
        for reason in reasons
        if reason != NEVER
    }
    parts = [
        page.figures(
            {
                "dead messages": sum(row.messages for row in rows if row.reason != NEVER),
                "queues they died in": len(queues),
                **{
                    reason: sum(r.messages for r in rows if r.reason == reason)
                    for reason in reasons
                },
            }
        )
    ]
    if hours:
        parts.append(
            page.chart("By queue and reason", page.Bars(queues, by_queue, colours=colours))
        )
    if len(hours) > 1:  # one bar would say nothing that the others do not
        labels = [hour.strftime("%m-%d %H:00") for hour in hours]
        parts.append(page.chart("By hour and reason", page.Bars(labels, by_hour, colours=colours)))
    parts.append(page.table("All", COLUMNS, [_cells(row) for row in rows]))
    span = hour_text(hours[0]) if hours else ""
    span += f" to {hour_text(hours[-1])}" if len(hours) > 1 else ""
    when = f"hours are UTC: {span}" if span else "none has died"
    return page.page(
        "Dead letters", f"{where}; the last death of each message counts; {when}", parts
    )
