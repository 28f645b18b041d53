"""Files read as they were written, and are found again after every stop.

Covers: storage/log/files.py
"""

from __future__ import annotations

import random

import pytest

from tests.support.mounted_log import (
    QUEUE,
    QUEUES,
    calls,
    made,
    mounted,
    moved_out,
    names_left,
    one_file_behind,
    synced,
)


def test_a_small_queue_is_in_the_log_alone() -> None:
    filesystem, base = mounted()
    file = made(filesystem, f"{QUEUE}/a")
    file.pwritev([b"more", b"!"], 4)
    before = calls(base)
    synced(filesystem, file)
    assert calls(base) == (before[0] + 1, before[1])
    assert not [path for path in base.paths() if "queues" in path]
    again, _ = mounted(base.cut(random.Random(1)))
    assert again.listdir(QUEUES) == ["q"]
    assert again.listdir(QUEUE) == ["a"]
    assert again.read_file(f"{QUEUE}/a") == b"datamore!"
    assert again.file_size(f"{QUEUE}/a") == again.open(f"{QUEUE}/a").size() == 9


def test_several_writes_go_to_files_of_both_kinds_up_to_the_first_that_is_refused() -> None:
    filesystem, base = mounted()
    own = moved_out(filesystem)  # still held as the small file that it was
    again = filesystem.open(own.path)
    small = made(filesystem, f"{QUEUES}/other/a", b"")
    synced(filesystem)
    before = calls(base)
    writes = [(own, b"one", 500), (small, b"two", 0), (again, b"three", 503)]
    assert filesystem.write_some(writes) == 3
    synced(filesystem, own, small)
    assert calls(base) == (before[0] + 1, before[1]), "all of it is in the log"
    restarted, _ = mounted(base.cut(random.Random(1)))
    assert restarted.read_file(own.path)[500:] == b"onethree"
    assert restarted.read_file(small.path) == b"two"
    base.fail("pwrite", 5, path_part=own.path)
    assert filesystem.write_some([(small, b"four", 3), (own, b"!", 508), (small, b"5", 7)]) == 1
    assert small.pread(9, 0) == b"twofour"


def test_small_files_behave_like_files() -> None:
    filesystem, base = mounted()
    a = made(filesystem, f"{QUEUE}/a")
    made(filesystem, f"{QUEUE}/b", b"target")
    with pytest.raises(FileExistsError):
        filesystem.create(f"{QUEUE}/a")
    for call in (filesystem.open, filesystem.unlink, filesystem.read_file, filesystem.file_size):
        with pytest.raises(FileNotFoundError):
            call(f"{QUEUE}/none")
    for call_two in (filesystem.rename, filesystem.link):
        with pytest.raises(FileNotFoundError):
            call_two(f"{QUEUE}/none", f"{QUEUE}/other")
    old = filesystem.open(f"{QUEUE}/b")
    filesystem.rename(f"{QUEUE}/a", f"{QUEUE}/b")
    a.pwrite(b"+", 4)
    old.pwrite(b"nobody sees this", 0)
    old.truncate(3)
    old.close()
    a.truncate(4)
    filesystem.link(f"{QUEUE}/b", "/data/copy")
    assert base.content("/data/copy") == b"data"
    assert filesystem.exists(QUEUE)
    assert not filesystem.exists(f"{QUEUE}/a")
    a.fdatasync()
    again, _ = mounted(base.cut(random.Random(1)))
    assert again.read_file(f"{QUEUE}/b") == b"data"
    again.unlink(f"{QUEUE}/b")
    again.fsync_dir(QUEUE)
    again.rmtree(f"{QUEUES}/none")
    assert mounted(again.base.cut(random.Random(1)))[0].listdir(QUEUE) == []  # type: ignore[attr-defined]


def test_a_removed_queue_stays_away() -> None:
    filesystem, base = mounted()
    file = moved_out(filesystem)
    file.pwrite(b"little", 500)
    synced(filesystem, file)
    filesystem.rmtree(QUEUE)
    filesystem.fsync_dir(QUEUES)
    assert mounted(base.cut(random.Random(3)))[0].listdir(QUEUES) == []
    small = made(filesystem, f"{QUEUE}/0.qi", b"new")
    synced(filesystem, small)
    found, _ = mounted(base.cut(random.Random(3)))
    assert found.read_file(f"{QUEUE}/0.qi") == b"new"
    filesystem.rmtree("/data/vhosts/v")
    filesystem.fsync_dir("/data/vhosts")
    base.mkdir(QUEUES)
    assert mounted(base.cut(random.Random(3)))[0].listdir(QUEUES) == []


def test_a_directory_may_be_set_apart() -> None:
    filesystem, base = mounted()
    moved_out(filesystem)
    filesystem.rename(QUEUE, f"{QUEUE}.gone")
    filesystem.fsync_dir(QUEUES)
    assert mounted(base.cut(random.Random(3)))[0].listdir(QUEUES) == ["q.gone"]


def test_other_files_pass_through() -> None:
    filesystem, base = mounted()
    filesystem.keep_spare()
    filesystem.reserve("/data/ballast", 10)
    file = filesystem.create("/data/other")
    file.pwrite(b"x", 0)
    synced(filesystem, file)
    filesystem.rename("/data/other", "/data/another")
    assert filesystem.open("/data/another").pread(1, 0) == b"x"
    assert filesystem.opens == base.opens
    assert filesystem.disk_free("/data") == base.disk_free("/data")
    assert filesystem.exists("/data/another")
    filesystem.unlink("/data/another")
    filesystem.rmtree("/data/none")
    assert filesystem.listdir("/data/vhosts") == ["v"]


@pytest.mark.parametrize("is_renamed", [False, True])
def test_a_name_is_used_again_once_it_is_durable_that_its_last_file_is_gone(
    is_renamed: bool,
) -> None:
    base, filesystem, file = one_file_behind()
    if is_renamed:
        aside = filesystem.create(f"{QUEUE}/0.tmp")
        aside.fdatasync()
    filesystem.unlink(file.path)
    if is_renamed:
        filesystem.rename(f"{QUEUE}/0.tmp", file.path)
    else:
        filesystem.create(file.path)
    for seed in range(20):
        disk = base.cut(random.Random(seed))
        mounted(disk)
        assert {disk.content(name) for name in names_left(disk)} <= {b""}
