"""What a task does: messages of one piece from the broker into the spool, each step in its order.

    1  the piece was published before: nothing to do (whoever calls has looked)
    2  consume, at most the planned number, with exactly that prefetch, into a file while they come
    3  leave out what is in files in doubt (by message id)
    4  ask the broker something: the connection still holds the messages
    5  publish; somebody else was first: close, so that the messages go back
    6  the batch is committed already: withdraw the file and close, so that they go back
    7  cancel, acknowledge all (also what was left out), wait until the broker has done so
    8  mark as acked, while whoever called reads what was published

Killed before 5 the messages go back and nothing was published. Killed after 5 and before the broker
handled 7 they are in the spool and come again: step 3 leaves them out if they have message ids, else
they are there twice. Killed later nothing comes again.

State: none but the spool's and the broker's. Called by executors' tasks.

Which files are in doubt was asked by whoever planned the batch (`Doubt`): all pieces of batches before are published by
then. Only pieces of the same queue and batch may be published later; they are looked for in step 3.

Invariants: never acknowledges what is not published; step 3 reads the files after step 2, so that a file whose
messages came to us is found (it was published before the broker gave them back). Step 4 makes short, not impossible,
the time in which a connection that broke unnoticed could let two pieces have the same messages. No more is in memory
than a chunk of messages, twice.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_amqp.convert.reading import BATCH_ROWS, Reader
from pyspark_amqp.spool.content import PieceWriter, Taken, message_ids, read_batches, writing
from pyspark_amqp.spool.files import Spool
from pyspark_amqp.spool.marks import Mark
from pyspark_amqp.spool.offset import Piece
from pyspark_amqp.spool.publish import publish
from pyspark_amqp.spool.store import FileGone, SpoolError
from pyspark_amqp.wire.connection import Connection
from pyspark_amqp.wire.consumer import SIZE_MAX, Consumer, barrier
from pyspark_amqp.wire.deliveries import Deliveries

_ID: Final = pa.field("message_id", pa.string())
CHUNK_BYTES: Final = 16 << 20


class StaleTask(SpoolError):
    """The task belongs to a batch that is done; its messages went back to the queue."""


class Doubt(NamedTuple):
    """Where messages may be that come again, as known when the batch was planned."""

    keys: tuple[str, ...] = ()
    """Pieces of the queue, of earlier batches, that are in doubt."""
    has_siblings: bool = True
    """Other pieces of the batch are of the same queue."""


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
    doubt: Doubt | None = None,
) -> None:
    """Publish the piece, which was not published when somebody looked. The connection is for this only: close it after.

    Without `doubt` the spool is asked what is in doubt. Raises: StaleTask, SpoolError, WireError, BadMessage.
    """
    with taking(spool, piece, connection, schema, options, doubt):
        return


@contextlib.contextmanager
def taking(
    spool: Spool,
    piece: Piece,
    connection: Connection,
    schema: pa.Schema,
    options: TakeOptions = _DEFAULTS,
    doubt: Doubt | None = None,
) -> Iterator[Path | None]:
    """Do what `take` does, and give the file that was published, None when another attempt's was.

    The connection is not needed any more then. Raises: as `take`.
    """
    attempt = uuid.uuid4().hex
    stored = _stored_schema(schema, options)
    consumer = Consumer(connection, piece.queue, piece.count)
    with spool.scratch(piece) as whole, spool.scratch(piece) as filtered:
        path = whole
        with writing(path, piece, stored, attempt) as file:
            reader = Reader(stored, is_strict=options.is_strict)
            taken, last, again = _consume(consumer, piece, reader, file, options)
            file.finish(taken)
        left_out = 0
        if options.is_deduplicating:
            ids = _known_ids(spool, _compared(spool, piece, options, doubt))
            if len(ids):
                with writing(filtered, piece, stored, attempt) as file:
                    left_out = _leave_out(whole, ids, file, stored)
                    file.finish(taken)
                path = filtered
                whole.unlink()
        barrier(connection)
        if not publish(spool, piece, attempt, path):
            connection.close()
            yield None
            return
        if spool.is_stale(piece):
            spool.withdraw(piece)
            raise StaleTask(f"batch {piece.seq} of stream {piece.stream} is committed already")
        consumer.settle(last)
        cut_at = taken.message_count if taken.is_cut else None
        with ThreadPoolExecutor(1) as aside:
            marked = aside.submit(spool.mark_acked, piece, Mark(cut_at, again, left_out))
            yield path
            marked.result()


def _consume(
    consumer: Consumer, piece: Piece, reader: Reader, file: PieceWriter, options: TakeOptions
) -> tuple[Taken, Deliveries, int]:
    """Write what comes into the file; return how much it was, what came last, and how many had come before."""
    count = size = again = 0
    last = Deliveries(piece.queue)
    while count < piece.count and size < options.size_limit:
        wanted, limit = min(BATCH_ROWS, piece.count - count), options.size_limit - size
        chunk = consumer.read(
            wanted,
            idle_timeout_s=options.idle_timeout_s,
            size_limit=min(CHUNK_BYTES, limit),
        )
        for batch in reader.batches(chunk):
            file.write(batch)
        count, size = count + len(chunk), size + chunk.size_bytes
        again += len(chunk) - chunk.redelivered.count(0)
        last = chunk if len(chunk) else last
        if len(chunk) < wanted and chunk.size_bytes < CHUNK_BYTES:
            break
    return Taken(count, is_cut=size >= options.size_limit), last, again


def _stored_schema(schema: pa.Schema, options: TakeOptions) -> pa.Schema:
    """Return the columns that the file gets: what the query asks for, and ids to compare."""
    if options.is_deduplicating and schema.get_field_index(_ID.name) < 0:
        return schema.append(_ID)
    return schema


def _compared(spool: Spool, piece: Piece, options: TakeOptions, doubt: Doubt | None) -> set[str]:
    """Return the keys of the files whose messages may come again."""
    if options.is_remembering:
        there = spool.published(piece.stream, piece.queue)
        keys = [found.key for found in spool.compared(piece.stream, there)]
        return {*keys, *spool.kept_ids(piece.stream, piece.queue)}
    if doubt is None:
        there = spool.in_doubt(piece.stream, piece.queue)
        return {found.key for found in spool.compared(piece.stream, there)}
    found = set(doubt.keys)
    if doubt.has_siblings:
        # What is acknowledged does not come again.
        found |= {each.key for each in spool.siblings(piece) if each.is_in_doubt}
    return found


def _known_ids(spool: Spool, keys: Iterable[str]) -> pa.Array:
    """Return the message ids in these files; one that went meanwhile, because of its age, need not be compared."""
    ids = [pa.array([], pa.string())]
    for key in sorted(keys):
        with contextlib.suppress(FileGone), spool.store.open(key) as path:
            ids.append(message_ids(path))
    return pa.concat_arrays(ids)


def _leave_out(source: Path, ids: pa.Array, file: PieceWriter, schema: pa.Schema) -> int:
    """Write what is in the source into the file, but for rows with one of these message ids; return their number."""
    left_out = 0
    for batch in read_batches(source, schema):
        is_known = pc.is_in(batch.column(_ID.name), value_set=ids)
        kept = batch.filter(pc.invert(is_known))
        left_out += batch.num_rows - kept.num_rows
        if kept.num_rows:
            file.write(kept)
    return left_out
