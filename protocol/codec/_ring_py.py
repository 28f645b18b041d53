"""The buckets of a hash exchange, and the messages of a run sent there (the compiled codec has its own).

A ring is made of what an exchange knows when it is asked: where each target's buckets end, and what of a message is
hashed: the routing key, a property, or a header that is a text. A property's or header's hash begins with `seed`, which
says its kind; a message without it has the hash `missing`. What a target is nobody knows here.

State: none that changes; an exchange whose bindings change makes another ring. Called by basic.publish and
`broker.vhost.vhost` for runs of messages.

Source: RabbitMQ's rabbit_exchange_type_consistent_hash; `broker.words.phash2` has the seeds.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from burrowmq.protocol.codec._fields_py import header_fields
from burrowmq.protocol.codec._hash_py import hash_octets, jump
from burrowmq.protocol.codec._header_py import place_of
from burrowmq.protocol.codec._message_py import Message
from burrowmq.protocol.constants import PROP_TIMESTAMP

T = TypeVar("T")

RING_IS_QUICK: Final = False
"""Whether a ring finds a target as fast as a dictionary, so that nothing that it can say is worth remembering."""
_RANGE: Final = (1 << 27) - 1


class Ring(Generic[T]):
    """Buckets one after another, each a target's, and what of a message names one."""

    __slots__ = ("_ends", "_header", "_missing", "_prop", "_seed", "targets")

    def __init__(
        self,
        ends: list[int],
        targets: list[T],
        seed: int,
        missing: int = 0,
        header: bytes | None = None,
        prop: int = 0,
    ) -> None:
        if not ends or len(ends) != len(targets):
            raise ValueError("a ring has as many ends as targets, and one at least")
        self.targets = targets
        self._ends = list(ends)
        self._seed = seed
        self._missing = missing
        self._header = header
        self._prop = prop

    def _at(self, hashed: int) -> T:
        """The target whose bucket a hash names: the first whose end is behind it."""
        bucket = jump(hashed & _RANGE, self._ends[-1])
        return self.targets[bisect_right(self._ends, bucket)]

    def of_key(self, address: bytes) -> T:
        """Where the routing key of an address leads."""
        if not address or 2 + address[0] > len(address):
            raise ValueError("no address")
        return self._at(hash_octets(address[2 + address[0] :], self._seed))

    def of_message(self, message: Message) -> T | None:
        """Where its property or header leads; None for a header that is there and is no text, or is there twice."""
        raw = message.raw
        if self._header is None:
            octets = _property(raw, self._prop)
        else:
            field = header_fields(raw, frozenset((self._header,)))
            octets = None
            if field:
                at = 1 + field[0]
                octets = field[at + 5 :]
                is_text = field[at : at + 1] == b"S"
                if not is_text or int.from_bytes(field[at + 1 : at + 5], "big") != len(octets):
                    return None
        return self._at(self._missing if octets is None else hash_octets(octets, self._seed))


def _property(raw: bytes, prop: int) -> bytes | None:
    """A short string as it came, a timestamp in digits; None when the message has none."""
    if not (raw[19] << 8 | raw[20]) & prop:
        return None
    at = place_of(raw, prop)
    if prop == PROP_TIMESTAMP:
        return b"%d" % int.from_bytes(raw[at : at + 8], "big")
    return raw[at + 1 : at + 1 + raw[at]]


def look_up_by_ring(
    messages: list[Message], ring: Ring[T], resolve: Callable[[Message], T]
) -> list[T]:
    """Where each message goes by a property or a header: as `ring` has it, else what `resolve` says of it."""
    found = []
    for message in messages:
        target = ring.of_message(message)
        found.append(resolve(message) if target is None else target)
    return found
