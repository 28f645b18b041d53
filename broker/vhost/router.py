"""Routing: which queues a message goes to.

A route is a walk over the graph of exchanges: each exchange matches its own bindings, destinations that are
exchanges are walked in turn, each at most once, and an exchange whose own bindings give nothing hands over to its
alternate exchange. The result is a tuple of queues, each once, in the order in which they were found. The caller
remembers it by exchange and routing key (`Route`). If a headers exchange can be reached, what its bindings ask for of
the headers counts too; if one that picks by chance or by a property, nothing is remembered (`reach`). Behind the queues
stand the histories of the exchanges on the way that keep messages. Owns no state; called by `broker.vhost.vhost` and,
message by message, by publishing and dead-lettering.

Source: RabbitMQ's rabbit_exchange:route.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from burrowmq.broker.exchange.base import Exchange
from burrowmq.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from burrowmq.broker.exchange.base import Look
    from burrowmq.broker.exchange.binding import Destination
    from burrowmq.broker.queue.port import QueuePort


class ExchangeNames(Protocol):
    """Where alternate exchanges are looked up: a vhost."""

    @property
    def exchanges(self) -> Mapping[str, Exchange]:
        """The exchanges by name."""
        ...


class Route:
    """Where everything published with one exchange and routing key goes.

    `queues` is None when that depends on more of each message. It may hold a direct-reply target, as given by the
    vhost's `direct_reply`; such a route is never remembered. Histories stand at its end: they too are no queues.
    """

    __slots__ = ("exchange", "queue_count", "queues")

    def __init__(self, exchange: Exchange, queues: tuple[QueuePort, ...] | None) -> None:
        self.exchange = exchange
        self.queues = queues
        self.queue_count = queue_count(queues or ())
        """How many queues it has. RabbitMQ: a message that reached nobody but a direct-reply consumer, or a history,
        counts as unroutable."""


def is_no_queue(target: object) -> bool:
    """Whether what a route leads to is a direct-reply consumer, or an exchange's history."""
    return hasattr(target, "is_no_queue")


def is_elsewhere(target: object) -> bool:
    """Whether what a route leads to is a queue at another front-end, of which nothing can be counted here."""
    return hasattr(target, "is_elsewhere")


def queue_count(targets: tuple[QueuePort, ...]) -> int:
    """How many of them are queues; what is none stands at the end."""
    if targets and is_no_queue(targets[-1]):
        return len([target for target in targets if not is_no_queue(target)])
    return len(targets)


def route(
    names: ExchangeNames,
    exchange: Exchange,
    routing_keys: tuple[bytes, ...],
    look: Look | None,
) -> tuple[QueuePort, ...]:
    """The queues that a message published to `exchange` reaches, each once; O(edges walked)."""
    if (
        not exchange.hops
        and exchange.alternate is None
        and len(routing_keys) == 1
        and exchange.history is None
    ):
        matched = exchange.match(routing_keys[0], look)
        once = matched if isinstance(matched, tuple) else tuple(dict.fromkeys(matched))
        return cast("tuple[QueuePort, ...]", once)
    queues: dict[Destination, None] = {}
    histories: list[Destination] = []
    seen = {exchange}
    waiting = [exchange]
    while waiting:
        current = waiting.pop()
        if current.history is not None:
            histories.append(current.history)
        found = dict.fromkeys(current.match_all(routing_keys, look))
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
    return cast("tuple[QueuePort, ...]", (*queues, *histories))


class Reach(NamedTuple):
    """What routes from an exchange depend on."""

    header_names: frozenset[bytes] | None
    """None when no headers exchange can be reached."""
    has_keys: bool
    """Whether any exchange that can be reached looks at the routing key."""
    is_each: bool
    """Whether no two messages may be said to go the same way: by chance, or by a property."""

    @property
    def is_by_key(self) -> bool:
        """Whether the routing key alone says where a message goes."""
        return self.header_names is None and not self.is_each


def reach(names: ExchangeNames, exchange: Exchange) -> Reach:
    """What has to be known of a message to say where it goes from `exchange`."""
    seen = {exchange}
    waiting = [exchange]
    asked: set[str] = set()
    has_headers = has_keys = is_each = False
    while waiting:
        current = waiting.pop()
        has_headers |= current.needs_headers
        has_keys |= not current.ignores_keys
        is_each |= current.is_each
        asked.update(current.header_names)
        following: list[object] = [binding.destination for binding in current.hops.values()]
        if current.alternate is not None:
            following.append(names.exchanges.get(current.alternate))
        for destination in following:
            if isinstance(destination, Exchange) and destination not in seen:
                seen.add(destination)
                waiting.append(destination)
    octets = frozenset(name.encode("utf-8", "surrogateescape") for name in asked)
    return Reach(octets if has_headers else None, has_keys, is_each)
