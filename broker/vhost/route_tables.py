"""What is remembered of a virtual host's routes: for each user a table from address to route, and routes by headers.

An address is in a user's table when it is routed by its key alone and the user may publish with it, so that finding it
there answers everything that is asked of a publish; for another key of an exchange that is known, what was asked about
the exchange is not asked again. Messages with further keys in a CC header are found by the octets of that header behind
their address. Addresses that lead to the same queues share one route: a run is cut by routes, and a hundred thousand
keys of one queue are one way then. Keys of a hash exchange are not remembered by the
compiled codec: its ring finds each as fast.

State owned: the tables, and what they take. They are emptied in place, since channels hold on to theirs: by a change of
the topology (a queue without bindings that comes or goes takes only its own name with it), by one of users or
permissions, and when all of them together are larger than `LIMIT_BYTES`. Whoever publishes with more keys than that
resolves each of them as if it were new, which costs some ten times what finding it does. Called by
`broker.vhost.vhost` and, for its user's table, by basic.publish.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TypeAlias, cast

from burrowmq.broker.exchange.base import Exchange
from burrowmq.broker.queue.port import QueuePort
from burrowmq.broker.vhost.router import ExchangeNames, Reach, Route, reach
from burrowmq.protocol.codec import RING_IS_QUICK, Ring
from burrowmq.records import NamedTuple

LIMIT_BYTES = 32 << 20
"""Of all tables of a virtual host: some 200,000 keys."""
ADDRESS_BYTES = 130
"""What an address takes besides its octets: the object, and its share of a dictionary."""
ROUTE_BYTES = 350
"""What a route takes besides its queues, once for all addresses."""


Way: TypeAlias = tuple[Exchange, tuple[QueuePort, ...]]
"""From where to where."""


class Source(NamedTuple):
    """An exchange that a user may publish to."""

    exchange: Exchange
    is_by_key: bool
    """Whether routes from here depend on the routing key only."""
    is_limited: bool
    """Whether each key needs the user's topic permission."""
    ring: Ring[Route] | None = None
    """What finds routes by the hash of their keys, which are not remembered then."""


class RouteTable:
    """That of one user: by address, and the exchanges by their part of an address."""

    __slots__ = ("_by_way", "by_keys", "keys_bytes", "rings", "routes", "sources")

    def __init__(self) -> None:
        self.routes: dict[bytes, Route] = {}
        self.sources: dict[bytes, Source] = {}
        self.rings: dict[bytes, Ring[Route]] = {}
        """Those of the sources that have one."""
        self.by_keys: dict[bytes, Route | None] = {}
        """By address and the octets of the fields CC and BCC; None: such a message is looked at by itself."""
        self._by_way: dict[Way, Route] = {}
        self.keys_bytes = 0
        """What these two take."""

    def clear(self) -> None:
        """Forget all."""
        self.routes.clear()
        self.sources.clear()
        self.rings.clear()
        self.forget_keys()

    def forget_keys(self) -> None:
        """Forget what depends on several keys."""
        self.by_keys.clear()
        self._by_way.clear()
        self.keys_bytes = 0

    def known(self, address: bytes) -> Route | None:
        """The route of an address that was looked up, and may be used."""
        found = self.routes.get(address)
        if found is None:
            ring = self.rings.get(address[: 1 + address[0]])
            found = None if ring is None else ring.of_key(address)
        return found

    def remember_keys(self, octets: bytes, way: Way | None) -> Route | None:
        """Have where these octets lead from now on; the route is shared by all that lead there."""
        found = None
        self.keys_bytes += ADDRESS_BYTES + len(octets)
        if way is not None:
            found = self._by_way.get(way)
            if found is None:
                found = self._by_way[way] = Route(*way)
                self.keys_bytes += _route_bytes(found)
        self.by_keys[octets] = found
        return found


