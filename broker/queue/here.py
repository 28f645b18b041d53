"""A queue all of which is in this node: what others are asked to wait for is known, and done, at once."""

from __future__ import annotations

from collections.abc import Callable

from burrowmq.broker.queue.placement import Placement
from burrowmq.protocol.errors import AmqpError


class Here:
    """What a classic queue answers for `broker.queue.port.QueuePort`."""

    __slots__ = ()

    kind = "classic"
    """Its type, in RabbitMQ's words."""
    placement: Placement | None = None
    is_refused = False

    def ask(self, then: Callable[[AmqpError | None], None]) -> None:
        """How many messages there are is known."""
        then(None)

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
