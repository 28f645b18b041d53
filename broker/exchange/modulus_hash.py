"""The modulus-hash exchange: a message to the binding whose number is the hash of its keys modulo their count.

The bindings are numbered in the order of their keys, then of their destinations; binding keys mean nothing else, and
two bindings to one queue are two chances. Every change of the bindings sends most keys elsewhere: that is what it is,
and what `consistent_hash` is for. State: the destinations in that order, made at the first message after a change.

Called as all exchanges are (`base`).

Source: rabbit_sharding_exchange_type_modulus_hash of RabbitMQ's sharding plugin (3.10).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from burrowmq.broker.exchange.base import Exchange
from burrowmq.broker.words.phash2 import phash2

if TYPE_CHECKING:
    from collections.abc import Iterable

    from burrowmq.broker.exchange.base import Look
    from burrowmq.broker.exchange.binding import Binding, Destination


class ModulusHashExchange(Exchange):
    """Routes to one binding by hash."""

    type = "x-modulus-hash"
    picks_one = True
    _targets: list[tuple[Destination]] | None = None

    def match(self, routing_key: bytes, look: Look | None) -> Iterable[Destination]:
        """The destination of the binding that the key's hash names."""
        return self.match_all((routing_key,), look)

    def match_all(
        self, routing_keys: tuple[bytes, ...], look: Look | None
    ) -> Iterable[Destination]:
        """The same of several keys together."""
        targets = self._targets
        if targets is None:
            in_order = sorted(self.bindings, key=_order)
            targets = self._targets = [(binding.destination,) for binding in in_order]
        if not targets:
            return ()
        return targets[phash2(list(routing_keys)) % len(targets)]

    def _index(self, binding: Binding) -> None:
        self._targets = None

    def _unindex(self, binding: Binding) -> None:
        self._targets = None


def _order(binding: Binding) -> tuple[bytes, str, bytes, bytes]:
    kind, name, key, arguments = binding.identity
    return key, kind, name.encode("utf-8", "surrogateescape"), arguments
