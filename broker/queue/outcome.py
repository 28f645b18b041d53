"""What a queue answers when it is given a run: accepted, accepted with a confirm to come, or refused in part.

The common answers are two ints that combine with `|` over the queues of a route; a refusal says which messages. A queue
whose messages are kept elsewhere gives a ticket, since it learns later what became of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from burrowmq.records import dataclass

ACCEPTED = 0
PENDING = 1
"""Accepted; a confirm waits for the commit that is being collected."""
REFUSED = 2
"""Of all queues together: one of them has refused something."""
CLUSTER = "cluster"
"""Why a publisher is not read: a queue of a cluster has more than it gets rid of."""


@dataclass(slots=True)
class Rejected:
    """Some messages of a run were refused (overflow); `indexes` are their places in the run."""

    indexes: list[int]
    is_pending: bool


class Ticket(Protocol):
    """That of one run, for whoever gave it to the queue: nobody else is told."""

    is_crowded: bool
    """The queue has more than it gets rid of: who publishes is not to be read until it has caught up."""
    on_done: Callable[[], None] | None
    """Called once, when something is known of each message; set by who is given the ticket, unless it is done."""

    @property
    def is_done(self) -> bool:
        """Whether something is known of each message."""
        ...

    @property
    def refused(self) -> Sequence[int]:
        """Places in the run of the messages that are not, or may not be, stored: all of them once it is done."""
        ...


Outcome: TypeAlias = int | Rejected | Ticket
