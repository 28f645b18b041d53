"""Figures of the operating system."""

from __future__ import annotations

import os
import socket
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


def test_descriptors_are_looked_at_one_by_one_when_their_number_changes(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / str(number)).symlink_to(f"socket:[{number}]")
    (tmp_path / "3").symlink_to("/dev/null")
    descriptors = process.Descriptors(str(tmp_path))
    assert descriptors.count() == (4, 3)
    (tmp_path / "0").unlink()
    (tmp_path / "0").symlink_to("/dev/null")  # as many as before
    assert descriptors.count() == (4, 3)
    for _ in range(descriptors.LOOK_EVERY):
        descriptors.count()
    assert descriptors.count() == (4, 2)
    (tmp_path / "4").symlink_to("socket:[4]")
    assert descriptors.count() == (5, 3)
    assert process.Descriptors(str(tmp_path / "none")).count() == (0, 0)


def test_the_number_of_descriptors_is_that_of_a_list() -> None:
    descriptors = process.Descriptors()
    for _ in range(3):
        before = len(os.listdir("/proc/self/fd"))
        assert descriptors.count()[0] == before
        with socket.socket():
            assert descriptors.count()[0] == before + 1


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
