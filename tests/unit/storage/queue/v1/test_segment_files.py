"""The segment files of version 1."""

from __future__ import annotations

import errno

import pytest

from burrowmq.storage.errors import DiskFull
from burrowmq.storage.queue.entries import new_entries
from burrowmq.storage.queue.header import HEADER_SIZE
from burrowmq.storage.queue.segment import Segment
from burrowmq.storage.queue.v1.packing import pack_run
from burrowmq.storage.queue.v1.segment_files import SegmentFiles, file_name
from burrowmq.storage.record import ENTRY_PRESENT
from tests.support.queue_on_disk import COUNT, messages, queue_on
from tests.support.sim_filesystem import SimFileSystem


class OneFile:
    """The file of segment 2."""

    def __init__(self) -> None:
        self.filesystem = SimFileSystem()
        queue = queue_on(self.filesystem, version=1)
        self.seed = queue.place.seed
        self.files = SegmentFiles(queue.place)
        self.segment = Segment(2, queue.files)

    def append(self, first: int, count: int) -> None:
        """Append a block of messages."""
        self.files.create(self.segment)
        place = (2, 0, first)
        entries = new_entries(messages(first, count), None)
        parts, columns = pack_run(place, entries, self.segment.store_end, (1, 0), self.seed)
        self.files.append(self.segment, first, columns, parts, is_synced=True)
        self.segment.take_entries(first, columns)

    def present(self) -> list[int]:
        """The places that a reader finds."""
        statuses = self.files.load(self.segment).part(0, COUNT - 1).statuses
        return [place for place, status in enumerate(statuses) if status == ENTRY_PRESENT]


def test_a_file_is_made_once_with_its_header() -> None:
    one = OneFile()
    one.files.create(one.segment)
    one.files.create(one.segment)
    assert one.segment.store_end == HEADER_SIZE
    assert one.filesystem.content("/q/2.idx") == one.files.header(2, 0)
    assert file_name(2) == "2.idx"


def test_what_is_appended_is_added_to_the_entries_that_were_read() -> None:
    one = OneFile()
    one.append(0, 5)
    assert one.present() == [0, 1, 2, 3, 4]
    one.append(5, 3)
    one.filesystem.fail("pread", times=9)  # nothing is read again
    assert one.present() == list(range(8))
    assert one.files.memory_bytes > 0
    one.files.trim()
    assert one.files.memory_bytes == 0


def test_a_file_that_is_made_anew_is_read_anew() -> None:
    """It may be as long as the one before it was."""
    one = OneFile()
    one.append(0, 5)
    assert one.present() == [0, 1, 2, 3, 4]
    one.filesystem.unlink("/q/2.idx")
    one.segment = Segment(2, one.segment.files)
    one.append(5, 5)
    assert one.present() == [5, 6, 7, 8, 9]


def test_a_flush_writes_acks_once() -> None:
    one = OneFile()
    one.append(0, 10)
    one.segment.remove(0, 3)
    one.files.flush(one.segment, [], (1, 0), True)
    end = one.segment.store_end
    assert (one.segment.acked_in_file, one.segment.pending_acks) == (0b1111, 0)
    one.files.flush(one.segment, [], (1, 0), True)
    assert one.segment.store_end == end == one.filesystem.file_size("/q/2.idx")


def test_a_full_disk_leaves_the_file_as_it_was() -> None:
    one = OneFile()
    one.append(0, 10)
    end = one.segment.store_end
    one.segment.remove(0, 3)
    one.filesystem.fail("pwrite", errno.ENOSPC, keep=7)
    with pytest.raises(DiskFull):
        one.files.flush(one.segment, [], (1, 0), True)
    assert one.segment.store_end == end == one.filesystem.file_size("/q/2.idx")
    assert one.segment.pending_acks == 4
