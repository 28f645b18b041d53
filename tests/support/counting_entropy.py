"""Entropy that counts: bytes that are different each time and known beforehand."""

from __future__ import annotations


class CountingEntropy:
    """Implements `broker.turn.clock.Entropy`."""

    def __init__(self, count: int = 0) -> None:
        self._count = count

    def token(self, size: int) -> bytes:
        """The next number."""
        self._count += 1
        return self._count.to_bytes(size, "big")
