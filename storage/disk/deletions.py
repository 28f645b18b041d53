"""In which order a commit's deletions go, its definitions, and what it opens.

Usually it is definitions, deletions and new queues, messages. A queue that the same commit declares again is deleted
before the definitions, and so is one that nobody has opened, where the commit deletes and makes its virtual host
(`remade`). In a commit that moves messages the deletions come with the acks, behind a sync. A queue that
the commit makes and deletes is never made: its name may have been used again by then.

State: none. Called by `storage.disk.writer` when a commit begins.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import field
from typing import Final

from burrowmq.records import dataclass
from burrowmq.storage.directory.removals import WHOLE, Place
from burrowmq.storage.disk.elision import (
    ControlCommand,
    LeftToWrite,
    QueueChanges,
    RunToWrite,
)
from burrowmq.storage.loop.staged_commit import (
    Delete,
    DeleteVhost,
    DropUnclaimed,
    Open,
    StagedCommit,
)
from burrowmq.storage.queue.disk import QueueDisk


@dataclass(slots=True)
class Order:
    """The commands of one commit that open and delete: `before` its definitions, and `after` them.

    `has_last`: these three wait with the acks, until what the commit moves is durable; `first` does not, and what it
    deletes is defined. Messages of the queues in `held`, which are opened only then, come behind them, and acks of
    those in `deleted` are not written.
    """

    first: list[ControlCommand] = field(default_factory=list)
    before: list[ControlCommand] = field(default_factory=list)
    after: list[ControlCommand] = field(default_factory=list)
    held: set[int] = field(default_factory=set)
    deleted: set[int] = field(default_factory=set)
    has_last: bool = False


NOTHING: Final = Order()
_ENDS: Final = (Delete, DeleteVhost)


def order_of(left: LeftToWrite, queues: Mapping[int, QueueDisk], commit: StagedCommit) -> Order:
    """Give the order of what is left of a commit; `queues` are open. Takes out of it what is not to be done at all."""
    never_made = _leave_out_never_made(left, queues)
    early = _redeclared(left, queues)
    if commit.is_moving:
        targets = {target for _, target in commit.moves}
        if left.ended and any(isinstance(one, Delete) for one in early):
            _keep_until_defined(left, never_made, queues, targets)
        order = _deleted_last(left, early, queues, targets)
        if order is not None:
            return order
    return Order(before=early, after=_others(left, early))


def places_going(
    after: Collection[ControlCommand], queues: Mapping[int, QueueDisk], commit: StagedCommit
) -> list[Place]:
    """Give where the durable files are that go behind the definitions."""
    found: list[Place] = []
    if not after:
        return found
    opened = {one.queue_id: one for one in commit.commands if isinstance(one, Open)}
    for command in after:
        if isinstance(command, DeleteVhost):
            found.append((command.vhost, WHOLE))
        elif isinstance(command, Delete):
            queue = queues.get(command.queue_id) or opened.get(command.queue_id)
            if queue is not None and queue.durable:
                found.append((queue.names.vhost, queue.names.directory))
    return found


def remade(control: Collection[ControlCommand]) -> set[tuple[str, str]]:
    """Give the durable queues (vhost, name) that a commit opens behind the deletion of their virtual host."""
    gone: set[str] = set()
    found: set[tuple[str, str]] = set()
    for command in control:
        if isinstance(command, DeleteVhost):
            gone.add(command.vhost)
        elif isinstance(command, Open) and command.durable and command.names.vhost in gone:
            found.add(command.names[:2])
    return found


def places_made(first: Collection[ControlCommand], queues: Mapping[int, QueueDisk]) -> list[Place]:
    """Give where durable files may be made before the definitions."""
    opens = [one for one in first if isinstance(one, Open)]
    return [
        (one.names.vhost, one.names.directory)
        for one in opens
        if one.durable and one.queue_id not in queues
    ]


def _leave_out_never_made(
    left: LeftToWrite, queues: Mapping[int, QueueDisk]
) -> list[ControlCommand]:
    """Drop, and give, the commands for queues that the commit both makes and deletes: nothing of them will be on disk.

    Such a deletion behind the messages would take the directory of the queue that was declared in its place.
    """
    made = {one.queue_id for one in left.control if isinstance(one, Open)} - queues.keys()
    if made:
        made &= {one.queue_id for one in left.control if isinstance(one, Delete)}
    if not made:
        return []
    dropped = [one for one in left.control if one.queue_id in made]
    left.control = [one for one in left.control if one.queue_id not in made]
    return dropped


def _keep_until_defined(
    left: LeftToWrite,
    never_made: Collection[ControlCommand],
    queues: Mapping[int, QueueDisk],
    targets: AbstractSet[tuple[str, str]],
) -> None:
    """Have what was moved to queues that end in this commit written all the same, and those that it makes made.

    A directory is one queue's: what several queues of a name got in turn is written to the first. Not where the name is
    used again, or the vhost goes: then nothing of the old one is found in it.
    """
    there = {one: (queues[one].names, queues[one].durable) for one in left.ended if one in queues}
    made = {one.queue_id: (one.names, one.durable) for one in never_made if isinstance(one, Open)}
    # What a start has taken up is opened in its first commit, and may end in it.
    ended = {one.queue_id for one in left.control if isinstance(one, Delete)}
    opens = [one for one in left.control if isinstance(one, Open)]
    again = {one.names[:2] for one in opens if one.queue_id not in ended}
    gone = {one.vhost for one in left.control if isinstance(one, DeleteVhost)}
    kept = targets - again
    hosts = {(queues[one].names, queues[one].durable): one for one in ended if one in queues}
    for queue_id, place in (there | made).items():
        names = place[0]
        if names[:2] not in kept or names.vhost in gone:
            continue
        host = hosts.setdefault(place, queue_id)
        runs = left.ended[queue_id].runs if queue_id in left.ended else []
        if host == queue_id:
            left.control += [each for each in never_made if each.queue_id == queue_id]
        else:
            runs = _behind(_end_of(host, left, never_made), runs)
        if runs:
            left.queues.setdefault(host, QueueChanges()).runs.extend(runs)


def _end_of(queue_id: int, left: LeftToWrite, never_made: Collection[ControlCommand]) -> int:
    """Give the sequence number behind all that a queue had, and all that is to be written to it."""
    deletions = [one for one in (*left.control, *never_made) if isinstance(one, Delete)]
    changes = left.queues.get(queue_id)
    return max(
        0 if changes is None else changes.runs[-1].end_seq,
        *(one.end_seq for one in deletions if one.queue_id == queue_id),
    )


def _behind(seq: int, runs: Collection[RunToWrite]) -> list[RunToWrite]:
    """Give runs of a queue as those of another, from a sequence number of it on."""
    found: list[RunToWrite] = []
    for run in runs:
        found.append(RunToWrite(seq, run.messages, run.expiries))
        seq = found[-1].end_seq
    return found


def _others(left: LeftToWrite, early: Collection[ControlCommand]) -> list[ControlCommand]:
    """Give the commands that do not go early: none for a queue that is gone by then."""
    gone = {command.queue_id for command in early if isinstance(command, Delete)}
    taken = set(map(id, early))
    return [one for one in left.control if id(one) not in taken and one.queue_id not in gone]


def _redeclared(left: LeftToWrite, queues: Mapping[int, QueueDisk]) -> list[ControlCommand]:
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


def _deleted_last(
    left: LeftToWrite,
    early: Collection[ControlCommand],
    queues: Mapping[int, QueueDisk],
    targets: Collection[tuple[str, str]],
) -> Order | None:
    """Give the order where what a queue gave away before its end has to be durable; None where no queue ends.

    What is declared again, be it with its vhost, is opened behind the deletion, so that it waits too: but for what gets
    messages that are moved. That is deleted and opened first; None as well where nothing but this ends.
    """
    ends = [command for command in left.control if isinstance(command, Delete)]
    if not ends:
        return None
    gone = {command.vhost for command in left.control if isinstance(command, DeleteVhost)}
    again = {queues[one.queue_id].names[:2] for one in early if isinstance(one, Delete)}
    getting = {name for name in again.intersection(targets) if name[0] not in gone}
    order = Order(deleted={one.queue_id for one in ends}, has_last=True)
    for command in early:
        waits = isinstance(command, Delete) and queues[command.queue_id].names[:2] not in getting
        (order.before if waits else order.first).append(command)
    others = _others(left, early)
    if getting and not order.before and not any(isinstance(one, _ENDS) for one in others):
        return None
    order.held = {
        one.queue_id
        for one in others
        if isinstance(one, Open) and (one.names[:2] in again - getting or one.names.vhost in gone)
    }
    for command in others:
        is_last = isinstance(command, _ENDS) or command.queue_id in order.held
        (order.after if is_last else order.first).append(command)
    return order
