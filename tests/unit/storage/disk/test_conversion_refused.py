"""Of several queues that are converted at a time, what the disk refuses one leaves the others alone.

Covers: storage/disk/conversion.py, storage/disk/jobs.py, storage/files/cache.py, storage/queue/convert.py
"""

from __future__ import annotations

import errno
from copy import deepcopy
from unittest import mock

import pytest

from burrowmq.storage.loop.staged_commit import Ack, Delete, SetVersion
from tests.support.conversions import FOR_GOOD
from tests.support.disk_side import DiskSide
from tests.support.sim_filesystem import SimFileSystem

OPTIONS: dict[str, object] = {"segment_entry_count": 16, "journal_entries": 8}
IDS = (1, 2, 3)


class Three:
    """Three queues of two segments each, on their way from one version to the other; the disk refuses the first."""

    def __init__(self, source: int, slice_: int = 32) -> None:
        self.target = 3 - source
        self.side = DiskSide(convert_slice=slice_, **OPTIONS)
        for queue_id in IDS:
            self.side.open(queue_id, f"q{queue_id}", source)
            for first in range(0, 24, 6):
                self.side.append(first, 6, queue_id=queue_id)
        for _ in range(4):
            self.side.jobs.idle()
        for queue_id in IDS:  # version 1 has something in its journal
            self.side.append(24, 6, queue_id=queue_id)

    @property
    def directory(self) -> str:
        """That of the first queue, which is chosen first."""
        return self.side.writer.queues()[1].directory

    def refuse(
        self, operation: str, number: int, *, nth: int = 1, times: int = FOR_GOOD, part: str = ""
    ) -> None:
        """Let calls for files of the first queue fail."""
        self.side.filesystem.fail(
            operation, number, nth=nth, times=times, path_part=self.directory + part
        )

    def begin(self) -> None:
        self.side.commit(*(SetVersion(queue_id, self.target) for queue_id in IDS))

    def convert(self) -> None:
        """Convert for some time."""
        for _ in range(20):
            self.side.jobs.convert()
        for _ in range(4):
            self.side.jobs.idle()
            self.side.jobs.convert()

    def converted(self) -> set[int]:
        queues = self.side.writer.queues()
        return {queue_id for queue_id in IDS if queues[queue_id].is_all_of(self.target)}

    def blocked(self) -> set[int]:
        return {queue_id for queue_id in IDS if self.side.writer.refusals.has(queue_id)}

    def check_others(self) -> None:
        assert self.side.filesystem.failed
        assert self.converted() >= {2, 3}
        assert not self.blocked() & {2, 3}
        for queue_id in (2, 3):
            assert self.side.read(queue_id) == list(range(30))

    def check_start(self, disk: SimFileSystem) -> None:
        """The next start, on a disk that is well again, finds all and goes on with the conversion."""
        again = DiskSide(disk, **OPTIONS)
        for queue_id in IDS:
            again.take_up(queue_id, f"q{queue_id}", self.target)
        for _ in range(2):
            for queue_id in IDS:
                assert again.read(queue_id) == list(range(30))
            for _ in range(20):
                again.jobs.convert()
        for queue_id in IDS:
            assert again.writer.queues()[queue_id].is_all_of(self.target)
        assert again.writer.stats()["unconverted_queues"] == 0

    def killed(self) -> SimFileSystem:
        disk = deepcopy(self.side.filesystem)
        disk.heal()
        return disk.process_killed()


@pytest.mark.parametrize("call", ["rename", "fsync_dir"])
@pytest.mark.parametrize("source", [1, 2])
def test_a_refused_name_blocks_the_queue_that_it_is_in_and_no_other(source: int, call: str) -> None:
    three = Three(source)
    three.begin()
    for _ in range(6):  # the journals go first, and the directories are synced for that
        if not three.side.writer.begin_conversion():
            break
        three.side.jobs.sync(None)
    three.refuse(call, errno.EIO)
    three.convert()
    assert three.blocked() == {1}
    three.check_others()
    three.check_start(three.killed())


