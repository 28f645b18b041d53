"""The machine's disk: directories, torn pages, pages that revert, damage."""

from __future__ import annotations

import errno
import random

import pytest

from tests.support.machine_disk import MachineDisk, PlacedFault, PlacedMisread
from tests.support.sim_filesystem import TAIL, THROUGH, Fate, PowerCut


def found(disk: MachineDisk, times: int = 40) -> set[tuple[str, ...]]:
    return {tuple(disk.cut(random.Random(seed)).paths()) for seed in range(times)}


def written(disk: MachineDisk, path: str, data: bytes = b"x") -> None:
    file = disk.create(path)
    file.pwrite(data, 0)
    file.fdatasync()
    disk.fsync_dir(path.rpartition("/")[0])


def test_a_directory_is_there_for_good_when_its_parent_was_synced() -> None:
    disk = MachineDisk(strict=True)
    disk.mkdir("/a/b")
    written(disk, "/a/b/f")
    assert found(disk) == {(), ("/a/b/f",)}
    disk.fsync_dir("/a")
    assert found(disk) == {(), ("/a/b/f",)}
    disk.fsync_dir("/")
    assert found(disk) == {("/a/b/f",)}


def test_a_cut_may_leave_nothing_that_was_not_synced_or_only_names_or_only_contents() -> None:
    disk = MachineDisk(strict=True)
    disk.mkdir("/a")
    disk.fsync_dir("/")
    written(disk, "/a/old", b"old")
    file = disk.open("/a/old")
    file.pwrite(b"new", 0)
    disk.create("/a/f").pwrite(b"x", 0)
    for seed in range(10):
        left = [
            disk.cut(random.Random(seed), names=names, contents=contents)
            for names, contents in ((False, False), (True, False), (False, True), (True, True))
        ]
        assert [one.exists("/a/f") for one in left] == [False, True, False, True]
        assert [one.content("/a/old") for one in left] == [b"old", b"old", b"new", b"new"]
        assert [one.content("/a/f") for one in left if one.exists("/a/f")] == [b"", b"x"]


def test_a_journal_keeps_the_order_of_directories() -> None:
    disk = MachineDisk(strict=False)
    disk.mkdir("/a")
    disk.mkdir("/b")
    disk.fsync_dir("/b")
    written(disk, "/a/f")
    assert found(disk) == {("/a/f",)}


def test_a_directory_that_was_removed_may_be_there_again_with_some_of_its_files() -> None:
    disk = MachineDisk(strict=True)
    disk.mkdir("/a")
    disk.fsync_dir("/")
    written(disk, "/a/f")
    written(disk, "/a/g")
    disk.rmtree("/a")
    assert not disk.exists("/a")
    assert found(disk) == {(), ("/a/f",), ("/a/g",), ("/a/f", "/a/g")}
    disk.fsync_dir("/")
    assert found(disk) == {()}


def test_a_directory_that_never_was_durable_does_not_come_back() -> None:
    disk = MachineDisk(strict=True)
    disk.mkdir("/a")
    written(disk, "/a/f")
    disk.rmtree("/a")
    assert found(disk) == {()}
    disk.rmtree("/a")  # nothing happens


@pytest.mark.parametrize("strict", [True, False])
def test_a_directory_that_was_renamed_and_removed_may_be_there_by_its_old_name(
    strict: bool,
) -> None:
    disk = MachineDisk(strict=strict)
    disk.mkdir("/d/a")
    for path in ("/", "/d"):
        disk.fsync_dir(path)
    written(disk, "/d/a/f")
    written(disk, "/d/a/g")
    disk.rename("/d/a", "/d/b")
    disk.rmtree("/d/b")
    by_new_name = {("/d/b/f",), ("/d/b/g",), ("/d/b/f", "/d/b/g")}
    some = {("/d/a/f",), ("/d/a/g",)} if strict else set()
    assert found(disk) == {(), ("/d/a/f", "/d/a/g"), *by_new_name, *some}
    disk.fsync_dir("/d")
    assert found(disk) == {()}


def test_a_directory_made_again_has_nothing_of_the_old_one() -> None:
    disk = MachineDisk(strict=True)
    disk.mkdir("/a")
    disk.fsync_dir("/")
    written(disk, "/a/f")
    disk.rmtree("/a")
    disk.mkdir("/a")
    written(disk, "/a/g")
    disk.fsync_dir("/")
    assert found(disk) == {("/a/g",)}


