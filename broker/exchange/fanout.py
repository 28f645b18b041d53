"""The fanout exchange: every binding matches, keys and headers are ignored.

The tuple of distinct destinations is built at the first match after a change and kept until the next one, so
binding a hundred thousand queues costs one rebuild.

Source: RabbitMQ's rabbit_exchange_type_fanout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from burrowmq.broker.exchange.base import Exchange

if TYPE_CHECKING:
    from collections.abc import Iterable

    from burrowmq.broker.exchange.base import Look
    from burrowmq.broker.exchange.binding import Binding, Destination


class FanoutExchange(Exchange):
    """Routes to everything bound."""

    type = "fanout"
    ignores_keys = True
    _destinations: tuple[Destination, ...] | None = None

    def match(self, routing_key: bytes, look: Look | None) -> Iterable[Destination]:
        """All destinations, each once."""
        destinations = self._destinations
        if destinations is None:
            distinct = {binding.destination: None for binding in self.bindings}
            destinations = self._destinations = tuple(distinct)
        return destinations

    def _index(self, binding: Binding) -> None:
        self._destinations = None

    def _unindex(self, binding: Binding) -> None:
        self._destinations = None
