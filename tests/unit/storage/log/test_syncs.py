"""What is made durable in the log and what in place; which file is told to whom when that fails.

Covers: storage/log/own_files.py
Covers: storage/log/groups.py
Covers: storage/log/files.py
"""

from __future__ import annotations

import errno
import random
from typing import cast

import pytest

from burrowmq.storage.files.filesystem import File
from burrowmq.storage.log.filesystem import LogFileSystem
from burrowmq.storage.log.replay import replay
from tests.support.mounted_log import (
    IDENTITY,
    OPTIONS,
    QUEUE,
    QUEUES,
    calls,
    made,
    mounted,
    moved_out,
    on_forgetful_disk,
    one_file_behind,
    replaced,
    synced,
)
from tests.support.sim_filesystem import SimFileSystem


def test_few_bytes_go_into_the_log_and_many_do_not() -> None:
    filesystem, base = mounted(options=OPTIONS._replace(limit=1 << 20))
    file = moved_out(filesystem)
    file.pwrite(b"little", 500)
    before = calls(base)
    synced(filesystem, file)
    assert calls(base) == (before[0] + 1, before[1])
    size = len(base.content("/data/commit_log/0.log").rstrip(b"\0"))
    file.pwrite(b"much" * 10_000, 506)
    synced(filesystem, file)
    # In place, and a word that what the log said of it does not count any more.
    assert len(base.content("/data/commit_log/0.log").rstrip(b"\0")) < size + 200
    assert filesystem.overdue() == []
    found, _ = mounted(base.cut(random.Random(3)))
    assert found.file_size(f"{QUEUE}/0.qi") == 40_506


def test_what_a_killed_process_wrote_is_synced_in_place() -> None:
    """Only what this process writes can go into its log."""
    filesystem, base = mounted(options=OPTIONS._replace(limit=1 << 20))
    moved_out(filesystem).pwrite(b"unsynced", 500)
    filesystem, base = mounted(base.process_killed(), OPTIONS._replace(limit=1 << 20))
    filesystem.distrust()
    file = filesystem.open(f"{QUEUE}/0.qi")
    file.pwrite(b"more", 508)
    synced(filesystem, file)
    for seed in range(8):
        content = base.cut(random.Random(seed)).content(f"{QUEUE}/0.qi")
        assert content[500:] == b"unsyncedmore"
    filesystem.settle()
    before = calls(base)
    file.pwrite(b"little", 512)
    synced(filesystem, file)
    assert calls(base) == (before[0] + 1, before[1])


def test_a_queue_that_a_killed_process_removed_does_not_come_back_with_the_power() -> None:
    """Its directory was the disk's, and the process had not come to sync the name's removal."""
    base, filesystem = on_forgetful_disk()
    moved_out(filesystem)
    filesystem.rmtree(QUEUE)
    killed = base.process_killed()
    filesystem, _ = mounted(killed)
    assert not filesystem.exists(QUEUE)
    assert any(killed.cut(random.Random(seed)).exists(QUEUE) for seed in range(20))
    filesystem.distrust()
    assert filesystem.sync_all([], [QUEUES]) == []
    assert not any(killed.cut(random.Random(seed)).exists(QUEUE) for seed in range(20))


def test_a_directory_that_was_removed_stays_away_when_the_log_says_it_no_more() -> None:
    base, filesystem = on_forgetful_disk()
    moved_out(filesystem)
    filesystem.fsync_dir(QUEUE)
    base.fsync_dir(QUEUES)
    filesystem.rmtree(QUEUE)
    filesystem.groups.begin_generation()
    for seed in range(20):
        assert not mounted(base.cut(random.Random(seed)))[0].exists(QUEUE)


def test_of_a_file_whose_name_is_not_durable_the_log_says_nothing() -> None:
    """With the power its name may lead to the file that had it before."""
    base, filesystem = on_forgetful_disk()
    file = moved_out(filesystem)
    aside = filesystem.create(f"{QUEUE}/0.tmp")
    aside.pwrite(b"anew" * 100, 0)
    aside.fdatasync()
    filesystem.rename(f"{QUEUE}/0.tmp", file.path)
    again = filesystem.open(file.path)
    again.pwrite(b"more", 100)
    base.fail("fsync_dir", path_part=QUEUE)
    assert [item for item, _ in filesystem.sync_all([again], [QUEUE])] == [QUEUE]
    found = {base.cut(random.Random(seed)) for seed in range(20)}
    for disk in found:
        mounted(disk)
    assert {disk.content(file.path) for disk in found} == {
        b"x" * 500,
        b"anew" * 25 + b"more" + b"anew" * 74,
    }
    assert filesystem.sync_all([], [QUEUE]) == []
    assert mounted(base.cut(random.Random(1)))[0].read_file(file.path)[100:104] == b"more"


