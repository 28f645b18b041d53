"""Shows what lies in a spool, and copies it out.

Owns no state; needs no Spark. When a checkpoint is deleted, or a query never runs again, messages that were
acknowledged and not yet written by the sink are in the spool's files only. `list` shows each stream; `recover` copies a
stream's messages to Parquet and removes nothing.

What comes out: pieces of batches that Spark did not commit. Its last batch of a run is never committed, so its messages
may be in the sink already: compare message ids. Pieces in doubt of committed batches are in the sink, and left out
unless `--all` says otherwise.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa
import pyarrow.parquet as pq

from pyspark_amqp.convert import schema_of
from pyspark_amqp.spool import Published, Spool, open_store, read_batches
from pyspark_amqp_jobs.arguments import BadArguments
from pyspark_amqp_jobs.table import text_table

COLUMNS = (
    "stream",
    "queue",
    "committed batch",
    "pieces",
    "to recover",
    "messages to recover",
    "in doubt",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("action", choices=("list", "recover"))
    parser.add_argument(
        "--spool",
        required=True,
        metavar="PLACE",
        help="the query's spoolLocation: a folder or s3://...",
    )
    parser.add_argument("--endpoint", metavar="URL", help="the object store's, as spool.endpoint")
    parser.add_argument("--region", metavar="NAME", help="the object store's, as spool.region")
    parser.add_argument("--allow-http", action="store_true", help="as spool.allowHttp=true")
    parser.add_argument(
        "--stream", metavar="NAME", help="with recover: one of those that list shows"
    )
    parser.add_argument("--to", metavar="FILE", help="with recover: the Parquet file to make")
    parser.add_argument(
        "--all", action="store_true", help="with recover: pieces of committed batches too"
    )


def run(spark: Any, arguments: argparse.Namespace, out: TextIO) -> int:
    """List or recover."""
    spool = _spool(arguments)
    if arguments.action == "list":
        rows = list(listing(spool))
        out.write((text_table(COLUMNS, rows) if rows else "the spool is empty") + "\n")
        return 0
    if not arguments.stream or not arguments.to:
        raise BadArguments("recover needs --stream and --to")
    if Path(arguments.to).exists():
        raise BadArguments(f"{arguments.to} is there already")
    count = recover(spool, arguments.stream, Path(arguments.to), is_all=arguments.all)
    out.write(f"recovered {count:,} messages of stream {arguments.stream} into {arguments.to}\n")
    return 0


def listing(spool: Spool) -> Iterator[tuple[Any, ...]]:
    """Yield a row for each stream and queue."""
    for stream in spool.streams():
        committed = spool.committed(stream)
        by_queue: dict[str, list[Published]] = {}
        for piece in spool.pieces(stream):
            by_queue.setdefault(piece.queue, []).append(piece)
        for queue, pieces in sorted(by_queue.items()):
            wanted = [piece for piece in pieces if piece.seq > committed]
            yield (
                stream,
                queue,
                committed,
                len(pieces),
                len(wanted),
                sum(_row_count(spool, piece) for piece in wanted),
                sum(piece.is_in_doubt for piece in pieces),
            )


def recover(spool: Spool, stream: str, target: Path, *, is_all: bool) -> int:
    """Write a stream's messages into one Parquet file; return how many. Raises: BadArguments, SpoolError."""
    if stream not in spool.streams():
        raise BadArguments(f"there is no stream {stream!r} in {spool}")
    schema = schema_of(has_headers_raw=True)
    committed = spool.committed(stream)
    aside = target.with_name(f"{target.name}.tmp")
    count = 0
    with pq.ParquetWriter(aside, schema) as writer:
        for piece in spool.pieces(stream):
            if piece.seq <= committed and not is_all:
                continue
            with spool.store.open(piece.key) as path:
                for batch in read_batches(path, schema):
                    writer.write_batch(pa.RecordBatch.from_arrays(batch.columns, schema=schema))
                    count += batch.num_rows
    aside.replace(target)
    return count


def _spool(arguments: argparse.Namespace) -> Spool:
    place: str = arguments.spool
    store = open_store(
        place,
        endpoint=arguments.endpoint,
        region=arguments.region,
        is_http_allowed=arguments.allow_http,
    )
    if store.is_path and not Path(str(store)).is_dir():
        raise BadArguments(f"{place} is no folder")
    return Spool(store)


def _row_count(spool: Spool, piece: Published) -> int:
    with spool.store.open(piece.key) as path:
        return sum(batch.num_rows for batch in read_batches(path, schema_of(["redelivered"])))
