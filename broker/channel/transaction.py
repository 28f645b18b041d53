"""What tx.commit will do: publishes that are routed already, and settlements in the order in which they were issued.

State owned: both, until commit or rollback; the channel has one of these while it is transactional. What is done with
them is `broker.channel.methods.tx`.
"""

from __future__ import annotations

from collections.abc import Callable

from burrowmq.broker.channel.unacked import Piece
from burrowmq.broker.queue.queue import Queue
from burrowmq.broker.vhost.router import Route
from burrowmq.protocol.codec import Message
from burrowmq.protocol.errors import ResourceError

TRANSACTION_BYTES = 256 << 20
"""Most bytes that the publishes of one transaction may take before they are committed."""
TRANSACTION_MESSAGE_BYTES = 256
"""What a message counts against that limit besides its frames."""


class Transaction:
    """That of one channel.

    Bounded: settlements by what is unacked, publishes by TRANSACTION_BYTES (one message of any size fits).
    """

    __slots__ = ("publishes", "settlements", "size")

    def __init__(self) -> None:
        self.publishes: list[tuple[Route, tuple[Queue, ...], Message]] = []
        self.settlements: list[tuple[Callable[[list[Piece]], None], list[Piece]]] = []
        self.size = 0

    def add(self, route: Route, queues: tuple[Queue, ...], message: Message) -> None:
        """Keep a publish until the commit. Raises ResourceError when the transaction has grown too large."""
        self.size += len(message.raw) + TRANSACTION_MESSAGE_BYTES
        if self.publishes and self.size > TRANSACTION_BYTES:
            raise ResourceError(f"transaction exceeds {TRANSACTION_BYTES} bytes")
        self.publishes.append((route, queues, message))