@pytest.mark.parametrize("sector", [512, 4096])
def test_writes_are_torn_at_sectors(sector: int) -> None:
    disk = MachineDisk(strict=True)
    disk.sector = sector
    written(disk, "/f", bytes(8192))
    disk.open("/f").pwrite(b"x" * 8192, 0)
    sizes = {disk.cut(random.Random(seed)).content("/f").count(b"x") for seed in range(60)}
    assert {size % sector for size in sizes} == {0}
    assert len(sizes) > 2


@pytest.mark.parametrize("reverts", [True, False])
def test_a_failed_sync_loses_pages_and_may_show_it(reverts: bool) -> None:
    disk = MachineDisk(strict=True)
    disk.reverts = reverts
    written(disk, "/f", b"old")
    file = disk.open("/f")
    file.pwrite(b"new", 0)
    disk.fail("fdatasync", errno.EIO)
    with pytest.raises(OSError, match="Input/output"):
        file.fdatasync()
    assert file.pread(3, 0) == (b"old" if reverts else b"new")
    assert disk.cut(random.Random(1)).content("/f") == b"old"


def test_one_of_the_last_writes_goes_lost_or_elsewhere() -> None:
    seen = set[bytes]()
    for seed in range(20):
        disk = MachineDisk(strict=True)
        written(disk, "/f.seg", b"a" * 600)
        disk.open("/f.seg").pwrite(b"b" * 10, 0)
        disk.open("/f.seg").fdatasync()
        after = disk.cut(random.Random(1))
        before = after.content("/f.seg")
        damages = after.misplace(random.Random(seed), lambda path: path.endswith(".seg"))
        assert damages[0].path == "/f.seg"
        assert after.content("/f.seg") != before or damages[0].lost
        seen.add(after.content("/f.seg"))
    assert len(seen) > 1
    assert disk.misplace(random.Random(1), lambda path: False) == []


def test_each_call_lets_others_go_on_and_none_is_made_without_power() -> None:
    disk, calls = MachineDisk(strict=True), list[tuple[str, str]]()
    disk.on_call = lambda *call: calls.append(call)
    disk.mkdir("/a")
    disk.exists("/a")
    assert calls == [("mkdir", "/a"), ("exists", "/a")]
    disk.is_off = True
    with pytest.raises(PowerCut):
        disk.exists("/a")


def placed(operation: str, nth: int = 1, times: int = 1, keep: int = 0) -> PlacedFault:
    return PlacedFault(operation, "/a/*.log", nth, times, errno.EIO, keep)


def with_log(disk: MachineDisk) -> MachineDisk:
    disk.mkdir("/a")
    disk.fsync_dir("/")
    written(disk, "/a/0.log", b"old")
    written(disk, "/a/other", b"old")
    return disk


def test_a_call_of_one_kind_fails_for_paths_that_fit_also_in_the_next_process() -> None:
    disk = with_log(MachineDisk())
    disk.placed.append(placed("fdatasync", nth=2, times=2))
    log, other = disk.open("/a/0.log"), disk.open("/a/other")
    log.fdatasync()
    other.fdatasync()
    with pytest.raises(OSError, match="Input/output error"):
        log.fdatasync()
    killed = disk.process_killed()
    with pytest.raises(OSError, match="Input/output error"):
        killed.open("/a/0.log").fdatasync()
    killed.open("/a/0.log").fdatasync()
    killed.placed.append(placed("fdatasync"))
    killed.heal()
    killed.open("/a/0.log").fdatasync()
    assert disk.failed == [("fdatasync", "/a/0.log")] * 2


def test_a_sync_that_failed_may_have_done_its_work() -> None:
    disk = with_log(MachineDisk())
    disk.reverts = True
    disk.placed.append(placed("fdatasync", keep=THROUGH))
    file = disk.open("/a/0.log")
    file.pwrite(b"new", 0)
    with pytest.raises(OSError, match="Input/output error"):
        file.fdatasync()
    assert disk.content("/a/0.log") == b"new"
    assert disk.cut(random.Random(1), contents=False).content("/a/0.log") == b"new"


