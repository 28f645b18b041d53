"""A backup's cut and its building: what fails ends the job and nothing else."""

from __future__ import annotations

import errno

from burrowmq.offline.restore import prepare, restore
from burrowmq.storage.loop.staged_commit import Append
from burrowmq.storage.types import BackupJob
from tests.support.disk_side import LARGE, DiskSide, messages


def side_with_messages() -> DiskSide:
    side = DiskSide()
    side.open()
    side.append(0, 10)
    return side


def test_a_backup_is_cut_then_built() -> None:
    side, job = side_with_messages(), BackupJob("/backup")
    cut = side.jobs.backups.cut(job)
    assert cut is not None
    assert (job.state, job.queue_count, job.message_count) == ("running", 1, 10)
    assert job.cut_ms >= 0
    side.jobs.backups.build(cut, job, lambda _: False)
    assert (job.state, job.is_over) == ("done", True)
    assert (job.files_done, job.bytes_done) == (job.file_count, job.byte_count)
    assert side.filesystem.exists("/backup/BACKUP.json")


def test_a_cut_that_cannot_be_taken_ends_the_job_only() -> None:
    side, job = side_with_messages(), BackupJob("/backup")
    side.filesystem.fail("link", errno.EIO)
    assert side.jobs.backups.cut(job) is None
    assert job.state == "failed"
    assert "cut could not be taken" in job.reason
    side.append(10, 1)
    assert side.read() == list(range(11))


def test_a_failure_while_it_is_built_is_the_jobs_reason() -> None:
    side, job = side_with_messages(), BackupJob("/backup")
    cut = side.jobs.backups.cut(job)
    assert cut is not None
    side.jobs.backups.build(cut, job, lambda _: True)
    assert (job.state, job.reason) == ("failed", "the node is stopping")


def test_a_bug_while_it_is_built_is_told_with_its_traceback() -> None:
    side, job = side_with_messages(), BackupJob("/backup")
    cut = side.jobs.backups.cut(job)
    assert cut is not None

    def broken(_: float) -> bool:
        raise RuntimeError("broken")

    side.jobs.backups.build(cut, job, broken)
    assert job.state == "failed"
    assert "RuntimeError: broken" in job.reason


def test_a_sync_that_failed_meanwhile_spoils_the_backup() -> None:
    side, job = side_with_messages(), BackupJob("/backup")
    cut = side.jobs.backups.cut(job)
    assert cut is not None

    def sync_fails(_: float) -> bool:
        if not side.writer.counters.rescues:
            side.filesystem.fail("fdatasync", errno.EIO)
            side.append(10, 1)
        return False

    side.jobs.backups.build(cut, job, sync_fails)
    assert job.state == "failed"
    assert "a sync failed meanwhile" in job.reason


def test_a_rescue_between_cut_and_copying_spoils_a_backup() -> None:
    side, job = DiskSide(), BackupJob("/backup")
    side.open()
    side.append(0, 10, LARGE)
    side.commit(Append(1, 10, list(messages(10, 5, LARGE)), None), sync=False)
    cut = side.jobs.backups.cut(job)
    assert cut is not None
    side.filesystem.fail("fdatasync", errno.EIO)
    side.append(15, 1, LARGE)  # makes the five durable, too, elsewhere
    side.jobs.backups.build(cut, job, lambda _: False)
    if job.state == "failed":
        return
    disk = side.filesystem.process_killed()
    manifest = prepare(disk, "/backup", "/other")
    disk.rmtree("/data")
    restore(disk, "/backup", "/data", manifest, lambda _: None)
    again = DiskSide(disk)
    again.take_up()
    assert again.read() == list(range(15))


def test_a_spoiled_backup_is_marked_as_incomplete() -> None:
    side, job = DiskSide(), BackupJob("/backup")
    side.open()
    side.append(0, 10)
    cut = side.jobs.backups.cut(job)
    assert cut is not None

    def sync_fails(_: float) -> bool:
        if not side.writer.counters.rescues:
            side.filesystem.fail("fdatasync", errno.EIO)
            side.append(10, 1)
        return False

    side.jobs.backups.build(cut, job, sync_fails)
    assert job.state == "failed"
    assert side.filesystem.exists("/backup/INCOMPLETE")
