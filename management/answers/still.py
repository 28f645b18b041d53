"""Connections on which nothing but heartbeats has moved since the last sample: their counts are what they were.

A client that keeps its connection open and does nothing would cost as much to be sampled as one that works: five
thousand of them 60 ms every five seconds, ten times what their heartbeats cost. Whatever is counted on a channel moves
octets in the same turn: it was read before, or is written at its end. What is not, was read and waits, for an alarm or
because the connection holds as much as it may: such a one is never still. Those of heartbeats count for nothing here:
they are in the figures once anything else moves.

Such a connection rests: its figures are put aside once (`Rates.rest`), and a round costs a look at its octets.

State owned: of each connection its octets at the last sample, under which keys it and its channels are sampled, and
what it adds to the figures of its virtual host; the sums of that by virtual host, and with what is past; and which
connections rest. Kept by `answers.rates`, with which it is cleared; called by `management.sampling`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable
from collections.abc import Set as AbstractSet
from operator import add, sub
from typing import NamedTuple, TypeVar
from weakref import WeakKeyDictionary

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
        self._resting: dict[Hashable, int | None] = {}  # with their octets
        self.sums: dict[Hashable, Values] = {}
        """What all connections of a virtual host add to its figures."""
        # With the past, as of the last sample; of virtual hosts that are stopped it keeps nothing alive.
        self._totals: WeakKeyDictionary[Hashable, Values] = WeakKeyDictionary()

    def split(
        self, connections: Iterable[C], octets_of: Callable[[C], int | None]
    ) -> tuple[list[C], list[C]]:
        """Those of these connections that have to be read, and those that could rest from now on.

        `octets_of` is as in `Seen`. Of those that rest already nothing is said.
        """
        moved: list[C] = []
        still: list[C] = []
        rests, seen = self._resting.get, self._seen
        for connection in connections:
            octets = octets_of(connection)
            if octets is None:
                moved.append(connection)
            elif rests(connection) != octets:
                last = seen.get(connection)
                is_still = last is not None and last.octets == octets
                (still if is_still else moved).append(connection)
        return moved, still

    def keys(self, connection: Hashable) -> tuple[Hashable, ...]:
        """Of one that was seen: under which keys it and its channels are sampled."""
        return self._seen[connection].keys

    def rest(self, connection: Hashable) -> None:
        """Its figures have been put aside."""
        self._resting[connection] = self._seen[connection].octets

    def wake(self, connection: Hashable) -> tuple[Hashable, ...]:
        """It is about to be read; the keys of its figures that were put aside, if it has rested."""
        if connection not in self._resting:
            return ()
        del self._resting[connection]
        return self._seen[connection].keys

    def note(self, connection: Hashable, seen: Seen) -> None:
        """It has been read."""
        self._take_off(connection)
        self._seen[connection] = seen
        before = self.sums.get(seen.vhost)
        self.sums[seen.vhost] = seen.adds if before is None else tuple(map(add, before, seen.adds))

    def keep(
        self, connections: AbstractSet[Hashable], vhosts: Collection[Hashable]
    ) -> list[Hashable]:
        """Forget all but these; the keys of figures that were put aside of those forgotten."""
        freed: list[Hashable] = []
        if not self._seen.keys() <= connections:
            for gone in self._seen.keys() - connections:
                freed += self.wake(gone)
                self._take_off(gone)
        for gone in self.sums.keys() - set(vhosts):
            del self.sums[gone]
        return freed

    def total(self, vhost: Hashable, past: Values) -> Values:
        """What all connections of a virtual host have counted; `past` is of those that are gone. It never falls.

        A sample takes its time: who closes meanwhile is neither there nor in the past, and is in that of the next one.
        """
        adds = self.sums.get(vhost)
        found = past if adds is None else tuple(map(add, past, adds))
        last = self._totals.get(vhost)
        found = self._totals[vhost] = found if last is None else tuple(map(max, found, last))
        return found

    def clear(self) -> None:
        """Forget all."""
        self._seen.clear()
        self._resting.clear()
        self.sums.clear()
        self._totals.clear()

    def _take_off(self, connection: Hashable) -> None:
        seen = self._seen.pop(connection, None)
        if seen is not None and seen.vhost in self.sums:
            self.sums[seen.vhost] = tuple(map(sub, self.sums[seen.vhost], seen.adds))
