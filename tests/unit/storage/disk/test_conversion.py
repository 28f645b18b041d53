"""Queues on their way from one version of their files to the other: slice by slice, the tail first.

Covers: storage/directory/clean_stop.py, storage/disk/conversion.py, storage/files/cache.py, storage/queue/bodies.py,
 storage/queue/convert.py, storage/queue/v1/files.py
"""

from __future__ import annotations

import errno
import random
from contextlib import suppress
from unittest import mock

import pytest

from burrowmq.storage.loop.staged_commit import Ack, Append, Delete, Open, SetVersion
from burrowmq.storage.names import parse_version
from tests.support import sim_filesystem
from tests.support.conversions import (
    ENDINGS,
    FOR_GOOD,
    convert_all,
    settle,
    started_again,
    three_segments,
)
from tests.support.disk_side import DiskSide, messages
from tests.support.misread import Misread
from tests.support.sim_filesystem import PowerCut, SimFileSystem


def numbers(side: DiskSide, version: int) -> list[int]:
    ending = ENDINGS[version]
    return sorted(int(path.rpartition("/")[2][: -len(ending)]) for path in side.paths(ending))


def version_in_name_file(side: DiskSide) -> int:
    (path,) = side.paths(".queue_name")
    return parse_version(side.filesystem.content(path))


@pytest.mark.parametrize("source", [1, 2])
def test_every_segment_is_written_anew_and_the_name_file_says_so_at_the_end(source: int) -> None:
    target = 3 - source
    side = three_segments(source)
    assert numbers(side, source) == [0, 1, 2]
    side.commit(SetVersion(1, target))
    assert side.jobs.is_converting
    assert version_in_name_file(side) == source
    assert convert_all(side) == 3
    assert side.read() == list(range(40))
    side.jobs.idle()
    assert numbers(side, target) == [0, 1, 2]
    assert numbers(side, source) == []
    assert version_in_name_file(side) == target
    assert side.writer.stats()["converted_segments"] == 3


def test_the_tail_comes_first() -> None:
    side = three_segments(2)
    side.commit(SetVersion(1, 1))
    side.jobs.convert()
    assert numbers(side, 2) == [0, 1]
    side.append(40, 4)
    assert side.read() == list(range(44))


def test_opening_a_recovered_queue_in_another_version_converts_it() -> None:
    side = three_segments(2)
    side = DiskSide(
        side.filesystem.process_killed(), segment_entry_count=16, convert_slice=1, journal_entries=8
    )
    side.writer.bind(1, side.names)
    side.commit(Open(1, side.names, True, 1))
    assert convert_all(side) == 3
    assert side.read() == list(range(40))


def test_a_change_back_leaves_what_was_not_converted() -> None:
    side = three_segments(2)
    side.commit(SetVersion(1, 1))
    side.jobs.convert()
    side.commit(SetVersion(1, 2))
    assert convert_all(side) == 1
    assert side.read() == list(range(40))
    assert numbers(side, 2) == [0, 1, 2]


def test_a_deleted_queue_is_not_converted() -> None:
    side = three_segments(2)
    side.commit(SetVersion(1, 1))
    side.commit(Delete(1))
    assert not side.jobs.is_converting


def test_a_segment_without_live_messages_is_removed_instead() -> None:
    side = three_segments(2)
    side.commit(SetVersion(1, 1))
    side.ack(0, 15)
    assert convert_all(side) == 2
    assert side.read() == list(range(16, 40))


def test_without_room_the_old_files_go_on_until_there_is_some() -> None:
    side = three_segments(2)
    side.commit(SetVersion(1, 1))
    side.filesystem.fail("create", errno.ENOSPC)
    assert not side.jobs.convert()
    assert side.jobs.is_converting
    assert not side.paths(".tmp")
    assert convert_all(side) == 3
    assert side.read() == list(range(40))