class RouteTables:
    """Those of one virtual host."""

    __slots__ = (
        "_auth_generation", "_by_headers", "_by_user", "_reached", "_rings", "_routes", "size_bytes"
    )  # fmt: skip

    def __init__(self) -> None:
        self._by_user: dict[str, RouteTable] = {}
        self._routes: dict[tuple[Exchange, tuple[QueuePort, ...] | None], Route] = {}
        self._reached: dict[Exchange, Reach] = {}
        self._by_headers: dict[Exchange, dict[bytes, Route]] = {}
        self._rings: dict[Exchange, Ring[Route] | None] = {}
        self._auth_generation = -1
        self.size_bytes = 0

    def __len__(self) -> int:
        return sum(len(table.routes) for table in self._by_user.values())

    def newest(self, count: int) -> Iterator[tuple[bytes, Route]]:
        """The addresses that were remembered last, up to so many for each user, with their routes."""
        for table in self._by_user.values():
            yield from islice(reversed(table.routes.items()), count)

    def newest_keys(self, count: int) -> Iterator[tuple[bytes, Route]]:
        """The same of addresses with further keys behind them, as far as they are not looked at by themselves."""
        for table in self._by_user.values():
            for octets, route in islice(reversed(table.by_keys.items()), count):
                if route is not None:
                    yield octets, route

    def of(self, user_name: str, auth_generation: int) -> RouteTable:
        """A user's table, good for as long as `auth_generation` stays the same."""
        if auth_generation != self._auth_generation:
            self.clear()
            self._by_user = {}
            self._auth_generation = auth_generation
        table = self._by_user.get(user_name)
        if table is None:
            table = self._by_user[user_name] = RouteTable()
        return table

    def shared(self, exchange: Exchange, queues: tuple[QueuePort, ...] | None) -> Route:
        """The route of a message that goes from this exchange to these queues (None: by its headers)."""
        way = exchange, queues
        found = self._routes.get(way)
        if found is None:
            self._make_room()
            found = self._routes[way] = Route(exchange, queues)
            self.size_bytes += _route_bytes(found)
        return found

    def reach(self, names: ExchangeNames, exchange: Exchange) -> Reach:
        """What routes from an exchange depend on."""
        found = self._reached.get(exchange)
        if found is None:
            found = self._reached[exchange] = reach(names, exchange)
        return found

    def ring(self, exchange: Exchange) -> Ring[Route] | None:
        """What finds an exchange's routes by hash, if nothing else decides: no exchange behind it, no history."""
        if exchange not in self._rings:
            found = None
            is_worth_it = (
                RING_IS_QUICK or exchange.is_each
            )  # else what is remembered is found faster
            if is_worth_it and not exchange.hops and exchange.history is None:
                found = exchange.ring(lambda to: self.shared(exchange, (cast("QueuePort", to),)))
            self._rings[exchange] = found
        return self._rings[exchange]

    def rings(self) -> Iterator[tuple[Exchange, Ring[Route]]]:
        """Those that are remembered."""
        for exchange, ring in self._rings.items():
            if ring is not None:
                yield exchange, ring

    def by_headers(self, exchange: Exchange) -> dict[bytes, Route]:
        """The routes of an exchange by what they depend on of each message."""
        found = self._by_headers.get(exchange)
        if found is None:
            found = self._by_headers[exchange] = {}
        return found

    def remember_headers(self, known: dict[bytes, Route], octets: bytes, route: Route) -> None:
        """Let such a route be known, in what `by_headers` gave, by the octets that it depends on."""
        self._make_room()
        known[octets] = route
        self.size_bytes += ADDRESS_BYTES + len(octets)

    def remember(self, table: RouteTable, address: bytes, route: Route) -> None:
        """Let a user's table have an address that it has not."""
        self._make_room()
        table.routes[address] = route
        self.size_bytes += ADDRESS_BYTES + len(address)

    def remember_keys(self, table: RouteTable, octets: bytes, way: Way | None) -> Route | None:
        """Let a user's table have where an address with these fields behind it leads (None: look at each)."""
        self._make_room()
        before = table.keys_bytes
        found = table.remember_keys(octets, way)
        self.size_bytes += table.keys_bytes - before
        return found

    def _make_room(self) -> None:
        if self.size_bytes > LIMIT_BYTES:
            self.clear()

    def forget_queue(self, default: Exchange, name: bytes, queue: object) -> None:
        """A queue came or went, and no binding with it: only the default exchange's route to its name is another.

        Any CC header may have that name.
        """
        address = b"\0%c%b" % (len(name), name)
        for table in self._by_user.values():
            self.size_bytes -= table.keys_bytes
            table.forget_keys()
            if table.routes.pop(address, None) is not None:
                self.size_bytes -= ADDRESS_BYTES + len(address)
        route = self._routes.pop((default, (cast("QueuePort", queue),)), None)
        if route is not None:
            self.size_bytes -= _route_bytes(route)

    def clear(self) -> None:
        """Forget all."""
        for table in self._by_user.values():
            table.clear()
        self._routes.clear()
        self._reached.clear()
        self._rings.clear()
        for known in self._by_headers.values():
            known.clear()
        self._by_headers.clear()
        self.size_bytes = 0


def _route_bytes(route: Route) -> int:
    return ROUTE_BYTES + 8 * len(route.queues or ())