def test_what_was_synced_in_place_is_not_written_over_with_what_the_log_had() -> None:
    filesystem, base = mounted(options=OPTIONS._replace(limit=1 << 20))
    file = moved_out(filesystem)
    file.pwrite(b"older", 500)
    synced(filesystem, file)  # into the log
    file.pwrite(b"newer" * 10_000, 500)
    synced(filesystem, file)  # in place
    for seed in range(8):
        found = mounted(base.cut(random.Random(seed)))[0].read_file(file.path)
        assert found == b"x" * 500 + b"newer" * 10_000


@pytest.mark.parametrize("is_synced_alone", [False, True])
def test_what_the_log_had_of_a_removed_file_is_not_written_to_the_next_of_its_name(
    is_synced_alone: bool,
) -> None:
    filesystem, base = mounted(options=OPTIONS._replace(limit=1 << 20))
    file = moved_out(filesystem)
    file.pwrite(b"older", 0)
    synced(filesystem, file)  # into the log
    filesystem.unlink(file.path)
    again = filesystem.create(file.path)
    again.pwrite(b"the next one", 0)
    if is_synced_alone:
        again.fdatasync()
        base.fsync_dir(QUEUE)  # as by chance: the log is not told
    else:
        synced(filesystem, again)
        assert filesystem.sync_all([], [QUEUE]) == []
    for seed in range(8):
        found = mounted(base.cut(random.Random(seed)))[0].read_file(file.path)
        assert found == b"the next one"


def test_what_the_log_had_of_a_removed_file_is_not_written_to_one_that_gets_its_name() -> None:
    filesystem, base = mounted(options=OPTIONS._replace(limit=1 << 20))
    file = moved_out(filesystem)
    file.pwrite(b"older", 0)
    synced(filesystem, file)  # into the log
    aside = filesystem.create(f"{file.path}.new")
    aside.pwrite(b"the next one", 0)
    aside.fdatasync()
    filesystem.unlink(file.path)
    filesystem.rename(aside.path, file.path)
    base.fsync_dir(QUEUE)  # as by chance: the log is not told
    for seed in range(8):
        found = mounted(base.cut(random.Random(seed)))[0].read_file(file.path)
        assert found == b"the next one"


def test_a_generation_ends_with_what_is_overdue() -> None:
    filesystem, base = mounted(options=OPTIONS._replace(limit=2000, queue_limit=100))
    file = moved_out(filesystem)
    for number in range(12):
        file.pwrite(b"%03d" % number * 60, 500 + 180 * number)
        synced(filesystem, file, *filesystem.overdue())
    assert len(base.content("/data/commit_log/1.log")) < 5000
    assert mounted(base.cut(random.Random(3)))[0].file_size(f"{QUEUE}/0.qi") == 500 + 12 * 180


def test_a_file_that_fails_as_a_generation_begins_is_written_back_from_the_log() -> None:
    filesystem, base = mounted(options=OPTIONS._replace(limit=1 << 20, queue_limit=100))
    base.reverts = True  # a failed sync takes what only the log has durably
    file = moved_out(filesystem)
    file.pwrite(b"acked" * 10, 500)
    synced(filesystem, file)
    file.pwrite(b"more", 550)
    base.fail("fdatasync", path_part=".log")
    base.fail("fdatasync", path_part="0.qi")
    failed = filesystem.sync_all([file], [])
    assert [cast("File", item).path for item, _ in failed] == [file.path]
    assert base.content(f"{QUEUE}/0.qi")[500:550] == b"acked" * 10


@pytest.mark.parametrize("reverts", [False, True])
def test_what_is_written_back_is_not_older_than_what_was_written_since(reverts: bool) -> None:
    filesystem, base = mounted(options=OPTIONS._replace(limit=1 << 20, queue_limit=100))
    base.reverts = reverts
    file = moved_out(filesystem)
    file.pwrite(b"older", 500)
    file.pwrite(b"acked", 510)
    synced(filesystem, file)  # into the log
    file.pwrite(b"newer", 500)
    file.pwrite(b"large" * 10_000, 600)  # it is to be synced in place, which fails
    base.fail("fdatasync", path_part="0.qi")
    assert len(filesystem.sync_all([file], [])) == 1
    found = file.pread(15, 500)
    assert (found[:5], found[10:]) == (b"newer", b"acked")


