"""What the loop hands to the disk thread: a commit of commands, and read requests.

A `StagedCommit` collects plain tuples (operation, queue id, arguments), one a run and never one a message.
The loop owns a commit until it hands it over; from then on the disk thread does, until it reports it finished.
Nobody changes a list of messages that was put into a command. State: none but the commit itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from burrowmq.storage.names import QueueNames
from burrowmq.storage.types import ALL, BackupJob, JsonValue, OnRead, StoredMessage


class Open(NamedTuple):
    """The storage of a queue, or of one of its levels, comes into use: the recovered one, or a new one."""

    queue_id: int
    names: QueueNames
    durable: bool
    version: int = 2


class SetVersion(NamedTuple):
    """The queue's files are to be of this version; what it has is converted."""

    queue_id: int
    version: int


class Append(NamedTuple):
    """A run of messages with consecutive sequence numbers."""

    queue_id: int
    first_seq: int
    messages: Sequence[StoredMessage]
    expiries: Sequence[int] | None


class Ack(NamedTuple):
    """The messages first_seq..last_seq are gone; `messages` are theirs when they were in memory."""

    queue_id: int
    first_seq: int
    last_seq: int
    messages: Sequence[StoredMessage] | None


class AckMany(NamedTuple):
    """Messages that are gone, in any order."""

    queue_id: int
    seqs: Sequence[int]


class Discard(NamedTuple):
    """Everything below next_seq is gone."""

    queue_id: int
    next_seq: int


class Delete(NamedTuple):
    """The queue is gone."""

    queue_id: int


class DeleteVhost(NamedTuple):
    """Everything of a vhost is gone; its queues were deleted before."""

    queue_id: int
    vhost: str


class DropUnclaimed(NamedTuple):
    """Recovered queues that nobody opened are gone."""

    queue_id: int


Command = (
    Open | SetVersion | Append | Ack | AckMany | Discard | Delete | DeleteVhost | DropUnclaimed
)


@dataclass(slots=True)
class StagedCommit:
    """The commands of one epoch. `size` is the bytes it holds in memory, `sync` whether somebody waits for it.

    `deleted` are the durable queues (vhost, name) that it deletes; `backup` is to be cut when the commit is applied.
    """

    epoch: int
    commands: list[Command] = field(default_factory=list)
    definitions: list[tuple[str, str, JsonValue]] = field(default_factory=list)
    touched: set[int] = field(default_factory=set)
    deleted: set[tuple[str, str]] = field(default_factory=set)
    size: int = 0
    sync: bool = False
    backup: BackupJob | None = None

    def is_empty(self) -> bool:
        """Tell whether there is nothing to write and nobody waits."""
        return not (self.commands or self.definitions or self.sync or self.backup)


@dataclass(slots=True)
class ReadRequest:
    """A read of one queue: entries in [first_seq, limit_seq) that are not acked, up to both limits, at least one.

    After `wanted` entries the read ends before the next body that is in the shared store (so that one with 0 may give
    nothing): these are read when they are needed, not ahead. With EMBEDDED_ONLY they are left out.
    """

    queue_id: int
    first_seq: int
    limit_seq: int
    max_count: int
    max_bytes: int
    on_read: OnRead
    wanted: int = ALL
