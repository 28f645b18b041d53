"""Which deliveries of the source are settled by which confirms of the destination.

Both count from 1 on one channel each, and every delivery is published once, in order, so that the number of a publish
is the delivery tag of what was published. A confirm is passed on as what it is; what is added is that confirms of one
message each, in order, become one acknowledgement of all up to the last.

State owned: how far everything is settled, and the numbers beyond that are.
"""

from __future__ import annotations

from burrowmq.protocol.client.events import Confirmed


class Settling:
    """The settlements of one run of a shovel."""

    def __init__(self) -> None:
        self.published = 0
        self._up_to = 0
        self._beyond: set[int] = set()

    @property
    def pending(self) -> int:
        """Published and not confirmed."""
        return self.published - self._up_to - len(self._beyond)

    def settle(self, confirmed: Confirmed) -> tuple[list[tuple[int, bool]], int]:
        """The source's tags to be settled, each with `multiple`, and how many messages they are."""
        before = self.pending
        last = min(confirmed.last_seq or self.published, self.published)
        if last <= self._up_to:
            return [], 0
        if confirmed.multiple or confirmed.first_seq == self._up_to + 1:
            self._advance(last)
            return [(last, True)], before - self.pending
        tags = [
            (seq, False)
            for seq in range(confirmed.first_seq, last + 1)
            if seq > self._up_to and seq not in self._beyond
        ]
        self._beyond.update(seq for seq, _ in tags)
        return tags, len(tags)

    def _advance(self, last: int) -> None:
        self._up_to = last
        if self._beyond:
            self._beyond = {seq for seq in self._beyond if seq > last}
        while self._up_to + 1 in self._beyond:
            self._up_to += 1
            self._beyond.discard(self._up_to)
