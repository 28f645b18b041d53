"""Whether the server that a front-end is connected to is of use.

One that is cut off from the others answers itself, and has nobody behind it: it says so, or nothing comes. A queue
without a majority looks the same where no other queue is asked about; so each time that the next server was no better
it is borne for longer.

State owned: since when nobody has answered, and for how long that is borne. Called by `broker.replicated.front_end`.
"""

from __future__ import annotations

from typing import Final

from burrowmq.cluster.api import UNAVAILABLE, Document, Refusal
from burrowmq.cluster.questions import ANSWER_MS, LINK_LOST, NO_ANSWER

PATIENCE_MS: Final = 15_000.0
"""An election of stock servers takes up to ten seconds."""
PATIENCE_MAX_MS: Final = 120_000.0


class Silence:
    """That of the server of one link."""

    def __init__(self) -> None:
        self._since_ms: float | None = None
        self._patience_ms = PATIENCE_MS

    def opened(self) -> None:
        """It is another server, or another connection to it."""
        self._since_ms = None

    def is_too_long(self, found: Document | Refusal, now_ms: float) -> bool:
        """Take what came of a request; whether another server is to be tried."""
        if found == LINK_LOST:
            return False
        if not isinstance(found, Refusal) or not _is_nobody(found):
            self._since_ms, self._patience_ms = None, PATIENCE_MS
            return False
        if self._since_ms is None:
            self._since_ms = now_ms - (ANSWER_MS if found == NO_ANSWER else 0.0)
        if now_ms < self._since_ms + self._patience_ms:
            return False
        self._since_ms = None
        self._patience_ms = min(2 * self._patience_ms, PATIENCE_MAX_MS)
        return True


def _is_nobody(refusal: Refusal) -> bool:
    return refusal == NO_ANSWER or (refusal.code == 503 and refusal.error in (0, UNAVAILABLE))
