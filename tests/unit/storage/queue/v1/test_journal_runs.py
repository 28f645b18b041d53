"""Runs that are in a journal only: what of them is moved to a segment file, and how."""

from __future__ import annotations

import pytest

from burrowmq.storage import record
from burrowmq.storage.errors import ReadFailed
from burrowmq.storage.queue.entries import new_entries
from burrowmq.storage.queue.v1.blocks import BLOCK_SIZE
from burrowmq.storage.queue.v1.journal_runs import (
    JournalRun,
    copy_bodies,
    live_groups,
    number_of,
    place_group,
)
from burrowmq.storage.queue.v1.packing import pack_run
from burrowmq.storage.record import ENTRY_NONE, ENTRY_PRESENT, ENTRY_SIZE
from tests.support.queue_on_disk import messages, place_on
from tests.support.sim_filesystem import SimFileSystem

SEED = 5


class Journal:
    """A file with runs, one behind the other."""

    def __init__(self) -> None:
        self.filesystem = SimFileSystem()
        self.cache = place_on(self.filesystem).cache
        self.file = self.cache.create("/q/3.jif", is_synced=True)
        self.end = 64

    def run(self, first: int, count: int, size: int = 50) -> JournalRun:
        """Write a run of segment 0."""
        entries = new_entries(messages(first, count, size), None)
        parts, columns = pack_run((0, 0, first), entries, self.end, (3, 0), SEED)
        data = b"".join(parts)
        self.file.pwrite(data, self.end)
        self.end += len(data)
        return JournalRun(first, columns, self.file.path)


def spans(groups: list[list[tuple[JournalRun, int, int]]]) -> list[list[tuple[int, int]]]:
    return [[(run.first + low, run.first + high) for run, low, high in group] for group in groups]


def test_dead_ends_are_left_out_and_neighbours_are_together() -> None:
    journal = Journal()
    runs = [journal.run(20, 10), journal.run(0, 10), journal.run(10, 10), journal.run(40, 5)]
    live = ((1 << 64) - 1) & ~0b111 & ~(0b11 << 28) & ~(0b11111 << 40)
    assert spans(live_groups(runs, live)) == [[(3, 10), (10, 20), (20, 28)]]
    assert spans(live_groups(runs, live & ~(1 << 10))) == [[(3, 10)], [(11, 20), (20, 28)]]
    assert live_groups(runs, 0) == []


@pytest.mark.parametrize("live", [0b1111111, 0b1011011])
def test_a_group_is_copied_as_it_is(live: int) -> None:
    journal = Journal()
    runs = [journal.run(0, 4), journal.run(4, 3)]
    (group,) = live_groups(runs, live)
    rows, pieces, body_at, end = place_group(group, live, 100)
    assert body_at == 100 + BLOCK_SIZE + ENTRY_SIZE * 7
    target = journal.cache.create("/q/0.idx", is_synced=True)
    copy_bodies(journal.cache, pieces, target, body_at)
    assert target.size() == end
    kept = [slot for slot in range(7) if live >> slot & 1]
    assert [slot for slot in range(7) if rows.statuses[slot] == ENTRY_PRESENT] == kept
    assert rows.statuses.count(ENTRY_NONE) == 7 - len(kept)
    found = record.unpack_many(
        target.pread(end, 0), [rows.locations[slot] for slot in kept], 0, kept, SEED
    )
    assert found == [messages(slot, 1)[0].record for slot in kept]


def test_a_journal_that_ends_too_early_is_an_error() -> None:
    journal = Journal()
    (group,) = live_groups([journal.run(0, 4)], 0b1111)
    _, pieces, body_at, _ = place_group(group, 0b1111, 100)
    journal.file.truncate(journal.end - 20)
    target = journal.cache.create("/q/0.idx", is_synced=True)
    with pytest.raises(ReadFailed, match="ends before"):
        copy_bodies(journal.cache, pieces, target, body_at)


def test_a_run_says_how_far_it_goes_and_what_it_weighs() -> None:
    journal = Journal()
    small, large = journal.run(3, 2), journal.run(5, 40)
    assert (small.end, large.end) == (5, 45)
    assert large.weight > small.weight > 0
    assert number_of(small.path) == 3
