"""Files that name a queue or a virtual host are missing: a backup is made all the same, and has everything.

Covers: storage/directory/backup.py, storage/directory/clean_stop.py
"""

from __future__ import annotations

import random

import pytest

from burrowmq.offline.restore import prepare, restore
from burrowmq.storage.types import BackupJob
from tests.support.disk_side import DiskSide
from tests.support.sim_filesystem import SimFileSystem

NAMES = (".vhost_name", ".queue_name")


def filled() -> DiskSide:
    side = DiskSide()
    side.open()
    side.append(0, 10)
    side.jobs.idle()
    return side


def restarted(disk: SimFileSystem) -> DiskSide:
    again = DiskSide(disk)
    again.take_up()
    return again


def backed_up(side: DiskSide) -> list[int]:
    """What is in a backup that is made now."""
    job = BackupJob("/backup")
    cut = side.jobs.backups.cut(job)
    assert cut is not None, job.reason
    side.jobs.backups.build(cut, job, lambda _: False)
    disk = side.filesystem.process_killed()
    manifest = prepare(disk, "/backup", "/other")
    disk.rmtree("/data")
    restore(disk, "/backup", "/data", manifest, lambda _: None)
    return restarted(disk).read()


@pytest.mark.parametrize("missing", NAMES)
def test_one_that_is_missing_since_a_clean_stop(missing: str) -> None:
    side = filled()
    side.jobs.close({1: (10, 0)})
    (path,) = side.paths(missing)
    named = side.filesystem.content(path)
    side.filesystem.unlink(path)
    again = restarted(side.filesystem)
    assert again.report.clean
    if missing == ".vhost_name":  # that of a queue is written by the next stop
        assert again.filesystem.cut(random.Random(1)).content(path) == named
    assert backed_up(again) == list(range(10))


@pytest.mark.parametrize("missing", [NAMES[:1], NAMES[1:]])
def test_one_that_goes_while_the_node_runs(missing: tuple[str, ...]) -> None:
    side = filled()
    for path in [path for name in missing for path in side.paths(name)]:
        side.filesystem.unlink(path)
    assert backed_up(side) == list(range(10))
