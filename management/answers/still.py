"""Connections on which no octet has moved since the last sample: what they and their channels count is what it was.

A client that keeps its connection open and does nothing would cost as much to be sampled as one that works: five
thousand of them 60 ms every five seconds, ten times what their heartbeats cost. Whatever is counted on a channel moves
octets in the same turn: it was read before, or is written at its end. What is not, was read and waits, for an alarm or
because the connection holds as much as it may: such a one is never still.

State owned: of each connection its octets at the last sample, under which keys it and its channels are sampled, and
what it adds to the figures of its virtual host; and the sums of that by virtual host. Kept by `answers.rates`, with
which it is cleared; called by `management.sampling`.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from operator import add, sub
from typing import NamedTuple

Values = tuple[int, ...]


class Seen(NamedTuple):
    """What the last sample found of a connection; `octets` of None: nobody counts them, and it is never still."""

    octets: Values | None
    keys: tuple[Hashable, ...]
    vhost: Hashable
    adds: Values


class Still:
    """All connections that were sampled."""

    def __init__(self) -> None:
        self._seen: dict[Hashable, Seen] = {}
        self.sums: dict[Hashable, Values] = {}
        """What all connections of a virtual host add to its figures."""

    def keys(self, connection: Hashable, octets: Values | None) -> tuple[Hashable, ...] | None:
        """The keys of a connection that has been still; None when it has to be read."""
        seen = self._seen.get(connection)
        if seen is None or octets is None or seen.octets != octets:
            return None
        return seen.keys

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
