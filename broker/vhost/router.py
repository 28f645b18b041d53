"""Routing: which queues a message goes to.

A route is a walk over the graph of exchanges: each exchange matches its own bindings, destinations that are
exchanges are walked in turn, each at most once, and an exchange whose own bindings give nothing hands over to its
alternate exchange. The result is a tuple of queues, each once, in the order in which they were found. The caller
remembers it by exchange and routing key (`Route`). If a headers exchange can be reached, what its bindings ask for of
the headers counts too (`reach`). Owns no state; called by `broker.vhost.vhost` and, message by message, by publishing
and dead-lettering.

Source: RabbitMQ's rabbit_exchange:route.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from burrowmq.broker.exchange.base import Exchange

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from burrowmq.broker.exchange.binding import Destination
    from burrowmq.broker.queue.queue import Queue
    from burrowmq.protocol.table import FieldTable


class ExchangeNames(Protocol):
    """Where alternate exchanges are looked up: a vhost."""

    @property
    def exchanges(self) -> Mapping[str, Exchange]:
        """The exchanges by name."""
        ...


class Route:
    """Where everything published with one exchange and routing key goes.

    `queues` is None when that depends on each message's headers. It may hold a direct-reply target, as given by the
    vhost's `direct_reply`; such a route is never remembered.
    """

    __slots__ = ("exchange", "queues")

    def __init__(self, exchange: Exchange, queues: tuple[Queue, ...] | None) -> None:
        self.exchange = exchange
        self.queues = queues


def route(
    names: ExchangeNames,
    exchange: Exchange,
    routing_keys: tuple[bytes, ...],
    headers: Callable[[], FieldTable] | None,
) -> tuple[Queue, ...]:
    """The queues that a message published to `exchange` reaches, each once; O(edges walked)."""
    if not exchange.hops and exchange.alternate is None and len(routing_keys) == 1:
        matched = exchange.match(routing_keys[0], headers)
        once = matched if isinstance(matched, tuple) else tuple(dict.fromkeys(matched))
        return cast("tuple[Queue, ...]", once)
    queues: dict[Destination, None] = {}
    seen = {exchange}
    waiting = [exchange]
    while waiting:
        current = waiting.pop()
        found: dict[Destination, None] = {}
        for routing_key in routing_keys:
            found.update(dict.fromkeys(current.match(routing_key, headers)))
            if current.ignores_keys:
                break
        if not found and current.alternate is not None:
            alternate = names.exchanges.get(current.alternate)
            if alternate is not None:
                found[alternate] = None
        for destination in found:
            if not isinstance(destination, Exchange):
                queues[destination] = None
            elif destination not in seen:
                seen.add(destination)
                waiting.append(destination)
    return cast("tuple[Queue, ...]", tuple(queues))


class Reach(NamedTuple):
    """What routes from an exchange depend on."""

    header_names: frozenset[bytes] | None
    """None when no headers exchange can be reached."""
    has_keys: bool
    """Whether any exchange that can be reached looks at the routing key."""


def reach(names: ExchangeNames, exchange: Exchange) -> Reach:
    """What has to be known of a message to say where it goes from `exchange`."""
    seen = {exchange}
    waiting = [exchange]
    asked: set[str] = set()
    has_headers = has_keys = False
    while waiting:
        current = waiting.pop()
        has_headers |= current.needs_headers
        has_keys |= not current.ignores_keys
        asked.update(current.header_names)
        following: list[object] = [binding.destination for binding in current.hops.values()]
        if current.alternate is not None:
            following.append(names.exchanges.get(current.alternate))
        for destination in following:
            if isinstance(destination, Exchange) and destination not in seen:
                seen.add(destination)
                waiting.append(destination)
    octets = frozenset(name.encode("utf-8", "surrogateescape") for name in asked)
    return Reach(octets if has_headers else None, has_keys)
