"""The direct exchange (binding key equals routing key, byte for byte) and the default exchange.

The direct exchange keeps a dictionary from key to the bindings with that key: O(1) to bind, unbind and match. The
default exchange has no bindings of its own: every queue is implicitly bound to it under its name, so it asks the
vhost, through the `lookup` given at construction, which destination a key names.

Source: RabbitMQ's rabbit_exchange_type_direct and the default-exchange case of rabbit_exchange.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from burrowmq.broker.exchange.base import Exchange, Properties

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from burrowmq.broker.exchange.base import Look
    from burrowmq.broker.exchange.binding import Binding, Destination


class DirectExchange(Exchange):
    """Routes by equal keys."""

    type = "direct"

    def __init__(self, name: str, **properties: Unpack[Properties]) -> None:
        super().__init__(name, **properties)
        # A dict used as an ordered set: unbinding one of many queues under one key stays O(1).
        self._by_key: dict[bytes, dict[Binding, None]] = {}

    def match(self, routing_key: bytes, look: Look | None) -> Iterable[Destination]:
        """The destinations bound with exactly this key."""
        found = self._by_key.get(routing_key)
        if found is None:
            return ()
        return [binding.destination for binding in found]

    def _index(self, binding: Binding) -> None:
        self._by_key.setdefault(binding.routing_key, {})[binding] = None

    def _unindex(self, binding: Binding) -> None:
        under_key = self._by_key[binding.routing_key]
        del under_key[binding]
        if not under_key:
            del self._by_key[binding.routing_key]


class DefaultExchange(DirectExchange):
    """The nameless exchange: each routing key names a queue."""

    def __init__(self, lookup: Callable[[bytes], Destination | None]) -> None:
        super().__init__("")
        self._lookup = lookup

    def match(self, routing_key: bytes, look: Look | None) -> Iterable[Destination]:
        """The queue (or direct-reply target) of that name, if there is one."""
        found = self._lookup(routing_key)
        return () if found is None else (found,)
