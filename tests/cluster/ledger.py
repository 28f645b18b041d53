"""What publishers and consumers know of numbered messages, in some octets a message, and what is wrong with it.

A message is known by its publisher and its number. Each fact is an octet of an array of its own, which one thread writes:
threads need no lock, and ten million messages take 60 MB.

State owned: those arrays. Callers: `tests.cluster.load` writes, the programs beside it read.
"""

from __future__ import annotations

import threading
import time
from array import array
from dataclasses import dataclass, fields

AGAIN_S = 0.25
"""Who sees a message so soon after its acknowledgement was sent may have been given it before that came."""
_ROOM = 1 << 16
_BEGAN_S = time.monotonic() - 1.0


def now_ms() -> int:
    """Since this process began; never 0."""
    return int((time.monotonic() - _BEGAN_S) * 1000)


@dataclass
class Verdict:
    """Counts over all publishers."""

    published: int = 0
    confirmed: int = 0
    refused: int = 0
    seen: int = 0
    lost: int = 0
    """Confirmed, and not seen (yet)."""
    invented: int = 0
    """Seen and never published, in a queue of others, or with other octets."""
    reordered: int = 0
    """Not marked as redelivered, and behind a later one of its publisher."""
    again: int = 0
    """Seen again although it was acknowledged, by a client whose connection lived on for a second."""
    minority: int = 0
    """Confirmed while no majority could be asked."""

    @property
    def is_clean(self) -> bool:
        return not (self.lost or self.invented or self.reordered or self.minority)

    def __str__(self) -> str:
        return ", ".join(f"{getattr(self, each.name):,} {each.name}" for each in fields(self))


class Ledger:
    """That of one publisher, which alone writes `confirmed` and `refused`."""

    def __init__(self) -> None:
        self.published = 0
        self.confirmed = bytearray()
        self.refused = bytearray()
        self.seen = bytearray()
        self.acked_ms = array("I")
        """When its acknowledgement was sent last; 0: never, or nobody knows whether that has come."""
        self.reordered = self.again = 0

    def reserve(self, count: int) -> int:
        """Numbers for messages that are about to be sent: the first of them."""
        first = self.published
        missing = first + count - len(self.confirmed)
        if missing > 0:
            room = bytes(max(missing, _ROOM))
            # The last one first: who sees a number looks only below the length of `confirmed`.
            self.acked_ms.frombytes(bytes(4 * len(room)))
            for facts in (self.seen, self.refused, self.confirmed):
                facts.extend(room)
        self.published = first + count
        return first

    def see(self, number: int, newest: int) -> bool:
        """A consumer was given it, unmarked ones so far up to `newest` if it is unmarked; whether it was ever published."""
        if number >= self.published:
            return False
        if self.seen[number]:
            acked_ms = self.acked_ms[number]
            self.again += 0 < acked_ms < now_ms() - AGAIN_S * 1000
        else:
            self.seen[number] = 1
        self.reordered += number < newest
        return True

    def missing(self) -> int:
        """How many are confirmed and were not seen."""
        return (_bits(self.confirmed) & ~_bits(self.seen)).bit_count()

    def confirmed_from(self, number: int) -> int:
        """How many are confirmed of those from this number on."""
        return self.confirmed[number:].count(1)

    def add_to(self, verdict: Verdict) -> None:
        verdict.published += self.published
        verdict.confirmed += self.confirmed.count(1)
        verdict.refused += self.refused.count(1)
        verdict.seen += self.seen.count(1)
        verdict.lost += self.missing()
        verdict.reordered += self.reordered
        verdict.again += self.again


def _bits(facts: bytearray) -> int:
    return int.from_bytes(facts, "little")


class Book:
    """The ledgers of all publishers, by queue."""

    def __init__(self) -> None:
        self.ledgers: dict[int, Ledger] = {}
        self._queues: dict[int, str] = {}
        self.invented = 0
        self.minority = 0
        self._lock = threading.Lock()

    def add(self, publisher: int, queue: str) -> Ledger:
        self._queues[publisher] = queue
        return self.ledgers.setdefault(publisher, Ledger())

    def of(self, queue: str) -> dict[int, Ledger]:
        """Those whose messages go to this queue."""
        return {number: self.ledgers[number] for number, to in self._queues.items() if to == queue}

    def invent(self) -> None:
        with self._lock:
            self.invented += 1

    def verdict(self) -> Verdict:
        found = Verdict(invented=self.invented, minority=self.minority)
        for ledger in list(self.ledgers.values()):
            ledger.add_to(found)
        return found

    @property
    def is_all_seen(self) -> bool:
        return not any(ledger.missing() for ledger in self.ledgers.values())
