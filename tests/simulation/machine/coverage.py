"""What the runs of some seeds have met: a table of steps by what befell the machine in them.

A step is an operation of the plan, or the life of the process (`start`, `end`); in it a call to the disk failed, the
power went, or the process was killed. What stays empty in the table is what no seed has tried.

State: none. The machine counts, `tests.simulation.machine.__main__` prints.
"""

from __future__ import annotations

import errno
from collections import Counter

POWER_CUT, KILLED = "power cut", "killed"
KINDS = {
    "pread": "read",
    "open": "read",
    "pwrite": "write",
    "create": "write",
    "truncate": "write",
    "fdatasync": "sync",
    "fsync_dir": "sync dir",
    "unlink": "name",
    "rename": "name",
    "mkdir": "name",
    "rmtree": "name",
}
ERRORS = (errno.EIO, errno.ENOSPC, errno.EMFILE)
Met = Counter[tuple[str, str]]
"""How often, by step and what befell it."""


def fault_of(operation: str, number: int) -> str:
    """What a failing call is called."""
    return f"{KINDS.get(operation, 'look')} {errno.errorcode[number]}"


def table(met: Met) -> str:
    """One row a step, one column a fault: faults of one kind of call side by side, sums at both ends."""
    kinds = dict.fromkeys((*KINDS.values(), "look"))
    order = [f"{kind} {errno.errorcode[number]}" for kind in kinds for number in ERRORS]
    present = {fault for _, fault in met}
    faults = [one for one in (*order, KILLED, POWER_CUT) if one in present]
    steps = sorted({step for step, _ in met})
    rows = [["step", *faults, "sum"]]
    for step in steps:
        counts = [met[step, fault] for fault in faults]
        rows.append([step, *map(_count, counts), str(sum(counts))])
    sums = [sum(met[step, fault] for step in steps) for fault in faults]
    rows.append(["sum", *map(_count, sums), str(sum(sums))])
    return "\n".join(
        f"| {' | '.join(row)} |" for row in (rows[0], ["---"] * len(rows[0]), *rows[1:])
    )


def _count(count: int) -> str:
    return str(count) if count else ""
