"""A run whose messages have several addresses, cut by where they go (the compiled codec has its own of the same names).

The broker knows a route for each address; `look_up` finds those of a run's messages. Then `sheaves` are the messages
of one route each, which is enough while no queue is in two of the routes. Where one is, `shares` are those of one queue
each, so that each queue gets its own in the order in which they came. `places` says where in the run some of its
messages stand. What a route is nobody knows here, but that it has `queues`.

Owns no state. Called by `broker.channel.handover`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from operator import attrgetter, or_
from typing import Final, Generic, Protocol, TypeVar

from burrowmq.protocol.codec._message_py import Message
from burrowmq.protocol.codec._ring_py import Ring

T = TypeVar("T")
Q = TypeVar("Q")
Q_co = TypeVar("Q_co", covariant=True)

_ADDRESS: Final = attrgetter("address")
_SIZE: Final = attrgetter("size")
_FLAGS: Final = attrgetter("flags")


class ToQueues(Protocol[Q_co]):
    """A route."""

    @property
    def queues(self) -> Iterable[Q_co] | None:
        """Where it leads, each once; None when nobody can say."""
        ...


class Sheaf(Generic[T]):
    """Those messages of a run that go one way, in their order; `flags` has what any of them has."""

    __slots__ = ("flags", "messages", "size", "target")

    def __init__(self, target: T, messages: list[Message]) -> None:
        self.target = target
        self.messages = messages
        self.size: int = sum(map(_SIZE, messages))
        self.flags: int = reduce(or_, map(_FLAGS, messages), 0)


def look_up(
    messages: list[Message],
    routes: dict[bytes, T],
    rings: dict[bytes, Ring[T]],
    resolve: Callable[[bytes], T],
    found: list[T],
) -> None:
    """Append the route of each message to `found`: from `routes`, by the ring of its exchange, else `resolve`d.

    `rings` has those of hash exchanges by their part of an address; `resolve` may add to both. What it raises goes on
    to the caller: `found` has the routes of the messages before that one.
    """
    for address in map(_ADDRESS, messages):
        route = routes.get(address)
        if route is None:
            ring = rings.get(address[: 1 + address[0]])
            route = resolve(address) if ring is None else ring.of_key(address)
        found.append(route)


def sheaves(messages: list[Message], routes: list[T]) -> list[Sheaf[T]]:
    """The messages by their routes (`routes` has them in the same order), the sheaves in the order of their firsts."""
    by_route: dict[T, list[Message]] = {}
    for message, route in zip(messages, routes, strict=True):
        if route in by_route:
            by_route[route].append(message)
        else:
            by_route[route] = [message]
    return [Sheaf(route, some) for route, some in by_route.items()]


def shares(messages: list[Message], routes: Sequence[ToQueues[Q]]) -> list[Sheaf[Q]]:
    """The messages by the queues of their routes, each queue's in their order."""
    by_queue: dict[Q, list[Message]] = {}
    of_routes: dict[ToQueues[Q], list[list[Message]]] = {}
    for message, route in zip(messages, routes, strict=True):
        if route not in of_routes:
            of_routes[route] = [by_queue.setdefault(queue, []) for queue in route.queues or ()]
        for share in of_routes[route]:
            share.append(message)
    return [Sheaf(queue, share) for queue, share in by_queue.items()]


def places(messages: list[Message], some: list[Message]) -> list[int]:
    """The places of `some` of the messages, which stand in both in one order."""
    wanted = iter(some)
    following = next(wanted, None)
    result = []
    for place, message in enumerate(messages):
        if message is following:
            result.append(place)
            following = next(wanted, None)
    if following is not None:
        raise ValueError("not all of them are among the messages, in that order")
    return result
