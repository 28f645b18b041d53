"""The loop side of one queue's storage.

A `QueueLog` turns what happens to a queue into commands of the commit that collects, one for each run. It answers reads
at once while the messages asked for are still in memory, otherwise through the reader thread. State: the runs and acks
whose commit is not finished yet; the engine's backlog bounds them. Called by the broker's queue on the loop.

Invariants: nothing here touches a file or grows with the number of messages on disk; a sequence number that was acked
is never returned by a read that starts later; the lists given to `append` and `ack` belong to the store from then on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, Protocol

from burrowmq.storage.loop.staged_commit import (
    Ack,
    AckMany,
    Append,
    Command,
    Delete,
    ReadRequest,
    SetVersion,
)
from burrowmq.storage.names import QueueNames
from burrowmq.storage.types import (
    ALL,
    NO_EXPIRY,
    LoadedMessage,
    OnRead,
    RecoveredQueue,
    StoredMessage,
)

# What a QueueLog and the queue's object on the disk side weigh without runs or segments (measured with tracemalloc).
_BASE_BYTES = 1_400
# Of each message in a staged run, besides the message itself, which the broker counts.
_MESSAGE_OVERHEAD = 120


class Collector(Protocol):
    """What a QueueLog needs of the engine."""

    def collect(self, command: Command, size: int) -> int:
        """Put a command into the current commit and give the commit's epoch.

        `size`: octets of the messages that it brings, or of those that come with an ack.
        """

    def submit_read(self, request: ReadRequest) -> tuple[list[LoadedMessage], int] | None:
        """Start a read; inline mode gives the result at once."""

    def forget(self, queue_id: int) -> None:
        """The queue was deleted."""

    def index_bytes(self, queue_id: int) -> int:
        """Bytes of the queue's index objects on the disk side."""


class _StagedRun:
    """Messages of one append whose commit is not finished yet."""

    __slots__ = ("end_seq", "epoch", "expiries", "first_seq", "messages", "size")

    def __init__(
        self,
        first_seq: int,
        messages: Sequence[StoredMessage],
        expiries: Sequence[int] | None,
        size: int,
        epoch: int,
    ) -> None:
        self.first_seq = first_seq
        self.end_seq = first_seq + len(messages)
        self.messages = messages
        self.expiries = expiries
        self.size = size
        self.epoch = epoch


# What a log has while nothing waits, and all of them share; never changed.
_NO_RUNS: Final[list[_StagedRun]] = []
_NO_ACKS: Final[list[tuple[int, int, int]]] = []


