"""backup: the request, the progress, the end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from burrowmq.cli.commands import backup
from burrowmq.storage.types import BackupJob, JsonValue
from tests.support.served import Output, Served


@pytest.fixture
def held(served: Served, monkeypatch: pytest.MonkeyPatch) -> Served:
    """A node whose disk does not begin with a backup."""
    engine = served.node.engine

    def start_backup(directory: str, labels: dict[str, JsonValue]) -> BackupJob:
        engine.backup = BackupJob(directory, labels)
        return engine.backup

    monkeypatch.setattr(engine, "start_backup", start_backup)
    return served


def run(held: Served, act: Callable[[BackupJob], None], *argv: str) -> Output:
    """Run the command while `act` plays the disk."""

    def play() -> None:
        until = time.monotonic() + 10
        while held.node.engine.backup is None and time.monotonic() < until:
            time.sleep(0.005)
        if held.node.engine.backup is not None:
            act(held.node.engine.backup)

    thread = threading.Thread(target=play)
    thread.start()
    output = held.ctl("backup", *argv)
    thread.join()
    return output


def test_it_ends_with_what_was_backed_up(
    served: Served, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    output = served.ctl("backup", "there")
    job = served.node.engine.backup
    assert job is not None
    assert served.bench.disk.exists(f"{tmp_path}/there")
    assert (output.code, job.linked_bytes > 0) == (0, True)
    assert output.out == (
        f"Backing up node rabbit@test into {tmp_path}/there ...\n"
        f"Backed up 3 messages in 1 queues: {job.file_count} files, {job.byte_count} bytes"
        f" ({job.linked_bytes} of them linked); the cut took {round(job.cut_ms, 3)} ms\n"
    )


def test_progress_comes_as_lines_where_there_is_no_terminal(
    held: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backup, "LINE_EVERY_S", 0.0)
    monkeypatch.setattr(backup, "POLL_S", 0.01)

    def slowly(job: BackupJob) -> None:
        job.byte_count, job.bytes_done, job.file_count, job.files_done = 8 << 20, 2 << 20, 9, 3
        job.state = "running"
        time.sleep(0.1)
        job.state = "done"

    output = run(held, slowly, "/there")
    assert " 25 %  2 of 8 MiB, 3 of 9 files\n" in output.err


def test_a_backup_that_fails_before_anything_is_made(held: Served) -> None:
    output = run(held, lambda job: job.fail("no room"), "/there")
    assert (output.code, output.err) == (70, "Error:\nthe backup failed: no room\n")


def test_a_backup_that_fails(held: Served) -> None:
    def fail(job: BackupJob) -> None:
        job.is_marked = True
        job.fail("no space")

    output = run(held, fail, "/there")
    assert output.code == 70
    assert output.err == (
        "Error:\nthe backup failed: no space\n/there is marked as INCOMPLETE; run the command again\n"
    )


def test_one_that_another_came_after(held: Served) -> None:
    def replace(_: BackupJob) -> None:
        held.node.engine.backup = BackupJob("/other")

    output = run(held, replace, "/there")
    assert (output.code, "another backup, to /other" in output.err) == (70, True)


def test_directories_that_the_node_refuses(served: Served) -> None:
    served.bench.disk.mkdir("/full")
    served.bench.disk.create("/full/one")
    output = served.ctl("backup", "/full")
    assert (output.code, output.err) == (65, "Error (argument validation): /full is not empty\n")
    assert served.ctl("backup").code == 64


def test_without_waiting(served: Served) -> None:
    assert served.ctl("backup", "--no-wait", "/there").code == 0
    assert served.node.engine.backup is not None
