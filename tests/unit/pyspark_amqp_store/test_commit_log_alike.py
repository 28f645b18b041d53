"""Of a commit log with any of its commits damaged, Spark's reader takes what a start takes, and tells where it does.

Covers: pyspark_amqp_store/commit_log.py, storage/log/replay.py
"""

from __future__ import annotations

from pathlib import Path

import pytest

from burrowmq.storage.log.commit_log import CommitLog, paths
from burrowmq.storage.log.records import GROUP_MAGIC, Kind, pack_record
from burrowmq.storage.log.replay import replay, seed_of
from pyspark_amqp_store.commit_log import Disk
from tests.support.sim_filesystem import SimFileSystem

IDENTITY = b"i" * 16
SEED = seed_of(IDENTITY)
QUEUE = "v/queues/q"
NAMES = ("a", "b", "c", "d", "e", "f")


def log_of_six(synced: int) -> SimFileSystem:
    """A commit for each name, of which so many were durable before the last was written."""
    filesystem = SimFileSystem()
    filesystem.mkdir("/data")
    log = CommitLog(filesystem, "/data", IDENTITY, SEED, 4000)
    log.begin(iter([]))
    for number, name in enumerate(NAMES, 1):
        log.append(pack_record(SEED, Kind.WRITE, f"{QUEUE}/{name}", 0, b"x"))
        if number <= synced:
            log.sync()
    return filesystem


def test_a_log_that_was_begun_four_billion_times(tmp_path: Path) -> None:
    filesystem = log_of_six(6)
    log = CommitLog(filesystem, "/data", IDENTITY, SEED, 4000)
    log.resume((1 << 32) - 1, 0)
    log.begin(iter([pack_record(SEED, Kind.WRITE, f"{QUEUE}/later", 0, b"x")]))
    (tmp_path / "commit_log").mkdir()
    for slot, path in enumerate(paths("/data")):
        (tmp_path / "commit_log" / f"{slot}.log").write_bytes(filesystem.content(path))
    start, spark = replay(filesystem, "/data", IDENTITY), Disk(str(tmp_path), IDENTITY)
    assert (start.generation, list(start.directories[QUEUE])) == (1 << 32, ["later"])
    assert spark.exists(f"{tmp_path}/vhosts/{QUEUE}/later")
    assert not spark.exists(f"{tmp_path}/vhosts/{QUEUE}/a")


def spoil(filesystem: SimFileSystem, which: int, place: int) -> None:
    """Damage these commits, bit by bit of `which`, at this place of each."""
    path, at = paths("/data")[0], 0
    starts = []
    data = filesystem.content(path)
    while (at := data.find(GROUP_MAGIC, at + 1)) >= 0:
        starts.append(at)
    for number, start in enumerate(starts[1:]):  # the first is the snapshot
        if which >> number & 1:
            filesystem.damage(path, start + place, bytes([data[start + place] ^ 1]))


@pytest.mark.parametrize("place", [20, 45], ids=["head", "records"])
@pytest.mark.parametrize("synced", [6, 4, 2])
def test_whatever_is_damaged(tmp_path: Path, synced: int, place: int) -> None:
    (tmp_path / "commit_log").mkdir()
    for which in range(1 << len(NAMES)):
        filesystem = log_of_six(synced)
        spoil(filesystem, which, place)
        for slot, path in enumerate(paths("/data")):
            (tmp_path / "commit_log" / f"{slot}.log").write_bytes(filesystem.content(path))
        start, spark = replay(filesystem, "/data", IDENTITY), Disk(str(tmp_path), IDENTITY)
        there = [name for name in NAMES if spark.exists(f"{tmp_path}/vhosts/{QUEUE}/{name}")]
        assert there == sorted(start.directories.get(QUEUE, {})), f"{which:b}"
        assert len(spark.damaged) == len(start.damaged), f"{which:b}"
