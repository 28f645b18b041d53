"""The real file system's code on a simulated disk: what it makes durable is, what fails is told, nothing is left in place."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Iterator

import pytest

from burrowmq.storage.files import filesystem
from tests.simulation.machine.draw import plan_of
from tests.support.machine_disk import MachineDisk
from tests.support.sim_os import STEP, SimOsFileSystem, sim_os_in_place

LONG = bytes(range(256)) * 8
assert len(LONG) > 3 * STEP


@pytest.fixture
def disk() -> Iterator[MachineDisk]:
    found = MachineDisk(strict=True)
    with sim_os_in_place(lambda: found):
        yield found


@pytest.fixture
def files(disk: MachineDisk) -> SimOsFileSystem:
    found = SimOsFileSystem(disk)
    found.mkdir("/a/b")
    for directory in ("/", "/a", "/a/b"):
        found.fsync_dir(directory)
    return found


def left(disk: MachineDisk) -> dict[str, bytes]:
    """What a power cut leaves for certain."""
    cut = disk.cut(random.Random(1), names=False, contents=False)
    return {path: cut.content(path) for path in cut.paths()}


def test_short_writes_and_reads_are_gone_on_with(disk: MachineDisk, files: SimOsFileSystem) -> None:
    file = files.create("/a/b/f")
    file.pwrite(LONG, 3)
    assert disk.content("/a/b/f") == bytes(3) + LONG
    assert file.pread(5000, 3) == LONG
    calls, pieces = disk.counters.calls, len(LONG) // STEP
    assert (calls["pwrite"], calls["pread"]) == (pieces, pieces + 1)  # the last finds the end
    file.truncate(5)
    assert (file.size(), files.file_size("/a/b/f")) == (5, 5)
    assert files.read_file("/a/b/f") == bytes(3) + LONG[:2]


def test_what_is_synced_is_durable(disk: MachineDisk, files: SimOsFileSystem) -> None:
    several = [files.create(f"/a/b/{name}") for name in "fgh"]
    for file in several:
        file.pwrite(b"x", 0)
    assert left(disk) == {}
    assert files.sync_all(several, ["/a/b", "/a"]) == []
    assert left(disk) == {f"/a/b/{name}": b"x" for name in "fgh"}
    several[0].write_through(b"y", 1)
    assert left(disk)["/a/b/f"] == b"xy"


def test_what_fails_among_several_is_told(disk: MachineDisk, files: SimOsFileSystem) -> None:
    several = [files.create(f"/a/b/{name}") for name in "fgh"]
    disk.fail("fdatasync", errno.EIO, path_part="/g")
    ((item, error),) = files.sync_all(several, ["/a/b"])
    assert item is several[1]
    assert error.errno == errno.EIO


def test_a_directory_is_synced_without_a_free_descriptor(
    disk: MachineDisk, files: SimOsFileSystem
) -> None:
    files.keep_spare()
    files.create("/a/b/f")
    files.fsync_dir("/a/b")
    assert left(disk) == {"/a/b/f": b""}


def test_names_are_those_of_the_disk(disk: MachineDisk, files: SimOsFileSystem) -> None:
    files.create("/a/b/f").close()
    files.link("/a/b/f", "/a/b/g")
    files.rename("/a/b/f", "/a/b/h")
    files.unlink("/a/b/g")
    assert files.listdir("/a/b") == ["h"]
    assert files.exists("/a/b/h")
    assert not files.exists("/a/b/f")
    with pytest.raises(FileNotFoundError):
        files.open("/a/b/f")
    with pytest.raises(FileNotFoundError):
        files.fsync_dir("/a/none")
    files.rmtree("/a/b")
    files.rmtree("/a/b")
    assert files.listdir("/a") == []
    assert files.disk_free("/a") == disk.disk_free("/a")


def test_nothing_is_left_in_place_and_a_file_closed_late_is_nobodys() -> None:
    usual = filesystem.os, filesystem._fdatasync, filesystem.ThreadPoolExecutor
    first, second = MachineDisk(), MachineDisk()
    for one in (first, second):
        one.mkdir("/a")
    with sim_os_in_place(lambda: first):
        late = SimOsFileSystem(first).create("/a/f")
    assert (filesystem.os, filesystem._fdatasync, filesystem.ThreadPoolExecutor) == usual
    assert filesystem.os is os
    with sim_os_in_place(lambda: second):
        other = SimOsFileSystem(second).create("/a/g")
        late.close()
        other.pwrite(b"x", 0)
    assert second.content("/a/g") == b"x"


def test_some_seeds_run_on_it() -> None:
    assert 0 < sum(plan_of(seed).limits.has_os for seed in range(200)) < 40
