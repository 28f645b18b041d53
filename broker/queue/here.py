"""A queue all of which is in this node: its counts are known, and what others are asked to wait for is done at once.

State owned: none; `broker.queue.queue` is one of these, and keeps what is counted here.
"""

from __future__ import annotations

from collections.abc import Callable

from burrowmq.broker.queue.context import QueueContext
from burrowmq.broker.queue.counts import Counts
from burrowmq.broker.queue.order.levels import Levels
from burrowmq.broker.queue.placement import Placement
from burrowmq.protocol.errors import AmqpError


class Here:
    """What a classic queue answers for `broker.queue.port.QueuePort`."""

    __slots__ = ()

    kind = "classic"
    """Its type, in RabbitMQ's words."""
    placement: Placement | None = None
    is_refused = False

    _context: QueueContext
    counts: Counts
    levels: Levels

    @property
    def vhost_name(self) -> str:
        """The virtual host in which it is."""
        return self._context.vhost_name

    # -- counts -------------------------------------------------------------------------------------------------

    @property
    def ready_count(self) -> int:
        """Messages ready for delivery, expired ones behind the head included."""
        return self.levels.ready_count

    @property
    def ready_bytes(self) -> int:
        """Body bytes of the ready messages."""
        return self.levels.ready_bytes

    @property
    def ram_ready_count(self) -> int:
        """Ready messages whose body is in RAM."""
        return self.levels.ram_ready_count

    @property
    def ram_ready_bytes(self) -> int:
        """Body bytes of them."""
        return self.levels.ram_ready_bytes

    @property
    def unacked_count(self) -> int:
        """Messages that were handed out and not settled."""
        return self.counts.unacked_count

    @property
    def unacked_bytes(self) -> int:
        """Body bytes of them."""
        return self.counts.unacked_bytes

    @property
    def persistent_count(self) -> int:
        """Messages that a restart would bring back."""
        return self.counts.persistent_count

    @property
    def persistent_bytes(self) -> int:
        """Body bytes of them."""
        return self.counts.persistent_bytes

    # -- what takes a while elsewhere ---------------------------------------------------------------------------

    def lead_by(self, server: str, then: Callable[[AmqpError | None], None]) -> None:
        """There is one server."""
        then(None)

    def change_member(self, server: str, then: Callable[[str], None], *, is_kept: bool) -> None:
        """There is one server."""
        then("a classic queue is kept by this node alone")

    def attach(self, consumer: object, then: Callable[[AmqpError | None], None]) -> None:
        """It can be served."""
        then(None)

    def release(self, then: Callable[[AmqpError | None], None]) -> None:
        """There is nothing elsewhere."""
        then(None)

    def leave(self) -> None:
        """There is nothing to end."""
