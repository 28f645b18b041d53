"""A message as the store sees it, for tests that have no protocol."""

from __future__ import annotations

from dataclasses import dataclass

from burrowmq.storage.record import Record


@dataclass(slots=True)
class FakeMessage:
    """Carries the five attributes of storage.types.StoredMessage."""

    address: bytes
    raw: bytes
    size: int
    flags: int = 1 << 16
    handle: int = -1

    @property
    def record(self) -> Record:
        """What reading it must give."""
        return self.address, self.raw, self.size, self.flags
