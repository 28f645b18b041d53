"""Figures of the operating system."""

from __future__ import annotations

from pathlib import Path

from burrowmq.management import process


def test_figures_are_plausible(tmp_path: Path) -> None:
    figures = process.figures(str(tmp_path))
    assert 1_000_000 < figures.resident_bytes < figures.memory_total_bytes
    assert 0 < figures.open_fds <= figures.fd_limit
    assert figures.disk_free_bytes > 0
    assert process.disk_free_bytes("/nosuch/dir") == 0
