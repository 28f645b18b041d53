"""A commit is one group of the log; what a failed write or sync of it may have lost goes into the other file, once."""

from __future__ import annotations

import errno
import random
from typing import cast

import pytest

from burrowmq.storage.files.filesystem import File
from burrowmq.storage.log.files import LARGE, as_own
from burrowmq.storage.log.mount import mount
from burrowmq.storage.log.records import GROUP_SIZE
from burrowmq.storage.log.replay import replay
from tests.support.mounted_log import (
    IDENTITY,
    OPTIONS,
    QUEUE,
    QUEUES,
    made,
    mounted,
    moved_out,
    names_left,
    one_file_behind,
    replaced,
    synced,
)


def test_what_was_not_synced_survives_the_process_once_it_was_written() -> None:
    filesystem, base = mounted()
    made(filesystem, f"{QUEUE}/a")
    assert mounted(base.process_killed())[0].listdir(QUEUES) == []
    filesystem, base = mounted()
    made(filesystem, f"{QUEUE}/a")
    filesystem.write_noted()
    filesystem.write_noted()
    assert mounted(base.process_killed())[0].read_file(f"{QUEUE}/a") == b"data"


@pytest.mark.parametrize("more", [0, LARGE + 1])
@pytest.mark.parametrize("is_at_once", [False, True])
def test_what_was_written_over_what_the_log_says_survives_the_process(
    more: int, is_at_once: bool
) -> None:
    """A start would put back what was there before. `more`: of such a file the log has nothing else."""
    filesystem, base = mounted(options=OPTIONS._replace(limit=1 << 20))
    file = moved_out(filesystem)
    if is_at_once:
        short = filesystem.short_way
        own = short.write([(file, b"older", 64), (file, b"first", 200)])
        assert own is not None
        assert short.make_durable(own)
    else:
        file.pwrite(b"older", 64)
        file.pwrite(b"first", 200)
        synced(filesystem, file)
    file.pwrite(bytes(more), 500)
    file.pwrite(b"newer", 64)
    filesystem.write_noted()
    file.pwrite(b"third", 150)
    file.pwrite(b"again", 200)
    filesystem.write_noted()
    disk = base.process_killed()
    again, _ = mounted(disk)
    content = again.read_file(f"{QUEUE}/0.qi")
    assert (content[64:69], content[150:155], content[200:205]) == (b"newer", b"third", b"again")
    assert len(content) == 500 + more


def test_what_is_written_behind_what_the_log_says_is_left_to_a_sync() -> None:
    filesystem, base = mounted(options=OPTIONS._replace(limit=1 << 20))
    file = moved_out(filesystem)
    file.pwrite(b"older", 500)
    synced(filesystem, file)
    written = base.counters.calls["pwrite"]
    file.pwrite(b"behind", 505)
    filesystem.write_noted()
    assert base.counters.calls["pwrite"] == written + 1
    file.pwrite(b"x", 504)
    filesystem.write_noted()
    filesystem.write_noted()
    assert base.counters.calls["pwrite"] == written + 3
    file.pwrite(b"y", 504)  # not by that, what a sync has in its group, or in place
    synced(filesystem, file)
    filesystem.write_noted()
    file.pwrite(b"z", 504)
    filesystem.groups.begin_generation()
    written = base.counters.calls["pwrite"]
    filesystem.write_noted()
    file.pwrite(b"!", 504)  # the log says nothing of it any more
    filesystem.write_noted()
    assert base.counters.calls["pwrite"] == written + 1


def test_what_was_written_over_what_the_log_says_is_in_it_before_another_file_takes_the_place() -> (
    None
):
    filesystem, base = mounted(options=OPTIONS._replace(limit=1 << 20))
    file = moved_out(filesystem)
    file.pwrite(b"older", 64)
    synced(filesystem, file)
    aside = filesystem.create(f"{QUEUE}/0.qi.tmp")
    aside.pwrite(b"anew" * 50, 0)
    aside.fdatasync()
    file.pwrite(b"newer", 64)
    filesystem.rename(aside.path, file.path)
    filesystem.write_noted()
    assert mounted(base.process_killed())[0].read_file(file.path) == b"anew" * 50


