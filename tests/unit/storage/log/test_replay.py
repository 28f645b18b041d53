"""What a start makes of the log: the youngest whole generation, up to a torn end; damage is told from it.

Covers: storage/log/commit_log.py
"""

from __future__ import annotations

import errno

import pytest

from burrowmq.storage.errors import StoreRefused
from burrowmq.storage.log.commit_log import CommitLog, paths
from burrowmq.storage.log.records import GROUP_MAGIC, Kind, pack_record
from burrowmq.storage.log.replay import Replayed, replay, seed_of
from tests.support.sim_filesystem import SimFileSystem

IDENTITY = b"i" * 16
SEED = seed_of(IDENTITY)
FIRST, SECOND = paths("/data")


def new_log(limit: int = 4000) -> tuple[CommitLog, SimFileSystem]:
    filesystem = SimFileSystem()
    filesystem.mkdir("/data")
    return CommitLog(filesystem, "/data", IDENTITY, SEED, limit), filesystem


def written(name: str, data: bytes = b"x") -> bytes:
    return pack_record(SEED, Kind.WRITE, f"v/queues/q/{name}", 0, data)


def names_of(filesystem: SimFileSystem) -> list[str]:
    return sorted(replay(filesystem, "/data", IDENTITY).directories.get("v/queues/q", {}))


def begun(*names: str) -> tuple[CommitLog, SimFileSystem]:
    log, filesystem = new_log()
    log.begin(iter([]))
    for name in names:
        log.append(written(name))
        log.sync()
    return log, filesystem


def group_at(filesystem: SimFileSystem, path: str, number: int) -> int:
    data, at = filesystem.content(path), 0
    for _ in range(number):
        at = data.index(GROUP_MAGIC, at + 1)
    return at


def test_groups_are_taken_in_order() -> None:
    _, filesystem = begun("a", "b", "c")
    assert names_of(filesystem) == ["a", "b", "c"]


def test_the_next_generation_is_in_the_other_file_and_counts_when_its_snapshot_is_whole() -> None:
    log, filesystem = begun("a", "b")
    log.begin(iter([written("c"), written("d")]))
    log.append(written("e"))
    log.sync()
    assert names_of(filesystem) == ["c", "d", "e"]
    filesystem.damage(SECOND, group_at(filesystem, SECOND, 2), bytes(40))
    found = replay(filesystem, "/data", IDENTITY)
    assert found.counting == 1
    log.begin(iter([]))
    assert names_of(filesystem) == []


def test_a_snapshot_that_was_cut_off_does_not_count() -> None:
    log, filesystem = begun("a")
    filesystem.fail("pwrite", errno.EIO, nth=3, path_part="1.log", keep=30)
    with pytest.raises(OSError, match="Input/output"):
        log.begin(iter([written("b")]))
    assert not log.is_open
    assert names_of(filesystem) == ["a"]
    log.begin(iter([written("b")]))
    assert names_of(filesystem) == ["b"]


def test_a_torn_end_ends_it_and_damage_before_does_not() -> None:
    log, filesystem = begun("a", "b", "c")
    log.append(written("d"))
    log.append(written("e"))
    filesystem.damage(FIRST, group_at(filesystem, FIRST, 5) + 36, b"\0\0\0\0")
    found = replay(filesystem, "/data", IDENTITY)
    assert sorted(found.directories["v/queues/q"]) == ["a", "b", "c"]
    assert not found.damaged
    filesystem.damage(FIRST, group_at(filesystem, FIRST, 3), b"\0")
    found = replay(filesystem, "/data", IDENTITY)
    assert sorted(found.directories["v/queues/q"]) == ["a", "c"]
    assert found.damaged == [f"{FIRST}: 1 commits from 3 on"]


def test_a_flipped_octet_in_a_durable_group_costs_what_it_is_in() -> None:
    _, filesystem = begun("a", "b", "c")
    at = group_at(filesystem, FIRST, 3) + 40 + len(written("b")) - 1
    filesystem.damage(FIRST, at, b"y")
    found = replay(filesystem, "/data", IDENTITY)
    assert {name: one.read(9, 0) for name, one in found.directories["v/queues/q"].items()} == {
        "a": b"x",
        "b": b"y",
        "c": b"x",
    }
    assert found.damaged == [f"{FIRST}: commit 3"]


