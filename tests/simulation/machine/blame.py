"""What the disk refuses one queue concerns that queue: no other one suffers from it until the next start.

A queue that nothing but a start takes back, or that is not converted to its end, has been refused a call in its own
directory, or the store one that all queues share. State: none. Called by `tests.simulation.machine.audit`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.machine.node import Machine, Violation

if TYPE_CHECKING:
    from burrowmq.storage.queue.disk import QueueDisk


def require_own_faults(machine: Machine, *, has_damage: bool) -> None:
    """Raise Violation if a queue suffers from what was refused to others alone; a damaged one is not converted."""
    assert machine.node is not None
    writer = machine.node.engine._writer
    assert writer is not None
    failed = [path for _, path in machine.disk.failed]
    for one in writer.refusals._found.values():
        if one.is_stuck:
            _require_one(one.queue, failed, "is blocked until the next start")
    for queue in () if has_damage else writer.conversion._left:
        _require_one(queue, failed, "is not converted")


def _require_one(queue: QueueDisk, failed: list[str], what: str) -> None:
    for path in failed:
        if "/queues/" not in path or f"{path}/".startswith(f"{queue.directory}/"):
            return
    raise Violation(f"{queue.names.name} {what}, and the disk refused it nothing")
