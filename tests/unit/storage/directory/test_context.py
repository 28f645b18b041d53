"""A data directory in use: its vhosts and queues, the open files, what is removed durably."""

from __future__ import annotations

import errno
import random
from contextlib import suppress
from itertools import pairwise

import pytest

from burrowmq.storage.directory.context import VHOST_NAME_FILE, queue_files
from burrowmq.storage.directory.terms import SEGMENT_MARGIN, read_recorded, reserve_segments
from burrowmq.storage.errors import StorageError, SyncFailed, WriteFailed
from burrowmq.storage.loop.staged_commit import Delete, Open
from burrowmq.storage.names import QueueNames
from burrowmq.storage.shared.vhost_store import TRANSIENT_SEGMENTS
from burrowmq.storage.types import RecoveredQueue
from tests.support.disk_side import LARGE, DiskSide, messages
from tests.support.machine_disk import MachineDisk
from tests.support.sim_filesystem import PowerCut

Q = QueueNames("/", "q")


def test_a_vhosts_name_is_durable_before_anything_in_it() -> None:
    side = DiskSide()
    side.context.vhost("orders")
    path = f"{side.context.vhost_dir('orders')}/{VHOST_NAME_FILE}"
    assert side.filesystem.cut(random.Random(1)).content(path) == b"orders"


def test_a_vhost_is_made_once() -> None:
    context = DiskSide().context
    assert not context.has_vhost("/")
    store = context.vhost("/")
    assert context.vhost("/") is store
    assert (context.has_vhost("/"), context.vhosts()) == (True, [store])


def test_a_vhost_that_cannot_be_made_is_tried_again() -> None:
    side = DiskSide()
    side.filesystem.fail("pwrite", errno.ENOSPC)
    with pytest.raises(WriteFailed):
        side.context.vhost("/")
    assert not side.context.has_vhost("/")
    side.context.vhost("/")


def test_queues_lie_where_their_kind_and_level_say() -> None:
    context = DiskSide().context
    assert context.queue_dir(Q, durable=True) == f"{context.vhost_dir('/')}/queues/{Q.directory}"
    level = QueueNames("/", "q", 3)
    assert context.queue_dir(level, durable=False).endswith(f"/transient/{level.directory}")
    queue = context.new_queue(Q, durable=True)
    assert (queue.directory, queue.is_made) == (context.queue_dir(Q, durable=True), False)
    assert context.has_vhost("/")


def test_a_deleted_vhost_is_durably_gone_and_its_numbers_are_not_used_again() -> None:
    side = DiskSide()
    side.context.vhost("/").append(messages(0, 3, LARGE))
    used = side.context.vhost("/").persistent.next_segment_no
    side.context.delete_vhost("/")
    assert not side.filesystem.cut(random.Random(1)).exists(side.context.vhost_dir("/"))
    assert side.context.vhost("/").persistent.next_segment_no >= used


def test_a_deleted_vhost_takes_the_queues_that_nobody_opened_along() -> None:
    context = DiskSide().context
    for vhost in ("/", "other"):
        queue = context.new_queue(QueueNames(vhost, "q"), durable=True)
        context.keep_recovered(queue, RecoveredQueue(queue.names))
    context.delete_vhost("/")
    assert [queue.vhost for queue in context.take_unclaimed(())] == ["other"]
    assert context.take_unclaimed(()) == []


def test_a_recovered_queue_gets_its_name_from_whoever_opens_it() -> None:
    context = DiskSide().context
    queue = context.queue_at(QueueNames("/", ""), context.queue_dir(Q, durable=True))
    context.keep_recovered(queue, RecoveredQueue(queue.names))
    assert context.find_recovered(Q) is queue
    context.note_opened(queue)
    assert queue.names == Q
    assert context.recovered == {}


@pytest.mark.parametrize("version", [1, 2])
def test_what_was_recovered_knows_the_version_of_its_newest_segment(version: int) -> None:
    side = DiskSide(segment_entry_count=16)
    side.open(version=3 - version)
    side.append(0, 16)
    side.jobs.close({1: (16, 0)})
    side = DiskSide(side.filesystem, segment_entry_count=16)
    assert side.report.queues[Q].version == 3 - version


