"""How much processor time this process may use, and how much nobody used: affinity, cgroups, /proc/stat.

Only reads; called at start and about once a second.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from burrowmq.broker.machine import cgroups

TICKS_S = os.sysconf("SC_CLK_TCK")


def usable(root: str = "/") -> float:
    """Processors that this process may use: its affinity, or a cgroup's quota when that is less."""
    return min([float(len(_own())), *_quotas(root)])


def _own() -> set[int]:
    """The processors that we may run on: all, where the system has no affinities (macOS) or a sandbox hides them."""
    with contextlib.suppress(AttributeError, OSError):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def _quotas(root: str) -> Iterator[float]:
    for path in cgroups.files(root, "cpu", "cpu.max", "cpu.cfs_quota_us"):
        words = cgroups.first_line(path).split()
        if path.endswith("cpu.cfs_quota_us"):
            words.append(cgroups.first_line(path.removesuffix("quota_us") + "period_us"))
        if len(words) == 2 and all(map(str.isdigit, words)) and int(words[1]):
            yield int(words[0]) / int(words[1])


def idle_seconds(root: str = "/") -> float:
    """The sum of the idle times of the processors that we may run on, since the machine started; 0.0 if unknown."""
    wanted = {b"cpu%d" % number for number in _own()}
    ticks = 0
    with contextlib.suppress(OSError), open(os.path.join(root, "proc/stat"), "rb") as stat:
        for line in stat:
            name, *fields = line.split()
            if name in wanted:
                ticks += int(fields[3]) + int(fields[4])
            elif not name.startswith(b"cpu"):
                break
    return ticks / TICKS_S
