"""How much memory and disk the node has and uses: /proc, cgroups, statvfs.

Only reads. `measure` is called by the node's monitor about once a second, the rest at a start or when an operator asks.
The memory that counts is the least of three: the machine's, the limit of this process's cgroup, and the limits of those
above it (v2 and v1); so a container's limit counts. What a node needs to start at all is checked here too: `shortfalls`
says what is missing, in words.
"""

from __future__ import annotations

import contextlib
import os
import resource
import sys

from burrowmq.broker.machine import cgroups
from burrowmq.records import dataclass

RESERVED_FILES = 100
# Listeners, the log, the database of definitions, the lock, the event loop's own, threads that sync a directory.
OTHER_FILES = 40
STORE_FILES_MIN = 12
# A larger number saves nothing: opening a file again costs microseconds.
STORE_FILES_MAX = 2048
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_FOUR_DIGITS = 999.5

FILES_MIN = 256
"""File descriptors: those reserved for the store, listeners and pipes, and 140 connections."""
MEMORY_MIN_BYTES = 96 * 1024 * 1024
"""An empty node takes half of it; the rest is for connections and what recovery reads at a time."""
DISK_MIN_BYTES = 32 * 1024 * 1024
"""A segment of the message store, the journals and the definitions of the first minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One look at the machine; a figure is None when the file system did not answer."""

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
    """Resident memory of this process; without a /proc (macOS) the most that it ever was."""
    try:
        with open("/proc/self/statm", "rb") as statm:
            return int(statm.read().split()[1]) * PAGE_BYTES
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024


def memory_total_bytes(root: str = "/") -> int:
    """Memory that this process may use: the machine's, or a limit of its cgroups when one is lower."""
    total = os.sysconf("SC_PHYS_PAGES") * PAGE_BYTES
    for path in cgroups.files(root, "memory", "memory.max", "memory.limit_in_bytes"):
        text = cgroups.first_line(path)
        if text.isdigit() and int(text) > 0:
            total = min(total, int(text))
    return total


@dataclass(frozen=True, slots=True, kw_only=True)
class Provision:
    """What there is for a node to start with; None means unknown."""

    files: int
    memory_bytes: int
    disk_free_bytes: int | None


def provision(data_dir: str, memory_bytes: int) -> Provision:
    """What there is now."""
    try:
        free: int | None = disk_free_bytes(data_dir)
    except OSError:
        free = None
    return Provision(files=files_max(), memory_bytes=memory_bytes, disk_free_bytes=free)


def shortfalls(found: Provision, data_dir: str) -> list[str]:
    """What is missing for a start, and how much of it; empty when nothing is missing."""
    missing = []
    if found.files < FILES_MIN:
        missing.append(
            f"{found.files} files may be open and {FILES_MIN} are needed: {FILES_MIN - found.files} are missing"
            f" (ulimit -n {FILES_MIN})"
        )
    if found.memory_bytes < MEMORY_MIN_BYTES:
        missing.append(
            f"{mib(found.memory_bytes)} of memory are available and {mib(MEMORY_MIN_BYTES)} are needed:"
            f" {mib(MEMORY_MIN_BYTES - found.memory_bytes)} are missing"
        )
    free = found.disk_free_bytes
    if free is not None and free < DISK_MIN_BYTES:
        missing.append(
            f"{mib(free)} of disk are free at {data_dir} and {mib(DISK_MIN_BYTES)} are needed:"
            f" {mib(DISK_MIN_BYTES - free)} are missing"
        )
    return missing


def mib(count: int) -> str:
    """A number of bytes beside the least that a start takes, which is one of MiB."""
    return f"{count / (1 << 20):.1f} MiB"


def amount(count: int) -> str:
    """A number of bytes as operators read it: three digits, and the units of `disk_free_limit` and of the UI."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < _FOUR_DIGITS:
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:.3g} TB" if value < _FOUR_DIGITS else f"{value:.0f} TB"


def disk_free_bytes(path: str) -> int:
    """Bytes that an unprivileged process may still write on the file system of `path`."""
    status = os.statvfs(path)
    return status.f_bavail * status.f_frsize


def open_files() -> int:
    """Open file descriptors of this process; 0 where nobody tells."""
    for directory in ("/proc/self/fd", "/dev/fd"):
        with contextlib.suppress(OSError):
            return len(os.listdir(directory))
    return 0


def files_max() -> int:
    """How many file descriptors this process may have."""
    return limit(resource.RLIMIT_NOFILE, "Max open files")


def limit(kind: int, name: str, path: str = "/proc/self/limits") -> int:
    """One of this process's limits; RLIM_INFINITY for none. A sandbox that lets nobody ask still shows the file."""
    try:
        return resource.getrlimit(kind)[0]
    except OSError:
        with open(path, encoding="ascii") as limits:
            rows = (line for line in limits if line.startswith(name))
            first = next(rows, name).removeprefix(name).split()[:1]
        return int(first[0]) if first and first[0].isdigit() else resource.RLIM_INFINITY


def store_files_max() -> int:
    """How many files the store may keep open: as many as sockets and everything else leave."""
    return min(max(files_max() - sockets_max() - OTHER_FILES, STORE_FILES_MIN), STORE_FILES_MAX)


def sockets_max() -> int:
    """How many connections may be open: 90 % of the descriptors that are not reserved for files (RabbitMQ's rule)."""
    return max(int((files_max() - RESERVED_FILES) * 0.9), 10)
