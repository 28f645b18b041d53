"""Readings of this very process."""

import os
import sys
from pathlib import Path

import pytest

from bench import procfs

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def test_cpu_of_a_thread_is_part_of_the_whole() -> None:
    use = procfs.cpu_use(os.getpid())
    assert use.total_s >= max(use.threads.values()) - 0.02
    assert procfs.busiest_thread_s(use, use) == 0.0


def test_resident_memory_and_its_peak() -> None:
    assert 0 < procfs.rss_bytes(os.getpid()) <= procfs.peak_rss_bytes(os.getpid())


def test_disk_counts_allocated_blocks(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "file").write_bytes(os.urandom(10_000))
    assert 10_000 <= procfs.disk_bytes(tmp_path) <= 40_960


def test_machine_is_named() -> None:
    assert {"cpu", "cores", "memory", "kernel", "python"} <= procfs.machine().keys()


def test_the_machine_is_busier_than_this_process() -> None:
    assert procfs.machine_busy_s() >= procfs.cpu_use(os.getpid()).total_s - 0.05


def test_touched_memory_is_bounded_by_what_is_available() -> None:
    assert procfs.touch_memory(1 << 20) == 1 << 20
