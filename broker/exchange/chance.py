"""The random exchange: each message to one of the bindings, whichever comes up; keys and headers are ignored.

Two bindings to one queue are two chances. Chance is a congruential sequence of the exchange's own, begun from its name:
nobody is to guess secrets from it, and the same events give the same run in a simulation. State: that sequence, and the
destinations, made at the first message after a change.

Called as all exchanges are (`base`). Routes through it are never remembered (`is_each`).

Source: RabbitMQ's rabbit_exchange_type_random.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Unpack
from zlib import crc32

from burrowmq.broker.exchange.base import Exchange, Properties

if TYPE_CHECKING:
    from collections.abc import Iterable

    from burrowmq.broker.exchange.base import Look
    from burrowmq.broker.exchange.binding import Binding, Destination

# Knuth's MMIX generator; its upper half is what is used.
_FACTOR: Final = 6364136223846793005
_STEP: Final = 1442695040888963407
_MASK: Final = (1 << 64) - 1


class RandomExchange(Exchange):
    """Routes to one binding by chance."""

    type = "x-random"
    picks_one = True
    ignores_keys = True
    is_each = True
    _targets: list[tuple[Destination]] | None = None

    def __init__(self, name: str, **properties: Unpack[Properties]) -> None:
        super().__init__(name, **properties)
        self._state = crc32(name.encode("utf-8", "surrogateescape"))

    def match(self, routing_key: bytes, look: Look | None) -> Iterable[Destination]:
        """The destination of the binding that comes up."""
        targets = self._targets
        if targets is None:
            targets = self._targets = [(binding.destination,) for binding in self.bindings]
        if not targets:
            return ()
        self._state = self._state * _FACTOR + _STEP & _MASK
        return targets[(self._state >> 32) * len(targets) >> 32]

    def _index(self, binding: Binding) -> None:
        self._targets = None

    def _unindex(self, binding: Binding) -> None:
        self._targets = None
