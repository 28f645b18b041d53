"""Where a queue is kept whose messages are on several servers. Owns no state; shown by `broker.inspect.queues`."""

from __future__ import annotations

from burrowmq.records import NamedTuple


class Placement(NamedTuple):
    """As of the last look at it."""

    leader: str
    """The server that decides; "" while they elect one."""
    members: tuple[str, ...]
    """All that keep it, by name."""
    online: tuple[str, ...]
    """Those of them that the leader hears."""
