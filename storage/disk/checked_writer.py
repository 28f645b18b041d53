"""A writer that checks itself after each commit, sync and idle moment: a node's when BURROWMQ_VERIFY=1 is set.

It is chosen once, by who builds the engine, so that the writer of every other node asks nothing. State owned: which
queues the commit touches. Called as `Writer` is. A rule that does not hold is told to `on_broken`, on the thread that
found it, and raised as AssertionError, which no part of the store expects: the engine fails.

What it costs is bounded: the queues of the commit, at most `QUEUE_LIMIT` of them, and the sums of `SUM_SEGMENTS` index
segments; a node with more of them has its references compared only by tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from burrowmq.storage.directory.context import StoreContext
from burrowmq.storage.disk import invariants
from burrowmq.storage.disk.writer import Writer
from burrowmq.storage.loop.staged_commit import StagedCommit
from burrowmq.storage.shared.vhost_store import VhostStore

QUEUE_LIMIT = 64
SUM_SEGMENTS = 2000


def _nobody(_: str) -> None:
    return None


class CheckedWriter(Writer):
    """See the module."""

    def __init__(self, context: StoreContext, on_broken: Callable[[str], None] = _nobody) -> None:
        super().__init__(context)
        self._on_broken = on_broken
        self._touched: list[int] = []

    def begin(self, commit: StagedCommit) -> None:
        """Take a commit in; `advance` writes it."""
        super().begin(commit)
        self._touched = sorted(commit.touched)[-QUEUE_LIMIT:]

    def advance(self) -> None:
        """Go on writing the commit, and check what it came to once it is whole."""
        super().advance()
        self._check(self._touched)

    def upkeep(self, *, is_last: bool = False) -> None:
        """Do the idle work, and check the queues that had some."""
        touched = list(self._unflushed)[:QUEUE_LIMIT]
        super().upkeep(is_last=is_last)
        self._check(touched)

    def sync(self) -> dict[str, str]:
        """Make everything durable; after a sync without failures nothing is left that a power cut could take."""
        failed = super().sync()
        if not failed:
            for vhost in self.context.vhosts():
                left = vhost.persistent.unsynced_bytes
                if left:
                    self._refuse(
                        f"{vhost.persistent.options.directory}: {left} bytes un-synced after a sync"
                    )
        return failed

    def _check(self, queue_ids: Iterable[int]) -> None:
        for sentence in self._broken(queue_ids):
            self._refuse(sentence)

    def _refuse(self, sentence: str) -> None:
        self._on_broken(sentence)
        raise AssertionError(sentence)

    def _broken(self, queue_ids: Iterable[int]) -> Iterator[str]:
        for queue_id in queue_ids:
            queue = self._queues.get(queue_id)
            if queue is not None:
                yield from invariants.of_queue(queue)
        for vhost in self.context.vhosts():
            for store in (vhost.persistent, vhost.transient):
                yield from invariants.of_store(store)
            yield from self._references(vhost)

    def _references(self, vhost: VhostStore) -> Iterator[str]:
        """Not of a commit that is half written, nor while a rescue moves them, nor once an index could not be read."""
        if (
            self._steps or self.has_acks_left or self.is_rescuing
        ):  # acks that wait give references back
            return
        if self.counters.rescues or self.context.is_miscounted:
            return
        if self.refusals.queues():
            return
        queues = [one for one in self.all_queues() if one.vhost == vhost.vhost]
        if sum(len(queue.index.numbers) for queue in queues) <= SUM_SEGMENTS:
            yield from invariants.of_references(vhost, queues)
