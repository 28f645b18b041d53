"""What the store has lost of a queue's messages, and how many of the others a restart would bring back.

Nobody knows of which kind a message was that the store does not have any more, so the counts of persistent ones are a
guess from then on (`counts.Counts.lost`), and are bounded by what is known as messages leave the disk, until all kinds
are known. That is done at the end of the pump: a run may be on its way from the levels to the counts whenever the
levels say that something has left the disk. While there is no guess they say nothing, and nobody pays for this.

State owned: whether that is due. Made by the queue with its first loss; called by its levels.
"""

from __future__ import annotations

from collections.abc import Callable

from burrowmq.broker.queue.counts import Counts
from burrowmq.broker.queue.order.levels import Levels


class Losses:
    """Those of one durable queue.

    `after_pump` has a callback run once, at the end of the next pump; `changed` has the queue pumped in this turn.
    """

    __slots__ = ("_after_pump", "_changed", "_counts", "_is_due", "_levels")

    def __init__(
        self,
        levels: Levels,
        counts: Counts,
        after_pump: Callable[[Callable[[], None]], None],
        changed: Callable[[], None],
    ) -> None:
        self._levels = levels
        self._counts = counts
        self._after_pump = after_pump
        self._changed = changed
        self._is_due = False

    def note(self, count: int, size: int) -> None:
        """Messages have left the disk, so many of them, of so many bytes, since the store does not have them."""
        if count or size:
            self._counts.lost(count, size)
            self._levels.watch(is_on=True)
        if not self._is_due:
            self._is_due = True
            self._after_pump(self._bound)
            self._changed()

    def _bound(self) -> None:
        self._is_due = False
        counts = self._counts
        if counts.is_guess:
            counts.bound(*self._levels.known_kinds())
        self._levels.watch(is_on=counts.is_guess)
