"""Figures of the operating system about this process and its disk.

Read by status pages, /api/nodes and Prometheus. State owned: how many descriptors were sockets at the last look.
Linux's /proc where there is one, `resource` and `shutil` elsewhere; a figure that the system does not give is 0.
Invariant: a call costs microseconds and starts no process.
"""

from __future__ import annotations

import gc
import os
import resource
import shutil
from typing import NamedTuple

from burrowmq.broker.machine import resources


class Figures(NamedTuple):
    """The figures, all read at one time."""

    resident_bytes: int
    open_fds: int
    fd_limit: int
    open_sockets: int
    disk_free_bytes: int
    memory_total_bytes: int
    gc_runs: int
    context_switches: int
    read_ops: int
    write_ops: int
    read_bytes: int
    write_bytes: int
    threads: int
    threads_waiting: int
    thread_limit: int


def resident_bytes() -> int:
    """Memory of this process as the operating system sees it."""
    return resources.rss_bytes()


def memory_total_bytes() -> int:
    """Memory of the machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def disk_free_bytes(path: str) -> int:
    """Free bytes of the file system that holds a path."""
    try:
        return shutil.disk_usage(path or ".").free
    except OSError:
        return 0


class Descriptors:
    """Counts what is open. Thousands of idle connections need not be looked at every few seconds.

    State owned: what was found last, and how often that was told since. A look at each is taken when the number has
    changed, and every `LOOK_EVERY` times in any case: one that was closed may have made room for one of another kind.
    """

    LOOK_EVERY = 12

    def __init__(self, directory: str = "/proc/self/fd") -> None:
        self._directory = directory
        self._found = 0, 0
        self._told = 0

    def count(self) -> tuple[int, int]:
        """(open descriptors, sockets among them)."""
        try:
            count = self._number()
            self._told += 1
            if count != self._found[0] or self._told >= self.LOOK_EVERY:
                self._told = 0
                self._found = count, sum(map(self._is_socket, os.listdir(self._directory)))
        except OSError:
            return 0, 0
        return self._found

    def _number(self) -> int:
        """How many there are, that included which a list of them takes. Raises OSError."""
        if self._directory.startswith("/proc/"):
            size = os.stat(self._directory).st_size  # from Linux 6.2 on; 0 before
            if size:
                return size + 1
        return len(os.listdir(self._directory))

    def _is_socket(self, name: str) -> bool:
        try:
            return os.readlink(f"{self._directory}/{name}").startswith("socket:")
        except OSError:
            return False  # listdir's own descriptor is gone by now


_descriptors = Descriptors()


def _io_counters() -> dict[str, int]:
    try:
        with open("/proc/self/io", encoding="ascii") as file:
            return {name: int(value) for name, _, value in (line.partition(":") for line in file)}
    except OSError:
        return {}


def threads() -> tuple[int, int]:
    """(threads, those of them that run or could, besides the one that asks)."""
    try:
        names = os.listdir("/proc/self/task")
    except OSError:
        return 0, 0
    runnable = 0
    for name in names:
        try:
            with open(f"/proc/self/task/{name}/stat", encoding="utf-8", errors="replace") as file:
                # `17 (a name, of any characters) R 1 ...`
                runnable += file.read().rpartition(")")[2].split()[0] == "R"
        except OSError:
            continue  # it has ended by now
    return len(names), max(0, runnable - 1)


def _thread_limit() -> int:
    """How many threads the system lets this user, or everybody, have."""
    limits = [resources.limit(resource.RLIMIT_NPROC, "Max processes")]
    try:
        with open("/proc/sys/kernel/threads-max", encoding="ascii") as file:
            limits.append(int(file.read()))
    except OSError:
        pass
    return min((limit for limit in limits if limit != resource.RLIM_INFINITY), default=0)


def figures(data_dir: str) -> Figures:
    """Everything at once."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    descriptors, sockets = _descriptors.count()
    transfers = _io_counters()
    thread_count, threads_waiting = threads()
    return Figures(
        resident_bytes=resident_bytes(),
        open_fds=descriptors,
        fd_limit=resources.files_max(),
        open_sockets=sockets,
        disk_free_bytes=disk_free_bytes(data_dir),
        memory_total_bytes=memory_total_bytes(),
        gc_runs=sum(generation["collections"] for generation in gc.get_stats()),
        context_switches=usage.ru_nvcsw + usage.ru_nivcsw,
        read_ops=transfers.get("syscr", 0),
        write_ops=transfers.get("syscw", 0),
        read_bytes=transfers.get("read_bytes", 0),
        write_bytes=transfers.get("write_bytes", 0),
        threads=thread_count,
        threads_waiting=threads_waiting,
        thread_limit=_thread_limit(),
    )
