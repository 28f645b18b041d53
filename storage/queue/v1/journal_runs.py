"""Runs of messages that are in a journal only, and their way into a segment file.

State: none but the `JournalRun`s, which belong to the journal. Called by `storage.queue.v1.segment_files` when a flush
moves them, on the disk thread. Invariants: what is moved is copied as it is, so that its checks stay right; a run is
never changed.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from itertools import accumulate

from burrowmq.storage.errors import ReadFailed
from burrowmq.storage.files.cache import FileCache
from burrowmq.storage.files.filesystem import File
from burrowmq.storage.queue.entries import KIND_STORE
from burrowmq.storage.queue.places import bits_of, selectors_of
from burrowmq.storage.queue.v1 import blocks as queue_blocks
from burrowmq.storage.queue.v1.blocks import BLOCK_SIZE
from burrowmq.storage.record import ENTRY_NONE, ENTRY_PRESENT, ENTRY_SIZE, EntryColumns

# Bodies are packed and copied in pieces of this size ...
PIECE = 1024 * 1024
# ... and read at least so much at a time, because neighbouring runs lie close together.
_WINDOW = 256 * 1024
# A run's objects, and what each of its messages adds.
_RUN_BYTES = 560
_ROW_BYTES = 32

# (run, low, high): its rows low..high - 1
RunPart = tuple["JournalRun", int, int]
# (path, offset, size) of bodies side by side
Span = tuple[str, int, int]


class JournalRun:
    """Messages of consecutive places that are in a journal only."""

    __slots__ = ("columns", "first", "path")

    def __init__(self, first: int, columns: EntryColumns, path: str) -> None:
        self.first = first
        self.columns = columns
        self.path = path

    @property
    def end(self) -> int:
        """The place after the last."""
        return self.first + len(self.columns.statuses)

    @property
    def weight(self) -> int:
        """Bytes in memory."""
        return _RUN_BYTES + _ROW_BYTES * len(self.columns.statuses)


def number_of(path: str) -> int:
    """Give the number of a journal."""
    return int(path.rpartition("/")[2].partition(".")[0])


def live_groups(runs: Iterable[JournalRun], live: int) -> list[list[RunPart]]:
    """Give the rows low..high - 1 of each run without its dead ends, neighbours together."""
    groups: list[list[RunPart]] = []
    end = -1
    for run in sorted(runs, key=_first):
        alive = live >> run.first & bits_of(run.columns.statuses)
        if not alive:
            continue
        low, high = (alive & -alive).bit_length() - 1, alive.bit_length()
        if groups and run.first + low == end:
            groups[-1].append((run, low, high))
        else:
            groups.append([(run, low, high)])
        end = run.first + high
    return groups


def _choose_bodies(group: list[RunPart], rows: EntryColumns, at: int) -> tuple[list[Span], int]:
    """Give where the bodies of the present rows are now, and where they end; rows.locations say where they go."""
    spans: list[Span] = []
    row = 0
    for run, low, high in group:
        for source in run.columns.locations[low:high]:
            size = rows.sizes[row]
            if rows.statuses[row] == ENTRY_PRESENT and rows.kinds[row] == KIND_STORE:
                if spans and spans[-1][0] == run.path and sum(spans[-1][1:]) == source:
                    spans[-1] = (run.path, spans[-1][1], spans[-1][2] + size)
                else:
                    spans.append((run.path, source, size))
                rows.locations[row] = at
                at += size
            row += 1
    return spans, at


def _first(run: JournalRun) -> int:
    return run.first


def place_group(
    group: list[RunPart], live: int, end: int
) -> tuple[EntryColumns, list[Span], int, int]:
    """Plan a block at `end`: its rows, where their bodies are now, where those begin and end in the block's file.

    Bit 0 of `live` is the first row's.
    """
    rows = queue_blocks.join_columns(run.columns.rows(low, high) for run, low, high in group)
    count = len(rows.statuses)
    body_at = end + BLOCK_SIZE + ENTRY_SIZE * count
    live &= bits_of(rows.statuses)
    if live.bit_count() == count and rows.kinds.count(KIND_STORE) == count:
        locations = array("Q", accumulate(rows.sizes, initial=body_at))
        file_end = locations.pop()
        spans = [
            (run.path, run.columns.locations[low], sum(run.columns.sizes[low:high]))
            for run, low, high in group
        ]
        return rows._replace(locations=locations), spans, body_at, file_end
    rows = rows._replace(statuses=selectors_of(live).ljust(count, bytes((ENTRY_NONE,))))
    spans, file_end = _choose_bodies(group, rows, body_at)
    return rows, spans, body_at, file_end


def copy_bodies(cache: FileCache, spans: list[Span], target: File, at: int) -> None:
    """Copy spans of journals to `at` and behind it, one after the other. Raises OSError or ReadFailed."""
    window_path, window_at, window = "", 0, memoryview(b"")
    out: list[memoryview] = []
    out_size = 0
    for path, offset, size in spans:
        done = 0
        while done < size:
            step = min(PIECE, size - done)
            start = offset + done - window_at
            if path != window_path or not 0 <= start <= len(window) - step:
                window_path, window_at, start = path, offset + done, 0
                window = memoryview(cache.get(path).pread(max(step, _WINDOW), window_at))
                if len(window) < step:
                    raise ReadFailed(f"{path}: ends before {window_at + step}")
            out.append(window[start : start + step])
            out_size += step
            done += step
            if out_size >= PIECE:
                target.pwritev(out, at)
                at += out_size
                out, out_size = [], 0
    if out:
        target.pwritev(out, at)
