"""Records of store files as Arrow batches, for audits: every byte is looked at, bodies are only checked.

State: none but the open file. Called by the data source's tasks. A row's `state`: `good`, `damaged` (bytes between
records that are none), `torn` (such bytes at the end of a file without a seal, left by a crash: nothing there was
confirmed), `seal`, `header`. All sizes of a file's rows together are the file's length.

Invariant: damage is a row, never an error; a file that went meanwhile has no rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from pyspark_amqp_store import formats as f
from pyspark_amqp_store.files import OpenFiles, SharedStore, Store
from pyspark_amqp_store.messages import Wanted

_BATCH_ROWS: Final = 8192
Row = tuple[int | None, int | None, int, int, str]


@dataclass(frozen=True, slots=True)
class StoreFile:
    """One store file and whose it is; a shared store's has no queue."""

    path: str
    vhost: str
    queue: str | None
    queue_directory: str


def files_of(store: Store, wanted: Wanted) -> list[StoreFile]:
    """Return the store files of the vhosts and queues that are wanted."""
    found: list[StoreFile] = []
    files = OpenFiles()
    for directory, vhost in store.vhosts():
        if wanted.vhosts is not None and vhost not in wanted.vhosts:
            continue
        if wanted.queues is None:
            shared = SharedStore(store, directory, files)
            found += [StoreFile(file.path, vhost, None, "") for file in shared.files()]
    for queue in store.queues():
        if wanted.vhosts is not None and queue.vhost not in wanted.vhosts:
            continue
        if wanted.queues is None or queue.name in wanted.queues:
            name = Path(queue.directory).name
            paths = sorted(Path(queue.directory).glob("*.qs"))
            found += [StoreFile(str(path), queue.vhost, queue.name, name) for path in paths]
    return found


def batches(store: Store, file: StoreFile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield a file's records."""
    try:
        data = Path(file.path).read_bytes()
    except FileNotFoundError:
        return
    seed = f.seed_of(store.identity, file.queue_directory)
    known: dict[str, Any] = {
        "vhost": file.vhost,
        "queue": file.queue,
        "store": "queue" if file.queue is not None else "shared",
        "file": store.relative(file.path),
    }
    rows: list[Row] = []
    for row in _rows(data, file, store.identity, seed):
        rows.append(row)
        if len(rows) == _BATCH_ROWS:
            yield _batch(rows, known, schema)
            rows = []
    if rows:
        yield _batch(rows, known, schema)


def _rows(data: bytes, file: StoreFile, identity: bytes, seed: int) -> Iterator[Row]:
    check = f.check_segment_header if file.queue is None else f.check_store_header
    is_whole = check(data, file.path, identity)
    header = min(f.HEADER_SIZE, len(data))
    yield None, None, 0, header, "header" if is_whole else "damaged"
    end = len(data)
    sealed = f.parse_seal(data, len(data), seed) if file.queue is None else None
    if sealed is not None:
        end = sealed[0]
    for at, found, past in f.walk(memoryview(data), header, end, seed):
        if found is not None:
            yield found.segment, found.slot, at, past - at, "good"
        else:
            is_torn = past == end and sealed is None
            yield None, None, at, past - at, "torn" if is_torn else "damaged"
    if sealed is not None:
        yield None, None, end, len(data) - end, "seal"


def _batch(rows: list[Row], known: dict[str, Any], schema: pa.Schema) -> pa.RecordBatch:
    segments, slots, offsets, sizes, states = zip(*rows, strict=True)
    made: dict[str, Any] = {
        "segment": segments,
        "slot": slots,
        "offset": offsets,
        "size": sizes,
        "state": states,
    }
    arrays = [
        pa.array(made[field.name], field.type)
        if field.name in made
        else pa.repeat(pa.scalar(known[field.name], field.type), len(rows))
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
