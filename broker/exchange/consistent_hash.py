"""The consistent-hash exchange: each message to one of the destinations, equal keys to the same, by weight.

The binding key is a weight: how many buckets the destination gets, behind those that are there. A message's hash names
a bucket; it is taken of the routing key, of a header (`hash-header`), or of a property (`hash-property`: message_id,
correlation_id or timestamp). Hash and choice are the plugin's own (`broker.words.phash2`, `codec.jump`), so that keys
keep their queues when a shop moves in. A destination that comes takes its share from the others and moves nothing else;
when one goes, the buckets behind its own move down.

State: which binding gave each destination its buckets, and the ring made of them, built at the first message after a
change. A destination has the buckets of one of its bindings, the one it has had longest; the plugin takes the same one,
but loses all buckets with any of the bindings. `Binding.place` orders the ring, also after a restart.

Called as all exchanges are (`base`). Never: more than `WEIGHT_MAX` buckets for a binding.

Source: RabbitMQ's rabbit_exchange_type_consistent_hash (3.10).
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, Final, TypeVar, Unpack

from burrowmq.broker.exchange.base import Exchange, Properties
from burrowmq.broker.words.phash2 import UNDEFINED, Atom, field_term, phash2, seed_of_octets
from burrowmq.broker.words.resource import erlang_term
from burrowmq.protocol.codec import Ring, jump
from burrowmq.protocol.constants import PROP_CORRELATION_ID, PROP_MESSAGE_ID, PROP_TIMESTAMP
from burrowmq.protocol.errors import PreconditionFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from burrowmq.broker.exchange.base import Look
    from burrowmq.broker.exchange.binding import Binding, Destination
    from burrowmq.broker.words.phash2 import Term
    from burrowmq.protocol.table import FieldTable

T = TypeVar("T")

PROPERTIES: Final = {
    "correlation_id": PROP_CORRELATION_ID,
    "message_id": PROP_MESSAGE_ID,
    "timestamp": PROP_TIMESTAMP,
}
TEXT: Final = Atom("longstr")
"""The type of a header that is a text."""
WEIGHT_MAX: Final = 10_000
_DIGITS: Final = frozenset(b"0123456789")


def weight_of(routing_key: bytes) -> int:
    """The weight that a binding key says. Raises: PreconditionFailed."""
    digits = routing_key[1:] if routing_key[:1] in {b"+", b"-"} else routing_key
    if not digits or not _DIGITS.issuperset(digits):
        told = erlang_term(routing_key)
        raise PreconditionFailed(f"The binding key must be an integer: {told}")
    weight = int(routing_key)
    if weight < 1:
        raise PreconditionFailed("The binding key must be greater than 0")
    if weight > WEIGHT_MAX:
        raise PreconditionFailed(f"The binding key must not be greater than {WEIGHT_MAX}")
    return weight


class ConsistentHashExchange(Exchange):
    """Routes by weight, equal keys alike."""

    type = "x-consistent-hash"
    picks_one = True
    keeps_order = True

    def __init__(self, name: str, **properties: Unpack[Properties]) -> None:
        super().__init__(name, **properties)
        header, prop = (self.arguments.get(key) for key in ("hash-header", "hash-property"))
        self._header = header if isinstance(header, str) else None
        self._property = prop if isinstance(prop, str) else None
        self.needs_headers = self._header is not None
        self.is_each = self._property is not None
        self.ignores_keys = self.needs_headers or self.is_each
        self._of: dict[Destination, dict[Binding, None]] = {}
        self._ends: list[int] | None = None
        self._targets: list[tuple[Destination]] = []

    @classmethod
    def check_arguments(cls, arguments: FieldTable) -> None:
        """Refuse what names no way to hash, or two."""
        has_header, has_property = (key in arguments for key in ("hash-header", "hash-property"))
        if has_header and has_property:
            raise PreconditionFailed("hash-header and hash-property are mutually exclusive")
        named = arguments.get("hash-property")
        if has_property and named not in PROPERTIES:
            told = named if isinstance(named, str) else erlang_term(named)
            raise PreconditionFailed(f"Unsupported property: {told}")
        if has_header and not isinstance(arguments["hash-header"], str):
            told = erlang_term(arguments["hash-header"])
            raise PreconditionFailed(f"hash-header must be a string, not {told}")

    def validate(self, routing_key: bytes, arguments: FieldTable) -> None:
        """Refuse a binding key that is no weight."""
        weight_of(routing_key)

    @property
    def header_names(self) -> Collection[str]:
        """The header that is hashed."""
        return () if self._header is None else (self._header,)

    def match(self, routing_key: bytes, look: Look | None) -> Iterable[Destination]:
        """The destination whose bucket the message's hash names."""
        ends = self._ring() if self._ends is None else self._ends
        if not ends:
            return ()
        term = self._hashed(look) if self.ignores_keys else routing_key
        return self._targets[bisect_right(ends, jump(phash2(term), ends[-1]))]

    def match_all(
        self, routing_keys: tuple[bytes, ...], look: Look | None
    ) -> Iterable[Destination]:
        """The routing key alone counts, not those of CC and BCC."""
        return self.match(routing_keys[0], look)

    def ring(self, route_to: Callable[[Destination], T]) -> Ring[T] | None:
        """The ring with such targets, for messages by the thousand; None without a binding."""
        ends = self._ring() if self._ends is None else self._ends
        if not ends:
            return None
        targets = [route_to(destination) for (destination,) in self._targets]
        missing = phash2(UNDEFINED)
        if self._header is not None:
            name = self._header.encode("utf-8", "surrogateescape")
            return Ring(ends, targets, seed_of_octets(TEXT), missing, header=name)
        prop = 0 if self._property is None else PROPERTIES[self._property]
        return Ring(ends, targets, seed_of_octets(), missing, prop=prop)

    def _hashed(self, look: Look | None) -> Term:
        """What is hashed instead of the routing key."""
        if look is None:
            return UNDEFINED
        properties = look()
        if self._header is not None:
            headers = properties.headers or {}
            return field_term(headers[self._header]) if self._header in headers else UNDEFINED
        assert self._property is not None, "else keys count"
        value = getattr(properties, self._property)
        return UNDEFINED if value is None else str(value).encode("utf-8", "surrogateescape")

    def _ring(self) -> list[int]:
        """Where each destination's buckets end."""
        owners = sorted((min(found, key=_place) for found in self._of.values()), key=_place)
        self._targets = [(binding.destination,) for binding in owners]
        self._ends = list(accumulate(weight_of(binding.routing_key) for binding in owners))
        return self._ends

    def _index(self, binding: Binding) -> None:
        self._of.setdefault(binding.destination, {})[binding] = None
        self._ends = None

    def _unindex(self, binding: Binding) -> None:
        found = self._of[binding.destination]
        del found[binding]
        if not found:
            del self._of[binding.destination]
        self._ends = None


def _place(binding: Binding) -> int:
    return binding.place
