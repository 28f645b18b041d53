"""What a task does: messages of one piece from the broker into the spool, each step in its order.

    1  the piece was published before: nothing to do
    2  consume, at most the planned number, with exactly that prefetch
    3  leave out what is in files in doubt (by message id)
    4  ask the broker something: the connection still holds the messages
    5  write, sync, publish; somebody else was first: close, so that the messages go back
    6  the batch is committed already: withdraw the file and close, so that they go back
    7  cancel, acknowledge all (also what was left out), wait until the broker has done so
    8  mark as acked

Killed before 5 the messages go back and nothing was published. Killed after 5 and before the broker
handled 7 they are in the spool and come again: step 3 leaves them out if they have message ids, else
they are there twice. Killed later nothing comes again.

State: none but the spool's and the broker's. Called by executors' tasks.

Invariants: never acknowledges what is not published and synced; step 3 reads the files after step 2, so
that a file whose messages came to us is found (it was published before the broker gave them back).
Step 4 makes short, not impossible, the time in which a connection that broke unnoticed could let two
pieces have the same messages.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_amqp.convert.reading import Reader
from pyspark_amqp.spool.content import Taken, message_ids, write_batches
from pyspark_amqp.spool.files import Spool, SpoolError
from pyspark_amqp.spool.offset import Piece
from pyspark_amqp.wire.connection import Connection
from pyspark_amqp.wire.consumer import SIZE_MAX, Consumer, barrier

_ID: Final = pa.field("message_id", pa.string())


class StaleTask(SpoolError):
    """The task belongs to a batch that is done; its messages went back to the queue."""


class TakeOptions(NamedTuple):
    """How pieces are taken."""

    idle_timeout_s: float = 2.0
    size_limit: int = SIZE_MAX
    is_deduplicating: bool = True
    is_remembering: bool = False
    """Compare with the ids that committed and acknowledged pieces left, too."""
    is_strict: bool = False
    """Fail, and take nothing, when a message's row would not say what was sent."""


_DEFAULTS: Final = TakeOptions()


def take(
    spool: Spool,
    piece: Piece,
    connection: Connection,
    schema: pa.Schema,
    options: TakeOptions = _DEFAULTS,
) -> Path:
    """Publish the piece, unless it is published, and return its file. The connection is for this only: close it after.

    Raises: StaleTask, SpoolError, WireError, BadMessage.
    """
    path = spool.find(piece)
    if path is not None:
        return path
    _refuse_stale(spool, piece)
    consumer = Consumer(connection, piece.queue, piece.count)
    deliveries = consumer.read(
        piece.count, idle_timeout_s=options.idle_timeout_s, size_limit=options.size_limit
    )
    stored = _stored_schema(schema, options)
    batches = list(Reader(stored, is_strict=options.is_strict).batches(deliveries))
    if options.is_deduplicating:
        batches = _without(batches, _known_ids(spool, piece, options))
    taken = Taken(len(deliveries), deliveries.size_bytes >= options.size_limit)
    barrier(connection)
    is_first = spool.publish(piece, lambda at: write_batches(at, piece, stored, batches, taken))
    if is_first:
        _refuse_stale(spool, piece)
        consumer.settle(deliveries)
        spool.mark_acked(piece)
    else:
        connection.close()
    return spool.path(piece)


def _refuse_stale(spool: Spool, piece: Piece) -> None:
    """Raise when nobody will ask for the piece any more, and leave no file of it."""
    if spool.is_stale(piece):
        spool.withdraw(piece)
        raise StaleTask(f"batch {piece.seq} of stream {piece.stream} is committed already")


def _stored_schema(schema: pa.Schema, options: TakeOptions) -> pa.Schema:
    """Return the columns that the file gets: what the query asks for, and ids to compare."""
    if options.is_deduplicating and schema.get_field_index(_ID.name) < 0:
        return schema.append(_ID)
    return schema


def _known_ids(spool: Spool, piece: Piece, options: TakeOptions) -> pa.Array:
    """Return the ids of messages that may come again."""
    if options.is_remembering:
        paths = [found.path for found in spool.published(piece.stream, piece.queue)]
        paths += spool.kept_ids(piece.stream, piece.queue)
    else:
        paths = [found.path for found in spool.in_doubt(piece.stream, piece.queue)]
    ids = [pa.array([], pa.string())]
    for path in paths:
        try:
            ids.append(message_ids(path))
        except SpoolError:
            # A file that was removed meanwhile, because of its age, need not be compared any more.
            if path.exists():
                raise
    return pa.concat_arrays(ids)


def _without(batches: list[pa.RecordBatch], ids: pa.Array) -> list[pa.RecordBatch]:
    """Leave out rows with one of these message ids."""
    if not len(ids):
        return batches
    kept = [
        batch.filter(pc.invert(pc.is_in(batch.column(_ID.name), value_set=ids)))
        for batch in batches
    ]
    return [batch for batch in kept if batch.num_rows]
