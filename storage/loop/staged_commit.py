"""What the loop gives to the disk side: staged commits, made of commands, and read requests.

A command is a plain tuple about one queue, one for each run and never one for each message. A `StagedCommit` holds the
commands of one epoch, that is of one group commit: docs/adr/0022-staged-commits.md. It belongs to the loop until it is
handed over, then to the disk thread until that reports it finished. Nobody changes a list of messages that was put
into a command.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import field
from typing import Final, TypeAlias

from burrowmq.records import NamedTuple, dataclass
from burrowmq.storage.names import QueueNames
from burrowmq.storage.types import ALL, BackupJob, JsonValue, OnRead, StoredMessage

ACKED_BYTES: Final = 8 << 20
"""Of more acked messages a commit that waits for another one keeps none: whoever applies it looks them up."""


class Open(NamedTuple):
    """A queue, or one of its levels, comes into use: a recovered one that was bound to this id, else a new one."""

    queue_id: int
    names: QueueNames
    durable: bool
    version: int = 2


class SetVersion(NamedTuple):
    """New index segments of the queue are of this version, and those that it has are converted."""

    queue_id: int
    version: int


class Append(NamedTuple):
    """A run of messages with consecutive sequence numbers."""

    queue_id: int
    first_seq: int
    messages: Sequence[StoredMessage]
    expiries: Sequence[int] | None


class Ack(NamedTuple):
    """The messages first_seq..last_seq are gone; `messages` has them if they were in memory."""

    queue_id: int
    first_seq: int
    last_seq: int
    messages: Sequence[StoredMessage] | None


class AckMany(NamedTuple):
    """Messages that are gone, in any order."""

    queue_id: int
    seqs: Sequence[int]


class Delete(NamedTuple):
    """The queue is gone. No message of it had this sequence number or a higher one."""

    queue_id: int
    end_seq: int = 0


class DeleteVhost(NamedTuple):
    """Everything of a vhost is gone; its queues were deleted before, but for those that nobody opened."""

    queue_id: int
    vhost: str


class DropUnclaimed(NamedTuple):
    """Recovered queues that nobody opened are gone, but for some: of each the vhost, and the directory's name."""

    queue_id: int
    kept: frozenset[tuple[str, str]] = frozenset()


VhostQueue: TypeAlias = tuple[str, str]
"""A virtual host, and the name of a queue there."""
Command = Open | SetVersion | Append | Ack | AckMany | Delete | DeleteVhost | DropUnclaimed


@dataclass(slots=True)
class StagedCommit:
    """The commands of one epoch, in order, and the definition rows that change.

    `size`: bytes of messages that it keeps in memory. `sync`: somebody waits until it is synced. `touched`: the
    queues that it has commands for. `deleted`: the durable queues (vhost, name) among them that it deletes, with
    an empty name all of a vhost, in which there are some that nobody opened.
    `backup`: the cut of this backup is taken when the commit is applied. `acks_of`: the acks of these queues,
    earlier ones included, are written with the commit. `is_moving`: what it acks has copies among its messages,
    which have to be durable first: `moves` says from which queue (vhost, name) to which.
    `passed_on`: the same of messages that the first of the two queues never had, so that the second alone keeps them.
    `awaited`: how many messages' confirms wait for it. `gone`: queues deleted while it was in flight. `acked_bytes`: of
    messages that came with its acks while another one was in flight.

    Filled in by the disk side: `refused`, the queues that the disk refuses what the commit has for them;
    `unwritten_acks`, those of `acks_of` whose acks it refuses.
    """

    epoch: int
    commands: list[Command] = field(default_factory=list)
    definitions: list[tuple[str, str, JsonValue]] = field(default_factory=list)
    touched: set[int] = field(default_factory=set)
    deleted: set[tuple[str, str]] = field(default_factory=set)
    size: int = 0
    sync: bool = False
    backup: BackupJob | None = None
    acks_of: set[int] = field(default_factory=set)
    is_moving: bool = False
    moves: set[tuple[VhostQueue, VhostQueue]] = field(default_factory=set)
    passed_on: set[tuple[VhostQueue, VhostQueue]] = field(default_factory=set)
    refused: set[int] = field(default_factory=set)
    unwritten_acks: set[int] = field(default_factory=set)
    awaited: int = 0
    gone: dict[int, QueueNames] = field(default_factory=dict)
    acked_bytes: int = 0

    def take_ack(self, ack: Ack, size: int) -> None:
        """Take an ack in that waits for another commit, and that for a disk which may be full for hours.

        `size`: octets of the messages that came with it.

        Publishers wait then, consumers do not: what they acknowledge is not to fill the memory.
        """
        self.acked_bytes += size
        if self.acked_bytes <= ACKED_BYTES:
            self.commands.append(ack)
            return
        before = self.commands[-1] if self.commands else None
        if (
            isinstance(before, Ack)
            and before.messages is None
            and before.queue_id == ack.queue_id
            and before.last_seq + 1 == ack.first_seq
        ):
            self.commands[-1] = before._replace(last_seq=ack.last_seq)
        else:
            self.commands.append(ack._replace(messages=None))

    def is_empty(self) -> bool:
        """Tell whether there is nothing to write and nobody waits for it."""
        return not (self.commands or self.definitions or self.sync or self.backup)

    def moves_on(self) -> dict[VhostQueue, set[VhostQueue]]:
        """Give the queues that messages of each source may be in by now.

        What goes on at once, from a queue with a limit of none, is in no queue on its way. The cost is squared.
        """
        return _onward(self.moves)

    def passing_on_to(self, queues: AbstractSet[VhostQueue]) -> set[VhostQueue]:
        """Give the queues of which others, some of these among them, have alone what was published to them."""
        return {source for source, targets in _onward(self.passed_on).items() if targets & queues}


def _onward(steps: Iterable[tuple[VhostQueue, VhostQueue]]) -> dict[VhostQueue, set[VhostQueue]]:
    found: dict[VhostQueue, set[VhostQueue]] = {}
    for source, target in steps:
        found.setdefault(source, set()).add(target)
    for targets in found.values():
        left = list(targets)
        while left:
            further = found.get(left.pop(), set()) - targets
            targets.update(further)
            left += further
    return found


@dataclass(slots=True)
class ReadRequest:
    """A read of one queue: entries in [first_seq, limit_seq) that are not acked, up to both limits, at least one.

    Bodies in the shared store are large and are not read ahead: after `wanted` entries the read ends before the next
    of them, so that a read with `wanted` 0 may give nothing. With EMBEDDED_ONLY they are left out altogether.
    """

    queue_id: int
    first_seq: int
    limit_seq: int
    max_count: int
    max_bytes: int
    on_read: OnRead
    wanted: int = ALL
