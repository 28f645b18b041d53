"""The journal of version 1: its numbers, its limits, and how it is given up.

Covers: storage/queue/journal_limits.py.
"""

from __future__ import annotations

import errno
from array import array

import pytest

from burrowmq.storage.errors import DiskFull
from burrowmq.storage.queue.journal_limits import JournalLimits
from burrowmq.storage.queue.v1.blocks import ACKS, acked_by, blocks_of
from burrowmq.storage.queue.v1.files import IndexFilesV1
from burrowmq.storage.queue.v1.journal import Journal, file_name
from burrowmq.storage.queue.v1.journal_runs import JournalRun
from burrowmq.storage.record import EntryColumns
from tests.support.one_queue import DIRECT, OneQueue
from tests.support.queue_on_disk import place_on, queue_on
from tests.support.sim_filesystem import SimFileSystem


def journal_on(filesystem: SimFileSystem, limits: JournalLimits | None = None) -> Journal:
    return Journal(place_on(filesystem), limits or JournalLimits())


def run(first: int, count: int) -> JournalRun:
    wide = array("Q", range(count))
    sizes = array("I", range(count))
    octets = b"\1" * count
    return JournalRun(
        first, EntryColumns(octets, octets, octets, wide, sizes, sizes, wide), "/q/1.jif"
    )


def test_a_journal_is_named_by_its_number_and_made_once() -> None:
    filesystem = SimFileSystem()
    journal = journal_on(filesystem)
    path = journal.open(True)
    assert path == "/q/1.jif"
    assert journal.open(True) == path
    assert file_name(7) == "7.jif"
    assert (journal.next_number, journal.numbers) == (2, (1, 0))


def test_a_journal_that_is_given_up_goes_after_the_next_sync_and_is_gone_after_another() -> None:
    filesystem = SimFileSystem()
    journal = journal_on(filesystem)
    path = journal.open(True)
    journal.write([b"x" * 10], 1, is_synced=True)
    journal.give_up(True)
    assert filesystem.exists(path)
    journal.after_sync()
    assert not filesystem.exists(path)
    assert (journal.retired, journal.durable) == ([path], 2)
    journal.after_sync()
    assert journal.retired == []
    assert journal.open(True) == "/q/2.jif"


def test_the_oldest_of_those_that_were_found_goes_first() -> None:
    filesystem = SimFileSystem()
    journal = journal_on(filesystem)
    paths = [journal_path(filesystem, number) for number in (3, 4)]
    journal.resume(5, 3)
    journal.retire(paths)
    journal.after_sync()
    assert [filesystem.exists(path) for path in paths] == [False, True]
    journal.after_sync()
    assert [filesystem.exists(path) for path in paths] == [False, False]
    assert (journal.durable, journal.open(True)) == (5, "/q/5.jif")


def journal_path(filesystem: SimFileSystem, number: int) -> str:
    path = f"/q/{file_name(number)}"
    filesystem.create(path)
    return path


def test_a_full_journal_says_so() -> None:
    limits = JournalLimits(max_entries=3)
    journal = journal_on(SimFileSystem(), limits)
    journal.open(True)
    journal.write([b"x"], 2, is_synced=True)
    assert not journal.is_full
    journal.write([b"x"], 1, is_synced=True)
    assert journal.is_full


def test_what_goes_past_a_journal_fills_it_too() -> None:
    journal = journal_on(SimFileSystem(), JournalLimits(direct_bytes=100))
    journal.open(True)
    journal.note_direct(60)
    assert (journal.is_full, journal.is_overdue) == (False, False)
    journal.note_direct(40)
    assert (journal.is_full, journal.is_overdue) == (True, True)


def test_the_runs_of_all_queues_share_a_limit() -> None:
    limits = JournalLimits(max_bytes=10_000)
    one, other = (journal_on(SimFileSystem(), limits) for _ in range(2))
    one.open(True)
    other.open(True)
    one.keep(0, run(0, 200), run(200, 100))
    assert one.is_full
    assert other.is_full  # though it holds nothing: that makes room
    one.forget()
    assert limits.used_bytes == 0
    assert not other.is_full


def test_what_a_flush_moved_is_back_after_a_failed_sync() -> None:
    journal = journal_on(SimFileSystem())
    journal.open(True)
    journal.keep(2, run(0, 5))
    weight = journal.weight
    journal.moved(2)
    assert (journal.weight, journal.speaks_of(2)) == (0, False)
    journal.take_back()
    assert (journal.weight, journal.speaks_of(2)) == (weight, True)


def test_what_two_flushes_moved_of_one_segment_is_back_after_a_failed_sync() -> None:
    """The first of them had stopped half-way, so that no sync came in between."""
    journal = journal_on(SimFileSystem())
    first, second = run(0, 4), run(6, 1)
    for moved in (first, second):
        journal.keep(0, moved)
        journal.moved(0)
    journal.take_back()
    assert journal.runs == {0: [first, second]}


def test_acks_are_written_once() -> None:
    filesystem = SimFileSystem()
    queue = queue_on(filesystem, version=1)
    files = queue.files
    assert isinstance(files, IndexFilesV1)
    journal = journal_on(filesystem)
    segment = files.begin(3)
    segment.add(0, 10)
    segment.remove(0, 4)
    journal.write_acks([segment], True)
    segment.remove(5, 5)
    journal.write_acks([segment], True)
    journal.write_acks([segment], True)
    data = filesystem.content("/q/1.jif")
    blocks = list(blocks_of(data, queue.place.seed))
    assert [(block.kind, block.segment) for block in blocks] == [(ACKS, 3)] * 2
    assert [acked_by(data, block) for block in blocks] == [0b11111, 0b100000]
    assert segment.pending_acks == 0


def test_a_full_disk_leaves_the_journal_as_it_was() -> None:
    filesystem = SimFileSystem()
    journal = journal_on(filesystem)
    path = journal.open(True)
    end = journal.end
    filesystem.fail("pwrite", errno.ENOSPC, keep=3)
    with pytest.raises(DiskFull):
        journal.write([b"0123456789"], 1, is_synced=True)
    assert (journal.end, filesystem.file_size(path), journal.entries) == (end, end, 0)


def test_after_many_large_runs_an_empty_journal_says_that_they_are_durable() -> None:
    """So the next unclean start does not look at the bodies: a damaged one is found when it is read."""
    store = OneQueue(options=DIRECT)
    for _ in range(40):
        store.publish(20)
    store.settle()
    assert "jif" not in store.suffixes()
    store.damage("0.idx", -1)
    store.publish(20)
    store.crash()
    assert store.log.recovered is not None
    assert store.log.recovered.count == 820
    assert store.seqs() == [seq for seq in range(820) if seq != 63]