def test_what_the_log_could_not_take_of_what_was_written_over_is_taken_later() -> None:
    filesystem, base = mounted(options=OPTIONS._replace(limit=1 << 20))
    file = moved_out(filesystem)
    file.pwrite(b"older", 64)
    synced(filesystem, file)
    file.pwrite(b"newer", 64)
    base.fail("pwrite", errno.ENOSPC, path_part=".log")
    with pytest.raises(OSError, match="No space"):
        filesystem.write_noted()
    filesystem.write_noted()
    assert mounted(base.process_killed())[0].read_file(f"{QUEUE}/0.qi")[64:69] == b"newer"


def test_a_log_that_fails_goes_on_in_the_other_file_and_fails_but_once() -> None:
    for operation in ("pwrite", "fdatasync"):
        filesystem, base = mounted()
        file = made(filesystem, f"{QUEUE}/a")
        base.fail(operation, path_part="0.log")
        synced(filesystem, file)
        assert mounted(base.cut(random.Random(3)))[0].read_file(f"{QUEUE}/a") == b"data"
        filesystem, base = mounted()
        file = made(filesystem, f"{QUEUE}/a")
        base.fail(operation, times=9, path_part="commit_log")
        ((item, error),) = filesystem.sync_all([file], [])
        assert (item, error.errno) == ("/data/commit_log", errno.EIO)


def test_what_only_a_failed_log_has_goes_into_the_next_generation() -> None:
    filesystem, base = mounted()
    file = moved_out(filesystem)
    file.pwrite(b"little", 500)
    synced(filesystem, file)  # into the log: the file itself is not durable
    base.fail("fdatasync", errno.ENOSPC, path_part=".log")
    base.fail("fdatasync", errno.ENOSPC, path_part="0.qi")
    made(filesystem, f"{QUEUES}/other/a")
    synced(filesystem)  # the next generation, twice
    assert [cast("File", item).path for item, _ in filesystem.refused()] == [file.path]
    assert filesystem.refused() == []
    assert not base.resynced
    filesystem.groups.begin_generation()
    assert not base.resynced
    again, _ = mounted(base.cut(random.Random(1)))
    assert again.read_file(f"{QUEUE}/0.qi")[500:506] == b"little"
    assert again.read_file(f"{QUEUES}/other/a") == b"data"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_an_own_file_that_fails_keeps_nobody_from_the_log(number: int) -> None:
    """Who writes another file elsewhere may be what it waits for."""
    filesystem, base = mounted()
    base.reverts = True
    file = moved_out(filesystem)
    file.pwrite(b"little", 500)
    synced(filesystem, file)
    made(filesystem, f"{QUEUES}/other/a")
    base.fail("fdatasync", number, path_part=".log")
    base.fail("fdatasync", number, path_part="0.qi")
    filesystem.fsync_dir(QUEUE)
    assert filesystem.read_file(f"{QUEUE}/0.qi")[500:] == b"little"
    assert mounted(base.cut(random.Random(1)))[0].read_file(f"{QUEUES}/other/a") == b"data"
    assert [cast("File", item).path for item, _ in filesystem.refused()] == [file.path]
    again, _ = mounted(base.cut(random.Random(1)))
    assert again.read_file(f"{QUEUE}/0.qi")[500:] == b"little"


def test_a_sync_of_groups_that_were_written_before_and_that_fails_costs_none_of_them() -> None:
    filesystem, base = mounted(options=OPTIONS._replace(limit=1 << 20))
    base.reverts = True
    made(filesystem, f"{QUEUES}/a/0.qi")
    filesystem.write_noted()
    file = made(filesystem, f"{QUEUES}/b/0.qi")
    base.fail("fdatasync", path_part="0.log")
    synced(filesystem, file)
    for seed in range(8):
        assert mounted(base.cut(random.Random(seed)))[0].listdir(QUEUES) == ["a", "b"]


