"""Connections on which nothing but heartbeats has moved since the last sample: their counts are what they were.

A client that keeps its connection open and does nothing would cost as much to be sampled as one that works: five
thousand of them 60 ms every five seconds, ten times what their heartbeats cost. Whatever is counted on a channel moves
octets in the same turn: it was read before, or is written at its end. What is not, was read and waits, for an alarm or
because the connection holds as much as it may: such a one is never still. Those of heartbeats count for nothing here:
they are in the figures once anything else moves.

State owned: of each connection its octets at the last sample, under which keys it and its channels are sampled, and
what it adds to the figures of its virtual host; and the sums of that by virtual host. Kept by `answers.rates`, with
which it is cleared; called by `management.sampling`.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from operator import add, sub
from typing import NamedTuple, TypeVar

Values = tuple[int, ...]
C = TypeVar("C", bound=Hashable)


class Seen(NamedTuple):
    """What the last sample found of a connection.

    `octets` moved in both directions, heartbeats apart; None: nobody counts them, and it is never still.
    """

    octets: int | None
    keys: tuple[Hashable, ...]
    vhost: Hashable
    adds: Values


class Still:
    """All connections that were sampled."""

    def __init__(self) -> None:
        self._seen: dict[Hashable, Seen] = {}
        self.sums: dict[Hashable, Values] = {}
        """What all connections of a virtual host add to its figures."""

    def split(self, found: Iterable[tuple[C, int | None]]) -> tuple[list[C], list[Hashable]]:
        """Those of these connections that have to be read, and the keys of the others, which have been still.

        Each comes with its octets, as in `Seen`.
        """
        moved: list[C] = []
        still: list[Hashable] = []
        seen = self._seen
        for connection, octets in found:
            last = seen.get(connection)
            if last is None or octets is None or last.octets != octets:
                moved.append(connection)
            else:
                still += last.keys
        return moved, still

    def note(self, connection: Hashable, seen: Seen) -> None:
        """It has been read."""
        self._take_off(connection)
        self._seen[connection] = seen
        before = self.sums.get(seen.vhost)
        self.sums[seen.vhost] = seen.adds if before is None else tuple(map(add, before, seen.adds))

    def keep(self, connections: Collection[Hashable], vhosts: Collection[Hashable]) -> None:
        """Forget all but these."""
        for gone in self._seen.keys() - set(connections):
            self._take_off(gone)
        for gone in self.sums.keys() - set(vhosts):
            del self.sums[gone]

    def clear(self) -> None:
        """Forget all."""
        self._seen.clear()
        self.sums.clear()

    def _take_off(self, connection: Hashable) -> None:
        seen = self._seen.pop(connection, None)
        if seen is not None and seen.vhost in self.sums:
            self.sums[seen.vhost] = tuple(map(sub, self.sums[seen.vhost], seen.adds))