def test_a_missing_file_is_refused() -> None:
    for path in (FIRST, SECOND):
        _, filesystem = begun("a")
        filesystem.unlink(path)
        with pytest.raises(StoreRefused, match=f"{path} is missing"):
            replay(filesystem, "/data", IDENTITY)


def test_a_log_without_a_whole_generation_is_refused() -> None:
    _, filesystem = begun()
    filesystem.damage(FIRST, 0, bytes(len(filesystem.content(FIRST))))
    with pytest.raises(StoreRefused, match="no whole log"):
        replay(filesystem, "/data", IDENTITY)


def test_a_file_whose_sync_failed_is_made_anew() -> None:
    log, filesystem = begun("a")
    filesystem.fail("fdatasync", path_part="1.log")
    with pytest.raises(OSError, match="Input/output"):
        log.begin(iter([]))
    log.begin(iter([written("b")]))
    log.append(written("c"))
    log.sync()
    assert names_of(filesystem) == ["b", "c"]
    assert not filesystem.resynced
    log.spoil()
    log.begin(iter([written("d")]))
    log.begin(iter([written("e")]))
    assert names_of(filesystem) == ["e"]
    assert not filesystem.resynced


def test_records_of_every_kind() -> None:
    log, filesystem = begun()
    queue = "v/queues/q"
    log.append(
        b"".join(
            pack_record(SEED, kind, path, offset, data)
            for kind, path, offset, data in (
                (Kind.MAKE, "v/queues/empty", 0, b""),
                (Kind.WRITE, f"{queue}/a", 2, b"bytes"),
                (Kind.RESIZE, f"{queue}/a", 4, b""),
                (Kind.WRITE, f"{queue}/b", 0, b"gone"),
                (Kind.UNLINK, f"{queue}/b", 0, b""),
                (Kind.WRITE, f"{queue}/c", 0, b"moved"),
                (Kind.RENAME, f"{queue}/c", 0, f"{queue}/d".encode()),
                (Kind.WRITE, "v/queues/out/f", 0, b"x"),
                (Kind.MOVED_OUT, "v/queues/out", 0, b""),
                (Kind.OWN_WRITE, "v/queues/out/f", 3, b"y"),
                (Kind.OWN_WRITE, "v/queues/out/g", 3, b"z"),
                (Kind.OWN_FORGET, "v/queues/out/g", 0, b""),
                (Kind.OWN_WRITE, "v/queues/out/h", 3, b"z"),
                (Kind.OWN_RENAME, "v/queues/out/h.tmp", 0, b"v/queues/out/h"),
                (Kind.OWN_RENAME, "v/queues/out/i.tmp", 0, b"v/queues/out/i"),
                (Kind.OWN_FORGET, "v/queues/out/i.tmp", 0, b""),
                (Kind.OWN_WRITE, "v/queues/old/0.qi", 0, b"z"),
                (Kind.REMOVE_TREE, "v/queues/old", 0, b""),
                (Kind.WRITE, "w/queues/q/a", 0, b"z"),
                (Kind.REMOVE_TREE, "w", 0, b""),
            )
        )
    )
    found: Replayed = replay(filesystem, "/data", IDENTITY)
    held = {
        name: {one: content.read(9, 0) for one, content in files.items()}
        for name, files in found.directories.items()
    }
    assert held == {"v/queues/empty": {}, queue: {"a": b"\0\0by", "d": b"moved"}}
    assert found.own_writes == {"v/queues/out/f": [(3, b"y")]}
    assert found.own_renames == [("v/queues/out/h.tmp", "v/queues/out/h")]
    assert list(found.removed) == ["v/queues/old"]


def test_a_group_that_was_cut_off_is_no_commit_and_the_next_takes_its_place() -> None:
    log, filesystem = begun("a")
    filesystem.fail("pwrite", errno.ENOSPC, path_part="0.log", keep=60)
    with pytest.raises(OSError, match="No space"):
        log.append(written("b") + written("c", b"y" * 100))
    assert names_of(filesystem) == ["a"]
    log.append(written("d"))
    log.sync()
    assert names_of(filesystem) == ["a", "d"]


def test_a_missing_commit_just_before_the_last_is_told() -> None:
    _, filesystem = begun("a", "b", "c")
    filesystem.damage(FIRST, group_at(filesystem, FIRST, 3), b"\0")
    assert names_of(filesystem) == ["a", "c"]
    assert replay(filesystem, "/data", IDENTITY).damaged
