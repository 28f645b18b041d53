"""Tickets: what becomes of a run of messages that was handed to a stream, whose answer comes later.

Who publishes gets one ticket for its run, however the run is cut into bursts. A ticket is *done* when something is
known of each of its messages; `refused` are the places in the run of those that are not, or may not be, stored.
`Shares` are the tickets of what waits, in the order of its messages.

State owned: counts only; the messages are in the window. Invariant: a ticket is done exactly once, and never before
each of its messages was answered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import takewhile
from typing import NamedTuple


class Ticket:
    """That of one run of `count` messages, which came at `came_ms`."""

    __slots__ = ("came_ms", "count", "is_crowded", "on_done", "open_count", "refused", "size")

    def __init__(self, count: int, came_ms: float = 0.0) -> None:
        assert count > 0, "a run"
        self.came_ms = came_ms
        self.count = count
        self.open_count = count
        self.refused: list[int] = []
        self.is_crowded = False
        """Set by who has the window, for who publishes: more waits there than it takes."""
        self.size = 0
        """Octets of its messages, for who counts them."""
        self.on_done: Callable[[], None] | None = None
        """For whoever has the ticket; who takes those that are done from the window calls it."""

    @property
    def is_done(self) -> bool:
        """Whether something is known of each message."""
        return not self.open_count


class Share(NamedTuple):
    """Messages of a ticket that go together: `length` of them from the place `first` in the run."""

    ticket: Ticket
    first: int
    length: int

    def settle(self, *, is_stored: bool) -> bool:
        """Something is known of these; whether that makes the ticket done."""
        ticket = self.ticket
        assert ticket.open_count >= self.length, "answered once"
        ticket.open_count -= self.length
        if not is_stored:
            ticket.refused.extend(range(self.first, self.first + self.length))
        return not ticket.open_count


class Shares:
    """Shares in the order of their messages, of which any number is taken from the front."""

    __slots__ = ("_shares",)

    def __init__(self) -> None:
        self._shares: deque[Share] = deque()

    def count_while(self, is_so: Callable[[Share], bool]) -> int:
        """How many messages are in front of the first share of which something is not so."""
        return sum(share.length for share in takewhile(is_so, self._shares))

    def add(self, share: Share) -> None:
        """A run, or a part of one, joins the end."""
        self._shares.append(share)

    def put_back(self, shares: list[Share]) -> None:
        """What was taken is in front again."""
        self._shares.extendleft(reversed(shares))

    def take(self, count: int) -> list[Share]:
        """The shares of the first `count` messages; one that is longer is cut."""
        taken: list[Share] = []
        while count:
            share = self._shares.popleft()
            if share.length > count:
                self._shares.appendleft(
                    Share(share.ticket, share.first + count, share.length - count)
                )
                share = Share(share.ticket, share.first, count)
            taken.append(share)
            count -= share.length
        return taken
