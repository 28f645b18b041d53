"""The jobs of the disk side: when a commit is synced, what follows a failed sync, idle work, the end."""

from __future__ import annotations

import errno
import random

import pytest

from burrowmq.storage.errors import DiskFull, ReadFailed, StorageError, SyncFailed
from burrowmq.storage.loop.staged_commit import Ack, Append, StagedCommit
from tests.support.disk_side import LARGE, SMALL, DiskSide, messages


def side_with_queue(**options: object) -> DiskSide:
    side = DiskSide(**options)
    side.open()
    return side


def syncs_of(side: DiskSide, *, sync: bool, count: int = 3) -> int:
    before = side.writer.counters.syncs
    side.commit(Append(1, 0, list(messages(0, count)), None), sync=sync)
    return side.writer.counters.syncs - before


@pytest.mark.parametrize(
    ("confirm", "sync", "syncs"),
    [("fsync", True, 1), ("fsync", False, 0), ("written", True, 0), ("written", False, 0)],
)
def test_a_commit_is_synced_when_somebody_waits_for_that(
    confirm: str, sync: bool, syncs: int
) -> None:
    assert syncs_of(side_with_queue(confirm=confirm), sync=sync) == syncs


def test_what_a_power_cut_could_take_is_bounded_though_nobody_waits() -> None:
    side = side_with_queue(unsynced_limit=4 * SMALL)
    assert syncs_of(side, sync=False, count=3) == 0
    assert syncs_of(side, sync=False, count=2) == 1


def test_after_a_failed_sync_the_commit_is_written_elsewhere() -> None:
    side = side_with_queue()
    side.append(0, 2, LARGE)
    side.filesystem.fail("fdatasync", errno.EIO)
    side.commit(
        Append(1, 2, list(messages(2, 2, LARGE)), None), Append(1, 4, list(messages(4, 2)), None)
    )
    assert side.observer.events["sync_failed"] == 1
    assert side.writer.counters.rescues == 1
    assert side.read() == list(range(6))


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_what_was_written_elsewhere_is_durable(size: int) -> None:
    side = side_with_queue()
    side.filesystem.reverts = True
    side.filesystem.fail("fdatasync", errno.EIO)
    side.append(0, 4, size)
    assert side.writer.counters.rescues == 1
    for seed in range(8):
        found = DiskSide(side.filesystem.cut(random.Random(seed)))
        found.take_up()
        assert found.read() == [0, 1, 2, 3]


@pytest.mark.parametrize("version", [1, 2])
def test_what_names_the_new_place_of_a_shared_message_is_durable(version: int) -> None:
    side = DiskSide()
    side.open(version=version)
    side.append(0, 1, LARGE)
    side.filesystem.fail("fdatasync", errno.EIO, path_part=".seg")
    side.append(1, 3, LARGE)
    assert side.writer.counters.rescues == 1
    for seed in range(12):
        found = DiskSide(side.filesystem.cut(random.Random(seed)))
        found.take_up(version=version)
        assert found.read() == [0, 1, 2, 3]
        assert found.report.lost == 0


def test_handles_that_a_rescue_gave_up_are_not_given_back() -> None:
    """Whoever has read a message before may still know it by the old one."""
    side = side_with_queue()
    side.append(0, 1, LARGE)
    side.filesystem.fail("fdatasync", errno.EIO, path_part=".seg")
    made = side.append(1, 3, LARGE)
    stale = messages(1, 3, LARGE)
    for slot, message in enumerate(stale, 1):
        message.handle = slot  # in the first segment
    assert {one.handle for one in made}.isdisjoint(one.handle for one in stale)
    side.commit(Ack(1, 1, 3, list(stale)))
    stats = side.vhost().persistent.stats()
    assert (stats["live_messages"], stats["stray_drops"]) == (1, 0)


def test_a_segment_that_fails_as_it_is_full_is_written_elsewhere() -> None:
    side = side_with_queue(segment_size_limit=3 * LARGE)
    side.commit(Append(1, 0, list(messages(0, 2, LARGE)), None), sync=False)
    side.filesystem.fail("fdatasync", errno.EIO, path_part=".seg")
    side.append(2, 4, LARGE)
    assert side.writer.counters.rescues == 1
    assert side.read() == list(range(6))
    for seed in range(8):
        found = DiskSide(side.filesystem.cut(random.Random(seed)), segment_size_limit=3 * LARGE)
        found.take_up()
        assert found.read() == list(range(6))


def test_a_shared_store_whose_sync_fails_twice_ends_the_store_and_refuses_no_queue() -> None:
    side = side_with_queue()
    side.append(0, 1, LARGE)
    side.filesystem.fail("fdatasync", errno.EIO, path_part="0.g0.seg")
    side.filesystem.fail("fdatasync", errno.EIO, nth=2, path_part="1.g0.seg")  # not of its header
    with pytest.raises(SyncFailed, match="after writing elsewhere again"):
        side.append(1, 2, LARGE)
    assert not side.writer.refusals


