"""Which deletions of a commit do not go where the others do: behind its definitions, before its messages.

State: none. Called by `storage.disk.writer` when a commit begins.
"""

from __future__ import annotations

from collections.abc import Mapping

from burrowmq.storage.disk.elision import ControlCommand, LeftToWrite
from burrowmq.storage.loop.staged_commit import Delete, DeleteVhost, DropUnclaimed, Open
from burrowmq.storage.queue.disk import QueueDisk


def redeclared(left: LeftToWrite, queues: Mapping[int, QueueDisk]) -> list[ControlCommand]:
    """Give the deletions of queues that the same commit opens again afterwards, or may declare again.

    They go before the definitions: a power cut in between must not leave the old messages to the new queue. All
    other deletions go after them, so that a queue whose deletion was not committed still has its messages. That
    both are in one commit is seen to by whoever declares the queue again (`Engine.is_deleting`). What a start found
    without a definition has been deleted for certain, and any definition of the commit may use its name.
    """
    found: list[ControlCommand] = []
    opened: set[tuple[str, str]] = (
        set()
    )  # behind the deletion, whichever of its levels is opened first
    for command in reversed(left.control):
        if isinstance(command, Open):
            opened.add(command.names[:2])
        elif isinstance(command, Delete):
            queue = queues.get(command.queue_id)
            if queue is not None and queue.names[:2] in opened:
                found.append(command)
        elif isinstance(command, DropUnclaimed):
            found.append(command)
    return found[::-1]


def deleted_last(left: LeftToWrite, early: list[ControlCommand]) -> list[ControlCommand]:
    """Give the deletions of a commit that moves messages: what a queue gave away before its end has to be durable.

    They come with the acks, and with them the definitions. None where the order to other commands matters: a queue
    that is opened after a whole vhost went, or that is declared again, which is among those that go `early`.
    """
    kinds = [type(command) for command in left.control]
    if DeleteVhost in kinds or Delete in map(type, early):
        return []
    return [command for command in left.control if isinstance(command, Delete)]
