"""Queues whose files fail while they are written or synced: refused, tried again, and taken back.

What a refused queue is owed, and whom that holds up, is kept by `storage.disk.refusals`; here is what is done about it
on disk. State: the commit under way, to which the refusals of its queues are noted, and the last epoch. Called by the
writer and `storage.disk.jobs` on the disk thread, under the lock. Invariants: a file whose sync failed is never synced
again: it is written anew elsewhere, from memory or as it can be read; a queue takes part again only after a sync of
everything that it was owed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from burrowmq.storage.directory.context import StoreContext
from burrowmq.storage.disk.elision import RunToWrite
from burrowmq.storage.disk.refusals import Refusals
from burrowmq.storage.disk.rescue import Run, appends_of, paths_by_queue, steps_of
from burrowmq.storage.disk.troubles import ACKING, WRITING, Troubles
from burrowmq.storage.errors import DirectoryFailed, DiskFull, StorageError, SyncFailed, WriteFailed
from burrowmq.storage.files.cache import as_storage_errors
from burrowmq.storage.loop.staged_commit import Delete, StagedCommit
from burrowmq.storage.queue.disk import QueueDisk


def _nobody(_: int, __: int) -> None:
    return None


class RefusedQueues:
    """Those of one store."""

    def __init__(
        self,
        context: StoreContext,
        troubles: Troubles,
        queues: Mapping[int, QueueDisk],
        write: Callable[[QueueDisk, RunToWrite, bool], None],
        unflushed: dict[int, None],
    ) -> None:
        """`unflushed` gets the queues that have idle work again.

        `write` writes a run of one segment, without its queue's acks where these are withheld.
        """
        self.refusals = Refusals(context, troubles)
        self._nothing = StagedCommit(0)
        # That is under way; between two commits one that touches no queue.
        self.commit = self._nothing
        self._epoch = 0  # of the last that began
        # (queue id, epoch): what the disk refused of a queue up to this commit is durable now.
        self.tell_written: Callable[[int, int], None] = _nobody
        self._context = context
        self.troubles = troubles
        self._queues = queues
        self._write = write
        self.unflushed = unflushed

    def begin(self, commit: StagedCommit) -> None:
        """A commit is under way: what it has for refused queues is refused too."""
        self.commit, self._epoch = commit, commit.epoch
        self.refusals.note_in(commit)

    def finish(self) -> None:
        """The commit is done: what is refused from here on is not among what it has for its queues."""
        self.commit = self._nothing

    def put(self, queue_id: int, queue: QueueDisk, run: RunToWrite) -> None:
        """Write a run of one segment; at the second refusal its queue is refused, and owed it. Raises DiskFull."""
        if not self.refusals.has(queue_id):
            error = self._attempt(queue_id, queue, run)
            if error is not None:
                error = self._attempt(queue_id, queue, run)
            if error is None:
                return
            self.refuse(queue_id, error)
        self.refusals.keep(queue_id, run)

    def _attempt(self, queue_id: int, queue: QueueDisk, run: RunToWrite) -> StorageError | None:
        try:
            self._write(queue, run, self.refusals.is_withheld(queue_id))
        except DiskFull:
            raise
        except StorageError as error:
            return error
        return None

    def withhold(self) -> None:
        """Where a queue was refused the copies of messages, the acks of the originals wait until it has them."""
        if not self.commit.refused:
            return
        ids: dict[tuple[str, str], set[int]] = {}
        for queue_id, queue in dict(self._queues).items():
            ids.setdefault(queue.names[:2], set()).add(queue_id)
        for source, targets in self.commit.moves_on().items():
            owed = {target: ids.get(target, set()) & self.commit.refused for target in targets}
            for target, its in owed.items():
                for queue_id in ids.get(source, ()) if its else ():
                    self.refusals.withhold(queue_id, self._queues[queue_id], its)
                    error = WriteFailed(f"its dead letters for queue '{target[1]}' are not on disk")
                    self.troubles.note(queue_id, ACKING, error)

    def last_copies_in(self, commit: StagedCommit) -> str:
        """Which queue that a commit deletes has the last durable copies of dead letters; empty when none has."""
        if not self.refusals.withheld():
            return ""
        return self.refusals.last_copies_in(
            {command.queue_id for command in commit.commands if isinstance(command, Delete)}
        )

    def is_own(self, directory: str) -> bool:
        """Whether it is the directory of an open queue."""
        return any(queue.directory == directory for queue in list(self._queues.values()))

    def refuse_directories(self, directories: AbstractSet[str], reason: str) -> None:
        """Nobody knows which names queues' directories have. Raises what is not the queues' alone."""
        for queue_id, queue in dict(self._queues).items():
            if queue.directory in directories:
                self.refuse(queue_id, DirectoryFailed(reason, queue.directory))

    def refuse_files(
        self, queue_id: int, error: StorageError, failed: AbstractSet[str], lost: Sequence[Run]
    ) -> None:
        """What a sync may have lost of a queue cannot be written elsewhere now. Raises what is not the queue's."""
        self.refusals.refuse(queue_id, self._queues[queue_id], error, failed, lost)
        self.refusals.note_in(self.commit)
        # Of acks that were written whoever waits later is told, too.
        self.unflushed[queue_id] = None
        if (
            queue_id in self.commit.acks_of
        ):  # they may be written already, in a file whose sync has failed
            self.commit.unwritten_acks.add(queue_id)

    def refuse(self, queue_id: int, error: StorageError) -> None:
        """The disk refuses a queue something. Raises what is not the queue's alone."""
        self.refuse_files(queue_id, error, frozenset(), [])

    def contain(self, failed: Mapping[str, str], commit: StagedCommit | None) -> bool:
        """Files failed that were written elsewhere just before: refuse their queues. False when not all are queues'."""
        by_queue = paths_by_queue(self._queues, failed)
        if sum(map(len, by_queue.values())) < len(failed):
            return False
        for queue_id, paths in by_queue.items():
            error = SyncFailed(", ".join(failed[path] for path in paths))
            self.refuse_files(queue_id, error, paths, appends_of(commit, queue_id))
        return True

    def write_owed(self, *, is_last: bool = False) -> list[int]:
        """Try to write what refused queues are owed. Gives those that need a sync now, then `note_reopened`."""
        written: list[int] = []
        for queue_id, one in self.refusals.due(is_last=is_last):
            observer = self._context.observer
            # Version 1 writes all anew that its journal speaks of, also acks that are withheld.
            is_lost = bool(one.failed)
            steps = steps_of(one.queue, one.failed, one.in_files, observer) if is_lost else []
            try:
                with as_storage_errors():
                    for step in steps:
                        step()
                while one.runs:
                    self._write(one.queue, one.runs[0], self.refusals.is_withheld(queue_id))
                    self._drop(one.queue.vhost, self.refusals.written(queue_id, one))
            except DiskFull as error:
                self.troubles.note(queue_id, WRITING, error)
            except StorageError as error:
                self.refusals.refuse(queue_id, one.queue, error)
            else:
                one.failed.clear()
                written.append(queue_id)
        return written

    def note_reopened(self, queue_ids: list[int]) -> None:
        """A sync came after `write_owed`: queues of which it failed nothing take part again.

        Where a commit is under way, all that it has for them is written or owed by now: it is not refused any more.
        """
        for queue_id in queue_ids:
            if queue_id in self._queues and not self.refusals.why_unreadable(queue_id):
                self.commit.refused.discard(queue_id)
                self.unflushed[queue_id] = None
                self.end(queue_id)
                # The acks of the commit that is under way are not taken yet.
                self.tell_written(queue_id, self._epoch - (self.commit is not self._nothing))

    def end(self, queue_id: int) -> None:
        """A queue is not refused any more, or gone: what was withheld for it goes on."""
        for source_id, withheld in self.refusals.end(queue_id):
            self.unflushed[source_id] = None
            self.troubles.end(source_id, ACKING)
            self._drop(withheld.queue.vhost, withheld.dropped)

    def _drop(self, vhost: str, references: list[int]) -> None:
        if references and self._context.has_vhost(vhost):
            self._context.vhost(vhost).drop_refs(references)
