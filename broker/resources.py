"""How much memory and disk the node has and uses: /proc, cgroups, statvfs.

Pure reads, called by the node's monitor about once a second. The memory limit is the smaller of the machine's and the
cgroup's (v2, then v1), as in RabbitMQ, so that a container's limit counts.
"""

from __future__ import annotations

import os
import resource
from dataclasses import dataclass

RESERVED_FILES = 100
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One look at the machine; None: the file system did not answer."""

    rss_bytes: int
    disk_free_bytes: int | None


def measure(data_dir: str) -> Measurement:
    """Measure what alarms depend on."""
    try:
        disk_free = disk_free_bytes(data_dir)
    except OSError:
        disk_free = None
    return Measurement(rss_bytes=rss_bytes(), disk_free_bytes=disk_free)


def rss_bytes() -> int:
    """Resident memory of this process."""
    with open("/proc/self/statm", "rb") as statm:
        return int(statm.read().split()[1]) * PAGE_BYTES


def memory_total_bytes() -> int:
    """Memory that this process may use: the machine's, or its cgroup's limit when that is lower."""
    total = os.sysconf("SC_PHYS_PAGES") * PAGE_BYTES
    for path in CGROUP_LIMITS:
        try:
            with open(path, encoding="ascii") as limit:
                text = limit.read().strip()
        except OSError:
            continue
        if text.isdigit() and int(text) > 0:
            total = min(total, int(text))
    return total


def disk_free_bytes(path: str) -> int:
    """Bytes that an unprivileged process may still write on the file system of `path`."""
    status = os.statvfs(path)
    return status.f_bavail * status.f_frsize


def open_files() -> int:
    """Open file descriptors of this process."""
    return len(os.listdir("/proc/self/fd"))


def sockets_max() -> int:
    """How many connections may be open: 90 % of the descriptors that are not reserved for files (RabbitMQ's rule)."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(int((soft - RESERVED_FILES) * 0.9), 10)
