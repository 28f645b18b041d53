"""A backup counts the messages that a restore brings back, and no others.

Covers: storage/directory/backup.py
"""

from __future__ import annotations

import errno

import pytest

from burrowmq.offline.restore import Manifest, prepare, restore
from burrowmq.storage.loop.staged_commit import Append
from burrowmq.storage.types import BackupJob
from tests.simulation.store_world import make_message
from tests.support.disk_side import LARGE, SMALL, DiskSide
from tests.support.sim_filesystem import SimFileSystem

OPTIONS = {"segment_entry_count": 16, "journal_run_bytes": 600}


def restored(side: DiskSide, *, has_log: bool = False) -> tuple[Manifest, DiskSide]:
    job = BackupJob("/backup")
    cut = side.jobs.backups.cut(job)
    assert cut is not None
    side.jobs.backups.build(cut, job, lambda _: False)
    assert job.state == "done"
    disk: SimFileSystem = side.filesystem.process_killed()
    manifest = prepare(disk, "/backup", "/other")
    assert manifest.message_count == job.message_count
    disk.rmtree("/data")
    restore(disk, "/backup", "/data", manifest, lambda _: None)
    return manifest, DiskSide(disk, has_log=has_log, **OPTIONS)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("has_log", [False, True])
@pytest.mark.parametrize("idles", [0, 4])
def test_transient_messages_are_not_counted(version: int, has_log: bool, idles: int) -> None:
    side = DiskSide(has_log=has_log, **OPTIONS)
    side.open(version=version)
    for first in range(0, 60, 6):
        size = LARGE if first % 4 else SMALL
        run = [make_message(first + at, size, (first + at) % 3 > 0) for at in range(6)]
        side.commit(Append(1, first, list(run), None))
    side.ack(0, 3)
    side.ack(20, 21)
    for _ in range(idles):
        side.jobs.idle()
    manifest, again = restored(side, has_log=has_log)
    again.take_up(version=version)
    expected = [seq for seq in range(4, 60) if seq % 3 and seq not in (20, 21)]
    assert again.read() == expected
    assert manifest.message_count == len(expected)


def test_entries_that_cannot_be_read_again_end_it() -> None:
    side, job = DiskSide(**OPTIONS), BackupJob("/backup")
    side.open()
    side.append(0, 10)
    cut = side.jobs.backups.cut(job)
    assert cut is not None
    side.filesystem.fail("pread", errno.EIO, path_part="/backup/vhosts", times=100)
    side.jobs.backups.build(cut, job, lambda _: False)
    assert job.state == "failed"
    assert "/backup/vhosts/" in job.reason
    assert "EIO" in job.reason
