"""The simulated disk does what it says; tests/unit/storage/files/test_filesystem.py has the plain calls."""

from __future__ import annotations

import errno
import random

import pytest

from tests.support.sim_filesystem import SECTOR, PowerCut, SimFileSystem


def disk(*, strict: bool = True) -> SimFileSystem:
    filesystem = SimFileSystem(strict=strict)
    filesystem.mkdir("/d")
    return filesystem


def outcomes(filesystem: SimFileSystem, path: str, count: int = 200) -> set[bytes | None]:
    found: set[bytes | None] = set()
    for seed in range(count):
        after = filesystem.cut(random.Random(seed))
        found.add(after.content(path) if after.exists(path) else None)
    return found


def test_synced_bytes_and_names_survive() -> None:
    filesystem = disk()
    file = filesystem.create("/d/a")
    file.pwrite(b"safe", 0)
    file.fdatasync()
    filesystem.fsync_dir("/d")
    assert outcomes(filesystem, "/d/a") == {b"safe"}


def test_a_name_needs_the_directory_sync() -> None:
    filesystem = disk()
    file = filesystem.create("/d/a")
    file.pwrite(b"safe", 0)
    file.fdatasync()
    assert outcomes(filesystem, "/d/a") == {b"safe", None}


def test_unsynced_writes_may_be_kept_lost_reordered() -> None:
    filesystem = disk()
    file = filesystem.create("/d/a")
    filesystem.fsync_dir("/d")
    file.pwrite(b"11", 0)
    file.pwrite(b"22", SECTOR)
    between = bytes(SECTOR - 2)
    assert outcomes(filesystem, "/d/a") == {
        b"",
        b"11",
        b"\0\0" + between + b"22",
        b"11" + between + b"22",
    }


def test_a_write_may_be_torn_at_sectors() -> None:
    filesystem = disk()
    file = filesystem.create("/d/a")
    filesystem.fsync_dir("/d")
    file.pwrite(b"x" * (2 * SECTOR), 0)
    found = outcomes(filesystem, "/d/a")
    assert b"x" * SECTOR in found
    assert bytes(SECTOR) + b"x" * SECTOR in found
    assert all(content is not None and len(content) % SECTOR == 0 for content in found)


def test_a_sector_that_has_a_write_has_those_before() -> None:
    """It goes to the disk as the page cache has it."""
    found = set()
    for seed in range(400):
        disk = SimFileSystem()
        disk.mkdir("/data")
        file = disk.create("/data/a")
        file.pwrite(bytes(2 * 64), 0)
        file.fdatasync()
        disk.fsync_dir("/data")
        disk.sector = 64
        file.pwrite(b"a" * 40, 30)  # across the edge
        file.pwrite(b"b" * 20, 70)
        content = disk.cut(random.Random(seed)).content("/data/a")
        found.add((content[30:31], content[64:65], content[70:71]))
    nothing = b"\0"
    assert (nothing, b"a", b"b") in found
    assert (b"a", nothing, nothing) in found
    assert (b"a", b"a", nothing) in found
    assert all(second == b"a" for _, second, third in found if third == b"b")


def test_truncation_is_pending_too() -> None:
    filesystem = disk()
    file = filesystem.create("/d/a")
    file.pwrite(b"12345", 0)
    file.fdatasync()
    filesystem.fsync_dir("/d")
    file.truncate(2)
    file.truncate(4)
    assert filesystem.content("/d/a") == b"12\0\0"
    assert outcomes(filesystem, "/d/a") >= {b"12345", b"12\0\0"}


@pytest.mark.parametrize("strict", [False, True])
def test_a_renamed_directory_has_one_of_its_names(strict: bool) -> None:
    filesystem = disk(strict=strict)
    filesystem.mkdir("/d/old")
    filesystem.create("/d/old/a").fdatasync()
    filesystem.fsync_dir("/d/old")
    filesystem.rename("/d/old", "/d/new")
    assert filesystem.paths() == ["/d/new/a"]
    found = {tuple(filesystem.cut(random.Random(seed)).paths()) for seed in range(50)}
    assert found == {("/d/old/a",), ("/d/new/a",)}
    filesystem.create("/d/new/b").fdatasync()
    filesystem.fsync_dir("/d/new")
    found = {tuple(filesystem.cut(random.Random(seed)).paths()) for seed in range(50)}
    assert found == {("/d/new/a", "/d/new/b")} | ({("/d/old/a", "/d/old/b")} if strict else set())
    filesystem.fsync_dir("/d")
    found = {tuple(filesystem.cut(random.Random(seed)).paths()) for seed in range(50)}
    assert found == {("/d/new/a", "/d/new/b")}


@pytest.mark.parametrize("strict", [False, True])
def test_directory_order(strict: bool) -> None:
    filesystem = disk(strict=strict)
    filesystem.create("/d/old").fdatasync()
    filesystem.fsync_dir("/d")
    filesystem.create("/d/new")
    filesystem.unlink("/d/old")
    states = set()
    for seed in range(100):
        after = filesystem.cut(random.Random(seed))
        states.add(tuple(after.listdir("/d")))
    ordered = {("old",), ("new", "old"), ("new",)}
    assert states == (ordered | {()} if strict else ordered)


def test_a_rename_is_whole() -> None:
    filesystem = disk()
    filesystem.create("/d/tmp")
    filesystem.create("/d/a").pwrite(b"old", 0)
    filesystem.open("/d/a").fdatasync()
    filesystem.fsync_dir("/d")
    filesystem.rename("/d/tmp", "/d/a")
    states = {tuple(filesystem.cut(random.Random(seed)).listdir("/d")) for seed in range(50)}
    assert states == {("a", "tmp"), ("a",)}


