"""What the kernel's files say about processors."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from burrowmq.broker.machine import processors


def _write(root: Path, path: str, content: str) -> None:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(content)


def test_without_a_quota_the_affinity_counts(tmp_path: Path) -> None:
    assert processors.usable(str(tmp_path)) == len(os.sched_getaffinity(0))


def test_a_sandbox_that_hides_the_affinity_hides_no_processor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: int) -> set[int]:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "sched_getaffinity", refuse)
    assert processors.usable(str(tmp_path)) == os.cpu_count()


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param({"sys/fs/cgroup/cpu.max": "50000 100000\n"}, 0.5, id="v2"),
        pytest.param(
            {
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "25000\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            0.25,
            id="v1",
        ),
        pytest.param(
            {
                "proc/self/cgroup": "0::/a/b\n",
                "sys/fs/cgroup/a/cpu.max": "10000 100000\n",
                "sys/fs/cgroup/a/b/cpu.max": "max 100000\n",
            },
            0.1,
            id="a group above",
        ),
    ],
)
def test_a_quota_that_is_less_counts(
    tmp_path: Path, files: dict[str, str], expected: float
) -> None:
    for path, content in files.items():
        _write(tmp_path, path, content)
    assert processors.usable(str(tmp_path)) == expected


@pytest.mark.parametrize("content", ["max 100000\n", "-1\n", "", "50000 0\n"])
def test_no_quota_in_other_words(tmp_path: Path, content: str) -> None:
    _write(tmp_path, "sys/fs/cgroup/cpu.max", content)
    assert processors.usable(str(tmp_path)) == len(os.sched_getaffinity(0))


def test_idle_time_is_that_of_our_processors(tmp_path: Path) -> None:
    mine = min(os.sched_getaffinity(0))
    foreign = max(os.sched_getaffinity(0)) + 1
    _write(
        tmp_path,
        "proc/stat",
        "cpu  9 9 9 9 9 9\n"
        f"cpu{mine} 10 0 10 {2 * processors.TICKS_S} {processors.TICKS_S} 0 0\n"
        f"cpu{foreign} 10 0 10 {50 * processors.TICKS_S} 0 0 0\n"
        "intr 1 2 3\n",
    )
    assert processors.idle_seconds(str(tmp_path)) == 3.0


def test_a_machine_that_does_not_tell_is_never_idle(tmp_path: Path) -> None:
    assert processors.idle_seconds(str(tmp_path)) == 0.0


def test_without_affinities_all_processors_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")
    assert processors.usable(str(tmp_path)) == os.cpu_count()