def test_a_second_failed_sync_ends_the_store() -> None:
    side = side_with_queue()
    side.filesystem.fail("fdatasync", errno.EIO, times=50)
    with pytest.raises(SyncFailed, match="fdatasync failed"):
        side.append(0, 2)


def test_a_rescue_without_room_waits_for_it() -> None:
    side = side_with_queue()
    side.append(0, 2)
    side.filesystem.fail("fdatasync", errno.EIO)
    side.filesystem.fail("create", errno.ENOSPC)
    side.append(2, 2)
    assert len(side.waits) == 1
    assert side.read() == [0, 1, 2, 3]


def test_a_rescue_that_an_idle_moment_could_not_finish_comes_before_the_next_commit() -> None:
    side = side_with_queue()
    side.commit(Append(1, 0, list(messages(0, 2)), None), sync=False)
    side.filesystem.fail("fdatasync", errno.EIO)
    side.filesystem.fail("create", errno.ENOSPC)
    side.jobs.idle()
    assert side.writer.is_rescuing
    assert side.jobs.is_dirty
    side.append(2, 1)
    assert not side.writer.is_rescuing
    assert side.read() == [0, 1, 2]


def test_an_entry_that_a_rescue_has_half_written_is_read_when_it_is_whole() -> None:
    """Nobody has the message in memory: its commit is finished, and was not waited for."""
    side = side_with_queue()
    side.commit(Append(1, 0, list(messages(0, 2, LARGE)), None), sync=False)
    side.filesystem.fail("fdatasync", errno.EIO, path_part="/msg_store_persistent/")
    side.filesystem.fail("pwrite", errno.ENOSPC, keep=5, path_part=".qi")
    side.jobs.idle()
    assert side.writer.is_rescuing
    with pytest.raises(ReadFailed):
        side.read()
    side.jobs.idle()
    assert side.read() == [0, 1]
    assert not side.writer.reader.has_lost


def test_where_no_descriptor_is_left_what_is_open_is_closed_first() -> None:
    side = side_with_queue()
    side.append(0, 2)
    side.open(2, "other")
    side.filesystem.fail("create", errno.EMFILE, times=2)
    side.append(0, 2, queue_id=2)
    assert side.read(2) == [0, 1]


def test_upkeep_without_room_is_left_to_another_time() -> None:
    side = side_with_queue()
    side.append(0, 10)
    side.ack(2, 3)
    side.filesystem.fail("pwrite", errno.ENOSPC)
    assert side.jobs.upkeep()
    assert side.jobs.is_dirty
    side.jobs.idle()
    assert not side.jobs.is_dirty


def test_acks_that_cannot_be_written_wait_and_are_no_clean_end() -> None:
    side = side_with_queue()
    side.append(0, 10)
    side.ack(2, 3)
    side.filesystem.fail("pwrite", errno.EIO, times=9)
    assert side.jobs.upkeep()
    assert side.jobs.is_dirty
    with pytest.raises(StorageError, match="EIO"):
        side.jobs.close({1: (10, 0)})


def test_a_clean_end_is_found_by_the_next_start() -> None:
    side = side_with_queue()
    side.append(0, 5)
    side.jobs.close({1: (5, 3)})
    again = DiskSide(side.filesystem)
    assert again.report.clean
    found = again.report.queues[side.names]
    assert (found.next_seq, found.next_deliver_seq, found.count) == (5, 3, 5)


def test_an_end_without_room_gives_up_the_ballast() -> None:
    side = side_with_queue(ballast_bytes=1000)
    side.append(0, 5)
    assert side.jobs.space.has_ballast
    side.filesystem.fail("pwrite", errno.ENOSPC, path_part="/terms")
    side.jobs.close({})
    assert not side.jobs.space.has_ballast
    assert side.spaces == [True]
    assert DiskSide(side.filesystem).report.clean


def test_an_end_without_room_and_ballast_is_not_clean() -> None:
    side = side_with_queue()
    side.append(0, 5)
    side.filesystem.fail("pwrite", errno.ENOSPC, path_part="/terms", times=9)
    with pytest.raises(DiskFull):
        side.jobs.close({})
    again = DiskSide(side.filesystem.process_killed())
    assert not again.report.clean
    assert again.report.messages == 5


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_a_sync_without_room_waits_for_it_as_often_as_it_takes(size: int) -> None:
    side = side_with_queue()
    side.append(0, 2, size)
    side.filesystem.fail("fdatasync", errno.ENOSPC, times=5)
    side.append(2, 2, size)
    assert len(side.waits) >= 2
    assert all("ENOSPC" in str(wait) for wait in side.waits)
    assert side.read() == [0, 1, 2, 3]
    assert not side.filesystem.resynced


def test_a_sync_of_a_directory_without_room_waits_for_it() -> None:
    side = side_with_queue()
    side.filesystem.fail("fsync_dir", errno.ENOSPC, times=3)
    side.append(0, 2)
    assert side.waits
    assert side.read() == [0, 1]