def test_a_journal_writes_earlier_directories_too() -> None:
    filesystem = disk(strict=False)
    filesystem.mkdir("/e")
    filesystem.create("/d/a")
    filesystem.create("/e/b")
    filesystem.fsync_dir("/e")
    assert filesystem.cut(random.Random(1)).exists("/d/a")


def test_power_cut_before_the_nth_operation() -> None:
    filesystem = disk()
    filesystem.cut_before = 2
    file = filesystem.create("/d/a")
    file.pwrite(b"1", 0)
    with pytest.raises(PowerCut):
        file.pwrite(b"2", 1)
    with pytest.raises(PowerCut):
        file.fdatasync()
    assert filesystem.content("/d/a") == b"1"
    assert filesystem.operations == 2


def test_failing_calls() -> None:
    filesystem = disk()
    file = filesystem.create("/d/a")
    filesystem.fsync_dir("/d")
    filesystem.fail("pwrite", errno.ENOSPC, nth=2, keep=3)
    file.pwrite(b"first", 0)
    with pytest.raises(OSError, match="No space"):
        file.pwrite(b"second", 5)
    file.pwrite(b"!", 8)
    assert filesystem.content("/d/a") == b"firstsec!"
    for name, call in (
        ("pread", lambda: file.pread(1, 0)),
        ("truncate", lambda: file.truncate(0)),
        ("rename", lambda: filesystem.rename("/d/a", "/d/b")),
        ("unlink", lambda: filesystem.unlink("/d/a")),
        ("fsync_dir", lambda: filesystem.fsync_dir("/d")),
        ("create", lambda: filesystem.create("/d/c")),
    ):
        filesystem.fail(name, path_part="/d")
        with pytest.raises(OSError, match="Input/output"):
            call()
    filesystem.fail("pwrite", path_part="elsewhere")
    file.pwrite(b"1", 0)


def test_a_failed_sync_loses_what_was_pending() -> None:
    filesystem = disk()
    file = filesystem.create("/d/a")
    filesystem.fsync_dir("/d")
    file.pwrite(b"gone", 0)
    filesystem.fail("fdatasync")
    with pytest.raises(OSError, match="Input/output"):
        file.fdatasync()
    file.fdatasync()
    assert file.pread(4, 0) == b"gone"
    assert outcomes(filesystem, "/d/a") == {b""}


def test_room_is_bounded() -> None:
    filesystem = disk()
    file = filesystem.create("/d/a")
    filesystem.free_bytes = 6
    file.pwrite(b"1234", 0)
    file.pwrite(b"abcd", 0)
    with pytest.raises(OSError, match="No space"):
        file.pwrite(b"5678", 4)
    assert filesystem.content("/d/a") == b"abcd56"
    assert filesystem.disk_free("/") == 0


def test_damage_and_process_death() -> None:
    filesystem = disk()
    file = filesystem.create("/d/a")
    file.pwrite(b"12345", 0)
    filesystem.damage("/d/a", 1, b"x")
    after = filesystem.process_killed()
    assert after.content("/d/a") == b"1x345"
    assert after.paths() == ["/d/a"]


def test_a_write_through_makes_nothing_else_durable() -> None:
    filesystem = disk()
    file = filesystem.create("/d/a")
    filesystem.fsync_dir("/d")
    file.pwrite(b"11", 0)
    file.write_through(b"22", 2)
    assert outcomes(filesystem, "/d/a") == {b"\0\x0022", b"1122"}
    file.write_through(b"33", 1)
    assert outcomes(filesystem, "/d/a") == {b"1332"}
    filesystem.fail("fdatasync")
    with pytest.raises(OSError, match="Input/output"):
        file.write_through(b"44", 2)
    assert outcomes(filesystem, "/d/a") == {b"1332"}
    assert filesystem.counters.calls["write_through"] == 3


def _in_two_directories() -> SimFileSystem:
    filesystem = SimFileSystem(strict=True)
    for path in ("/a", "/b", "/a/sub"):
        filesystem.mkdir(path)
    for path in ("/a/f", "/a/sub/g"):
        file = filesystem.create(path)
        file.pwrite(b"x", 0)
        file.fdatasync()
        filesystem.fsync_dir(path.rpartition("/")[0])
    return filesystem


def _left(filesystem: SimFileSystem) -> set[tuple[str, ...]]:
    return {tuple(filesystem.cut(random.Random(seed)).paths()) for seed in range(40)}


def test_a_file_that_comes_from_another_directory_is_never_in_neither() -> None:
    filesystem = _in_two_directories()
    filesystem.rename("/a/f", "/b/h")
    assert filesystem.paths() == ["/a/sub/g", "/b/h"]
    either = {("/a/f", "/a/sub/g"), ("/a/sub/g", "/b/h"), ("/a/f", "/a/sub/g", "/b/h")}
    assert _left(filesystem) == either
    target = _in_two_directories()
    target.rename("/a/f", "/b/h")
    target.fsync_dir("/b")
    assert _left(target) == either - {("/a/f", "/a/sub/g")}
    filesystem.fsync_dir("/a")  # both: it would be in neither
    assert _left(filesystem) == {("/a/sub/g", "/b/h")}


def test_a_directory_comes_from_another_as_a_whole() -> None:
    filesystem = _in_two_directories()
    filesystem.rename("/a/sub", "/b/other")
    assert filesystem.paths() == ["/a/f", "/b/other/g"]
    assert _left(filesystem) == {("/a/f", "/a/sub/g"), ("/a/f", "/b/other/g")}
    filesystem.fsync_dir("/b")
    assert _left(filesystem) == {("/a/f", "/b/other/g")}