def test_an_overdue_file_that_fails_is_told_and_is_as_it_was_for_who_writes_it_elsewhere() -> None:
    filesystem, base = mounted(options=OPTIONS._replace(limit=1000, queue_limit=100))
    file = moved_out(filesystem)
    file.pwrite(b"acked" * 300, 500)
    synced(filesystem, file)
    overdue = filesystem.overdue()
    assert [one.path for one in overdue] == [f"{QUEUE}/0.qi"]
    base.fail("fdatasync", path_part="0.qi")
    failed = filesystem.sync_all(overdue, [])
    assert [(cast("File", item).path, error.errno) for item, error in failed] == [
        (f"{QUEUE}/0.qi", errno.EIO)
    ]
    assert filesystem.overdue() == []
    assert filesystem.read_file(f"{QUEUE}/0.qi") == b"x" * 500 + b"acked" * 300
    aside = filesystem.create(f"{QUEUE}/0.qi.tmp")
    aside.pwrite(b"anew", 0)
    aside.fdatasync()
    filesystem.rename(f"{QUEUE}/0.qi.tmp", f"{QUEUE}/0.qi")
    filesystem.fsync_dir(QUEUE)
    assert not base.resynced
    assert mounted(base.cut(random.Random(3)))[0].read_file(f"{QUEUE}/0.qi") == b"anew"


def test_a_full_disk_costs_a_wait() -> None:
    filesystem, base = mounted()
    file = made(filesystem, f"{QUEUE}/a", b"y" * 350)
    for number in range(20):
        made(filesystem, f"{QUEUES}/{number}/a", b"y" * 350)
    base.free_bytes = 0
    ((item, error),) = filesystem.sync_all([file], [])
    assert (item, error.errno) == ("/data/commit_log", errno.ENOSPC)
    base.free_bytes = None
    assert filesystem.sync_all([], ["/data/commit_log"]) == []
    assert len(mounted(base.cut(random.Random(3)))[0].listdir(QUEUES)) == 21


def with_failed_sync(
    operation: str, path: str, code: int, size: int = 500
) -> tuple[LogFileSystem, SimFileSystem, File, dict[object, OSError]]:
    """Make a file of which only the log has some, and whose sync fails; so does an operation of the write-back."""
    filesystem, base = mounted(options=OPTIONS._replace(limit=1 << 20, queue_limit=100))
    base.reverts = True
    file = moved_out(filesystem)
    file.pwrite(b"acked" * 10, size)
    synced(filesystem, file)
    file.pwrite(b"much" * 10_000, size + 50)
    base.fail("fdatasync", path_part="0.qi")
    base.fail(operation, code, path_part=path)
    return filesystem, base, file, dict(filesystem.sync_all([file], []))


def test_a_log_that_cannot_be_read_for_a_write_back_ends_the_store_before_anybody_reads_it() -> (
    None
):
    _, base, _, failed = with_failed_sync("pread", "0.log", errno.EMFILE)
    assert failed["/data/commit_log"].errno == errno.EIO, "no want of room: that is waited for"
    found, _ = mounted(base.process_killed())
    assert found.read_file(f"{QUEUE}/0.qi")[500:550] == b"acked" * 10


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_what_cannot_be_written_back_is_laid_over_what_can_be_read(code: int) -> None:
    filesystem, base, file, failed = with_failed_sync("pwrite", "0.qi", code)
    path = f"{QUEUE}/0.qi"
    assert failed.keys() == {file}, "it is written elsewhere: the log has not failed"
    assert b"acked" not in base.read_file(path)
    others = filesystem.open(path)
    for one in (file, others):
        assert one.pread(50, 500) == b"acked" * 10
        assert one.pread(9, 495) == b"xxxxxacke"
        assert one.pread(10, 0) == b"x" * 10
    assert filesystem.read_file(path)[500:550] == b"acked" * 10
    filesystem.link(path, "/data/linked")
    assert base.read_file("/data/linked")[500:550] == b"acked" * 10
    others.pwrite(b"NEWER", 510)
    assert file.pread(20, 500) == b"ackedackedNEWERacked"
    others.truncate(512)
    assert file.pread(50, 500) == b"ackedackedNE"
    assert file.size() == filesystem.file_size(path) == 512


