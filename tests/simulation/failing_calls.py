"""Faults of a file system, and a whole session of the store in which each call in turn meets one.

A failure prints what run_with_fault needs to do it again. What must hold is in fault_script.
"""

from __future__ import annotations

import errno
from collections import Counter

from burrowmq.storage.types import StoreOptions
from tests.simulation.fault_script import Fault, calls_of, run_with_fault
from tests.simulation.store_world import OPTIONS, Violation

FOR_GOOD = 1 << 40


SYNCS = frozenset({"fdatasync", "fsync_dir"})


CHANGES = SYNCS | {
    "pwrite", "create", "rename", "link", "unlink", "truncate", "mkdir", "rmtree", "commit"
}  # fmt: skip


FAULTS = {
    "EIO": Fault(errno.EIO, keep=3),
    "EIO twice": Fault(errno.EIO, times=2),
    "EIO for good": Fault(errno.EIO, times=FOR_GOOD),
    "a disk that takes nothing more": Fault(errno.EIO, times=FOR_GOOD, operations=CHANGES),
    "EINTR": Fault(errno.EINTR),
    "no room, and a short write": Fault(errno.ENOSPC, keep=30, operations=CHANGES),
    "no room for a while": Fault(errno.ENOSPC, times=4, keep=7, operations=CHANGES),
    "a failed sync": Fault(errno.EIO, operations=frozenset({"fdatasync"})),
    "a failed sync of a directory": Fault(errno.EIO, operations=frozenset({"fsync_dir"})),
    "two failed syncs": Fault(errno.EIO, times=2, operations=SYNCS),
    "a failed sync, then no room": Fault(errno.EIO, operations=frozenset({"fdatasync"}), full=6),
}


def let_fail(source: int, name: str, step: int, options: StoreOptions = OPTIONS) -> Counter[str]:
    """Let every `step`th call of a session fail in turn; gives how often what came of it."""
    fault = FAULTS[name]
    calls = calls_of(source, options, fault.operations)
    assert calls > 60
    if fault.operations and len(fault.operations) <= 2:
        step = min(step, 7)
    outcomes: Counter[str] = Counter()
    for at in range(1 + len(name) % step, calls + 1, step):
        try:
            outcomes[run_with_fault(source, at, fault, strict=bool(at & 1), options=options)] += 1
        except Violation as error:
            raise Violation(f"version {source}, {name}, call {at}: {error}") from error
    return outcomes