def test_segment_numbers_are_reserved_before_they_run_out() -> None:
    side = DiskSide()
    store = side.context.vhost("/").persistent
    ceiling = side.context.recorded.ceiling
    side.context.reserve_segments()
    assert side.context.recorded.ceiling == ceiling
    store.open_empty(ceiling - SEGMENT_MARGIN)
    side.context.reserve_segments()
    assert side.context.recorded.ceiling > ceiling
    assert read_recorded(side.filesystem, "/data").ceiling == side.context.recorded.ceiling


def test_no_message_gets_a_number_that_would_make_a_transient_one_of_it() -> None:
    side = DiskSide()
    side.open()
    side.append(0, 1, LARGE)
    recorded = read_recorded(side.filesystem, "/data")
    recorded.begin_above(TRANSIENT_SEGMENTS - SEGMENT_MARGIN)
    reserve_segments(side.filesystem, recorded)
    side = DiskSide(side.filesystem.process_killed())
    side.take_up()
    side.append(100_000, 1)
    with pytest.raises(StorageError, match="resegment --file-size"):
        side.append(100_001, 1, LARGE)
    assert DiskSide(side.filesystem.process_killed()).report.messages == 2


def test_a_directory_that_cannot_be_removed_durably_is_said() -> None:
    side = DiskSide()
    side.open()
    side.append(0, 1)
    directory = side.context.queue_dir(Q, durable=True)
    side.filesystem.fail("rmtree", errno.EIO)
    side.filesystem.fail("rename", errno.EIO)  # to a name that nobody looks for
    with pytest.raises(WriteFailed):
        side.context.remove_tree(directory)
    side.filesystem.fail("fsync_dir", errno.EIO)
    with pytest.raises(SyncFailed):
        side.context.remove_tree(directory)


def test_a_directory_that_is_gone_when_its_removal_fails_is_no_error() -> None:
    side = DiskSide()
    side.filesystem.fail("rmtree", errno.EIO)
    side.context.remove_tree(side.context.queue_dir(Q, durable=True), is_synced=False)
    assert side.context.leftover_count == 0


def test_a_directory_that_cannot_be_removed_is_out_of_the_way_and_goes_later() -> None:
    side = DiskSide()
    side.open()
    side.append(0, 2)
    directory = side.context.queue_dir(Q, durable=True)
    side.filesystem.fail("rmtree", errno.EIO)
    side.commit(Delete(1))
    assert not side.filesystem.exists(directory)
    queues = directory.rpartition("/")[0]
    assert side.context.leftover_count == len(side.filesystem.listdir(queues)) == 1
    side.context.sweep()
    assert side.context.leftover_count == len(side.filesystem.listdir(queues)) == 0


def test_a_shared_segment_that_cannot_be_removed_is_a_leftover_too_and_goes_later() -> None:
    side = DiskSide(segment_size_limit=2 * LARGE)
    side.open()
    side.append(0, 6, LARGE)
    side.filesystem.fail("unlink", errno.EIO, times=100, path_part=".seg")
    side.ack(0, 3)
    left = side.context.leftover_count
    assert left > 0
    assert side.writer.stats()["leftover_files"] == left
    assert side.jobs.has_leftovers, "so that the disk thread comes back to it"
    side.jobs.compactor.choose(is_idle=True)
    assert len(side.filesystem.failed) == left, "not in each idle moment"
    side.filesystem.heal()
    side.context.sweep()
    assert side.context.leftover_count == 0
    assert len(side.paths(".seg")) <= 2


def test_a_deletion_does_not_try_again_what_is_left_of_all_before_it() -> None:
    side = DiskSide()
    side.filesystem.fail("rmtree", errno.EIO, times=1 << 30, path_part="/queues/")
    failed = [0]
    for queue_id in range(1, 12):
        side.open(queue_id, "q", version=1)
        side.append(0, 1, queue_id=queue_id)
        side.commit(Delete(queue_id, 1), Open(100 + queue_id, Q, True, 1))
        side.commit(Delete(100 + queue_id))
        failed.append(len(side.filesystem.failed))
    assert side.context.leftover_count == 11
    assert len({after - before for before, after in pairwise(failed)}) == 1


