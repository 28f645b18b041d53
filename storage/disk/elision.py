"""What is left to write of a commit: messages that were acked in the same commit are left out, runs are merged.

A message whose ack is in the same commit is not written at all, unless the commit moves messages from its queue: where
the disk refuses the copies, the originals have to be durable. Runs of one queue that follow each other become one.
For a queue that the commit deletes nothing is written, unless `storage.disk.deletions` says so. State: none besides the
`LeftToWrite` of one commit. Called by the writer on the disk thread. Invariants: what remains of a queue keeps its
order; lists that the loop staged are not changed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import field
from typing import Final

from burrowmq.records import dataclass
from burrowmq.storage.loop.staged_commit import (
    Ack,
    AckMany,
    Append,
    Delete,
    DeleteVhost,
    DropUnclaimed,
    Open,
    SetVersion,
    StagedCommit,
)
from burrowmq.storage.types import StoredMessage

# A tuple: a union would be made anew for each command.
_CHANGES: Final = (Append, Ack, AckMany)
ControlCommand = Open | SetVersion | Delete | DeleteVhost | DropUnclaimed


class RunToWrite:
    """Messages with consecutive sequence numbers that have to be written."""

    __slots__ = ("expiries", "first_seq", "messages")

    def __init__(
        self,
        first_seq: int,
        messages: Sequence[StoredMessage],
        expiries: Sequence[int] | None,
    ) -> None:
        self.first_seq = first_seq
        self.messages = messages
        self.expiries = expiries

    @property
    def end_seq(self) -> int:
        """The sequence number after the last."""
        return self.first_seq + len(self.messages)

    def part(self, first_seq: int, end_seq: int) -> RunToWrite:
        """Give the messages first_seq..end_seq - 1 as a run."""
        low, high = first_seq - self.first_seq, end_seq - self.first_seq
        expiries = None if self.expiries is None else self.expiries[low:high]
        return RunToWrite(first_seq, self.messages[low:high], expiries)


class QueueChanges:
    """What a commit does to one queue. One is made for each queue of a commit.

    `is_origin`: messages are moved from it, so that all that it appends is written.
    """

    __slots__ = ("_is_in_order", "acked_seqs", "acks", "elided", "is_origin", "runs")

    def __init__(
        self,
        runs: list[RunToWrite] | None = None,
        acks: list[Ack] | None = None,
        acked_seqs: list[int] | None = None,
        *,
        is_origin: bool = False,
    ) -> None:
        self.runs = runs or []
        self.acks = acks or []
        self.acked_seqs = acked_seqs or []
        self.elided = 0
        self.is_origin = is_origin
        # But for an older message that was paged out behind a younger one.
        self._is_in_order = all(map(_follows, self.runs, self.runs[1:])) if runs else True

    def append(self, command: Append) -> None:
        """Take a run in; if it follows the one before, it is merged with it."""
        if not command.messages:
            return
        if self.runs:
            last = self.runs[-1]
            if last.end_seq == command.first_seq and (last.expiries is None) == (
                command.expiries is None
            ):
                if not isinstance(last.messages, _Joined):
                    last.messages = _Joined(last.messages)
                    last.expiries = None if last.expiries is None else list(last.expiries)
                last.messages.extend(command.messages)
                if last.expiries is not None and command.expiries is not None:
                    last.expiries = [*last.expiries, *command.expiries]
                return
            self._is_in_order = self._is_in_order and last.end_seq <= command.first_seq
        self.runs.append(RunToWrite(command.first_seq, command.messages, command.expiries))

    def ack(self, command: Ack) -> None:
        """Leave out what was to be written of the range; if some of it is on disk already, keep the ack for that."""
        if self.is_origin or not self.runs or command.last_seq < self.runs[0].first_seq:
            self.acks.append(command)
            return
        before = self.elided
        self._elide(command.first_seq, command.last_seq + 1)
        if self.elided - before < command.last_seq - command.first_seq + 1:
            self.acks.append(command)

    def ack_seqs(self, seqs: Sequence[int]) -> None:
        """The same for single messages, in any order."""
        if self.is_origin or not self.runs:
            self.acked_seqs.extend(seqs)
            return
        for seq in seqs:
            before = self.elided
            self._elide(seq, seq + 1)
            if self.elided == before:
                self.acked_seqs.append(seq)

    def _elide(self, first_seq: int, end_seq: int) -> None:
        """Leave these out: of many runs, as single acks leave them, only those that have some of it are looked at."""
        runs = self.runs
        begin = at = bisect_right(runs, first_seq, key=_end_seq) if self._is_in_order else 0
        kept: list[RunToWrite] = []
        while at < len(runs):
            run = runs[at]
            low, high = max(first_seq, run.first_seq), min(end_seq, run.end_seq)
            if low < high:
                self.elided += high - low
                if run.first_seq < low:
                    kept.append(run.part(run.first_seq, low))
                if high < run.end_seq:
                    kept.append(run.part(high, run.end_seq))
            elif self._is_in_order:
                break
            else:
                kept.append(run)
            at += 1
        runs[begin:at] = kept


def _end_seq(run: RunToWrite) -> int:
    return run.end_seq


def _follows(before: RunToWrite, run: RunToWrite) -> bool:
    return before.end_seq <= run.first_seq


class _Joined(list[StoredMessage]):
    """A list of messages that was made here, so that it may be extended."""


@dataclass(slots=True)
class LeftToWrite:
    """What is left of a commit: the commands that open and delete, in order, and the changes of each queue.

    `ended`: what it had for queues that it deletes, which is not to be written.
    """

    control: list[ControlCommand] = field(default_factory=list)
    queues: dict[int, QueueChanges] = field(default_factory=dict)
    ended: dict[int, QueueChanges] = field(default_factory=dict)


NOWHERE: Final = frozenset[int]()


def left_to_write(commit: StagedCommit, origins: AbstractSet[int] = NOWHERE) -> LeftToWrite:
    """Work out what is left to write of a commit, which moves messages from queues in `origins`."""
    left = LeftToWrite()
    queues = left.queues
    for command in commit.commands:
        if isinstance(command, _CHANGES):
            changes = queues.get(command.queue_id)
            if changes is None:
                is_origin = command.queue_id in origins
                changes = queues[command.queue_id] = QueueChanges(is_origin=is_origin)
            if isinstance(command, Append):
                changes.append(command)
            elif isinstance(command, Ack):
                changes.ack(command)
            else:
                changes.ack_seqs(command.seqs)
            continue
        if isinstance(command, Delete):
            changes = queues.pop(command.queue_id, None)
            if changes is not None:
                left.ended[command.queue_id] = changes
        left.control.append(command)
    return left
