"""The file system with a log: files read as they were written, and are found again after every stop.

Covers: storage/log/files.py, storage/log/mount.py, storage/log/small_queues.py
"""

from __future__ import annotations

import contextlib
import errno
import os
import random
from pathlib import Path
from typing import cast

import pytest

from burrowmq.storage.errors import SyncFailed
from burrowmq.storage.files.filesystem import File, OsFileSystem
from burrowmq.storage.log.filesystem import LogFileSystem, LogOptions
from burrowmq.storage.log.mount import mount, remove_log, unmount
from burrowmq.storage.log.small_queues import UNPACKED
from tests.support.sim_filesystem import SimFileSystem

IDENTITY = b"i" * 16
QUEUES = "/data/vhosts/v/queues"
QUEUE = f"{QUEUES}/q"
OPTIONS = LogOptions(limit=20_000, queue_limit=400, total_limit=4000)


def mounted(
    base: SimFileSystem | None = None, options: LogOptions = OPTIONS
) -> tuple[LogFileSystem, SimFileSystem]:
    is_new = base is None
    if base is None:
        base = SimFileSystem()
        base.mkdir(QUEUES)
    return mount(base, "/data", IDENTITY, options, is_new=is_new)[0], base


def made(filesystem: LogFileSystem, path: str, data: bytes = b"data") -> File:
    filesystem.mkdir(path.rpartition("/")[0])
    file = filesystem.create(path)
    file.pwrite(data, 0)
    return file


def synced(filesystem: LogFileSystem, *files: File) -> None:
    assert filesystem.sync_all(files, []) == []


def moved_out(filesystem: LogFileSystem, name: str = "0.qi") -> File:
    file = made(filesystem, f"{QUEUE}/{name}", b"x" * 500)
    synced(filesystem, file)
    synced(filesystem)
    return file


def calls(base: SimFileSystem) -> tuple[int, int]:
    counted = base.counters.calls
    return counted.get("fdatasync", 0), counted.get("fsync_dir", 0)


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


def test_what_was_not_synced_survives_the_process_once_it_was_written() -> None:
    filesystem, base = mounted()
    made(filesystem, f"{QUEUE}/a")
    assert mounted(base.process_killed())[0].listdir(QUEUES) == []
    filesystem, base = mounted()
    made(filesystem, f"{QUEUE}/a")
    filesystem.write_noted()
    filesystem.write_noted()
    assert mounted(base.process_killed())[0].read_file(f"{QUEUE}/a") == b"data"


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


def test_a_queue_that_grows_moves_out_and_who_has_its_file_goes_on() -> None:
    filesystem, base = mounted()
    file = moved_out(filesystem)
    assert base.content(f"{QUEUE}/0.qi") == b"x" * 500
    file.pwrite(b"y", 500)
    file.pwritev([b"z"], 501)
    assert file.pread(9, 499) == b"xyz"
    assert file.size() == 502
    synced(filesystem, file)
    again, _ = mounted(base.cut(random.Random(3)))
    assert again.small_directories == []
    assert again.read_file(f"{QUEUE}/0.qi") == b"x" * 500 + b"yz"
    file.truncate(10)
    file.fdatasync()
    assert mounted(base.cut(random.Random(3)))[0].file_size(f"{QUEUE}/0.qi") == 10


def test_a_disk_that_refuses_a_move_leaves_the_queue_small() -> None:
    for operation in ("mkdir", "create", "fdatasync"):
        filesystem, base = mounted()
        file = made(filesystem, f"{QUEUE}/0.qi", b"x" * 500)
        base.fail(operation, path_part=QUEUES)
        synced(filesystem, file)
        assert filesystem.small_directories == [QUEUE]
        file.pwrite(b"y", 500)
        synced(filesystem, file)
        assert filesystem.small_directories == []
        assert mounted(base.cut(random.Random(3)))[0].file_size(f"{QUEUE}/0.qi") == 501


def test_all_small_queues_together_have_a_bound() -> None:
    filesystem, base = mounted()
    for number in range(40):
        synced(filesystem, made(filesystem, f"{QUEUES}/q{number}/a", b"x" * 300))
    stored = sum(len(filesystem.listdir(path)) * 300 for path in filesystem.small_directories)
    assert 3000 < stored < 5000
    assert len(mounted(base.cut(random.Random(3)))[0].listdir(QUEUES)) == 40


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


