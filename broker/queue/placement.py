"""Where a queue is kept whose messages are on several servers. Owns no state; shown by `broker.inspect`."""

from __future__ import annotations

from burrowmq.records import NamedTuple

LAST_MEMBER = "the last node cannot be removed"
"""Why a queue keeps the only server that it has."""


class Placement(NamedTuple):
    """As of the last look at it."""

    leader: str
    """The server that decides; "" while they elect one."""
    members: tuple[str, ...]
    """All that keep it, by name; none where the only server is no cluster."""
    online: tuple[str, ...]
    """Those of them that the leader hears."""

    @property
    def has_quorum(self) -> bool:
        """Whether something can be decided."""
        is_led = bool(self.leader) and len(self.online) > len(self.members) // 2
        return is_led or not self.members

    @property
    def is_critical(self) -> bool:
        """Whether nothing could be decided with one server less, as RabbitMQ counts: also where there is only one."""
        return bool(self.members) and len(self.online) <= len(self.members) // 2 + 1
