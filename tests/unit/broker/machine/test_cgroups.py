"""Where the limits of control groups are looked for, and how their files are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from burrowmq.broker.machine import cgroups


def places(root: Path, groups: str | None = None) -> list[str]:
    """Where a memory limit is looked for, below the root."""
    if groups is not None:
        (root / "proc/self").mkdir(parents=True)
        (root / "proc/self/cgroup").write_text(groups)
    found = cgroups.files(str(root), "memory", "memory.max", "memory.limit_in_bytes")
    return [Path(path).relative_to(root).as_posix() for path in found]


MOUNTS = ["sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"]


def test_the_mounts_own_files_come_first_and_need_no_group(tmp_path: Path) -> None:
    assert places(tmp_path) == MOUNTS


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        pytest.param(
            "0::/a/b\n",
            ["sys/fs/cgroup/a/memory.max", "sys/fs/cgroup/a/b/memory.max"],
            id="version 2, and each group above",
        ),
        pytest.param(
            "7:cpu,cpuacct:/c\n4:hugetlb,memory:/m\n",
            ["sys/fs/cgroup/memory/m/memory.limit_in_bytes"],
            id="version 1, the controller's own group only",
        ),
        pytest.param("0::/\n", [], id="the root group"),
        pytest.param(
            "0::/../a\n", ["sys/fs/cgroup/a/memory.max"], id="a group outside of the namespace"
        ),
        pytest.param("4:swapmemory:/m\n\nnonsense\n", [], id="others"),
    ],
)
def test_groups_of_this_process(tmp_path: Path, groups: str, expected: list[str]) -> None:
    assert places(tmp_path, groups) == MOUNTS + expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"max 100000\n", "max 100000"),
        (b" 12 \nsecond\n", "12"),
        (b"", ""),
        (b"\xff\n", "\ufffd"),
    ],
)
def test_a_files_first_line(tmp_path: Path, content: bytes, expected: str) -> None:
    (tmp_path / "file").write_bytes(content)
    assert cgroups.first_line(str(tmp_path / "file")) == expected


def test_a_file_that_cannot_be_read_is_empty(tmp_path: Path) -> None:
    assert cgroups.first_line(str(tmp_path / "nope")) == ""
    assert cgroups.first_line(str(tmp_path)) == ""
