"""Every checksum of an index segment against its bytes, a slice at a time: what the scrubber does with one segment.

It reads a `SegmentView` with the readers that consumers' reads have: entries as either version gives them, bodies by
`RecordReader`, the shared store by whoever owns it. State: none but the walk. Called by `storage.disk.scrub` on the
reader thread, which stops between two slices as long as it likes.

Invariants: a slice reads at most `SLICE_BYTES`, or one record; what cannot be read raises, and is never called damaged.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from burrowmq.records import NamedTuple
from burrowmq.storage.errors import ReadFailed, error_text
from burrowmq.storage.files.filesystem import File
from burrowmq.storage.queue.entries import KIND_SHARED
from burrowmq.storage.queue.places import slots_of
from burrowmq.storage.queue.record_reader import GAP, RecordReader
from burrowmq.storage.queue.view import Part, SegmentView
from burrowmq.storage.record import ENTRY_PRESENT, EntryColumns

SLICE_BYTES: Final = 256 * 1024
SLICE_RECORDS: Final = 512
BAD_ENTRY: Final = "bad index entry"
BAD_RECORD: Final = "unreadable record"

# Of messages of the shared store: which are there whole and right, and how many bytes were read. Raises ReadFailed.
CheckShared = Callable[[Sequence[int]], tuple[list[bool], int]]


class Slice(NamedTuple):
    """What one step read, and the places of which it may be damaged, with the reason."""

    size: int
    bad: list[tuple[int, str]]


class _Body(NamedTuple):
    """One record to check: in a queue's own file, or (None) in the shared store, where `offset` is its handle."""

    file: File | None
    slot: int
    offset: int
    size: int


def verify(view: SegmentView, reader: RecordReader, check_shared: CheckShared) -> Iterator[Slice]:
    """Check the live messages of a segment. Raises ReadFailed when something cannot be read."""
    for part in _parts(view):
        if part.columns is None:
            yield Slice(part.size, [])
            continue
        count = len(part.columns.statuses)
        live = slots_of(view.live >> part.first & ((1 << count) - 1), part.first)
        bodies, bad = _bodies(view, part.first, part.columns, live)
        yield Slice(part.size, bad)
        for chosen, size in _cut(bodies):
            yield _check(view.number, chosen, size, reader, check_shared)


def _parts(view: SegmentView) -> Iterator[Part]:
    try:
        yield from view.parts()
    except OSError as error:
        raise ReadFailed(error_text(error, f"segment {view.number}")) from error


def _bodies(
    view: SegmentView, first: int, columns: EntryColumns, live: list[int]
) -> tuple[list[_Body], list[tuple[int, str]]]:
    """Give the bodies of live places, in their order, and what is wrong before any is read."""
    bodies: list[_Body] = []
    bad: list[tuple[int, str]] = []
    for slot in live:
        at = slot - first
        kind = columns.kinds[at]
        if columns.statuses[at] != ENTRY_PRESENT:
            bad.append((slot, BAD_ENTRY))
        elif kind == KIND_SHARED:
            bodies.append(_Body(None, slot, columns.locations[at], columns.payload_sizes[at]))
        else:
            file = view.body_file(kind, slot)
            if file is None:
                bad.append((slot, BAD_RECORD))
            else:
                bodies.append(_Body(file, slot, columns.locations[at], columns.sizes[at]))
    return bodies, bad


def _cut(bodies: list[_Body]) -> Iterator[tuple[list[_Body], int]]:
    """Cut bodies into slices: each of one file or of the shared store, with the bytes that are read for it."""
    chosen: list[_Body] = []
    size = end = 0
    for body in bodies:
        is_near = body.file is not None and 0 <= body.offset - end <= GAP
        cost = body.size + (body.offset - end if is_near else 0)
        if chosen and (
            body.file is not chosen[0].file
            or size + cost > SLICE_BYTES
            or len(chosen) >= SLICE_RECORDS
        ):
            yield chosen, size
            chosen, size, cost = [], 0, body.size
        chosen.append(body)
        size += cost
        end = body.offset + body.size
    if chosen:
        yield chosen, size


def _check(
    number: int, bodies: list[_Body], size: int, reader: RecordReader, check_shared: CheckShared
) -> Slice:
    """Read the records of one slice."""
    file = bodies[0].file
    slots = [body.slot for body in bodies]
    if file is None:
        whole, size = check_shared([body.offset for body in bodies])
    else:
        offsets = array("Q", [body.offset for body in bodies])
        sizes = array("I", [body.size for body in bodies])
        found = reader.read(file, number, slots, offsets, sizes)
        whole = [one is not None for one in found]
    return Slice(
        size,
        [(slot, BAD_RECORD) for slot, is_right in zip(slots, whole, strict=True) if not is_right],
    )
