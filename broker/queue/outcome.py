"""What a queue answers when it is given a run: accepted, accepted with a confirm to come, or refused in part.

The common answers are two ints that combine with `|` over the queues of a route; a refusal says which messages.
"""

from __future__ import annotations

from burrowmq.records import dataclass

ACCEPTED = 0
PENDING = 1
"""Accepted; a confirm waits for the commit that is being collected."""
REFUSED = 2
"""Of all queues together: one of them has refused something."""


@dataclass(slots=True)
class Rejected:
    """Some messages of a run were refused (overflow); `indexes` are their places in the run."""

    indexes: list[int]
    is_pending: bool
