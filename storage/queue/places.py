"""Which places of an index segment hold a live entry, and which an acked one.

A range while the live places are contiguous, two bit sets (as integers) once they are not. That is what keeps a million
waiting messages below 20 KB. State: the `Places`, each part of a `storage.queue.segment.Segment`. Called on the disk
thread; the reader thread looks at them under the lock of `storage.disk.jobs`.

Invariants: a place goes from live to acked and never back; `used` never falls.
"""

from __future__ import annotations

from burrowmq.storage.record import ENTRY_PRESENT


class Places:
    """The places of one index segment: live, acked, or never written."""

    __slots__ = ("acked_bits", "high", "live", "live_bits", "low", "pending_acks", "start", "used")

    def __init__(self) -> None:
        self.live = 0
        self.used = 0  # places below this may hold an entry
        self.pending_acks = 0  # that no file says yet
        # While live_bits is None: places from start to below low are acked, from low to below high live.
        self.start = 0
        self.low = 0
        self.high = 0
        self.live_bits: int | None = None
        self.acked_bits = 0

    def add(self, first: int, count: int) -> None:
        """The places from `first` on hold so many live entries now."""
        if self.live_bits is None:
            if self.low == self.high and self.start == self.low:
                self.start = self.low = self.high = first
            if first == self.high:
                self.high += count
            else:
                self._to_bits()
        if self.live_bits is not None:
            self.live_bits |= mask_of(first, count)
        self.live += count
        self.used = max(self.used, first + count)

    def remove(self, first: int, last: int) -> int:
        """Ack the live places among first..last; gives their bits."""
        if self.live_bits is None:
            low, high = max(first, self.low), min(last + 1, self.high)
            if low >= high:
                return 0
            if low == self.low:
                self.low = high
                self.live -= high - low
                self.pending_acks += high - low
                return mask_of(low, high - low)
            self._to_bits()
        return self.remove_bits(mask_of(first, last - first + 1))

    def remove_bits(self, wanted: int) -> int:
        """Ack the live places among the wanted ones; gives their bits."""
        if self.live_bits is None:
            self._to_bits()
        live_bits = self.live_bits or 0
        hit = live_bits & wanted
        if hit:
            self.live_bits = live_bits ^ hit
            self.acked_bits |= hit
            count = hit.bit_count()
            self.live -= count
            self.pending_acks += count
        return hit

    def _to_bits(self) -> None:
        self.live_bits = mask_of(self.low, self.high - self.low)
        self.acked_bits = mask_of(self.start, self.low - self.start)

    def acked(self) -> int:
        """The bits of the places whose entry is acked."""
        if self.live_bits is None:
            return mask_of(self.start, self.low - self.start)
        return self.acked_bits

    def live_mask(self) -> int:
        """The bits of the places whose entry is live."""
        if self.live_bits is None:
            return mask_of(self.low, self.high - self.low)
        return self.live_bits

    def live_slots(self, first: int, max_count: int) -> list[int]:
        """The first live places from `first` on."""
        if self.live_bits is None:
            low = max(first, self.low)
            return list(range(low, min(self.high, low + max_count)))
        return slots_of(self.live_bits >> first, first)[:max_count]

    def keep_only(self, live: int) -> None:
        """These places are live and nothing is acked: the segment was written anew. `used` stays."""
        self.pending_acks = 0
        used = self.used
        self.restore(live, 0)
        self.used = used

    def restore(self, present: int, acked: int) -> None:
        """Take the state found on disk: places that hold an entry, and those of them that are acked."""
        acked &= present
        live = present & ~acked
        self.live_bits = None
        self.acked_bits = 0
        self.used = present.bit_length()
        self.live = live.bit_count()
        low = (live & -live).bit_length() - 1 if live else self.used
        start = (present & -present).bit_length() - 1 if present else 0
        high = live.bit_length() if live else self.used
        if live == mask_of(low, high - low) and acked == mask_of(start, low - start):
            self.start, self.low, self.high = start, low, high
        else:
            self.live_bits, self.acked_bits = live, acked


def mask_of(first: int, count: int) -> int:
    """Give the bits of so many places from `first` on."""
    return ((1 << count) - 1) << first


def slots_of(bits: int, base: int = 0) -> list[int]:
    """Give the places of the bits that are set, counted from base."""
    text = bin(bits)[:1:-1]
    found: list[int] = []
    at = text.find("1")
    while at >= 0:
        found.append(base + at)
        at = text.find("1", at + 1)
    return found


def bits_of(column: bytes) -> int:
    """Give the bits of the places whose octet is 1: status present, kind shared, flag persistent."""
    if not column:
        return 0
    return int(column[::-1].translate(_TO_DIGITS), 2)


_TO_DIGITS = bytes(0x31 if value == ENTRY_PRESENT else 0x30 for value in range(256))


def selectors_of(bits: int) -> bytes:
    """Give one octet a place, 1 where the bit is set: what itertools.compress takes."""
    return bin(bits)[:1:-1].encode().translate(_TO_SELECTORS)


_TO_SELECTORS = bytes.maketrans(b"01", b"\0\1")