@pytest.mark.parametrize("call", ["rename", "fsync_dir"])
def test_a_refused_name_in_a_slice_of_as_many_queues_as_may_be_blocked_does_not_end_the_store(
    call: str,
) -> None:
    side = DiskSide(segment_entry_count=16, convert_slice=32)
    ids = range(1, 35)
    for queue_id in ids:
        side.open(queue_id, f"q{queue_id}", 2)
        side.append(0, 2, queue_id=queue_id)
    for _ in range(4):
        side.jobs.idle()
    queues = side.writer.queues()
    for queue_id, operation in ((34, "pwrite"), (2, call)):
        part = queues[queue_id].directory
        side.filesystem.fail(operation, errno.EIO, times=FOR_GOOD, path_part=part)
    side.append(2, 1, queue_id=34)
    side.commit(*(SetVersion(queue_id, 1) for queue_id in ids[:-1]))
    for _ in range(6):
        side.jobs.convert()
    assert [queue_id for queue_id in ids if side.writer.refusals.has(queue_id)] == [2, 34]
    assert [queue_id for queue_id in ids if queues[queue_id].is_all_of(2)] == [34]


def test_one_queue_finds_no_room_for_a_name_and_another_one_is_refused_it() -> None:
    three = Three(2)
    three.begin()
    three.refuse("rename", errno.ENOSPC)
    second = three.side.writer.queues()[2].directory
    three.side.filesystem.fail("rename", errno.EIO, path_part=second)
    three.convert()
    assert three.blocked() == {2}
    assert three.converted() == {3}
    three.side.filesystem.heal()
    three.convert()
    assert three.converted() >= {1, 3}
    three.check_start(three.killed())


def damage(three: Three, source: int) -> None:
    """A message in the first segment of the first queue is damaged."""
    ending = {1: "/0.idx", 2: "/0.qs"}[source]
    filesystem = three.side.filesystem
    (path,) = [path for path in three.side.paths(ending) if path.startswith(three.directory)]
    place = filesystem.content(path).rfind(b"\xa5\x51\x01\x00") + 60
    filesystem.damage(path, place, bytes((filesystem.content(path)[place] ^ 1,)))


@pytest.mark.parametrize("slice_", [1, 32])
@pytest.mark.parametrize("source", [1, 2])
def test_a_damaged_message_keeps_its_own_segment_from_being_converted_and_nothing_else(
    source: int, slice_: int
) -> None:
    three = Three(source, slice_)
    damage(three, source)
    three.begin()
    three.convert()
    assert three.converted() == {2, 3}
    queue = three.side.writer.queues()[1]
    assert [segment.number for segment in queue.segments_elsewhere()] == [0]
    assert three.side.observer.events["sync_failed"] == 1, "who runs the node is told once"
    assert not three.side.jobs.is_converting
    assert three.side.writer.stats()["converting_queues"] == 0
    assert three.side.writer.stats()["unconverted_queues"] == 1
    three.side.commit(Delete(1))
    assert three.side.writer.stats()["unconverted_queues"] == 0


@pytest.mark.parametrize("source", [1, 2])
def test_a_queue_counts_as_unconverted_as_long_as_it_has_such_segments(source: int) -> None:
    three = Three(source)
    damage(three, source)
    three.begin()
    three.convert()
    assert three.side.writer.stats()["unconverted_queues"] == 1
    three.side.ack(0, 15)
    for _ in range(4):
        three.side.jobs.idle()
    assert three.converted() == {1, 2, 3}
    assert three.side.writer.stats()["unconverted_queues"] == 0


@pytest.mark.parametrize("source", [1, 2])
def test_a_file_that_stays_until_the_next_sync_ends_no_conversion(source: int) -> None:
    """An emptied segment's file is to be removed, and it is not durable yet that the one it replaced is gone."""
    three = Three(source)
    three.begin()
    three.convert()
    assert three.converted() == {1, 2, 3}
    back = [SetVersion(queue_id, source) for queue_id in IDS]
    three.side.commit(*back)
    three.side.jobs.convert()
    assert three.converted() != {1, 2, 3}
    again = [SetVersion(queue_id, three.target) for queue_id in IDS]
    three.side.commit(Ack(1, 0, 15, None), *again, sync=False)
    three.convert()
    assert three.converted() == {1, 2, 3}
    assert not three.side.observer.events["sync_failed"]
    assert three.side.read(1) == list(range(16, 30))


@pytest.mark.parametrize("operation", ["pread", "open"])
@pytest.mark.parametrize("source", [1, 2])
def test_a_queue_that_cannot_be_read_keeps_no_other_from_being_converted(
    source: int, operation: str
) -> None:
    three = Three(source)
    three.refuse(operation, errno.EIO)
    three.begin()
    three.side.context.cache.release_clean()
    for queue in three.side.writer.queues().values():
        queue.files_in(source).trim()
    three.convert()
    three.check_others()
    assert three.converted() == {2, 3}
    assert three.side.observer.events["sync_failed"] == 1
    three.check_start(three.killed())


