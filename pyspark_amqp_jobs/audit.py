"""Store audit: every record of a data directory or a backup checked, and what of it is live.

Owns no state. Two reads of `format("amqp-store")`: `records` (what the files hold, with CRC) and the index entries of
all queues (what is still wanted). A record that several queues want counts once. For each file: its size, live and
garbage bytes, damage; for each queue: messages and bytes. Of a node that runs the picture is a little blurred, of a
backup it is exact.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from pyspark_amqp_jobs import page
from pyspark_amqp_jobs.session import Progress, stage_text
from pyspark_amqp_jobs.table import size_text, text_table

FILE_COLUMNS = (
    "queue",
    "file",
    "size",
    "records",
    "live records",
    "live bytes",
    "garbage bytes",
    "damaged bytes",
)
QUEUE_COLUMNS = ("vhost", "queue", "messages", "bytes", "in shared store", "on disk")
SHARED = "(shared store)"
_CHART_FILES = 400
_PLACE = ["store", "home", "segment", "slot"]
OK, DAMAGED = 0, 1


class FileRow(NamedTuple):
    """One store file, and whose it is."""

    owner: str
    file: str
    size: int
    records: int
    live_records: int
    live_bytes: int
    garbage_bytes: int
    damaged_bytes: int


class QueueRow(NamedTuple):
    """One queue: its messages, their bodies, how many are shared, and the bytes of its live records."""

    vhost: str
    queue: str
    messages: int
    bytes: int
    shared: int
    stored_bytes: int


class Audit(NamedTuple):
    """What was found; `unreadable` entries name a record that is not there or damaged."""

    files: list[FileRow]
    queues: list[QueueRow]
    unreadable: int

    @property
    def is_sound(self) -> bool:
        """Whether nothing is damaged."""
        return not self.unreadable and not any(row.damaged_bytes for row in self.files)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--store", required=True, metavar="DIR", help="a data directory or a backup"
    )
    parser.add_argument(
        "--problems", action="store_true", help="list only files with damage in them"
    )
    parser.add_argument("--html", metavar="FILE", help="write the report as a page, too")


def run(spark: Any, arguments: argparse.Namespace, out: TextIO) -> int:
    """Audit; 1 when something is damaged."""
    with Progress("auditing", lambda: stage_text(spark)):
        found = audit(spark, arguments.store)
    out.write(text(found, is_short=arguments.problems) + "\n")
    if arguments.html:
        Path(arguments.html).write_text(html(found, arguments.store), encoding="utf-8")
        out.write(f"written as a page to {arguments.html}\n")
    return OK if found.is_sound else DAMAGED


def audit(spark: Any, store: str) -> Audit:
    """Look at everything."""
    from pyspark.sql import functions as sql

    records = spark.read.format("amqp-store").option("view", "records").load(store)
    entries = (
        spark.read.format("amqp-store")
        .schema(
            "vhost string, queue string, body_size long, store string, segment long, slot long, "
            "file string"
        )
        .load(store)
    )
    entries = entries.withColumn("home", sql.coalesce("file", "vhost")).drop("file")
    good = _at_home(records)
    wanted = entries.groupBy(*_PLACE).agg(sql.count(sql.lit(1)).alias("refs"))
    held = good.join(wanted, _PLACE, "left")
    is_live = sql.col("refs").isNotNull() & sql.col("counts")
    live = held.groupBy("file").agg(
        sql.count(sql.lit(1)).alias("records"),
        sql.sum(is_live.cast("long")).alias("live_records"),
        sql.sum(sql.when(is_live, sql.col("size")).otherwise(0)).alias("live_bytes"),
        sql.sum(sql.when(is_live, 0).otherwise(sql.col("size"))).alias("garbage_bytes"),
    )
    sizes = records.groupBy("vhost", "queue", "file").agg(
        sql.sum("size").alias("size"),
        sql.sum(sql.when(sql.col("state") == "damaged", sql.col("size")).otherwise(0)).alias(
            "damaged"
        ),
    )
    files = (
        sizes.join(live, ["file"], "left")
        .na.fill(0)
        .select(
            *("vhost", "queue", "file", "size"),
            *("records", "live_records", "live_bytes", "garbage_bytes", "damaged"),
        )
    )
    located = entries.join(good.where("counts").select(*_PLACE, "size"), _PLACE, "left")
    queues = located.groupBy("vhost", "queue").agg(
        sql.count(sql.lit(1)).alias("messages"),
        sql.sum("body_size").alias("bytes"),
        sql.sum((sql.col("store") == "shared").cast("long")).alias("shared"),
        sql.sum(sql.coalesce("size", sql.lit(0))).alias("stored"),
        sql.sum(sql.col("size").isNull().cast("long")).alias("unreadable"),
    )
    rows = queues.orderBy("vhost", "queue").collect()
    return Audit(
        sorted(
            (FileRow(owner_text(row[0], row[1]), *row[2:]) for row in files.collect()),
            key=file_order,
        ),
        [QueueRow(*row[:6]) for row in rows],
        sum(row.unreadable for row in rows),
    )


def _at_home(records: Any) -> Any:
    """Return the good records, each with its `home`, and whether this copy `counts`.

    A queue's record is at home in the one file that the queue's index names: a flush or a conversion that a crash cut
    short leaves a second copy in another file, which nobody wants. A shared record is at home in its vhost; of several
    copies the one counts that the store would read.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    is_own = sql.col("store") == "queue"
    home = sql.when(is_own, sql.col("file")).otherwise(sql.col("vhost"))
    number, generation = (
        sql.regexp_extract("file", r"(\d+)\.g(\d+)\.seg$", group).try_cast("long")
        for group in (1, 2)
    )
    # What a compaction wrote counts once it is sealed.
    is_whole = (generation == 0) | sql.col("is_sealed").isNotNull()
    best = Window.partitionBy(*_PLACE).orderBy(
        is_whole.desc(), (number == sql.col("segment")).desc(), generation.desc()
    )
    sealed = records.where("state = 'seal'").select("file", sql.lit(1).alias("is_sealed"))
    good = records.where("state = 'good'").withColumn("home", home)
    shared = good.where(~is_own).join(sql.broadcast(sealed), ["file"], "left")
    counted = shared.withColumn("counts", is_whole & (sql.row_number().over(best) == 1))
    own = good.where(is_own).withColumn("counts", sql.lit(True))
    return own.unionByName(counted.select(*own.columns))


