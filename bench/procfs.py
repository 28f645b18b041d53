"""CPU time, memory and disk use of a process, read from /proc (Linux).

Owns no state. Called by `peers` and `scenarios`. CPU is user + system of all threads, the figure that neighbours on a
shared machine disturb least; `busiest_thread_s` tells whether a single-threaded broker or client was the limit.
"""

import os
import platform
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class CpuUse:
    """CPU seconds spent by a process up to one moment, and by each of its threads."""

    total_s: float
    threads: dict[int, float]


def _stat_cpu_s(path: Path) -> float:
    # The command name may hold spaces and brackets: fields are counted after its last ')'.
    fields = path.read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def cpu_use(pid: int) -> CpuUse:
    """CPU use so far of process `pid`: to the nanosecond, except for what threads used that have ended (to a tick)."""
    root = Path("/proc") / str(pid)
    threads: dict[int, float] = {}
    for task in (root / "task").iterdir():
        try:
            threads[int(task.name)] = int((task / "schedstat").read_text().split()[0]) / 1e9
        except FileNotFoundError:
            continue  # the thread ended between the listing and the reading
    # The kernel's sum over all threads is cut to ticks of 10 ms, which is percents of a short row.
    return CpuUse(max(sum(threads.values()), _stat_cpu_s(root / "stat")), threads)


def busiest_thread_s(before: CpuUse, after: CpuUse) -> float:
    """CPU seconds of the thread that worked most between two readings."""
    spent = (used - before.threads.get(tid, 0.0) for tid, used in after.threads.items())
    return max(spent, default=0.0)


def queued_s(pid: int) -> float:
    """Seconds that a process' first thread, which has its event loop, could have run and had no processor."""
    text = (Path("/proc") / str(pid) / "task" / str(pid) / "schedstat").read_text()
    return int(text.split()[1]) / 1e9


def _status_bytes(pid: int, field: str) -> int:
    for line in (Path("/proc") / str(pid) / "status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) * 1024
    return 0


def rss_bytes(pid: int) -> int:
    """Resident memory now."""
    return _status_bytes(pid, "VmRSS")


def peak_rss_bytes(pid: int) -> int:
    """Largest resident memory since the last `reset_peak_rss`."""
    return _status_bytes(pid, "VmHWM")


def reset_peak_rss(pid: int) -> None:
    """Start a new peak measurement (needs the owner's rights on the process)."""
    (Path("/proc") / str(pid) / "clear_refs").write_text("5")


def disk_bytes(directory: Path) -> int:
    """Bytes allocated on disk by all files below `directory`."""
    total = 0
    for root, _, names in os.walk(directory):
        for name in names:
            try:
                total += os.lstat(os.path.join(root, name)).st_blocks * 512
            except FileNotFoundError:
                continue
    return total


def machine_busy_s() -> float:
    """CPU seconds that all programs of this machine, and its neighbours on the host, have taken so far."""
    name, *ticks = Path("/proc/stat").read_text().partition("\n")[0].split()
    assert name == "cpu"
    user, nice, system, _idle, _wait, irq, softirq, steal = (int(each) for each in ticks[:8])
    return (user + nice + system + irq + softirq + steal) / _TICKS


_TOUCH = "import mmap, sys; mmap.mmap(-1, int(sys.argv[1]), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE)"


def touch_memory(size_bytes: int) -> int:
    """Have a child process use so much free memory once, at most half of what there is; return how much.

    A virtual machine gets memory from its host at first use, and the writer of a fresh page pays for that (measured:
    ten times the price of the write itself). Afterwards the page cache costs the same for the first gigabyte and the
    last.
    """
    available = next(
        int(line.split()[1]) * 1024
        for line in Path("/proc/meminfo").read_text().splitlines()
        if line.startswith("MemAvailable")
    )
    size_bytes = min(size_bytes, available // 2)
    subprocess.run([sys.executable, "-c", _TOUCH, str(size_bytes)], check=True)
    return size_bytes


def wait_idle(pid: int, limit_s: float = 15.0) -> None:
    """Return when the process has used less than 5 % of a core for 0.3 s, or at the limit."""
    deadline = time.monotonic() + limit_s
    before = cpu_use(pid).total_s
    while time.monotonic() < deadline:
        time.sleep(0.3)
        now = cpu_use(pid).total_s
        if now - before <= 0.015:
            return
        before = now


def descendants(pid: int) -> list[int]:
    """Process ids below `pid`, nearest first."""
    found: list[int] = []
    level = [pid]
    while level:
        below: list[int] = []
        for parent in level:
            for children in (Path("/proc") / str(parent) / "task").glob("*/children"):
                try:
                    below += [int(child) for child in children.read_text().split()]
                except OSError:
                    continue
        found += below
        level = below
    return found


def command_name(pid: int) -> str:
    """Short command name, or '' when the process is gone."""
    try:
        return (Path("/proc") / str(pid) / "comm").read_text().strip()
    except OSError:
        return ""


def machine() -> dict[str, str]:
    """What a reader has to know about the machine beside a figure."""
    model = "unknown"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    memory = next(
        line.split()[1]
        for line in Path("/proc/meminfo").read_text().splitlines()
        if line.startswith("MemTotal")
    )
    return {
        "cpu": model,
        "cores": str(os.cpu_count()),
        "memory": f"{int(memory) / 1024 / 1024:.0f} GiB",
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load_average_at_start": f"{os.getloadavg()[0]:.2f}",
    }
