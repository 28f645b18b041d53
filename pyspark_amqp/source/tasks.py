"""A piece's rows, on an executor: from its spool file, which the task makes if it does not exist.

Owns no state. Called by the readers of streams and drains, in Spark's Python workers.

Invariant: rows come from the published file alone, so that every attempt at a piece, at the same time or
after a crash, yields the same rows; who published it may read what it sent. Taking may be repeated as a
whole: what was not published went back to the queue, and what was published is found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from pyspark_amqp.options.connection import may_rotate
from pyspark_amqp.options.source import TaskOptions
from pyspark_amqp.options.spool import SpoolPlace
from pyspark_amqp.source.patience import persist
from pyspark_amqp.spool import (
    Doubt,
    Piece,
    Spool,
    SpoolError,
    TakeOptions,
    open_store,
    read_batches,
    taking,
)
from pyspark_amqp.wire import connect


class PiecePartition(InputPartition):
    """One task's piece, with the octets that it may take."""

    def __init__(self, piece: Piece, size_limit: int, doubt: Doubt) -> None:
        self.piece = piece
        self.size_limit = size_limit
        self.doubt = doubt


def spool_at(place: SpoolPlace) -> Spool:
    """Return the spool of a query. Raises: SpoolError."""
    return Spool(
        open_store(
            place.location,
            endpoint=place.endpoint,
            region=place.region,
            is_http_allowed=place.is_http_allowed,
        )
    )


def partitions_of(
    spool: Spool, pieces: list[Piece], task_bytes: int, byte_limit: int | None
) -> list[InputPartition]:
    """Return the partitions of a batch, which share its limit of octets equally.

    What is in doubt is looked up here, once for all tasks.
    """
    if not pieces:
        return []
    size_limit = task_bytes
    if byte_limit is not None:
        size_limit = min(task_bytes, max(1, byte_limit // len(pieces)))
    queues = Counter(piece.queue for piece in pieces)
    doubted: dict[str, list[str]] = {}
    stream = pieces[0].stream
    earlier = [
        found for found in spool.pieces(stream) if found.is_in_doubt and found.seq < pieces[0].seq
    ]
    for found in spool.compared(stream, earlier):
        doubted.setdefault(found.folder, []).append(found.key)
    return [
        PiecePartition(
            piece,
            size_limit,
            Doubt(tuple(doubted.get(spool.folder(piece), ())), queues[piece.queue] > 1),
        )
        for piece in pieces
    ]


def rows_of(
    partition: PiecePartition, options: TaskOptions, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield the piece's rows; take them from the queue first if nobody has.

    Raises: SpoolError, StaleTask, WireError, BadMessage.
    """
    spool = spool_at(options.spool)
    piece = partition.piece

    def attempt() -> Path | None:
        if spool.has(piece):
            return None
        if spool.store.is_path and not spool.has_stream(piece.stream):
            raise SpoolError(
                f"{spool}: no folder of stream {piece.stream} here, though the driver made it; "
                "spoolLocation must be the same place on driver and executors"
            )
        how = TakeOptions(
            idle_timeout_s=options.idle_timeout_s,
            size_limit=partition.size_limit,
            is_deduplicating=options.is_deduplicating,
            is_remembering=options.dedupe_retention_s > 0,
            is_strict=options.fails_on_malformed,
        )
        name = f"{options.addresses[0].connection_name} {piece.queue} {piece.seq}-{piece.part}"
        with connect([address.named(name) for address in options.addresses]) as connection:
            own = taking(spool, piece, connection, schema, how, partition.doubt)
            if spool.store.is_path:  # the published file is as near
                with own:
                    return None
            return kept.enter_context(own)

    with ExitStack() as kept:
        path = persist(attempt, options.retry_timeout_s, may_rotate=may_rotate(options.addresses))
        if path is None:
            path = kept.enter_context(spool.open(piece))
        yield from read_batches(path, schema)
