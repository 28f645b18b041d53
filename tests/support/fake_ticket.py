"""A ticket that a test completes, and what gives tickets where a queue is expected."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from burrowmq.broker.exchange.binding import Edge
from burrowmq.protocol.codec import Message
from tests.support.bench.broker import BrokerBench


@dataclass(eq=False)
class FakeTicket:
    """That of one run."""

    count: int
    is_done: bool = False
    is_crowded: bool = False
    refused: list[int] = field(default_factory=list)
    on_done: Callable[[], None] | None = None

    def finish(self, *refused: int) -> None:
        """Something is known of each message; those at these places are refused."""
        self.refused.extend(refused)
        self.is_done = True
        if self.on_done is not None:
            self.on_done()


class QueueElsewhere:
    """As much of a queue as a publish meets."""

    def __init__(self) -> None:
        self.tickets: list[FakeTicket] = []

    def publish(self, messages: list[Message], flags: int, size: int) -> FakeTicket:
        """Keep the run somewhere."""
        self.tickets.append(FakeTicket(len(messages)))
        return self.tickets[-1]


class AnswersLater(QueueElsewhere):
    """It says a moment later what became of a run: all is refused, or nothing."""

    def __init__(self, *, is_full: bool) -> None:
        super().__init__()
        self.is_full = is_full

    def publish(self, messages: list[Message], flags: int, size: int) -> FakeTicket:
        """See QueueElsewhere."""
        ticket = super().publish(messages, flags, size)
        refused = range(len(messages) if self.is_full else 0)
        asyncio.get_running_loop().call_later(0.01, ticket.finish, *refused)
        return ticket


def bind_elsewhere(bench: BrokerBench, exchange: str, key: bytes) -> Any:
    """Have a binding lead to such a queue, which is given back; typed as nothing, for it is no queue."""
    name = f"elsewhere {len(bench.vhost.queues)}"
    bench.queue(name)
    bench.vhost.bind(Edge(exchange, "queue", name, key, {}))
    found: Any = QueueElsewhere()
    next(bench.vhost.bindings_to("queue", name)).destination = found
    return found
