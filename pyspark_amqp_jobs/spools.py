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
from typing import Any, NamedTuple, TextIO
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from pyspark_amqp.convert import schema_of
from pyspark_amqp.spool import read_batches
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


class Piece(NamedTuple):
    """One published file."""

    path: Path
    seq: int
    is_committed: bool
    is_in_doubt: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("action", choices=("list", "recover"))
    parser.add_argument("--spool", required=True, metavar="DIR")
    parser.add_argument(
        "--stream", metavar="NAME", help="with recover: one of those that list shows"
    )
    parser.add_argument("--to", metavar="FILE", help="with recover: the Parquet file to make")
    parser.add_argument(
        "--all", action="store_true", help="with recover: pieces of committed batches too"
    )


def run(spark: Any, arguments: argparse.Namespace, out: TextIO) -> int:
    """List or recover."""
    root = Path(arguments.spool)
    if not root.is_dir():
        raise BadArguments(f"{root} is no folder")
    if arguments.action == "list":
        rows = list(listing(root))
        out.write((text_table(COLUMNS, rows) if rows else "the spool is empty") + "\n")
        return 0
    if not arguments.stream or not arguments.to:
        raise BadArguments("recover needs --stream and --to")
    if Path(arguments.to).exists():
        raise BadArguments(f"{arguments.to} is there already")
    count = recover(root, arguments.stream, Path(arguments.to), is_all=arguments.all)
    out.write(f"recovered {count:,} messages of stream {arguments.stream} into {arguments.to}\n")
    return 0


def listing(root: Path) -> Iterator[tuple[Any, ...]]:
    """Yield a row for each stream and queue."""
    for stream in _folders(root):
        committed = _committed(stream)
        for queue in sorted(stream.glob("q-*/")):
            pieces = _pieces(queue, committed)
            wanted = [piece for piece in pieces if not piece.is_committed]
            yield (
                unquote(stream.name),
                unquote(queue.name.removeprefix("q-")),
                committed,
                len(pieces),
                len(wanted),
                sum(_row_count(piece.path) for piece in wanted),
                sum(piece.is_in_doubt for piece in pieces),
            )


def recover(root: Path, stream: str, target: Path, *, is_all: bool) -> int:
    """Write a stream's messages into one Parquet file; return how many. Raises: BadArguments, SpoolError."""
    folders = [folder for folder in _folders(root) if unquote(folder.name) == stream]
    if not folders:
        raise BadArguments(f"there is no stream {stream!r} in {root}")
    schema = schema_of(has_headers_raw=True)
    aside = target.with_name(f"{target.name}.tmp")
    count = 0
    with pq.ParquetWriter(aside, schema) as writer:
        for queue in sorted(folders[0].glob("q-*/")):
            for piece in _pieces(queue, _committed(folders[0])):
                if piece.is_committed and not is_all:
                    continue
                for batch in read_batches(piece.path, schema):
                    writer.write_batch(pa.RecordBatch.from_arrays(batch.columns, schema=schema))
                    count += batch.num_rows
    aside.replace(target)
    return count


def _row_count(path: Path) -> int:
    return sum(batch.num_rows for batch in read_batches(path, schema_of(["redelivered"])))


def _folders(root: Path) -> list[Path]:
    return sorted(path for path in root.iterdir() if path.is_dir())


def _committed(stream: Path) -> int:
    try:
        return int((stream / "committed").read_text())
    except FileNotFoundError:
        return -1


def _pieces(queue: Path, committed: int) -> list[Piece]:
    found = []
    for path in sorted(queue.glob("*.arrow")):
        seq = int(path.stem.partition("-")[0])
        is_in_doubt = not path.with_suffix(".acked").exists()
        found.append(Piece(path, seq, seq <= committed, is_in_doubt))
    return found
