"""What is in a spool file: one Arrow file of messages.

Owns no state. Called by the tasks and by jobs that recover a spool.

Columns are read by name, so that a file which an older version left is still read: a column that it
lacks is null. The schema's version and the piece are in the file's metadata.

Invariant: an empty piece is a file with no rows: reading it again gives no rows again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa

from pyspark_amqp.convert.schema import VERSION, VERSION_KEY
from pyspark_amqp.spool.files import SpoolError
from pyspark_amqp.spool.offset import Piece

PIECE_KEY: Final = b"pyspark_amqp.piece"


def write_batches(
    path: Path, piece: Piece, schema: pa.Schema, batches: Sequence[pa.RecordBatch]
) -> None:
    """Write a whole file; it is not synced."""
    name = f"{piece.stream} {piece.seq} {piece.part} {piece.queue}".encode()
    metadata = {VERSION_KEY: str(VERSION).encode(), PIECE_KEY: name}
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


def message_ids(path: Path) -> set[str]:
    """Return the message ids in a file."""
    ids: set[str] = set()
    for batch in read_batches(path, pa.schema([pa.field("message_id", pa.string())])):
        ids.update(batch.column(0).drop_null().to_pylist())
    return ids


def _with_columns(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    arrays = []
    for field in schema:
        position = batch.schema.get_field_index(field.name)
        if position < 0:
            arrays.append(pa.nulls(batch.num_rows, field.type))
        else:
            arrays.append(batch.column(position))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