def test_new_files_whose_sync_fails_are_given_up() -> None:
    side = three_segments(2)
    side.commit(SetVersion(1, 1))
    side.filesystem.fail("fdatasync", errno.EIO, path_part=".tmp")
    assert not side.jobs.convert()
    assert not side.jobs.is_converting, "the next start tries again"
    assert side.observer.events["sync_failed"] == 1
    assert not side.paths(".tmp")
    assert side.read() == list(range(40))
    assert numbers(side, 2) == [0, 1, 2]


@pytest.mark.parametrize(("source", "target"), [(1, 2), (2, 1)])
def test_an_old_file_that_cannot_be_removed_is_left_behind(source: int, target: int) -> None:
    """It is no reason to end the store: a start goes by the newer one."""
    side = DiskSide(segment_entry_count=16)
    side.open(1, "q", source)
    side.append(0, 20)
    side.jobs.idle()
    side.jobs.idle()
    ending = {1: ".idx", 2: ".qi"}[source]
    side.commit(SetVersion(1, target))
    side.filesystem.fail("unlink", path_part=f"/0{ending}")
    for _ in range(6):
        side.jobs.convert()
    side.jobs.idle()
    assert side.filesystem.failed
    assert side.read() == list(range(20))
    again = DiskSide(side.filesystem.process_killed(), segment_entry_count=16)
    again.take_up(1, "q", target)
    assert again.read() == list(range(20))


@pytest.mark.parametrize("source", [1, 2])
def test_a_conversion_waits_for_room_for_a_new_name(source: int) -> None:
    side = three_segments(source)
    side.commit(SetVersion(1, 3 - source))
    place = side.paths(".queue_name")[0].rpartition("/")[0]
    side.filesystem.fail("rename", errno.ENOSPC, path_part=place)
    for _ in range(30):
        side.jobs.convert()
    assert not side.writer.refusals
    assert not side.jobs.is_converting
    assert side.read() == list(range(40))


@pytest.mark.parametrize("source", [1, 2])
def test_a_conversion_waits_for_room_for_the_sync_of_its_directory(source: int) -> None:
    side = three_segments(source)
    side.commit(SetVersion(1, 3 - source))
    place = side.paths(".queue_name")[0].rpartition("/")[0]
    side.filesystem.fail("fsync_dir", errno.ENOSPC, path_part=place)
    for _ in range(30):
        side.jobs.convert()
    assert not side.writer.refusals
    assert not side.jobs.is_converting
    assert side.read() == list(range(40))
    side.jobs.idle()
    assert numbers(side, source) == []
    assert side.writer.stats()["leftover_files"] == 0


@pytest.mark.parametrize("source", [1, 2])
def test_no_more_is_converted_before_there_is_room_for_the_first_names(source: int) -> None:
    side = three_segments(source)
    side.commit(SetVersion(1, 3 - source))
    place = side.paths(".queue_name")[0].rpartition("/")[0]
    side.filesystem.fail("fsync_dir", errno.ENOSPC, times=FOR_GOOD, path_part=place)
    assert side.jobs.convert()
    assert not side.jobs.convert()
    assert numbers(side, source) == [0, 1, 2], "the old one stays as long"
    assert numbers(side, 3 - source) == [2]
    side.commit(Ack(1, 32, 39, None), sync=False)
    side.jobs.idle()
    assert numbers(side, 3 - source) == [2], "alone, the old one would count again"
    side.filesystem.heal()
    assert convert_all(side) == 2
    settle(side)
    assert numbers(side, source) == []
    assert side.read() == list(range(32))


@pytest.mark.parametrize("source", [1, 2])
def test_a_stop_while_names_wait_for_room_leaves_no_old_file(source: int) -> None:
    side = three_segments(source)
    side.commit(SetVersion(1, 3 - source))
    place = side.paths(".queue_name")[0].rpartition("/")[0]
    side.filesystem.fail("fsync_dir", errno.ENOSPC, path_part=place)
    assert side.jobs.convert()
    side.jobs.close({})
    assert numbers(side, source) == [0, 1]
    again = started_again(side.filesystem.cut(random.Random(1), names=False), 3 - source)
    assert again.report.clean
    assert again.read() == list(range(40))


