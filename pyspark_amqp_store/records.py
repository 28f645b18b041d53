"""Records of store files as Arrow batches, for audits: every byte is looked at, bodies are only checked.

State: none but the open file. Called by the data source's tasks. A row's `state`: `good`, `damaged` (bytes between
records that are none), `torn` (such bytes at the end of a file without a seal, left by a crash: nothing there was
confirmed), `seal`, `header` (in files of version 1 the heads and tables of blocks, too).
All sizes of a file's rows together are the file's length.

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
from pyspark_amqp_store.index_v1 import blocks_of
from pyspark_amqp_store.indexes import parse_header_v1
from pyspark_amqp_store.messages import Wanted
from pyspark_amqp_store.segments import check_segment_header, parse_seal

_BATCH_ROWS: Final = 8192
_QUEUE_SUFFIXES: Final = (".qs", ".idx", ".jif")
Row = tuple[int | None, int | None, int, int, str]


@dataclass(frozen=True, slots=True)
class StoreFile:
    """One store file and whose it is; a shared store's has no queue."""

    path: str
    vhost: str
    queue: str | None
    queue_directory: str
    level: int | None = None


def files_of(store: Store, wanted: Wanted) -> list[StoreFile]:
    """Return the store files of the vhosts and queues that are wanted."""
    found: list[StoreFile] = []
    files = OpenFiles(store.disk)
    for directory, vhost in store.vhosts(wanted.vhosts):
        if wanted.vhosts is not None and vhost not in wanted.vhosts:
            continue
        if wanted.queues is None:
            shared = SharedStore(store, directory, files)
            found += [StoreFile(file.path, vhost, None, "") for file in shared.files()]
    for queue in store.queues(wanted.vhosts, wanted.queues):
        if wanted.vhosts is not None and queue.vhost not in wanted.vhosts:
            continue
        if wanted.queues is None or queue.name in wanted.queues:
            name = Path(queue.directory).name
            try:
                sizes = store.disk.sizes(queue.directory)
            except FileNotFoundError:
                continue  # the queue was deleted meanwhile
            paths = sorted(
                f"{queue.directory}/{one}"
                for one, _ in sizes
                if Path(one).suffix in _QUEUE_SUFFIXES
            )
            found += [StoreFile(path, queue.vhost, queue.name, name, queue.level) for path in paths]
    return found


def batches(store: Store, file: StoreFile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield a file's records."""
    try:
        data = store.disk.read(file.path)
    except FileNotFoundError:
        return
    seed = f.seed_of(store.identity, file.queue_directory)
    known: dict[str, Any] = {
        "vhost": file.vhost,
        "queue": file.queue,
        "level": file.level,
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
    if file.path.endswith((".idx", ".jif")):
        yield from _rows_v1(data, file, identity, seed)
        return
    check = check_segment_header if file.queue is None else f.check_store_header
    is_whole = check(data, file.path, identity)
    header = min(f.HEADER_SIZE, len(data))
    yield None, None, 0, header, "header" if is_whole else "damaged"
    end = len(data)
    sealed = parse_seal(data, len(data), seed) if file.queue is None else None
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


def _rows_v1(data: bytes, file: StoreFile, identity: bytes, seed: int) -> Iterator[Row]:
    is_whole = parse_header_v1(data, file.path, identity) is not None
    size = len(data)
    at = min(f.HEADER_SIZE, size)
    yield None, None, 0, at, "header" if is_whole else "damaged"
    view = memoryview(data)
    for block in blocks_of(data, seed):
        if block.at > at:
            yield None, None, at, block.at - at, "damaged"
        at = min(block.body_at, size)
        yield block.segment, None, block.at, at - block.at, "header" if block.is_good else "damaged"
        for start, found, past in f.walk(view, at, min(block.end, size), seed):
            if found is not None:
                yield found.segment, found.slot, start, past - start, "good"
            else:
                is_torn = past == size and block.end > size
                yield None, None, start, past - start, "torn" if is_torn else "damaged"
            at = past
    if at < size:
        yield None, None, at, size - at, "torn"


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
