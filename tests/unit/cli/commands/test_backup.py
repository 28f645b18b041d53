"""backup: the request, the progress, the end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from burrowmq.cli.commands import backup
from burrowmq.storage.types import BackupJob
from tests.support.served import Output, Served


def run(served: Served, act: Callable[[BackupJob], None], *argv: str) -> Output:
    """Run the command while `act` plays the node."""

    def play() -> None:
        until = time.monotonic() + 10
        while served.node.engine.backup is None and time.monotonic() < until:
            time.sleep(0.005)
        if served.node.engine.backup is not None:
            act(served.node.engine.backup)

    thread = threading.Thread(target=play)
    thread.start()
    output = served.ctl("backup", *argv)
    thread.join()
    return output


def done(job: BackupJob) -> None:
    job.queue_count, job.message_count, job.file_count, job.byte_count = 2, 30, 7, 1000
    job.linked_bytes, job.cut_ms = 900, 1.5
    job.state = "done"


def test_it_ends_with_what_was_backed_up(
    served: Served, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    output = run(served, done, "there")
    assert output.code == 0
    assert output.out == (
        f"Backing up node rabbit@test into {tmp_path}/there ...\n"
        "Backed up 30 messages in 2 queues: 7 files, 1000 bytes (900 of them linked); the cut took 1.5 ms\n"
    )


def test_progress_comes_as_lines_where_there_is_no_terminal(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backup, "LINE_EVERY_S", 0.0)
    monkeypatch.setattr(backup, "POLL_S", 0.01)

    def slowly(job: BackupJob) -> None:
        job.byte_count, job.bytes_done, job.file_count, job.files_done = 8 << 20, 2 << 20, 9, 3
        job.state = "running"
        time.sleep(0.1)
        done(job)

    output = run(served, slowly, "/there")
    assert " 25 %  2 of 8 MiB, 3 of 9 files\n" in output.err


def test_a_backup_that_fails(served: Served) -> None:
    output = run(served, lambda job: job.fail("no space"), "/there")
    assert output.code == 70
    assert output.err == (
        "Error:\nthe backup failed: no space\n/there is marked as INCOMPLETE; run the command again\n"
    )


def test_one_that_another_came_after(served: Served) -> None:
    def replace(_: BackupJob) -> None:
        served.node.engine.backup = BackupJob("/other")

    output = run(served, replace, "/there")
    assert (output.code, "another backup, to /other" in output.err) == (70, True)


def test_directories_that_the_node_refuses(served: Served) -> None:
    output = served.ctl("backup", "/refused")
    assert (output.code, output.err) == (65, "Error (argument validation): /refused is not empty\n")
    assert served.ctl("backup").code == 64


def test_without_waiting(served: Served) -> None:
    assert served.ctl("backup", "--no-wait", "/there").code == 0
    assert served.node.engine.backup is not None
