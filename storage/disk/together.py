"""Runs of several queues, written with one call.

What a commit has for many queues is mostly a message or two for each: two small writes. Each write by itself gives the
interpreter's lock up and takes it back, and waits for the loop to let it go. So what only appends to files that are
there goes together (`FileSystem.write_some`). All else goes the usual way, run by run: files that have to be made, long
runs, a queue's second run, refused queues; and where the disk refuses a write, that one and all behind it, since there
what becomes of a refused write is known (`storage.disk.refused_queues`).

State: none. Called by `storage.disk.writer` on the disk thread. Invariants: nothing is counted before it was written; a
queue's runs keep their order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from burrowmq.storage.disk.elision import RunToWrite
from burrowmq.storage.errors import StorageError
from burrowmq.storage.files.cache import FileCache
from burrowmq.storage.files.filesystem import Write
from burrowmq.storage.queue.disk import QueueDisk
from burrowmq.storage.queue.segment import RunWrites

QueueRun: TypeAlias = tuple[int, QueueDisk, RunToWrite]
"""A queue's id, the queue, and a run of one of its segments."""


def write_together(
    cache: FileCache, runs: Sequence[QueueRun], is_refused: Callable[[int], bool]
) -> tuple[list[tuple[QueueDisk, RunWrites]], list[QueueRun]]:
    """Write what can go together: what was written, for whoever counts it, and the runs that are left, in order."""
    chosen: list[tuple[QueueRun, RunWrites]] = []
    writes: list[Write] = []
    left: list[QueueRun] = []
    seen: set[int] = set()
    room = cache.room - 1
    for one in runs:
        queue_id = one[0]
        is_first = queue_id not in seen
        seen.add(queue_id)
        found = None
        if is_first and len(writes) < room and not is_refused(queue_id):
            found = _writes_of(one)
        if found is None:
            left.append(one)
            continue
        chosen.append((one, found))
        writes.append((found.store_file, found.records, found.begin))
        writes.append((found.index_file, found.entries, found.entries_at))
    done = cache.filesystem.write_some(writes) // 2 if writes else 0
    written = [(one[1], found) for one, found in chosen[:done]]
    return written, [one for one, _ in chosen[done:]] + left


def _writes_of(one: QueueRun) -> RunWrites | None:
    _, queue, run = one
    try:
        return queue.writes_of(run.first_seq, run.messages, run.expiries)
    except (OSError, StorageError):  # of a file that cannot be opened: the usual way hears it again
        return None
