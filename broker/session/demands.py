"""Which acks of a connection were to be durable with which commit, for its confirms; and what comes of refused ones.

State owned: the queues by commit, of the one that is collected and the one in flight; those of which a nack, or a
transaction that failed, has told that the disk refused their acks. Called by the session.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet


class Demands:
    """Those of one connection. Queues go by what the store calls them."""

    __slots__ = ("_by_epoch", "_told")

    def __init__(self) -> None:
        self._by_epoch: dict[int, dict[int, bool]] = {}  # whether acks are due for the first time
        self._told: AbstractSet[int] = frozenset()

    def note(self, epoch: int, queue_ids: AbstractSet[int]) -> None:
        """Acks of these queues are written with this commit."""
        self._of(epoch).update(dict.fromkeys(queue_ids, True))

    def note_again(self, epoch: int, queue_ids: AbstractSet[int]) -> None:
        """Acks that the disk has refused are due with this commit, too."""
        due = self._of(epoch)
        for queue_id in queue_ids:
            due.setdefault(queue_id, False)

    def _of(self, epoch: int) -> dict[int, bool]:
        known = self._by_epoch
        if epoch not in known:
            known = self._by_epoch = {each: known[each] for each in (epoch - 1,) if each in known}
        return known.setdefault(epoch, {})

    def refused(self, epoch: int, acks_of: AbstractSet[int]) -> AbstractSet[int]:
        """Of the queues whose acks the disk has refused in this commit, give those that were to be durable with it."""
        return acks_of & self._by_epoch.get(epoch, {}).keys()

    def due_again(
        self, epoch: int, refused: AbstractSet[int], *, is_nacked: bool, is_waiting: bool
    ) -> AbstractSet[int]:
        """Give the queues whose acks were refused in this commit, and are due again with a later one.

        `is_nacked`: a nack, or a failed transaction, tells of them; then only what was sent before that was seen still
        covers them, and is refused for it, once. `is_waiting`: some wait for the commit that is collected.
        """
        if is_nacked and not is_waiting:
            again: AbstractSet[int] = frozenset()
        else:
            due = self._by_epoch.get(epoch, {})
            again = {each for each in refused if each not in self._told or due.get(each)}
        self._told = again if is_nacked else frozenset()
        return again
