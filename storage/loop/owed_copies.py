"""Queues whose dead letters the disk refuses: only the originals are durable, so that they may not be deleted.

State: which open queues the disk refuses something, up to which commit, and from which queues dead letters went there.
Called by the engine on the loop. Invariant: from the report of the commit that a target was refused until that of its
copies, each queue that gave it dead letters is known here.
"""

from __future__ import annotations

from collections.abc import Iterable

from burrowmq.storage.loop.queue_log import QueueLog
from burrowmq.storage.loop.staged_commit import StagedCommit

_Name = tuple[str, str]  # virtual host and queue


class OwedCopies:
    """Those of one store."""

    def __init__(self) -> None:
        self._owed: dict[
            int, tuple[_Name, int]
        ] = {}  # by queue id; the last commit of which it is owed something
        self._sources: dict[_Name, set[_Name]] = {}  # by target

    def __contains__(self, queue_id: int) -> bool:
        return queue_id in self._owed

    def refused(self, commit: StagedCommit, logs: Iterable[QueueLog]) -> None:
        """The disk has refused what a commit has for these open queues."""
        for log in logs:
            self._owed[log.queue_id] = (log.names[:2], commit.epoch)
        owed = self._targets()
        for source, targets in commit.moves_on().items() if owed else ():
            for target in targets & owed:
                self._sources.setdefault(target, set()).add(source)

    def written(self, queue_id: int, epoch: int) -> None:
        """What a queue was owed up to this commit is durable."""
        if queue_id in self._owed and self._owed[queue_id][1] <= epoch:
            self.forget(queue_id)

    def forget(self, queue_id: int) -> None:
        """A queue is owed nothing any more, or is deleted."""
        name, _ = self._owed.pop(queue_id, (None, 0))
        if name is None:
            return
        through = self._sources.get(name, set())
        for sources in self._sources.values():
            if name in sources:  # what went on from it before it had it at all
                sources.update(through)
        targets = self._targets()
        self._sources = {name: its for name, its in self._sources.items() if name in targets}

    def target_of(self, source: _Name, commits: Iterable[StagedCommit | None]) -> str:
        """Name another queue that is owed copies of this one's dead letters; empty when none is.

        `commits` are not reported yet: what they have for a queue that is refused will be refused.
        """
        if not self._owed:
            return ""
        for target, sources in self._sources.items():
            if source in sources and target != source:
                return target[1]
        owed = self._targets() - {source}
        for commit in commits:
            if commit is not None and commit.moves:
                for target in commit.moves_on().get(source, set()) & owed:
                    return target[1]
        return ""

    def _targets(self) -> set[_Name]:
        return {name for name, _ in self._owed.values()}