def test_half_a_group_that_found_no_room_is_written_over() -> None:
    filesystem, base = mounted(options=OPTIONS._replace(limit=1 << 20))
    synced(filesystem)  # a generation has begun
    made(filesystem, f"{QUEUES}/a/0.qi", b"x" * 200)
    base.fail("pwrite", errno.ENOSPC, keep=GROUP_SIZE + 40, path_part="0.log")
    with pytest.raises(OSError, match="No space"):
        filesystem.write_noted()
    filesystem.write_noted()
    synced(filesystem)
    again, damaged = mount(base.cut(random.Random(1)), "/data", IDENTITY, OPTIONS, is_new=False)
    assert (again.listdir(QUEUES), damaged) == (["a"], [])


def test_a_small_group_is_written_and_synced_with_one_call() -> None:
    filesystem, base = mounted(options=OPTIONS._replace(limit=1 << 20))
    synced(filesystem, made(filesystem, f"{QUEUE}/a"))
    counted = base.counters.calls
    assert (counted["write_through"], counted["fdatasync"]) == (1, 2)  # and the begin of the log
    made(filesystem, f"{QUEUES}/other/a")
    filesystem.write_noted()
    made(filesystem, f"{QUEUES}/third/a")
    synced(filesystem)  # what was written before is not durable by that
    assert counted["write_through"] == 1
    synced(filesystem, made(filesystem, f"{QUEUES}/large/a", b"x" * 70_000))
    assert counted["write_through"] == 1
    again, _ = mounted(base.cut(random.Random(1)))
    assert again.listdir(QUEUES) == ["large", "other", "q", "third"]


def test_a_write_through_that_finds_no_room_is_not_tried_again_in_that_file() -> None:
    filesystem, base = mounted(options=OPTIONS._replace(limit=1 << 20))
    base.fail("fdatasync", errno.ENOSPC, path_part="0.log")
    file = made(filesystem, f"{QUEUE}/a")
    synced(filesystem, file)
    assert base.resynced == []
    assert mounted(base.cut(random.Random(3)))[0].read_file(f"{QUEUE}/a") == b"data"


def test_a_group_that_the_power_tore_ends_the_log_where_no_sync_came_behind_it() -> None:
    """Groups behind it were not durable either, and none of them may say that it was."""
    filesystem, base = mounted()
    torn_at = len(base.content("/data/commit_log/0.log").rstrip(b"\0")) + GROUP_SIZE + 2
    for name in "ab":
        made(filesystem, f"{QUEUES}/{name}/0.qi")
        filesystem.write_noted()
    killed = base.process_killed()
    killed.damage("/data/commit_log/0.log", torn_at, b"\0\0\0\0")
    again, damaged = mount(killed, "/data", IDENTITY, OPTIONS, is_new=False)
    assert damaged == []
    assert again.listdir(QUEUES) == []


@pytest.mark.parametrize("operation", ["pwrite", "fdatasync", ""])
def test_what_was_just_written_is_one_group_or_is_left_to_the_usual_way(operation: str) -> None:
    filesystem, base = mounted(options=OPTIONS._replace(limit=1 << 20))
    own = as_own(moved_out(filesystem))
    assert own is not None
    small = made(filesystem, f"{QUEUES}/small/a")
    groups = filesystem.groups
    own.base.pwrite(b"little", 500)
    if operation:
        base.fail(operation, path_part=".log")
    is_logged = groups.log_at_once([(own, b"little", 500)])
    assert is_logged == (not operation)
    if not is_logged:
        own.note_written(b"little", 500)
        synced(filesystem, own, small)
    assert groups.own.is_behind(own.path) == is_logged
    for seed in range(5):
        found, _ = mounted(base.cut(random.Random(seed)), OPTIONS)
        assert found.read_file(own.path)[500:] == b"little"
        assert found.read_file(small.path) == b"data"


@pytest.mark.parametrize("is_new_generation", [False, True])
def test_of_a_removed_file_the_log_says_what_it_said_until_that_is_durable(
    is_new_generation: bool,
) -> None:
    """A sync of the log alone comes meanwhile: with the power the name may be there again."""
    base, filesystem, file = one_file_behind()
    filesystem.unlink(file.path)
    made(filesystem, f"{QUEUES}/r/small")
    filesystem.groups.flush()
    disks = [base.cut(random.Random(seed)) for seed in range(20)]
    for disk in disks:
        mounted(disk)
    found = [disk.content(name) for disk in disks for name in names_left(disk)]
    assert found
    assert set(found) == {b"x" * 500 + b"acked"}
    if is_new_generation:  # which says nothing of it
        filesystem.groups.begin_generation()
    else:
        assert filesystem.sync_all([], [QUEUE]) == []
    assert replay(filesystem.base, "/data", IDENTITY).own_writes == {}
    assert not any(names_left(base.cut(random.Random(seed))) for seed in range(20))