def test_acks_of_a_busy_store_are_durable_within_a_bound() -> None:
    side = side_with_queue(idle_s=0.2)
    side.append(0, 4)
    side.jobs.keep_acks_young(100.0)
    side.commit(Ack(1, 0, 1, None), sync=False)

    def left() -> int:
        after = DiskSide(side.filesystem.cut(random.Random(0)))
        return after.report.messages

    side.jobs.keep_acks_young(100.29)
    syncs = side.writer.counters.syncs
    assert left() == 4
    side.jobs.keep_acks_young(100.31)
    assert (left(), side.writer.counters.syncs) == (2, syncs + 1)
    side.jobs.keep_acks_young(101.0)  # without news there is nothing to sync
    assert side.writer.counters.syncs == syncs + 1


def test_where_a_confirm_means_written_no_ack_is_synced_for_its_age() -> None:
    side = side_with_queue(confirm="written")
    side.append(0, 4)
    side.commit(Ack(1, 0, 1, None), sync=False)
    syncs = side.writer.counters.syncs
    side.jobs.keep_acks_young(100.0)
    assert side.writer.counters.syncs == syncs


@pytest.mark.parametrize(("confirm", "syncs"), [("fsync", 2), ("written", 0)])
def test_the_acks_of_a_commit_that_moves_come_after_a_sync(confirm: str, syncs: int) -> None:
    side = side_with_queue(confirm=confirm)
    side.append(0, 2)
    before = side.writer.counters.syncs
    commit = StagedCommit(9, [Append(1, 2, list(messages(2, 2)), None), Ack(1, 0, 1, None)])
    commit.is_moving = True
    side.jobs.apply(commit, side.waits.append)
    assert side.writer.counters.syncs == before + syncs
    assert not side.writer.has_acks_left
    assert side.read() == [2, 3]


def test_a_full_disk_only_makes_the_acks_of_a_move_wait() -> None:
    side = side_with_queue()
    side.append(0, 2)
    commit = StagedCommit(9, [Append(1, 2, list(messages(2, 2)), None), Ack(1, 0, 1, None)])
    commit.is_moving = True
    # the bodies, their entries, then the acks
    side.filesystem.fail("pwrite", errno.ENOSPC, nth=3)
    side.jobs.apply(commit, side.waits.append)
    assert len(side.waits) == 1
    assert side.read() == [2, 3]


@pytest.mark.parametrize("log_queue_limit", [100, 1 << 20])
def test_where_a_confirm_means_written_the_log_does_not_grow_for_ever(log_queue_limit: int) -> None:
    """Neither with what lies in it alone, nor with the acks of files that it is ahead of."""
    side = DiskSide(
        confirm="written", has_log=True, log_limit=20_000, log_queue_limit=log_queue_limit
    )
    side.open()
    side.append(0, 3)
    for seq in range(2):
        side.ack(seq, seq)
        side.jobs.idle()
    sizes = set()
    for seq in range(3, 200):
        acked, added = Ack(1, seq - 1, seq - 1, None), Append(1, seq, list(messages(seq, 1)), None)
        commit = StagedCommit(
            seq + 90, [added, acked], sync=True, touched={1}, acks_of={1}, size=50
        )
        side.jobs.apply(commit, side.no_room)
        sizes.add(max(side.filesystem.file_size(path) for path in side.paths(".log")))
    assert max(sizes) < 6 * 20_000
    found = DiskSide(side.filesystem.process_killed(), has_log=True)
    found.take_up()
    assert found.read() == [199]


@pytest.mark.parametrize("seed", range(4))
def test_a_commit_whose_log_fails_is_synced_all_the_same(seed: int) -> None:
    side = DiskSide(has_log=True, log_queue_limit=200)
    side.open()
    for first in range(3):
        side.append(first, 1)
    side.filesystem.fail("fdatasync", errno.EIO, path_part="/commit_log/")
    side.append(3, 1)
    found = DiskSide(side.filesystem.cut(random.Random(seed)), has_log=True, log_queue_limit=200)
    found.take_up()
    assert found.read() == [0, 1, 2, 3]


@pytest.mark.parametrize("confirm", ["fsync", "written"])
@pytest.mark.parametrize("seed", range(4))
def test_a_queue_that_grows_while_nobody_waits_has_files_of_its_own_soon(
    confirm: str, seed: int
) -> None:
    """In memory it would be copied with each commit, and written to the log beside its files."""
    side = DiskSide(has_log=True, confirm=confirm)
    side.open()
    disk = side.filesystem

    for first in range(0, 200, 10):
        side.commit(Append(1, first, list(messages(first, 10, 400)), None), sync=False)
    assert len(side.paths(".qs")) == 1
    syncs = disk.counters.calls["fdatasync"]
    for first in range(200, 400, 10):
        side.commit(Append(1, first, list(messages(first, 10, 400)), None), sync=False)
    assert disk.counters.calls["fdatasync"] == syncs, "nobody waits"
    assert side.read() == list(range(400))
    side.append(400, 1)
    again = DiskSide(disk.cut(random.Random(seed)), has_log=True, confirm=confirm)
    again.take_up()
    found = again.read()
    assert found == list(range(len(found)))
    if confirm == "fsync":
        assert len(found) == 401
