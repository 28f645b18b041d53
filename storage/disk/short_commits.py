"""The commonest commit on a short way: a few messages that somebody waits for, for queues whose files are there.

Such a commit takes no steps (`storage.disk.writer`) and asks nobody what else is to be synced (`storage.files.cache`):
its messages are packed, written to their queues' files, and made durable in the log. All else goes the usual way, and
so does such a commit as soon as anything is not as it mostly is: definitions and dead letters in it, large messages, a
segment to begin or to end, files that wait for a sync, a refused queue, a file system without log. Acknowledgements
that nobody waits for come behind the sync, in steps.

State: none. Called by `storage.disk.jobs` on the disk thread: `write` and `give_back` under its lock. Invariants: what
`write` refused is as if nobody had asked; what it wrote is counted, so that `make_durable` has to say True, or
`give_back` and a sync in the usual way have to follow.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter

from burrowmq.records import NamedTuple
from burrowmq.storage import real_time as time
from burrowmq.storage.directory.context import StoreContext
from burrowmq.storage.disk.counters import Counters
from burrowmq.storage.disk.elision import (
    LeftToWrite,
    QueueChanges,
    RunToWrite,
    left_to_write,
)
from burrowmq.storage.disk.refusals import Refusals
from burrowmq.storage.errors import StorageError
from burrowmq.storage.files.filesystem import Write
from burrowmq.storage.log.files import OwnWrite, is_large
from burrowmq.storage.loop.staged_commit import StagedCommit
from burrowmq.storage.queue.disk import QueueDisk
from burrowmq.storage.queue.segment import RunWrites

_RAW = attrgetter("raw")


class Written(NamedTuple):
    """What a commit wrote, what of it is in own files (`storage.log.files`), and what it has besides: acks."""

    runs: list[RunWrites]
    own: list[OwnWrite]
    acks: dict[int, QueueChanges]


class ShortCommits:
    """See the module."""

    def __init__(
        self,
        context: StoreContext,
        queues: Mapping[int, QueueDisk],
        refusals: Refusals,
        counters: Counters,
    ) -> None:
        self._context = context
        self._way = context.log.short_way if context.log is not None else None
        self._queues = queues
        self._refusals = refusals
        self._counters = counters
        self._entry_count = context.options.segment_entry_count
        self._embed_below = context.options.embed_below

    def write(self, commit: StagedCommit) -> Written | None:
        """Write a commit to its queues' files and count it; None where it has to go the usual way."""
        way, context = self._way, self._context
        if (
            way is None
            or not commit.sync
            or commit.definitions
            or commit.acks_of
            or commit.is_moving
            or self._refusals
            or not commit.touched
            # A queue's share of it: the log would not take so much of one, and it would be packed in vain.
            or is_large(commit.size // len(commit.touched))
            or not way.is_open
            or context.is_dirty()
        ):
            return None
        left = left_to_write(commit)
        runs = self._runs_of(left)
        if not runs:
            return None
        writes: list[Write] = []
        for run in runs:
            writes.append((run.store_file, run.records, run.begin))
            writes.append((run.index_file, run.entries, run.entries_at))
        own = way.write(writes)
        if own is None:
            return None
        counters = self._counters
        for run in runs:
            run.note_written()
            counters.written += run.message_count
        counters.commits += 1
        counters.commit_bytes.add(commit.size)
        return Written(runs, own, _acks_of(left))

    def make_durable(self, written: Written) -> bool:
        """Make durable what was written; False: `give_back`, and a sync, have to follow."""
        assert self._way is not None
        began = time.perf_counter()
        if not self._way.make_durable(written.own):
            return False
        counters = self._counters
        counters.syncs += 1
        counters.sync_s.add(time.perf_counter() - began)
        self._context.cache.syncs += 2 * len(written.runs)
        return True

    def look_at_grown(self) -> None:
        """It is durable: small queues that have grown move out."""
        assert self._way is not None
        self._way.look_at_grown()

    def give_back(self, written: Written) -> None:
        """The log did not take it: what was written waits for a sync like anything else."""
        assert self._way is not None
        cache = self._context.cache
        self._way.note(written.own)
        for run in written.runs:
            cache.store_written(run.store_file.path, run.store_file)
            cache.index_written(run.index_file.path, run.index_file)

    def _runs_of(self, left: LeftToWrite) -> list[RunWrites] | None:
        """Give a commit's messages as writes to files, a run for each queue; None where that is not all of it."""
        if left.control or 2 * len(left.queues) >= self._context.cache.room:
            return None
        found: list[RunWrites] = []
        for queue_id, changes in left.queues.items():
            for run in changes.runs:
                writes = self._writes_for(queue_id, run)
                if writes is None or run is not changes.runs[0]:
                    return None
                found.append(writes)
        return found

    def _writes_for(self, queue_id: int, run: RunToWrite) -> RunWrites | None:
        messages = run.messages
        queue = self._queues.get(queue_id)
        if (
            queue is None
            or run.first_seq % self._entry_count + len(messages) >= self._entry_count
            or max(map(len, map(_RAW, messages))) >= self._embed_below
        ):
            return None
        try:
            found = queue.writes_of(run.first_seq, messages, run.expiries)
        except (OSError, StorageError):  # of a file that cannot be opened: the usual way hears it
            return None
        return found if found is not None and found.is_synced else None


def _acks_of(left: LeftToWrite) -> dict[int, QueueChanges]:
    return {
        queue_id: changes
        for queue_id, changes in left.queues.items()
        if changes.acks or changes.acked_seqs or changes.elided
    }
