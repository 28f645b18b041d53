"""What single queues are owed because the disk refuses their files, until it takes it.

A write, a sync or a directory of one queue that is refused concerns that queue. Its messages stay in memory, here and
with the loop; its commits say that it `refused` them, so that nobody is told that they are safe; nothing of it is
written, removed or converted meanwhile, and acknowledgements hold in memory. After a pause that doubles it is tried
again: files whose sync failed are written anew elsewhere, then what is owed, then all is synced; only then the queue
takes part again (`docs/adr/0025-a-refused-queue.md`). A queue whose directory could not be synced is `stuck` until the
next start, which reads what is there.

What dead letters leave behind is withheld: while a queue is owed the copies, the acknowledgements of the originals
are not written, and references of the originals are not given back. The originals may not be deleted either: they are
all that is durable (`last_copies_in`).

It is the store's fault, and not a queue's, when the disk refuses a new file too, when more than `MOST_QUEUES` are
refused, or when more than `MOST_BYTES` are owed: then the error is raised again, and the store ends.

State owned: the refused queues with what they are owed, and the queues that are withheld. Called by the writer on the
disk thread under the lock of `storage.disk.jobs`; the reader thread asks `why_unreadable` under it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import field
from typing import Final

from burrowmq.records import dataclass
from burrowmq.storage.directory.context import StoreContext
from burrowmq.storage.disk.elision import QueueChanges, RunToWrite
from burrowmq.storage.disk.rescue import Run
from burrowmq.storage.disk.troubles import WRITING, Troubles
from burrowmq.storage.errors import DirectoryFailed, DiskFull, StorageError, WriteFailed
from burrowmq.storage.files.probe import takes_writes
from burrowmq.storage.loop.staged_commit import StagedCommit
from burrowmq.storage.queue.disk import QueueDisk
from burrowmq.storage.types import StoredMessage

MOST_QUEUES: Final = 32
MOST_BYTES: Final = 64 << 20
_MESSAGE_BYTES = 300  # what one weighs besides its bytes


@dataclass(slots=True)
class Refusal:
    """One queue that the disk refuses."""

    queue: QueueDisk
    reason: str
    runs: list[RunToWrite] = field(default_factory=list)  # owed, in order; each of one segment
    acked: set[int] = field(default_factory=set)  # of the first run: a part that is not to last
    failed: set[str] = field(default_factory=set)  # files whose sync failed
    in_files: list[Run] = field(default_factory=list)  # that those may have lost
    is_stuck: bool = False  # until the next start


@dataclass(slots=True)
class Withheld:
    """A queue whose dead letters are owed to others."""

    queue: QueueDisk
    targets: set[int]
    dropped: list[int] = field(default_factory=list)  # references that its acks give back


class Refusals:
    """Those of all open queues."""

    def __init__(self, context: StoreContext, troubles: Troubles) -> None:
        self._context = context
        self._troubles = troubles
        self._found: dict[int, Refusal] = {}
        self._withheld: dict[int, Withheld] = {}
        self.bytes = 0
        """Of messages that are owed, in memory."""

    def __len__(self) -> int:
        return len(self._found)

    # -- which ----------------------------------------------------------------------------------------------------

    def has(self, queue_id: int) -> bool:
        """Whether a queue is refused."""
        return queue_id in self._found

    def queues(self) -> set[QueueDisk]:
        """Those that are refused or withheld: nothing of them is written anew, or removed."""
        if not self._found:
            return set()
        found = {one.queue for one in self._found.values()}
        return found | {one.queue for one in self._withheld.values()}

    def is_withheld(self, queue_id: int) -> bool:
        """Whether a queue's acks are for dead letters that another queue is owed."""
        return queue_id in self._withheld

    def withheld(self) -> set[int]:
        """Give all of these."""
        return set(self._withheld)

    def kept_as_they_are(self) -> dict[int, str]:
        """Give the queues whose files are not to be written anew now, and why."""
        withheld = dict.fromkeys(self._withheld, "copies of its dead letters are owed")
        stuck = (queue_id for queue_id, one in self._found.items() if one.is_stuck)
        return withheld | dict.fromkeys(stuck, "nobody knows which files it has")

    def is_held(self, queue_id: int) -> bool:
        """Whether nothing of a queue's acks may be written: it is refused, or withheld."""
        return queue_id in self._found or queue_id in self._withheld

    def why_unreadable(self, queue_id: int) -> str:
        """Why nobody knows what a queue's files say; empty when that is known."""
        one = self._found.get(queue_id)
        return one.reason if one is not None and (one.is_stuck or one.failed) else ""

    def failed_files(self) -> list[str]:
        """Give the files that were given up since their sync failed, and that are not written anew yet."""
        return [path for one in self._found.values() for path in one.failed]

    def note_in(self, commit: StagedCommit) -> None:
        """A commit begins: what it has for refused queues is refused too."""
        if self._found:
            commit.refused.update(commit.touched & self._found.keys())

    # -- the disk refuses -----------------------------------------------------------------------------------------

    def refuse(
        self,
        queue_id: int,
        queue: QueueDisk,
        error: StorageError,
        failed: Iterable[str] = (),
        in_files: Iterable[Run] = (),
    ) -> None:
        """The disk refused a queue something, or refuses it again. Raises what is not the queue's alone."""
        if isinstance(error, DiskFull):
            raise error
        is_known = queue_id in self._found
        if not is_known and len(self._found) >= MOST_QUEUES:
            raise error
        if not takes_writes(self._context.filesystem, self._context.data_dir):
            raise error
        one = self._found.setdefault(queue_id, Refusal(queue, str(error)))
        one.failed.update(failed)
        known = {id(run) for run in (*one.in_files, *one.runs)}  # a rescue has these from here
        one.in_files.extend(run for run in in_files if id(run) not in known)
        if isinstance(error, DirectoryFailed):
            one.is_stuck = True
        self._troubles.note(queue_id, WRITING, error)

    def keep(self, queue_id: int, run: RunToWrite) -> None:
        """A refused queue is owed a run. Raises WriteFailed when all of them are owed too much."""
        self._found[queue_id].runs.append(run)
        self.bytes += _weight(run)
        if self.bytes > MOST_BYTES:
            directory = self._found[queue_id].queue.directory
            raise WriteFailed(
                f"{directory}: more than {MOST_BYTES} bytes wait for queues that the disk refuses"
            )

    def settle(self, queue_id: int, changes: QueueChanges, dropped: list[int]) -> None:
        """What was acked of what a queue is owed need not be written; `dropped` gets its references.

        But for the first run: a write of it was refused, and may have got through all the same. The next start would
        find its entries, so that it is written, and acked then.
        """
        one = self._found.get(queue_id)
        if one is None or not one.runs:
            return
        first, rest = one.runs[0], one.runs[1:]
        one.acked.update(_settled(first, changes))
        owed = QueueChanges(rest)
        before = self._references_of(rest)
        for ack in changes.acks:
            owed.ack(ack)
        owed.ack_seqs(changes.acked_seqs)
        one.runs = [first, *owed.runs]
        # A message may be there twice: as a dead letter of its own queue it is behind itself.
        dropped.extend((before - self._references_of(owed.runs)).elements())
        self._weigh()

    # -- dead letters ---------------------------------------------------------------------------------------------

    def withhold(self, source_id: int, source: QueueDisk, targets: set[int]) -> None:
        """The copies of what a queue's acks are for are owed to these queues."""
        self._withheld.setdefault(source_id, Withheld(source, set())).targets |= targets

    def withheld_drops(self, queue_id: int) -> list[int] | None:
        """Give the list for references that a withheld queue's acks give back; None when it is not withheld."""
        one = self._withheld.get(queue_id)
        return one.dropped if one is not None else None

    def rename(self, vhost: str, renames: Mapping[int, int]) -> None:
        """Messages of a vhost have other handles: old to new."""
        for one in self._withheld.values():
            if one.queue.vhost == vhost:
                one.dropped[:] = [renames.get(handle, handle) for handle in one.dropped]

    def last_copies_in(self, deleted: AbstractSet[int]) -> str:
        """Of these queues, which are about to be deleted, give one with the last durable copies of dead letters; or "".

        Those are copies that a queue is owed which is not deleted with them.
        """
        for queue_id in deleted & self._withheld.keys():
            one = self._withheld[queue_id]
            if one.queue.durable and one.targets - deleted:
                return one.queue.directory
        return ""

    # -- it takes it again ----------------------------------------------------------------------------------------

    def due(self, *, is_last: bool = False) -> list[tuple[int, Refusal]]:
        """Give the queues that it is time to try again; before a stop all are.

        A file that is written anew has no acks left out: that of a withheld queue waits until the copies are durable.
        """
        return [
            (queue_id, one)
            for queue_id, one in self._found.items()
            if not one.is_stuck
            and not (one.failed and queue_id in self._withheld)
            and (is_last or not self._troubles.is_waiting(queue_id, WRITING))
        ]

    def require_none(self) -> None:
        """Nothing of the whole store can be done while a queue is refused, or withheld. Raises WriteFailed."""
        for one in self._found.values():
            raise WriteFailed(f"the disk refuses what is in memory: {one.reason}")

    def written(self, queue_id: int, one: Refusal) -> list[int]:
        """The first run that a queue is owed is in its files: its acks hold. Gives the references that these drop."""
        run = one.runs.pop(0)
        one.in_files.append(run)
        dropped: list[int] = []
        for seq in sorted(one.acked):
            message = run.messages[seq - run.first_seq]
            one.queue.ack(seq, seq, [message], dropped)
        one.acked.clear()
        withheld = self.withheld_drops(queue_id)
        if withheld is None:
            return dropped
        withheld += dropped
        return []

    def end(self, queue_id: int) -> list[tuple[int, Withheld]]:
        """All of it is durable, or the queue is gone. Gives the queues that were withheld for it alone."""
        if self._found.pop(queue_id, None) is not None:
            self._weigh()
            self._troubles.end(queue_id, WRITING)
        own = self._withheld.get(queue_id)
        onward = own.targets - {queue_id} if own is not None else set()
        for one in self._withheld.values():
            if queue_id in one.targets:
                one.targets.discard(queue_id)
                one.targets |= onward  # what went on from it before it had it at all
        free = [(source_id, one) for source_id, one in self._withheld.items() if not one.targets]
        for source_id, _ in free:
            del self._withheld[source_id]
        return free

    def forget(self, queue_id: int) -> list[int]:
        """The queue is about to be deleted: give the references of what it is owed, and of what is withheld."""
        one = self._found.get(queue_id)
        messages = self.messages_of(one.runs) if one is not None else []
        withheld = self._withheld.pop(queue_id, None)
        return [
            *(message.handle for message in messages if message.handle >= 0),
            *(withheld.dropped if withheld is not None else ()),
        ]

    # -- in memory ------------------------------------------------------------------------------------------------

    @staticmethod
    def messages_of(runs: Iterable[RunToWrite]) -> list[StoredMessage]:
        """Give the messages of some runs."""
        return [message for run in runs for message in run.messages]

    def _references_of(self, runs: Iterable[RunToWrite]) -> Counter[int]:
        return Counter(one.handle for one in self.messages_of(runs) if one.handle >= 0)

    def in_memory(self) -> dict[int, list[Run]]:
        """Give what refused queues are owed, in their files or not: a rescue writes it from memory."""
        return {queue_id: [*one.in_files, *one.runs] for queue_id, one in self._found.items()}

    def _weigh(self) -> None:
        self.bytes = sum(_weight(run) for one in self._found.values() for run in one.runs)


def _settled(run: RunToWrite, changes: QueueChanges) -> Iterator[int]:
    """Give the sequence numbers of a run that a commit settles."""
    first, end = run.first_seq, run.end_seq
    for ack in changes.acks:
        yield from range(max(first, ack.first_seq), min(end, ack.last_seq + 1))
    for seq in changes.acked_seqs:
        if first <= seq < end:
            yield seq


def _weight(run: RunToWrite) -> int:
    return sum(len(each.raw) + len(each.address) + _MESSAGE_BYTES for each in run.messages)
