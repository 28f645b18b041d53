"""What serving needs of ready messages, wherever a queue keeps them: a level of a classic queue is one such store.

Declarations only. `queue.serve.serving` takes from the head, `queue.origin` brings back or forgets what was taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from burrowmq.broker.queue.run import DeliveryRun, Kind, Returned
from burrowmq.protocol.codec import Message


class Served(Protocol):
    """Ready messages in their order."""

    level: int
    """Its number among those of its queue."""
    has_expiries: bool
    """Whether any of them may expire."""

    @property
    def count(self) -> int:
        """Ready messages."""
        ...

    @property
    def log_id(self) -> int:
        """What the store calls it; asked only for what has something there."""
        ...

    def live_count(self, now_ms: int, most: int) -> int:
        """How many messages, the head whatever it is and at most `most`, come before one that has expired."""
        ...

    def take(self, max_count: int, max_bytes: int) -> DeliveryRun | None:
        """Remove up to `max_count` messages from the head, at least one; None when the head has to be fetched."""
        ...

    def forget(
        self, seqs: Sequence[int], messages: list[Message] | None, kind: Kind, size: int
    ) -> None:
        """These, which were handed out, are gone for good."""
        ...

    def give_back(self, entries: list[Returned], size: int) -> None:
        """Put messages that were handed out, `size` body bytes together, back into their places."""
        ...