def test_what_is_held_of_a_file_ends_with_its_name() -> None:
    filesystem, _, file, _ = with_failed_sync("pwrite", "0.qi", errno.ENOSPC)
    aside = filesystem.create(f"{QUEUE}/0.qi.tmp")
    aside.pwrite(b"anew", 0)
    aside.fdatasync()
    filesystem.rename(f"{QUEUE}/0.qi.tmp", file.path)
    filesystem.fsync_dir(QUEUE)
    assert filesystem.read_file(file.path) == filesystem.open(file.path).pread(600, 0) == b"anew"
    filesystem.unlink(file.path)
    assert filesystem.create(file.path).size() == 0


def test_a_file_that_is_shorter_on_disk_than_what_is_held_of_it_ends_where_that_ends() -> None:
    filesystem, base, file, _ = with_failed_sync("pwrite", "0.qi", errno.ENOSPC)
    base.open(file.path).truncate(400)
    assert file.size() == filesystem.file_size(file.path) == 550
    assert file.pread(1000, 399) == b"x" + bytes(100) + b"acked" * 10 + b""
    assert len(filesystem.read_file(file.path)) == 550


def test_a_queues_directory_that_is_refused_as_a_generation_begins_is_told_and_the_log_goes_on() -> (
    None
):
    """It is that queue's trouble: with its directory refused for good, the log serves all others for good."""
    base, filesystem, file = one_file_behind()
    replaced(filesystem, file)
    base.fail("fsync_dir", path_part=QUEUE, times=1 << 30)
    told = list[object]()
    for number in range(500):
        small = made(filesystem, f"{QUEUES}/r{number}/small", b"x" * 300)
        told += [item for item, _ in filesystem.sync_all([small], [])]
        filesystem.rmtree(f"{QUEUES}/r{number}")
        if number % 50 == 0:
            for seed in range(8):
                disk = base.cut(random.Random(seed))
                mounted(disk)
                assert disk.content(file.path) == b"anew" * 100
    assert 5 < len(told) < 15, "once for each generation"
    assert set(told) == {QUEUE}
    sizes = [base.file_size(f"/data/commit_log/{number}.log") for number in (0, 1)]
    assert max(sizes) < 2 * OPTIONS.limit
    base.heal()
    filesystem.groups.begin_generation()
    found = replay(base, "/data", IDENTITY)
    assert (found.own_renames, filesystem.groups.changed) == ([], {})
    assert base.cut(random.Random(1)).content(file.path) == b"anew" * 100


def test_a_directory_of_queues_that_is_refused_as_a_generation_begins_is_the_stores_trouble() -> (
    None
):
    base, filesystem = on_forgetful_disk()
    moved_out(filesystem)
    filesystem.rmtree(QUEUE)
    base.fail("fsync_dir", path_part=QUEUES, times=9)
    with pytest.raises(OSError, match="Input/output"):
        filesystem.groups.begin_generation()


def test_what_was_due_is_not_taken_for_logged_when_its_file_was_cut_since() -> None:
    """The log had no room for the group; then an append to the file failed, and was cut back."""
    base, filesystem = on_forgetful_disk()
    file = moved_out(filesystem)
    filesystem.fsync_dir(QUEUE)
    other = made(filesystem, f"{QUEUES}/r/0.qi", b"r")
    synced(filesystem, other)
    while filesystem.groups._log.takes_through(200):
        other.pwrite(b"z" * 100, 0)
        synced(filesystem, other)
    file.pwrite(b"acked", 500)
    other.pwrite(b"y" * 150, 0)
    base.fail("pwrite", errno.ENOSPC, path_part="commit_log")
    assert [item for item, _ in filesystem.sync_all([file, other], [])] == ["/data/commit_log"]
    file.truncate(505)
    assert filesystem.sync_all([], ["/data/commit_log"]) == []
    for seed in range(20):
        content = mounted(base.cut(random.Random(seed)))[1].content(file.path)
        assert content[500:505] == b"acked"


def test_a_file_that_cannot_be_written_elsewhere_lets_the_log_grow_to_four_times_its_size_only() -> (
    None
):
    base, filesystem, file = one_file_behind()
    base.fail("fdatasync", path_part="0.qi")
    file.pwrite(b"x" * 40_000, 505)
    assert filesystem.sync_all([file], [])
    other = made(filesystem, f"{QUEUES}/r/0.qi", b"r")
    synced(filesystem, other)
    for _ in range(600):
        other.pwrite(b"z" * 300, 0)
        assert file.path not in {one.path for one in filesystem.overdue()}
        synced(filesystem, other)
    sizes = [base.file_size(f"/data/commit_log/{number}.log") for number in (0, 1)]
    assert max(sizes) < 5 * OPTIONS.limit
    for seed in range(8):
        content = mounted(base.cut(random.Random(seed)))[1].content(file.path)
        assert content[500:505] == b"acked"