def test_a_generation_ends_with_what_is_overdue() -> None:
    filesystem, base = mounted(options=OPTIONS._replace(limit=2000, queue_limit=100))
    file = moved_out(filesystem)
    for number in range(12):
        file.pwrite(b"%03d" % number * 60, 500 + 180 * number)
        synced(filesystem, file, *filesystem.overdue())
    assert len(base.content("/data/commit_log/1.log")) < 5000
    assert mounted(base.cut(random.Random(3)))[0].file_size(f"{QUEUE}/0.qi") == 500 + 12 * 180


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
    assert [item for item, _ in filesystem.sync_all([], [])] == ["/data/commit_log"]
    assert [item for item, _ in filesystem.sync_all([file], [])] == [file]
    synced(filesystem)  # the next generation, twice
    filesystem.begin_generation()
    again, _ = mounted(base.cut(random.Random(1)))
    assert again.read_file(f"{QUEUE}/0.qi")[500:506] == b"little"
    assert again.read_file(f"{QUEUES}/other/a") == b"data"


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


def test_small_queues_that_nobody_uses_are_packed_and_come_back() -> None:
    options = OPTIONS._replace(total_limit=1 << 20, limit=1 << 20)
    filesystem, base = mounted(options=options)
    kept = [made(filesystem, f"{QUEUES}/kept{number}/a", b"kept") for number in range(30)]
    for number in range(2 * UNPACKED):
        made(filesystem, f"{QUEUES}/{number}/a", b"head" + bytes(100) + b"%d" % number)
        filesystem.create(f"{QUEUES}/{number}/empty")
        filesystem.open(f"{QUEUES}/{number}/a").truncate(300)
    synced(filesystem)
    held = filesystem._small._contents
    assert sum(isinstance(one, dict) for one in held.values()) == len(kept)
    for file in kept:
        file.pwrite(b"more", 4)
    filesystem.open(f"{QUEUES}/7/a").pwrite(b"!", 300)
    filesystem.rename(f"{QUEUES}/8/a", f"{QUEUES}/8/b")
    filesystem.rmtree(f"{QUEUES}/9")
    synced(filesystem)
    for found in (filesystem, mounted(base.cut(random.Random(1)), options)[0]):
        assert len(found.listdir(QUEUES)) == 2 * UNPACKED + len(kept) - 1
        assert found.read_file(f"{QUEUES}/kept3/a") == b"keptmore"
        assert found.read_file(f"{QUEUES}/7/a") == b"head" + bytes(100) + b"7" + bytes(195) + b"!"
        assert found.file_size(f"{QUEUES}/7/empty") == 0
        assert found.listdir(f"{QUEUES}/8") == ["b", "empty"]
        assert not found.exists(f"{QUEUES}/9")


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


def test_taking_the_log_away_gives_every_queue_its_files() -> None:
    filesystem, base = mounted()
    for number in range(70):
        made(filesystem, f"{QUEUES}/q{number}/a")
    assert unmount(filesystem) is base
    remove_log(base, "/data")
    remove_log(base, "/data")
    found = base.cut(random.Random(3))
    assert len(found.listdir(QUEUES)) == 70
    assert found.content(f"{QUEUES}/q69/a") == b"data"
    assert not found.exists("/data/commit_log")


def test_a_start_that_cannot_sync_what_it_replayed_is_refused() -> None:
    filesystem, base = mounted()
    file = moved_out(filesystem)
    file.pwrite(b"little", 500)
    synced(filesystem, file)
    base.fail("fdatasync", path_part="0.qi")
    with pytest.raises(SyncFailed, match=r"0\.qi: fdatasync failed"):
        mounted(base)


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


def test_nothing_stays_open(tmp_path: Path) -> None:
    (tmp_path / "vhosts/v/queues").mkdir(parents=True)
    real = OsFileSystem()
    options = OPTIONS._replace(queue_limit=100)
    filesystem, _ = mount(real, str(tmp_path), IDENTITY, options, is_new=True)
    file = made(filesystem, f"{tmp_path}/vhosts/v/queues/q/0.qi", b"x" * 500)
    synced(filesystem, file)
    file.pwrite(b"y", 500)
    synced(filesystem, file)
    name = str(tmp_path)
    assert [one for one in open_files() if one.startswith(name)]
    filesystem.release()
    assert not [one for one in open_files() if one.startswith(name)]


def open_files() -> list[str]:
    found = []
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found.append(os.readlink(f"/proc/self/fd/{number}"))
    return found
