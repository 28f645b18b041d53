"""Figures of the operating system."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from burrowmq.management import process


def test_figures_are_plausible(tmp_path: Path) -> None:
    figures = process.figures(str(tmp_path))
    assert 1_000_000 < figures.resident_bytes < figures.memory_total_bytes
    assert 0 < figures.open_fds <= figures.fd_limit
    assert figures.disk_free_bytes > 0
    assert 0 < figures.threads <= figures.thread_limit
    assert 0 <= figures.threads_waiting < figures.threads
    assert process.disk_free_bytes("/nosuch/dir") == 0


@pytest.mark.slow
def test_a_thread_that_could_run_is_seen() -> None:
    before, _ = process.threads()
    done = threading.Event()

    def work() -> None:
        while not done.is_set():
            pass

    worker = threading.Thread(target=work)
    worker.start()
    try:
        looks = [process.threads() for _ in range(200)]
    finally:
        done.set()
        worker.join()
    assert {count for count, _ in looks} == {before + 1}
    assert max(waiting for _, waiting in looks) >= 1
