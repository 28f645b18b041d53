"""A hundred flipped bytes anywhere in what is stored: the scrubber finds each of them, and nothing else.

Store by store (version, size of the messages, commit log) and part by part of its files; the table is printed. The
oracle is where things lie by the formats' own description: which messages a byte belongs to, or which file.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass

import pytest

from burrowmq.storage.directory import quarantine
from burrowmq.storage.queue.entries import KIND_SHARED
from burrowmq.storage.queue.segment import Segment
from burrowmq.storage.queue.v1 import blocks as queue_blocks
from burrowmq.storage.queue.v2 import index as queue_index
from burrowmq.storage.record import ENTRY_SIZE
from tests.support.disk_side import LARGE, SMALL, DiskSide
from tests.support.disk_side_steps import scrub

FLIPS = 100
ENTRIES = 256
PARTS = ("body", "entry", "block", "acks", "header", "seal")


@dataclass(frozen=True)
class Extent:
    """Some bytes of a file, and what it costs when one is flipped: messages, acks to write again, a report."""

    part: str
    path: str
    start: int
    end: int
    seqs: frozenset[int] = frozenset()


def extents_of(side: DiskSide) -> list[Extent]:
    """What every byte of the store's files belongs to, as far as a checksum covers it."""
    found: list[Extent] = []
    queue = side.writer.queues()[1]
    for segment in queue.index:
        found += _bodies_of(side, segment)
        found += (
            _index_of_version_1(side, segment)
            if segment.files.version == 1
            else _index_of_version_2(segment)
        )
    store = side.vhost().persistent
    for path in store.paths():
        file = store._segments.files[path]
        found.append(Extent("header", path, 0, 64))
        if file.is_sealed:
            found.append(Extent("seal", path, file.end, file.size))
    return found


def _bodies_of(side: DiskSide, segment: Segment) -> list[Extent]:
    found = []
    columns = segment.columns()
    base = segment.number * ENTRIES
    for slot in segment.live_slots(0, ENTRIES):
        location, size = columns.locations[slot], columns.sizes[slot]
        if columns.kinds[slot] == KIND_SHARED:
            raw = side.vhost().persistent.raw(location)
            assert raw is not None
            path, location, size = raw[0], raw[1], len(raw[2])
        else:
            path = segment.files.open_bodies(segment, columns.kinds[slot]).path
        found.append(Extent("body", path, location, location + size, frozenset({base + slot})))
    return found


def _index_of_version_2(segment: Segment) -> list[Extent]:
    path, base = segment.files.path(segment.number), segment.number * ENTRIES
    start = queue_index.entries_at(ENTRIES)
    copy = (start - 64) // 2
    found = [Extent("header", path, 0, 64)]
    if segment.store_end:
        store = segment.files.open_bodies(segment, 2).path
        found.append(Extent("header", store, 0, 64))
    for epoch in range(max(segment.epoch - 1, 1), segment.epoch + 1):
        at = 64 + (epoch & 1) * copy
        found.append(Extent("acks", path, at, at + copy))
    for slot in segment.live_slots(0, ENTRIES):
        at = start + slot * ENTRY_SIZE
        found.append(Extent("entry", path, at, at + ENTRY_SIZE, frozenset({base + slot})))
    return found


def _index_of_version_1(side: DiskSide, segment: Segment) -> list[Extent]:
    path, base = segment.files.path(segment.number), segment.number * ENTRIES
    live = segment.live_mask()
    data = side.filesystem.content(path)
    found = [Extent("header", path, 0, 64)]
    for block in queue_blocks.blocks_of(data, segment.files.directory.seed):
        head = block.table_at - queue_blocks.BLOCK_SIZE
        if block.kind == queue_blocks.ACKS:
            found.append(Extent("acks", path, head, block.end))
            continue
        slots = [block.first + row for row in range(block.rows) if live >> block.first + row & 1]
        found.append(
            Extent("block", path, head, block.table_at, frozenset(base + slot for slot in slots))
        )
        for slot in slots:
            at = block.table_at + (slot - block.first) * ENTRY_SIZE
            found.append(Extent("entry", path, at, at + ENTRY_SIZE, frozenset({base + slot})))
    return found


