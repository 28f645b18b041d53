"""What tx.commit will do: publishes that are routed already, and settlements in the order in which they were issued.

State owned: both, until commit or rollback; the channel has one of these while it is transactional. What is done with
them is `broker.channel.methods.tx`.
"""

from __future__ import annotations

from collections.abc import Callable

from burrowmq.broker.channel.unacked import Piece
from burrowmq.broker.vhost.router import Route
from burrowmq.protocol.codec import Message
from burrowmq.protocol.constants import MANDATORY, PERSISTENT
from burrowmq.protocol.errors import ResourceError
from burrowmq.records import NamedTuple

TRANSACTION_BYTES = 256 << 20
"""Most bytes that the publishes of one transaction may take before they are committed."""
TRANSACTION_MESSAGE_BYTES = 256
"""What a message counts against that limit besides its frames."""


class PendingRun(NamedTuple):
    """Publishes with the same flags that cut runs, and where each goes."""

    flags: int
    messages: list[Message]
    routes: list[Route]


class Committing:
    """A commit that waits for the disk: its publishes' queues, and whether the disk has refused one of them.

    `has_tickets`: it waits for queues elsewhere as well.
    """

    __slots__ = ("epoch", "has_tickets", "is_refused", "queues")

    def __init__(self, epoch: int, publishes: list[PendingRun], *, has_tickets: bool) -> None:
        routes = {route for run in publishes for route in run.routes}
        self.epoch = epoch
        self.queues = {queue for route in routes for queue in route.queues or ()}
        self.is_refused = False
        self.has_tickets = has_tickets


class Transaction:
    """That of one channel.

    Bounded: settlements by what is unacked, publishes by TRANSACTION_BYTES (one message of any size fits).
    """

    __slots__ = ("publishes", "settlements", "size")

    def __init__(self) -> None:
        self.publishes: list[PendingRun] = []
        self.settlements: list[tuple[Callable[[list[Piece]], None], list[Piece]]] = []
        self.size = 0

    @property
    def publish_count(self) -> int:
        """Publishes that wait for the commit."""
        return sum(len(run.messages) for run in self.publishes)

    def add(self, messages: list[Message], routes: list[Route]) -> None:
        """Keep publishes of one run until the commit. Raises ResourceError when the transaction has grown too large."""
        if not messages:
            return
        self.size += sum(len(message.raw) + TRANSACTION_MESSAGE_BYTES for message in messages)
        if self.size > TRANSACTION_BYTES and (self.publishes or len(messages) > 1):
            raise ResourceError(f"transaction exceeds {TRANSACTION_BYTES} bytes")
        flags = messages[0].flags & (PERSISTENT | MANDATORY)
        if self.publishes and self.publishes[-1].flags == flags:
            self.publishes[-1].messages.extend(messages)
            self.publishes[-1].routes.extend(routes)
        else:
            self.publishes.append(PendingRun(flags, list(messages), list(routes)))