class Life:
    """A queue that is used while it is converted, on a disk without room for the names in its directory at first."""

    def __init__(self, source: int, fails: int, has_log: bool) -> None:
        # With a log the queue has files of its own all the same.
        self._log = {"has_log": has_log, "log_queue_limit": 100, "log_limit": 6000}
        self.side = three_segments(source, **self._log)
        self.target = 3 - source
        self.confirmed = set(range(40))
        self.acked: set[int] = set()  # or about to be
        self.gone: set[int] = set()  # acked durably
        self._place = self.side.paths(".queue_name")[0].rpartition("/")[0]
        self._fails = fails

    def run(self) -> None:
        side = self.side
        side.commit(SetVersion(1, self.target))
        side.filesystem.fail("fsync_dir", errno.ENOSPC, times=self._fails, path_part=self._place)
        for at in range(4):
            side.jobs.convert()
            first = 40 + 4 * at
            side.commit(Append(1, first, list(messages(first, 4)), None))
            self.confirmed.update(range(first, first + 4))
            going = set(range(14 * at, 14 * at + 11)) if at < 3 else {40}
            self.acked |= going
            side.commit(Ack(1, min(going), max(going), None))
            side.jobs.idle()
            if not side.context.is_dirty():
                self.gone |= self.acked
        convert_all(side)
        settle(side)

    def check(self, found: SimFileSystem) -> None:
        again = started_again(found, self.target, **self._log)
        live = set(again.read())
        assert live >= self.confirmed - self.acked, "lost"
        assert not live & self.gone, "back"


@pytest.mark.parametrize("source", [1, 2])
@pytest.mark.parametrize(("fails", "has_log"), [(1, False), (3, False), (3, True)])
def test_a_power_cut_while_names_wait_for_room_loses_nothing(
    source: int, fails: int, has_log: bool
) -> None:
    """Whatever it keeps of the names: the old files, the new ones, or both."""
    whole = Life(source, fails, has_log)
    before = whole.side.filesystem.operations
    whole.run()
    whole.check(whole.side.filesystem.process_killed())
    for at in range(before, whole.side.filesystem.operations):
        life = Life(source, fails, has_log)
        life.side.filesystem.cut_before = at
        with suppress(PowerCut):
            life.run()
        assert life.side.filesystem.is_cut
        for seed in range(4):
            life.check(life.side.filesystem.cut(random.Random(seed)))
        life.check(life.side.filesystem.process_killed())


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EMFILE])
def test_a_rescue_of_version_1_keeps_its_journal_until_the_names_are_durable(number: int) -> None:
    side = DiskSide(segment_entry_count=16)
    side.open(version=1)
    side.append(0, 8)
    journals = side.paths(".jif")
    place = journals[0].rpartition("/")[0]
    side.filesystem.fail("fdatasync", errno.EIO, path_part=".jif")
    side.filesystem.fail("fsync_dir", number, nth=1, times=2, path_part=place)
    side.append(8, 4)
    assert len(side.waits) == 2
    assert not side.writer.refusals
    assert side.read() == list(range(12))
    for seed in range(12):
        again = DiskSide(side.filesystem.cut(random.Random(seed)), segment_entry_count=16)
        again.take_up(1, "q", 1)
        assert again.read() == list(range(12))