class QueueLog:
    """Storage of one queue, or of one of its levels, seen from the loop."""

    __slots__ = (
        "_acked",
        "_applied_seq",
        "_collector",
        "_deleted",
        "_runs",
        "_runs_bytes",
        "durable",
        "loaded_count",
        "names",
        "next_deliver_seq",
        "next_seq",
        "queue_id",
        "recovered",
        "written_count",
    )

    def __init__(
        self,
        collector: Collector,
        queue_id: int,
        names: QueueNames,
        durable: bool,
        recovered: RecoveredQueue | None,
    ) -> None:
        self._collector = collector
        self.queue_id = queue_id
        self.names = names
        self.durable = durable
        self.recovered = recovered
        self.next_deliver_seq = recovered.next_deliver_seq if recovered else 0
        self.next_seq = recovered.next_seq if recovered else 0
        self.written_count = 0
        """Messages given to the store since the log was opened, also those that were acked before they were on disk."""
        self.loaded_count = 0
        """Messages that had to be read from disk; what was still in memory is not counted."""
        self._applied_seq = recovered.next_seq if recovered else 0
        self._runs = _NO_RUNS  # by first_seq
        self._runs_bytes = 0
        self._acked = _NO_ACKS  # first, last, epoch
        self._deleted = False

    # -- changes --------------------------------------------------------------------------------------------------

    def append(
        self,
        first_seq: int,
        messages: Sequence[StoredMessage],
        expiries: Sequence[int] | None,
        size: int,
    ) -> None:
        """Stage a run. `size` is its bytes, headers included; `expiries` are absolute milliseconds, 0 for none."""
        weight = size + _MESSAGE_OVERHEAD * len(messages)
        epoch = self._collector.collect(
            Append(self.queue_id, first_seq, messages, expiries), weight
        )
        run = _StagedRun(first_seq, messages, expiries, weight, epoch)
        self.next_seq = max(self.next_seq, run.end_seq)
        self.written_count += len(messages)
        runs = self._runs
        if not runs:
            self._runs = [run]
        elif first_seq >= runs[-1].end_seq:
            runs.append(run)
        else:  # an older message paged out after a younger one
            runs.insert(bisect_right(runs, first_seq, key=_first_seq), run)
        self._runs_bytes += weight

    def ack(
        self,
        first_seq: int,
        last_seq: int,
        messages: Sequence[StoredMessage] | None = None,
        size: int = 0,
    ) -> None:
        """Stage that first_seq..last_seq are gone. With `messages` (theirs, in order) no look-up is needed.

        `size`: octets of their bodies.
        """
        epoch = self._collector.collect(Ack(self.queue_id, first_seq, last_seq, messages), size)
        acked, follows = self._acked, (first_seq - 1, epoch)
        if (
            acked and acked[-1][1:] == follows
        ):  # else each single one, for as long as the disk is full
            acked[-1] = (acked[-1][0], last_seq, epoch)
        else:
            self._note_acked([(first_seq, last_seq, epoch)])

    def ack_many(self, seqs: Sequence[int]) -> None:
        """Stage that these are gone, in any order."""
        epoch = self._collector.collect(AckMany(self.queue_id, seqs), 0)
        self._note_acked([(seq, seq, epoch) for seq in seqs])

    def _note_acked(self, acked: list[tuple[int, int, int]]) -> None:
        if self._acked:
            self._acked += acked
        else:
            self._acked = acked

    def delete(self) -> None:
        """Stage that the queue is gone. A read in flight is not answered any more."""
        self._deleted = True
        self._collector.collect(Delete(self.queue_id, self.next_seq), 0)
        self._runs, self._acked = _NO_RUNS, _NO_ACKS
        self._runs_bytes = 0
        self._collector.forget(self.queue_id)

    def set_version(self, version: int) -> None:
        """Stage that the queue's files are to be of this version; reads and appends go on meanwhile."""
        self._collector.collect(SetVersion(self.queue_id, version), 0)

    def set_delivered(self, next_deliver_seq: int) -> None:
        """Remember for a clean stop that everything below was delivered once."""
        self.next_deliver_seq = next_deliver_seq

    # -- reads ----------------------------------------------------------------------------------------------------

    def read(
        self, first_seq: int, max_count: int, max_bytes: int, on_read: OnRead, wanted: int = ALL
    ) -> tuple[list[LoadedMessage], int] | None:
        """Read entries from first_seq on: (loaded, next_seq) at once, or None and later on_read(loaded, next_seq).

        The next read goes on at next_seq. Every message below it that is not acked was loaded, but for what `wanted`
        leaves out (see ReadRequest; it does not matter for what is still in memory). So an empty answer whose next_seq
        is first_seq means the end.
        """
        runs = self._runs
        place = bisect_right(runs, first_seq, key=_end_seq)
        if place < len(runs) and (
            runs[place].first_seq <= first_seq or first_seq >= self._applied_seq
        ):
            return self._from_memory(place, first_seq, max_count, max_bytes)
        if place == len(runs) and first_seq >= self._applied_seq:
            return [], first_seq
        # From here on there is nothing on disk: a read that ends here has found all that the disk has.
        limit_seq = runs[place].first_seq if place < len(runs) else self._applied_seq

        def on_loaded(loaded: list[LoadedMessage], next_seq: int) -> None:
            if not self._deleted:
                self.loaded_count += len(loaded)
                on_read(self._without_acked(loaded), next_seq)

        answer = self._collector.submit_read(
            ReadRequest(
                self.queue_id, first_seq, limit_seq, max_count, max_bytes, on_loaded, wanted
            )
        )
        if answer is None:
            return None
        self.loaded_count += len(answer[0])
        return self._without_acked(answer[0]), answer[1]

    def _from_memory(
        self, place: int, first_seq: int, max_count: int, max_bytes: int
    ) -> tuple[list[LoadedMessage], int]:
        """Take messages from this run on. Ends before a gap between two runs in which something may lie on disk."""
        loaded: list[LoadedMessage] = []
        next_seq = max(first_seq, self._runs[place].first_seq)
        size = 0
        for run in self._runs[place:]:
            if run.first_seq > next_seq and next_seq < self._applied_seq:
                break
            next_seq = max(next_seq, run.first_seq)
            for at in range(next_seq - run.first_seq, len(run.messages)):
                message = run.messages[at]
                size += message.size
                if loaded and (len(loaded) >= max_count or size > max_bytes):
                    return self._without_acked(loaded), next_seq
                expiry = run.expiries[at] if run.expiries is not None else NO_EXPIRY
                loaded.append((next_seq, message, expiry))
                next_seq += 1
        return self._without_acked(loaded), next_seq

    def _without_acked(self, loaded: list[LoadedMessage]) -> list[LoadedMessage]:
        """Leave out what was acked since its commit was staged or this read was asked for."""
        if not loaded or not self._acked:
            return loaded
        lowest, highest = loaded[0][0], loaded[-1][0]
        gone: set[int] = set()
        for first, last, _ in self._acked:
            gone.update(range(max(first, lowest), min(last, highest) + 1))
        return [entry for entry in loaded if entry[0] not in gone] if gone else loaded

    # -- the engine's side ----------------------------------------------------------------------------------------

    def release(self, epoch: int) -> None:
        """All commits up to this epoch are on disk: the runs in them need no memory any more."""
        runs = self._runs
        kept: list[_StagedRun] = []
        for run in runs:
            if run.epoch > epoch:
                kept.append(run)
                continue
            self._applied_seq = max(self._applied_seq, run.end_seq)
            self._runs_bytes -= run.size
        self._runs = kept or _NO_RUNS
        if self._acked:
            self._acked = [ack for ack in self._acked if ack[2] > epoch] or _NO_ACKS

    @property
    def memory_bytes(self) -> int:
        """Bytes that this queue's storage holds in memory."""
        return _BASE_BYTES + self._runs_bytes + self._collector.index_bytes(self.queue_id)


def _first_seq(run: _StagedRun) -> int:
    return run.first_seq


def _end_seq(run: _StagedRun) -> int:
    return run.end_seq