@pytest.mark.parametrize("is_synced", [True, False])
def test_what_was_removed_comes_back_where_its_directory_is_by_then(is_synced: bool) -> None:
    """And not in one that has taken its name."""
    disk = MachineDisk(strict=True)
    for path in ("/a", "/a/v", "/a/v/d", "/a/new", "/a/new/v"):
        disk.mkdir(path)
        disk.fsync_dir(path.rpartition("/")[0] or "/")
    written(disk, "/a/v/d/f")
    disk.rmtree("/a/v/d")
    disk.rename("/a/v", "/a/old")
    disk.rename("/a/new/v", "/a/v")
    if is_synced:
        disk.fsync_dir("/a")
    left = {path for paths in found(disk) for path in paths}
    assert left == {"/a/old/d/f"} | (set() if is_synced else {"/a/v/d/f"})
    for seed in range(40):
        cut = disk.cut(random.Random(seed))
        if cut.exists("/a/old"):
            assert not cut.exists("/a/v/d")


def test_a_directory_that_takes_a_name_again_is_not_the_one_that_had_it() -> None:
    disk = MachineDisk(strict=True)
    disk.mkdir("/a/d")
    disk.fsync_dir("/")
    disk.fsync_dir("/a")
    written(disk, "/a/d/old")
    disk.rename("/a/d", "/a/gone")
    disk.mkdir("/a/d")
    written(disk, "/a/d/new")
    assert found(disk) == {("/a/gone/old",), ("/a/d/new", "/a/gone/old")}
    disk.fsync_dir("/a")
    disk.rmtree("/a/gone")
    assert {"/a/d/new"} == set.intersection(*map(set, found(disk)))


def test_a_sync_that_failed_may_leave_a_hole() -> None:
    """Its last page has come through, and with it the file's length."""
    disk = with_log(MachineDisk())
    disk.sector = 64
    disk.placed.append(placed("fdatasync", keep=TAIL))
    file = disk.open("/a/0.log")
    file.pwrite(b"1" * 100, 3)
    file.pwrite(b"2" * 100, 103)
    with pytest.raises(OSError, match="Input/output error"):
        file.fdatasync()
    file.fdatasync()
    assert disk.content("/a/0.log") == b"old" + b"1" * 100 + b"2" * 100
    left = disk.cut(random.Random(1), contents=True).content("/a/0.log")
    assert left == b"old" + bytes(189) + b"2" * 11


@pytest.mark.parametrize(
    ("fate", "left"),
    [
        ("lost", b"old" + bytes(597)),
        ("kept", b"1" * 300 + b"2" * 300),
        ("first", b"1" * 300 + bytes(300)),
        ("rest", b"old" + bytes(297) + b"2" * 300),
        ("half", b"1" * 300 + bytes(300)),
        ("last", b"old" + bytes(297) + b"2" * 300),
        ("torn", b"1" * 300 + b"2" * (64 * 2 - 300 % 64 + 64) + bytes(300)),
        ("holed", b"1" * 64 + bytes(64) + b"1" * 172 + b"2" * 20 + bytes(64) + b"2" * 216),
    ],
)
def test_a_cut_leaves_of_a_file_what_was_chosen(fate: Fate, left: bytes) -> None:
    disk = with_log(MachineDisk())
    disk.sector = 64
    file = disk.open("/a/0.log")
    file.pwrite(b"1" * 300, 0)
    file.pwrite(b"2" * 300, 300)
    chosen = {("content", "/a/0.log"): fate}
    found = disk.cut(random.Random(1), contents=False, fate_of=lambda *one: chosen.get(one))
    assert found.content("/a/0.log") == left[: len(found.content("/a/0.log"))]
    assert found.content("/a/0.log").rstrip(b"\0") == left.rstrip(b"\0")


def test_a_cut_leaves_those_names_that_were_chosen() -> None:
    disk = with_log(MachineDisk())
    for name in ("new", "newer"):
        disk.create(f"/a/{name}")
    disk.unlink("/a/0.log")
    chosen: dict[tuple[str, str], Fate] = {("name", "/a/new"): "kept", ("name", "/a/newer"): "lost"}
    fates = {("name", "/a/0.log"): "lost", **chosen}
    for seed in range(8):
        left = disk.cut(random.Random(seed), names=True, fate_of=lambda *one: fates.get(one))
        assert left.paths() == ["/a/0.log", "/a/new", "/a/other"]


def test_a_read_that_is_chosen_has_a_wrong_bit_once() -> None:
    disk = MachineDisk()
    for path in ("/a", "/b"):
        written(disk, path, b"xyz")
    disk.misreads.append(PlacedMisread("/a", 2))
    files = [disk.open(path) for path in ("/b", "/a")]
    found = [file.pread(3, 0) for _ in range(3) for file in files]
    assert found == [b"xyz", b"xyz", b"xyz", b"xxz", b"xyz", b"xyz"]
    assert disk.content("/a") == b"xyz"
