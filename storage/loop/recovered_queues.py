"""What a start found in the data directory and nobody has opened yet, as values: the loop side asks no file about it.

State: one `RecoveredQueue` for each directory of a queue's level. Filled once, from the report of the start; each value
is taken by the first who opens that queue; which of them were deleted. Called by the engine on the loop. Invariant:
what is taken, forgotten or discarded is never given again.
"""

from __future__ import annotations

from collections.abc import Callable

from burrowmq.storage.names import QueueNames
from burrowmq.storage.types import RecoveredQueue, RecoveryReport


class RecoveredQueues:
    """The recovered queues that nobody opened yet.

    They are known by their directory and not by their name: the file that holds the name may be damaged, while whoever
    opens the queue knows the name and thereby the directory.
    """

    def __init__(self, report: RecoveryReport | None = None) -> None:
        self._found = {} if report is None else dict(report.by_directory)
        self._removals = frozenset() if report is None else report.removals

    def __contains__(self, names: QueueNames) -> bool:
        return (names.vhost, names.directory) in self._found

    def take(self, names: QueueNames) -> RecoveredQueue | None:
        """Give what was found of a queue's level to whoever opens it; None when there is nothing, or it was taken."""
        return self._found.pop((names.vhost, names.directory), None)

    def highest_level(self, vhost: str, name: str) -> int:
        """Give the highest level of a queue that nobody opened yet; -1 when there is none. O(found)."""
        found = (one.names for one in self._found.values())
        return max((one.level for one in found if one[:2] == (vhost, name)), default=-1)

    def forget_vhost(self, vhost: str) -> bool:
        """The vhost is deleted, and with it the queues in it that nobody opened; False when there is none."""
        places = [place for place in self._found if place[0] == vhost]
        for place in places:
            del self._found[place]
        return bool(places)

    def discard(
        self, kept: Callable[[QueueNames], bool] = lambda _: False
    ) -> dict[tuple[str, str], RecoveredQueue]:
        """What is left goes, but for those to be kept, and for what has messages and was not deleted: these are given.

        By virtual host and directory, as `places` has all that stays: the name may not be known.
        """
        stays: dict[tuple[str, str], RecoveredQueue] = {}
        lost: dict[tuple[str, str], RecoveredQueue] = {}
        for place, found in self._found.items():
            if kept(found.names):
                stays[place] = found
            elif found.count and not self._is_removed(place):
                stays[place] = lost[place] = found
        self._found = stays
        return lost

    def _is_removed(self, place: tuple[str, str]) -> bool:
        return place in self._removals or (place[0], "") in self._removals

    @property
    def places(self) -> frozenset[tuple[str, str]]:
        """The virtual host and the name of the directory of each that nobody opened yet."""
        return frozenset(self._found)
