"""What the machine says about itself."""

from __future__ import annotations

import errno
import os
import resource
from dataclasses import replace

import pytest

from burrowmq.broker.machine import resources


def test_this_process(tmp_path):
    found = resources.measure(str(tmp_path))
    assert 1 << 20 < found.rss_bytes < resources.memory_total_bytes()
    assert found.disk_free_bytes is not None
    assert found.disk_free_bytes >= 0


def test_a_file_system_that_is_away_is_no_error(tmp_path):
    assert resources.measure(str(tmp_path / "missing")).disk_free_bytes is None


def test_open_files_counts_descriptors():
    before = resources.open_files()
    found = os.open(os.devnull, os.O_RDONLY)
    assert resources.open_files() == before + 1
    os.close(found)


def test_a_sandbox_that_lets_nobody_ask_for_limits_shows_them(monkeypatch, tmp_path):
    kinds = {"Max open files": resource.RLIMIT_NOFILE, "Max processes": resource.RLIMIT_NPROC}
    known = [resource.getrlimit(kind)[0] for kind in kinds.values()]

    def refuse(_):
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(resource, "getrlimit", refuse)
    assert [resources.limit(kind, name) for name, kind in kinds.items()] == known
    none = write(tmp_path, "limits", "Max processes             unlimited            unlimited\n")
    for name, kind in kinds.items():
        assert resources.limit(kind, name, str(none)) == resource.RLIM_INFINITY


def write(root, path, text):
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


MACHINE = resources.memory_total_bytes("/nowhere")


@pytest.mark.parametrize(
    ("files", "total"),
    [
        ({}, MACHINE),
        ({"sys/fs/cgroup/memory.max": "max\n"}, MACHINE),
        ({"sys/fs/cgroup/memory.max": "123456789\n"}, 123456789),
        ({"sys/fs/cgroup/memory/memory.limit_in_bytes": "200000000\n"}, 200000000),
        # The largest number that version 1 knows: no limit.
        ({"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, MACHINE),
        # Version 2, a service of its own below a slice with a lower limit.
        (
            {
                "proc/self/cgroup": "0::/system.slice/burrowmq.service\n",
                "sys/fs/cgroup/system.slice/memory.max": "150000000\n",
                "sys/fs/cgroup/system.slice/burrowmq.service/memory.max": "300000000\n",
            },
            150000000,
        ),
        # Version 1 with several controllers in a line.
        (
            {
                "proc/self/cgroup": "5:cpu,cpuacct:/a\n4:memory:/docker/abc\n0::/other\n",
                "sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": "170000000\n",
            },
            170000000,
        ),
        ({"proc/self/cgroup": "nonsense\n", "sys/fs/cgroup/memory.max": "?\n"}, MACHINE),
    ],
)
def test_the_memory_of_a_container(tmp_path, files, total):
    for path, text in files.items():
        write(tmp_path, path, text)
    assert resources.memory_total_bytes(str(tmp_path)) == total


ENOUGH = resources.Provision(files=1024, memory_bytes=1 << 30, disk_free_bytes=1 << 30)


def test_enough_is_enough(tmp_path):
    assert resources.shortfalls(ENOUGH, "/data") == []
    found = resources.provision(str(tmp_path), 1 << 30)
    assert found.disk_free_bytes is not None
    assert resources.provision(str(tmp_path / "missing"), 1).disk_free_bytes is None
    assert resources.shortfalls(replace(ENOUGH, disk_free_bytes=None), "/data") == []


@pytest.mark.parametrize(
    ("less", "text"),
    [
        (
            {"files": 128},
            "128 files may be open and 256 are needed: 128 are missing (ulimit -n 256)",
        ),
        (
            {"memory_bytes": 64 << 20},
            "64.0 MiB of memory are available and 96.0 MiB are needed: 32.0 MiB are missing",
        ),
        (
            {"disk_free_bytes": 8 << 20},
            "8.0 MiB of disk are free at /data and 32.0 MiB are needed: 24.0 MiB are missing",
        ),
    ],
)
def test_what_is_missing_is_said_with_how_much(less, text):
    assert resources.shortfalls(replace(ENOUGH, **less), "/data") == [text]


def test_sockets_leave_descriptors_to_files():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (1100, hard))
        assert resources.sockets_max() == 900
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_the_store_has_the_files_that_sockets_leave(monkeypatch):
    for limit, sockets, files in (
        (1024, 831, 153),
        (256, 140, 76),
        (64, 10, 14),
        (1 << 20, 943628, 2048),
    ):
        monkeypatch.setattr(resources, "files_max", lambda limit=limit: limit)
        assert (resources.sockets_max(), resources.store_files_max()) == (sockets, files)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 kB"),
        (999_499, "999 kB"),
        (999_500, "1 MB"),
        (50_000_000, "50 MB"),
        (67_930_000, "67.9 MB"),
        (10_110_438_400, "10.1 GB"),
        (216_900_000_000, "217 GB"),
        (2 * 10**12, "2 TB"),
        (10**16, "10000 TB"),
    ],
)
def test_an_amount_has_three_digits(count, text):
    assert resources.amount(count) == text
