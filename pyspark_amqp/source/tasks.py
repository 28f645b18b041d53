"""A piece's rows, on an executor: from its spool file, which the task makes if it does not exist.

Owns no state. Called by the readers of streams and drains, in Spark's Python workers.

Invariant: rows come from the published file alone, so that every attempt at a piece, at the same time or
after a crash, yields the same rows. Taking may be repeated as a whole: what was not published went back
to the queue, and what was published is found.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from pyspark_amqp.options.source import TaskOptions
from pyspark_amqp.source.patience import persist
from pyspark_amqp.spool import Piece, Spool, SpoolError, TakeOptions, read_batches, take
from pyspark_amqp.wire import connect


class PiecePartition(InputPartition):
    """One task's piece, with the octets that it may take."""

    def __init__(self, piece: Piece, size_limit: int) -> None:
        self.piece = piece
        self.size_limit = size_limit


def partitions_of(
    pieces: list[Piece], task_bytes: int, byte_limit: int | None
) -> list[InputPartition]:
    """Return the partitions of a batch, which share its limit of octets equally."""
    size_limit = task_bytes
    if byte_limit is not None and pieces:
        size_limit = min(task_bytes, max(1, byte_limit // len(pieces)))
    return [PiecePartition(piece, size_limit) for piece in pieces]


def rows_of(
    partition: PiecePartition, options: TaskOptions, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield the piece's rows; take them from the queue first if nobody has.

    Raises: SpoolError, StaleTask, WireError, BadMessage.
    """
    spool = Spool(options.spool_location)
    piece = partition.piece
    if not spool.has_stream(piece.stream):
        raise SpoolError(
            f"{spool.root}: no folder of stream {piece.stream} here, though the driver made it; "
            "spoolLocation must be the same file system on driver and executors"
        )

    def attempt() -> Path:
        found = spool.find(piece)
        if found is not None:
            return found
        how = TakeOptions(
            idle_timeout_s=options.idle_timeout_s,
            size_limit=partition.size_limit,
            is_deduplicating=options.is_deduplicating,
            is_remembering=options.dedupe_retention_s > 0,
            is_strict=options.fails_on_malformed,
        )
        name = f"{options.addresses[0].connection_name} {piece.queue} {piece.seq}-{piece.part}"
        with connect([address.named(name) for address in options.addresses]) as connection:
            return take(spool, piece, connection, schema, how)

    path = persist(attempt, options.retry_timeout_s)
    for batch in read_batches(path, schema):
        if batch.num_rows:
            yield batch