def flip(side: DiskSide, rng: random.Random) -> list[Extent]:
    """Flip a bit in each of so many places: half of them anywhere, half of them in every part alike."""
    extents = extents_of(side)
    rng.shuffle(extents)
    weights = [extent.end - extent.start for extent in extents]
    chosen = dict.fromkeys(rng.choices(extents, weights, k=FLIPS // 2))
    parts = [part for part in PARTS if any(extent.part == part for extent in extents)]
    turn = 0
    while len(chosen) < FLIPS:
        part = parts[turn % len(parts)]
        free = [extent for extent in extents if extent.part == part and extent not in chosen]
        turn += 1
        if free:
            chosen[rng.choice(free)] = None
    for extent in chosen:
        at = rng.randrange(extent.start, extent.end)
        octet = side.filesystem.content(extent.path)[at]
        side.filesystem.damage(extent.path, at, bytes((octet ^ 1 << rng.randrange(8),)))
    return list(chosen)


def filled(version: int, size: int, *, has_log: bool) -> DiskSide:
    """A queue of many messages, some of them acknowledged here and there, at rest."""
    side = DiskSide(
        segment_entry_count=ENTRIES,
        segment_size_limit=200_000,
        rewrite_above=1 << 30,
        has_log=has_log,
        log_queue_limit=2000,
    )
    side.open(version=version)
    for at in range(20):
        side.append(at * 130, 130, size if at % 3 else SMALL)
    for first in range(7, 2600, 100):
        side.ack(first, first + 9)
        if first == 1307:
            _rest(side)
    _rest(side)
    return side


def _rest(side: DiskSide) -> None:
    for _ in range(4):
        side.jobs.idle()


CELLS = [
    (version, size, has_log)
    for version in (1, 2)
    for size in (SMALL, 900, LARGE)
    for has_log in (False, True)
]


@pytest.mark.parametrize(("version", "size", "has_log"), CELLS)
def test_each_of_a_hundred_flipped_bytes_is_found(version: int, size: int, has_log: bool) -> None:
    side = filled(version, size, has_log=has_log)
    present = side.read()
    side.context.release_clean_files()
    flipped = flip(side, random.Random(f"{version} {size} {has_log}"))
    scrub(side)
    found = {about.seq for _, about in quarantine.listing(side.filesystem, "/data")}
    damaged_files = {path for path, _ in side.jobs.scrub.status.damaged_files}
    # Acks of a segment of which every message was lost concern nobody any more, if they all were set aside before.
    left = {segment.files.path(segment.number) for segment in side.writer.queues()[1].index}
    with_acks = {extent.path for extent in flipped if extent.part == "acks"}
    is_found = Counter[str]()
    for extent in flipped:
        if extent.seqs:
            is_found[extent.part] += extent.seqs <= found
        elif extent.part == "acks":
            is_found["acks"] += 1  # `scrub_repaired` below has one for each segment
        else:
            is_found[extent.part] += extent.path in damaged_files
    wanted = Counter(extent.part for extent in flipped)
    print(
        f"version {version}, {size} octets, log {has_log}:",
        *(f"{part} {is_found[part]}/{wanted[part]}" for part in PARTS if wanted[part]),
    )
    assert is_found == wanted
    assert sum(wanted.values()) == FLIPS
    assert len(with_acks & left) <= side.writer.stats()["scrub_repaired"] <= len(with_acks)
    expected = frozenset().union(*(extent.seqs for extent in flipped))
    assert found == expected, "and nothing else is set aside"
    assert side.read() == [seq for seq in present if seq not in expected]
    scrub(side)
    last = side.jobs.scrub.status.last
    assert last is not None
    assert (last.found, last.unread) == (0, 0)