def owner_text(vhost: str, queue: str | None) -> str:
    """Return whose a file is: a queue's, with its vhost unless that is "/", or the shared store's."""
    name = SHARED if queue is None else queue
    return name if vhost == "/" else f"{name} ({vhost})"


def file_order(row: FileRow) -> tuple[str, str, int, str]:
    """Sort files by owner, then by folder and their numbers."""
    folder, _, name = row.file.rpartition("/")
    number = name.partition(".")[0]
    return row.owner, folder, int(number) if number.isdecimal() else 0, name


def text(found: Audit, *, is_short: bool = False) -> str:
    """Return the report as tables."""
    files = [row for row in found.files if row.damaged_bytes] if is_short else found.files
    parts = [text_table(QUEUE_COLUMNS, found.queues), ""]
    if files:
        parts += [text_table(FILE_COLUMNS, files), ""]
    size = sum(row.size for row in found.files)
    live = sum(row.live_bytes for row in found.files)
    garbage = sum(row.garbage_bytes for row in found.files)
    damaged = sum(row.damaged_bytes for row in found.files)
    parts.append(
        f"{len(found.files):,} files, {size_text(size)}: live {size_text(live)}, garbage {size_text(garbage)},"
        f" damaged {size_text(damaged)}; {found.unreadable:,} messages unreadable"
    )
    return "\n".join(parts)


def short_path(path: str) -> str:
    """Return a file's name and the beginning of its folder's: whole ones leave no room for the figures."""
    folder, _, name = path.rpartition("/")
    last = folder.rpartition("/")[2]
    return f"{last[:8]}…/{name}" if len(last) > 8 else f"{last}/{name}"


def html(found: Audit, where: str) -> str:
    """Return the report as a page."""
    size = sum(row.size for row in found.files)
    live = sum(row.live_bytes for row in found.files)
    parts = [
        page.figures(
            {
                "messages": sum(row.messages for row in found.queues),
                "queues": len(found.queues),
                "store files": len(found.files),
                "on disk": size_text(size),
                "live": f"{100 * live / size:.1f} %" if size else "0 %",
                "garbage": size_text(sum(row.garbage_bytes for row in found.files)),
                "damaged": size_text(sum(row.damaged_bytes for row in found.files)),
                "unreadable": found.unreadable,
            }
        )
    ]
    shown = found.files[:_CHART_FILES]
    if shown:
        other = [row.size - row.live_bytes - row.garbage_bytes - row.damaged_bytes for row in shown]
        bars = page.Bars(
            [f"{row.owner} {row.file.rpartition('/')[2]}" for row in shown],
            {
                "live": [row.live_bytes for row in shown],
                "garbage": [row.garbage_bytes for row in shown],
                "headers and seals": other,
                "damaged": [row.damaged_bytes for row in shown],
            },
            unit="B",
            colours=(page.PALETTE[2], page.PALETTE[1], "#b8c2cc", "#c0392b"),
            groups=[row.owner for row in shown],
        )
        more = f" (the first {_CHART_FILES})" if len(found.files) > _CHART_FILES else ""
        parts.append(page.chart(f"Store files{more}", bars))
    parts.append(page.table("Queues", QUEUE_COLUMNS, found.queues))
    bad = [bool(row.damaged_bytes) for row in found.files]
    rows = [row._replace(file=short_path(row.file)) for row in found.files]
    parts.append(page.table("Files", FILE_COLUMNS, rows, bad))
    return page.page("Store audit", f"{where}; every record checked against its CRC-32", parts)
