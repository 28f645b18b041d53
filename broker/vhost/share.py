"""What a virtual host asks of whoever agrees with other front-ends on its definitions, and where classic queues live.

There is none of either without a cluster.

Texts are RabbitMQ's for a metadata store that does not answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from burrowmq.broker.exchange.binding import Destination
from burrowmq.broker.exchange.graph import ExchangeGraph
from burrowmq.broker.queue.port import QueuePort
from burrowmq.broker.words.resource import Row
from burrowmq.protocol.errors import AmqpError

Agreed: TypeAlias = Callable[[AmqpError | None], None]


class Share(Protocol):
    """The definitions that all front-ends of a cluster have."""

    @property
    def is_waiting(self) -> bool:
        """Whether a change that is in force here is not agreed yet."""
        ...

    def has(self, kind: str, key: str) -> bool:
        """Whether there is such a row, or is to be one."""
        ...

    def propose(self, kind: str, key: str, row: Row | None, then: Agreed) -> None:
        """Have this row, or none, agreed and put in force; another one of its key may have come before it."""
        ...

    def when_agreed(self, then: Agreed) -> None:
        """Say when what is in force here is agreed; what cannot be is taken back."""
        ...


class Topology(Protocol):
    """A virtual host, as far as bindings to queues elsewhere have to do with it."""

    name: str
    graph: ExchangeGraph
    queues: dict[str, QueuePort]


class Homes(Protocol):
    """Which classic queues live where, and what leads to them."""

    def made(self, vhost: str, name: str, *, durable: bool) -> None:
        """A classic queue is here."""
        ...

    def gone(self, vhost: str, name: str) -> None:
        """It is not here any more."""
        ...

    def find(self, vhost: str, name: str) -> Destination | None:
        """Where a message for a queue, or a reply consumer, goes that lives at another front-end."""
        ...

    def refusal(self, vhost: str, name: str) -> AmqpError | None:
        """Why a queue that lives elsewhere cannot be used here; None for one that nobody has."""
        ...

    def lead_from(self, vhost: Topology, exchange: str) -> None:
        """An exchange is here; what other front-ends have bound to it leads to them from now on."""
        ...

    def lead_to(self, vhost: Topology, name: str) -> None:
        """No queue here has that name any more; what leads to one elsewhere does so again."""
        ...

    def lead_no_more(self, vhost: Topology, name: str) -> None:
        """A queue here has that name, and comes before one elsewhere."""
        ...
