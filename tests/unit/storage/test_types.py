"""The values that cross the storage boundary and change on their way: a backup's job, a start's report."""

from __future__ import annotations

from burrowmq.storage.names import QueueNames
from burrowmq.storage.types import BackupJob, RecoveredQueue, RecoveryReport


def test_a_backup_counts_what_is_in_the_cut_and_what_is_done() -> None:
    job = BackupJob("/backup", {"node": "burrow@here"})
    job.count_queue(5)
    job.count_queue(0)
    assert (job.state, job.queue_count, job.message_count) == ("waiting", 2, 5)
    job.begin(3, 100)
    job.note_cut(1.5)
    assert (job.state, job.file_count, job.byte_count, job.cut_ms) == ("running", 3, 100, 1.5)
    job.count_bytes(60, is_linked=True)
    job.count_bytes(40, is_linked=False)
    job.count_file()
    assert (job.files_done, job.bytes_done, job.linked_bytes) == (1, 100, 60)
    assert not job.is_over


def test_a_backup_ends_well_or_with_a_reason() -> None:
    good, bad = BackupJob("/a"), BackupJob("/b")
    good.finish()
    bad.fail("no room")
    assert (good.state, good.reason, good.is_over) == ("done", "", True)
    assert (bad.state, bad.reason, bad.is_over) == ("failed", "no room", True)


def test_a_report_has_queues_by_name_and_all_by_directory() -> None:
    report = RecoveryReport()
    report.add("one", RecoveredQueue(QueueNames("/", "q"), count=3))
    report.add("two", RecoveredQueue(QueueNames("/", ""), count=4), is_named=False)
    assert list(report.queues) == [QueueNames("/", "q")]
    assert list(report.by_directory) == [("/", "one"), ("/", "two")]
    assert (report.messages, report.unnamed_count) == (3, 1)