def queue_on_disk(disk: MachineDisk, **options: bool) -> tuple[DiskSide, str]:
    """A queue of version 1, whose messages and acks are in files of their own, and its directory."""
    side = DiskSide(disk, **options)
    side.open(version=1)
    side.append(0, 4)
    side.ack(0, 1)
    side.commit()
    return side, side.context.queue_dir(Q, durable=True)


def names_after(disk: MachineDisk, directory: str, seed: int) -> list[str]:
    """What a power cut leaves in a directory."""
    found = disk.cut(random.Random(seed))
    return found.listdir(directory) if found.exists(directory) else []


def test_of_a_queue_that_is_defined_a_crash_leaves_all_files_or_none() -> None:
    """Journal and segments of version 1 are messages and their acks."""
    outcomes: set[tuple[str, ...]] = set()
    for seed in range(200):
        disk = MachineDisk()
        side, directory = queue_on_disk(disk)
        whole = disk.listdir(directory)
        disk.cut_before = disk.operations + seed % 8
        with suppress(PowerCut):
            side.commit(Delete(1), Open(2, Q, True, 1))
        outcomes.add(tuple(names_after(disk, directory, seed)))
        assert outcomes <= {tuple(whole), (), (".queue_name",)}
    assert {tuple(whole), ()} <= outcomes


def test_nothing_is_left_of_a_queue_that_was_removed_as_a_whole() -> None:
    side, directory = queue_on_disk(MachineDisk())
    side.commit(Delete(1), Open(2, Q, True, 1))
    side.append(0, 1, queue_id=2)
    assert side.filesystem.listdir(directory.rpartition("/")[0]) == [Q.directory]
    assert side.context.leftover_count == 0


def test_a_queue_that_is_only_in_the_log_is_removed_as_a_whole() -> None:
    side, directory = queue_on_disk(MachineDisk(), has_log=True)
    queues = directory.rpartition("/")[0]
    assert side.context.filesystem.listdir(queues)
    assert not side.filesystem.exists(directory)
    side.context.remove_queue(side.writer.queues()[1], is_defined=True)
    assert side.context.filesystem.listdir(queues) == []


@pytest.mark.parametrize("times", [1, 2])
def test_a_queue_that_cannot_be_renamed_is_removed(times: int) -> None:
    """At the second attempt as a whole, else file by file."""
    side, directory = queue_on_disk(MachineDisk())
    side.filesystem.fail("rename", errno.EXDEV, times=times)
    side.context.remove_queue(side.writer.queues()[1], is_defined=True)
    assert side.filesystem.listdir(directory.rpartition("/")[0]) == []


def test_a_queue_that_is_removed_as_a_whole_waits_for_room() -> None:
    side, directory = queue_on_disk(MachineDisk())
    side.filesystem.fail("rename", errno.ENOSPC)
    side.commit(Delete(1), Open(2, Q, True, 1))
    assert len(side.waits) == 1
    assert side.filesystem.listdir(directory.rpartition("/")[0]) == []


def test_the_shared_stores_have_a_third_of_the_open_files() -> None:
    assert [queue_files(count) for count in (256, 9, 2, 0)] == [171, 6, 2, 1]


def test_it_is_dirty_until_queues_and_shared_stores_are_synced() -> None:
    side = DiskSide()
    assert not side.context.is_dirty()
    side.context.vhost("/").append(messages(0, 1, LARGE))
    assert side.context.is_dirty()
    side.context.vhost("/").persistent.sync()
    assert not side.context.is_dirty()
    queue = side.context.new_queue(Q, durable=True)
    queue.make()
    assert side.context.is_dirty()
    side.context.sync()
    assert not side.context.is_dirty()


def test_a_sync_at_a_start_or_stop_has_no_second_way() -> None:
    side = DiskSide()
    side.context.new_queue(Q, durable=True).make()
    side.filesystem.fail("fdatasync")
    with pytest.raises(SyncFailed):
        side.context.sync()


def test_clean_files_are_closed_and_at_the_end_all() -> None:
    side = DiskSide()
    side.open()
    side.append(0, 2, LARGE)
    side.append(2, 2)
    side.context.release_clean_files()
    assert side.writer.stats()["open_files"] == 0
    side.ack(0, 0)
    side.context.release()
    assert side.writer.stats()["open_files"] == 0