def test_where_a_queues_directory_is_refused_the_next_generation_says_of_removed_files_what_the_last_did() -> (
    None
):
    """What concerns one queue is no reason to end the store."""
    base, filesystem, file = one_file_behind()
    filesystem.unlink(file.path)
    for _ in range(2):
        base.fail("fsync_dir", path_part=QUEUE, times=9)
        filesystem.groups.begin_generation()
        base.heal()
        disks = [base.cut(random.Random(seed)) for seed in range(20)]
        for disk in disks:
            mounted(disk)
        found = {disk.content(name) for disk in disks for name in names_left(disk)}
        assert found == {b"x" * 500 + b"acked"}
    filesystem.groups.begin_generation()
    assert replay(filesystem.base, "/data", IDENTITY).own_writes == {}


@pytest.mark.parametrize("is_gone", [False, True])
def test_where_a_queues_directory_is_refused_the_next_generation_says_of_renamed_files_what_the_last_did(
    is_gone: bool,
) -> None:
    """Of what was written to them since, too, and of those that are gone since."""
    base, filesystem, file = one_file_behind()
    replaced(filesystem, file)
    again = filesystem.open(file.path)
    again.pwrite(b"acked", 400)
    synced(filesystem, again)
    if is_gone:
        filesystem.unlink(file.path)
    for _ in range(3):
        base.fail("fsync_dir", path_part=QUEUE, times=9)
        assert [item for item, _ in filesystem.groups.begin_generation()] == [QUEUE]
        base.heal()
        disks = [base.cut(random.Random(seed)) for seed in range(20)]
        for disk in disks:
            mounted(disk)
        left = [disk.content(name) for disk in disks for name in names_left(disk)]
        assert is_gone or len(left) == len(disks)
        assert set(left) == {b"anew" * 100 + b"acked"}
    assert filesystem.groups.begin_generation() == []
    found = replay(filesystem.base, "/data", IDENTITY)
    assert (found.own_renames, found.own_writes) == ([], {})


def test_of_a_file_whose_sync_failed_the_next_generation_says_what_was_written_behind_its_rename() -> (
    None
):
    base, filesystem, file = one_file_behind()
    base.reverts = True
    replaced(filesystem, file)
    again = filesystem.open(file.path)
    again.pwrite(b"acked", 400)
    synced(filesystem, again)
    base.fail("fsync_dir", path_part=QUEUE, times=9)
    base.fail("fdatasync", path_part="0.qi")
    filesystem.groups.begin_generation()
    for seed in range(20):
        disk = base.cut(random.Random(seed))
        mounted(disk)
        assert disk.content(file.path) == b"anew" * 100 + b"acked"


def test_a_name_that_the_log_says_was_renamed_in_a_refused_directory_is_used_again_when_it_is_durable() -> (
    None
):
    base, filesystem, file = one_file_behind()
    replaced(filesystem, file)
    base.fail("fsync_dir", path_part=QUEUE, times=2)
    filesystem.groups.begin_generation()
    with pytest.raises(OSError, match="Input/output"):
        filesystem.create(f"{file.path}.tmp")
    filesystem.create(f"{file.path}.tmp").pwrite(b"half", 0)
    mounted(base.process_killed())
    assert base.content(file.path) == b"anew" * 100


def test_a_rename_in_a_refused_directory_is_not_done_to_the_queue_that_has_the_directory_next() -> (
    None
):
    base, filesystem, file = one_file_behind()
    replaced(filesystem, file)
    filesystem.rmtree(QUEUE)
    moved_out(filesystem, "0.qi.tmp")
    base.fail("fsync_dir", path_part=QUEUE, times=9)
    filesystem.groups.begin_generation()
    disk = base.process_killed()
    mounted(disk)
    assert disk.content(f"{QUEUE}/0.qi.tmp") == b"x" * 500
