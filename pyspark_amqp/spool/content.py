"""What is in a spool file: one Arrow file of messages.

State: a PieceWriter owns the file that it writes. Called by the tasks and by jobs that recover a spool.

Columns are read by name, so that a file which an older version left is still read: a column that it lacks is null. The
schema's metadata say the schema's version, the piece, and which attempt wrote it. A last batch without rows says how
many messages the task took (more than the file has rows, if some were left out as duplicates) and whether it stopped at
a limit of octets: neither is known when a file begins, and a file is written while messages come.

Invariant: an empty piece is a file with no rows: reading it again gives no rows again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa

from pyspark_amqp.convert.schema import VERSION, VERSION_KEY
from pyspark_amqp.spool.offset import Piece
from pyspark_amqp.spool.store import SpoolError

PIECE_KEY: Final = b"pyspark_amqp.piece"
ATTEMPT_KEY: Final = b"pyspark_amqp.attempt"
TAKEN_KEY: Final = b"pyspark_amqp.taken"
CUT_KEY: Final = b"pyspark_amqp.cut"
_IDS: Final = pa.schema([pa.field("message_id", pa.string())])


class Taken(NamedTuple):
    """How much of a piece its task took."""

    message_count: int
    is_cut: bool
    """It stopped at its limit of octets, not because no more messages came."""


class PieceWriter:
    """Writes one piece into a file; the file is not synced."""

    def __init__(self, path: Path, piece: Piece, schema: pa.Schema, attempt: str = "") -> None:
        self._metadata = {
            VERSION_KEY: str(VERSION).encode(),
            PIECE_KEY: f"{piece.stream} {piece.seq} {piece.part} {piece.queue}".encode(),
            ATTEMPT_KEY: attempt.encode(),
        }
        self._schema = schema.with_metadata(self._metadata)
        self._path = path
        with _telling(path):
            self._sink = pa.OSFile(str(path), "wb")
            self._writer = pa.ipc.new_file(self._sink, self._schema)

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows; nothing of the batch is kept."""
        with _telling(self._path):
            self._writer.write_batch(batch.replace_schema_metadata(self._metadata))

    def finish(self, taken: Taken) -> None:
        """Note how much was taken, and end the file."""
        arrays = [pa.array([], field.type) for field in self._schema]
        told = {TAKEN_KEY: str(taken.message_count).encode(), CUT_KEY: b"%d" % taken.is_cut}
        empty = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        with _telling(self._path):
            self._writer.write_batch(empty, custom_metadata=told)
        self.close()

    def close(self) -> None:
        """Close the file, finished or not; harmless twice."""
        if not self._sink.closed:
            with _telling(self._path):
                try:
                    self._writer.close()
                finally:
                    self._sink.close()


@contextmanager
def writing(
    path: Path, piece: Piece, schema: pa.Schema, attempt: str = ""
) -> Iterator[PieceWriter]:
    """Give a writer that is closed at the end."""
    writer = PieceWriter(path, piece, schema, attempt)
    try:
        yield writer
    except BaseException:
        # A full disk refuses the end, too: what went wrong first is what counts.
        with suppress(SpoolError):
            writer.close()
        raise
    writer.close()


def write_batches(
    path: Path,
    piece: Piece,
    schema: pa.Schema,
    batches: Sequence[pa.RecordBatch],
    taken: Taken | None = None,
) -> None:
    """Write a whole file. Without `taken` the rows are all that was taken."""
    with writing(path, piece, schema) as writer:
        for batch in batches:
            writer.write(batch)
        writer.finish(taken or Taken(sum(batch.num_rows for batch in batches), is_cut=False))


def read_batches(path: Path, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the file's messages with exactly these columns.

    Raises: SpoolError when the file is no spool file of this version or an older one.
    """
    with _opened(path) as reader:
        found = _metadata_of(reader).get(VERSION_KEY, b"0")
        if not 1 <= int(found) <= VERSION:
            raise SpoolError(f"{path}: version {found.decode()}; this is version {VERSION}")
        for index in range(reader.num_record_batches):
            batch = reader.get_batch(index)
            if batch.num_rows:
                yield _with_columns(batch, schema)


def how_much(path: Path) -> Taken | None:
    """Return what the file's task took; None when an older version wrote it.

    Raises: SpoolError when the file cannot be read.
    """
    with _opened(path) as reader:
        found = _metadata_of(reader)  # version 0.1.0 wrote it there
        if reader.num_record_batches:
            last = reader.get_batch_with_custom_metadata(reader.num_record_batches - 1)
            found |= dict(last.custom_metadata or {})
        if TAKEN_KEY not in found:
            return None
        return Taken(int(found[TAKEN_KEY]), found.get(CUT_KEY) == b"1")


def attempt_of(path: Path) -> str:
    """Return which attempt wrote the file, "" when it does not say. Raises: SpoolError."""
    with _opened(path) as reader:
        return _metadata_of(reader).get(ATTEMPT_KEY, b"").decode()


def message_ids(path: Path) -> pa.Array:
    """Return the message ids in a file.

    Raises: SpoolError when the file cannot be read.
    """
    found = [batch.column(0).drop_null() for batch in read_batches(path, _IDS)]
    return pa.concat_arrays(found) if found else pa.array([], pa.string())


def keep_ids(path: Path) -> bytes:
    """Return the message ids of a file as another file, which `message_ids` reads too. Raises: SpoolError."""
    ids = pa.record_batch([message_ids(path)], schema=_IDS)
    described = _IDS.with_metadata({VERSION_KEY: str(VERSION).encode()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, described) as writer:
        writer.write_batch(ids)
    return bytes(sink.getvalue())


@contextmanager
def _telling(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SpoolError(f"{path}: cannot be written ({error})") from error


@contextmanager
def _opened(path: Path) -> Iterator[pa.RecordBatchFileReader]:
    try:
        with pa.OSFile(str(path), "rb") as source, pa.ipc.open_file(source) as reader:
            yield reader
    except (pa.ArrowInvalid, OSError, ValueError) as error:
        raise SpoolError(f"{path}: cannot be read ({error})") from error


def _metadata_of(reader: pa.RecordBatchFileReader) -> dict[bytes, bytes]:
    return dict(reader.schema.metadata or {})


def _with_columns(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    arrays = []
    for field in schema:
        position = batch.schema.get_field_index(field.name)
        if position < 0:
            arrays.append(pa.nulls(batch.num_rows, field.type))
        else:
            arrays.append(batch.column(position))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