@pytest.mark.parametrize("source", [1, 2])
def test_what_is_left_is_tried_again_when_the_version_changes_again(source: int) -> None:
    three = Three(source)
    three.refuse("create", errno.EIO, times=1)
    three.begin()
    three.convert()
    assert three.converted() == {2, 3}
    assert three.side.writer.stats()["unconverted_queues"] == 1
    three.begin()
    assert three.side.writer.stats()["unconverted_queues"] == 0
    three.convert()
    assert three.converted() == {1, 2, 3}


@pytest.mark.parametrize("slice_", [1, 32])
@pytest.mark.parametrize(
    ("source", "operation", "part"),
    [
        (1, "create", ""),
        (2, "create", ""),
        (1, "pwrite", ""),
        (2, "pwrite", ""),
        (1, "fdatasync", "/1.qi.tmp"),
        (2, "fdatasync", "/1.idx.tmp"),
        (1, "rename", ""),
        (2, "rename", ""),
        (1, "create", "/.queue_name.tmp"),
    ],
)
@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EMFILE])
def test_whatever_one_queue_is_refused_the_others_are_converted(
    source: int, operation: str, part: str, number: int, slice_: int
) -> None:
    three = Three(source, slice_)
    three.begin()
    three.refuse(operation, number, part=part)
    three.convert()
    three.check_others()
    assert three.blocked() == ({1} if (operation, number) == ("rename", errno.EIO) else set())
    three.check_start(three.killed())
    three.side.filesystem.heal()
    three.convert()
    if number != errno.EIO:
        assert three.converted() == {1, 2, 3}, "there is room again"
        assert three.side.observer.events["sync_failed"] == 0
    if not three.blocked():
        assert three.side.read(1) == list(range(30))


@pytest.mark.parametrize("slice_", [1, 2])
def test_a_journal_that_does_not_go_holds_up_its_own_queue_only(slice_: int) -> None:
    three = Three(1, slice_)
    (journal,) = [path for path in three.side.paths(".jif") if path.startswith(three.directory)]
    three.side.filesystem.fail("unlink", errno.EIO, times=FOR_GOOD, path_part=journal)
    three.begin()
    three.convert()
    three.check_others()
    assert three.converted() == {2, 3}
    three.check_start(three.killed())
    three.side.filesystem.heal()
    three.convert()
    assert three.converted() == {1, 2, 3}


def test_what_has_found_room_is_converted_though_the_whole_slice_has_not() -> None:
    three = Three(2)
    three.begin()
    three.side.filesystem.fail("create", errno.ENOSPC, nth=5, times=FOR_GOOD)
    assert three.side.jobs.convert()
    assert three.side.writer.stats()["converted_segments"] == 4
    assert not three.side.paths(".tmp")
    assert not three.side.jobs.convert()
    three.side.filesystem.heal()
    three.convert()
    assert three.converted() == {1, 2, 3}


def test_what_was_converted_before_there_was_no_room_for_a_name_is_counted() -> None:
    three = Three(2)
    three.begin()
    three.side.filesystem.fail("rename", errno.ENOSPC, nth=3, path_part=".idx")
    assert three.side.jobs.convert()
    assert three.side.writer.stats()["converted_segments"] == 5
    three.convert()
    assert three.side.writer.stats()["converted_segments"] == 6


def test_a_directory_that_fails_as_the_log_begins_anew_is_that_queues() -> None:
    three = Three(2, 1)
    three.begin()
    filesystem = three.side.filesystem
    sync_all = filesystem.sync_all
    third = three.side.writer.queues()[3].directory
    for number, is_blocked in ((errno.ENOSPC, False), (errno.EIO, True)):
        failed = (third, OSError(number, "no"))
        with mock.patch.object(
            filesystem,
            "sync_all",
            lambda files, names, failed=failed: [*sync_all(files, names), failed],
        ):
            three.side.jobs.convert()
        assert three.side.writer.refusals.has(3) == is_blocked
    three.convert()
    assert three.blocked() == {3}
    assert three.converted() == {1, 2}


def test_new_files_are_given_up_where_the_log_has_failed() -> None:
    three = Three(2)
    three.begin()
    filesystem = three.side.filesystem
    sync_all = filesystem.sync_all
    failed = ("/data/commit_log", OSError(errno.EIO, "no"))
    with mock.patch.object(
        filesystem, "sync_all", lambda files, names: [*sync_all(files, names), failed]
    ):
        assert not three.side.jobs.convert()
    assert not three.side.paths(".tmp")
    assert three.converted() == set()
    assert three.blocked() == set()