def test_a_power_cut_in_a_rescue_of_version_1_without_room_for_names_loses_nothing() -> None:
    def begun() -> DiskSide:
        side = DiskSide(segment_entry_count=16)
        side.open(version=1)
        side.append(0, 20)
        side.filesystem.fail("fdatasync", errno.EIO, path_part=".jif")
        place = side.paths(".jif")[0].rpartition("/")[0]
        side.filesystem.fail("fsync_dir", errno.ENOSPC, times=2, path_part=place)
        return side

    whole = begun()
    before = whole.filesystem.operations
    whole.append(20, 4)
    for at in range(before, whole.filesystem.operations):
        side = begun()
        side.filesystem.cut_before = at
        with pytest.raises(PowerCut):
            side.append(20, 4)
        for seed in range(6):
            again = DiskSide(side.filesystem.cut(random.Random(seed)), segment_entry_count=16)
            again.take_up(1, "q", 1)
            assert again.read()[:20] == list(range(20))


@pytest.mark.parametrize("version", [1, 2])
def test_a_segment_written_anew_in_its_own_version_waits_for_room_for_the_sync(
    version: int,
) -> None:
    side = DiskSide(segment_entry_count=64, journal_entries=8)
    side.open(version=version)
    side.append(0, 40)
    settle(side)
    side.ack(0, 36)
    settle(side)
    place = side.paths(".queue_name")[0].rpartition("/")[0]
    segment = side.writer.queues()[1].index.segments[0]
    # Version 2 syncs the store's name before the index that needs it.
    side.filesystem.fail("fsync_dir", errno.ENOSPC, nth=version, path_part=place)
    assert segment.files.shrink(segment, side.observer) == 0
    assert side.filesystem.failed
    for seed in range(8):
        again = DiskSide(side.filesystem.cut(random.Random(seed)), segment_entry_count=64)
        again.take_up(1, "q", version)
        assert again.read() == [37, 38, 39]
    if version == 2:
        assert side.paths("/0.qs"), "it stays until there was room"
    settle(side)
    assert not side.paths("/0.qs")
    side.append(40, 2)
    expected = [37, 38, 39, 40, 41]
    assert side.read() == expected
    for seed in range(8):
        again = DiskSide(side.filesystem.cut(random.Random(seed)), segment_entry_count=64)
        again.take_up(1, "q", version)
        assert again.read() == expected


@pytest.mark.parametrize("source", [1, 2])
def test_a_file_that_could_not_be_removed_is_none_to_remove_once_it_is_in_use_again(
    source: int,
) -> None:
    """The queue goes back to the version that it came from, and its segment has the old file's name again."""
    side = three_segments(source)
    side.commit(SetVersion(1, 3 - source))
    side.filesystem.fail("unlink", times=FOR_GOOD, path_part=f"/0{ENDINGS[source]}")
    convert_all(side)
    assert side.writer.stats()["leftover_files"] == 1
    side.filesystem.heal()
    side.commit(SetVersion(1, source))
    convert_all(side)
    settle(side)
    side.context.cache.release_clean()
    assert side.read() == list(range(40))


@pytest.mark.parametrize("source", [1, 2])
@pytest.mark.parametrize("is_stopped", [False, True])
def test_what_was_acked_stays_away_while_the_old_file_cannot_be_removed(
    source: int, is_stopped: bool
) -> None:
    """The new file would go first, and the next start find the old one alone."""
    side = three_segments(source)
    side.commit(SetVersion(1, 3 - source))
    side.filesystem.fail("unlink", times=FOR_GOOD, path_part=f"/0{ENDINGS[source]}")
    convert_all(side)
    if is_stopped:
        side.jobs.close({})
        side = started_again(side.filesystem.process_killed(), 3 - source)
    side.ack(0, 15)
    settle(side)
    again = started_again(side.filesystem.process_killed(), 3 - source)
    assert again.read() == list(range(16, 40))
    assert numbers(again, source) == []


def test_a_conversion_reads_again_what_fails_its_check() -> None:
    side = three_segments(2)
    side.commit(SetVersion(1, 1))
    side.jobs.idle()
    misread = Misread(".qs")
    with mock.patch.object(sim_filesystem.SimFile, "pread", misread.bound()):
        convert_all(side)
    assert misread.is_done
    assert side.read() == list(range(40))
