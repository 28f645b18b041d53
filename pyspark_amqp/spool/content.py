"""What is in a spool file: one Arrow file of messages.

Owns no state. Called by the tasks and by jobs that recover a spool.

Columns are read by name, so that a file which an older version left is still read: a column that it
lacks is null. The file's metadata say the schema's version, the piece, how many messages the task took (more than the
file has rows, if some were left out as duplicates) and whether it stopped at a limit of octets.

Invariant: an empty piece is a file with no rows: reading it again gives no rows again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa

from pyspark_amqp.convert.schema import VERSION, VERSION_KEY
from pyspark_amqp.spool.files import SpoolError
from pyspark_amqp.spool.offset import Piece

PIECE_KEY: Final = b"pyspark_amqp.piece"
TAKEN_KEY: Final = b"pyspark_amqp.taken"
CUT_KEY: Final = b"pyspark_amqp.cut"
_IDS: Final = pa.schema([pa.field("message_id", pa.string())])


class Taken(NamedTuple):
    """How much of a piece its task took."""

    message_count: int
    is_cut: bool
    """It stopped at its limit of octets, not because no more messages came."""


def write_batches(
    path: Path,
    piece: Piece,
    schema: pa.Schema,
    batches: Sequence[pa.RecordBatch],
    taken: Taken | None = None,
) -> None:
    """Write a whole file; it is not synced. Without `taken` the rows are all that was taken."""
    taken = taken or Taken(sum(batch.num_rows for batch in batches), is_cut=False)
    name = f"{piece.stream} {piece.seq} {piece.part} {piece.queue}".encode()
    metadata = {
        VERSION_KEY: str(VERSION).encode(),
        PIECE_KEY: name,
        TAKEN_KEY: str(taken.message_count).encode(),
        CUT_KEY: b"1" if taken.is_cut else b"0",
    }
    described = schema.with_metadata(metadata)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, described) as writer:
        for batch in batches:
            writer.write_batch(batch.replace_schema_metadata(metadata))


def read_batches(path: Path, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the file's messages with exactly these columns.

    Raises: SpoolError when the file is no spool file of this version or an older one.
    """
    try:
        with pa.OSFile(str(path), "rb") as source, pa.ipc.open_file(source) as reader:
            found = (reader.schema.metadata or {}).get(VERSION_KEY, b"0")
            if not 1 <= int(found) <= VERSION:
                raise SpoolError(f"{path}: version {found.decode()}; this is version {VERSION}")
            for index in range(reader.num_record_batches):
                batch = reader.get_batch(index)
                yield _with_columns(batch, schema)
    except (pa.ArrowInvalid, OSError, ValueError) as error:
        raise SpoolError(f"{path}: cannot be read ({error})") from error


def how_much(path: Path) -> Taken | None:
    """Return what the file's task took; None when an older version wrote it.

    Raises: SpoolError when the file cannot be read.
    """
    try:
        with pa.OSFile(str(path), "rb") as source, pa.ipc.open_file(source) as reader:
            found = reader.schema.metadata or {}
            if TAKEN_KEY not in found:
                return None
            return Taken(int(found[TAKEN_KEY]), found.get(CUT_KEY) == b"1")
    except (pa.ArrowInvalid, OSError, ValueError) as error:
        raise SpoolError(f"{path}: cannot be read ({error})") from error


def message_ids(path: Path) -> pa.Array:
    """Return the message ids in a file.

    Raises: SpoolError when the file cannot be read.
    """
    found = [batch.column(0).drop_null() for batch in read_batches(path, _IDS)]
    return pa.concat_arrays(found) if found else pa.array([], pa.string())


def keep_ids(path: Path, kept: Path) -> None:
    """Write the message ids of a file into another, which `message_ids` reads too."""
    ids = pa.record_batch([message_ids(path)], schema=_IDS)
    described = _IDS.with_metadata({VERSION_KEY: str(VERSION).encode()})
    with pa.OSFile(str(kept), "wb") as sink, pa.ipc.new_file(sink, described) as writer:
        writer.write_batch(ids)


def _with_columns(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    arrays = []
    for field in schema:
        position = batch.schema.get_field_index(field.name)
        if position < 0:
            arrays.append(pa.nulls(batch.num_rows, field.type))
        else:
            arrays.append(batch.column(position))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
