"""What a queue offers to those above it: channels, routing, dead-lettering, the virtual host, whoever looks.

Declarations only. `broker.queue.queue.Queue`, the classic queue, is one; what only that has (levels, paging, a start
batch, what the disk refuses of it) is asked of a `Queue`, by those who have made sure that it is one.
Everything is said and done at once: nothing here is awaited, and what takes longer answers by a callback (`get`), by
the end of a commit (PENDING) or by `after_pump`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from burrowmq.broker.queue.counts import Counts
from burrowmq.broker.queue.outcome import Outcome
from burrowmq.broker.queue.placement import Placement
from burrowmq.broker.queue.rules.settings import Settings
from burrowmq.broker.queue.serve.consumer import Consumer, Consumers
from burrowmq.broker.queue.serve.getters import Getter
from burrowmq.broker.report.metrics import QueueMetrics
from burrowmq.protocol.codec import Message
from burrowmq.protocol.errors import AmqpError
from burrowmq.protocol.table import FieldTable


class QueuePort(Protocol):
    """One queue, of whatever type."""

    kind: str
    """Its type, in RabbitMQ's words."""
    made_ms: int
    """When it was declared, by the wall clock; whoever restores it says so."""

    # -- what it was declared with, and what is in force ----------------------------------------------------------

    @property
    def name(self) -> str:
        """Its name in the virtual host."""
        ...

    @property
    def vhost_name(self) -> str:
        """The virtual host in which it is."""
        ...

    @property
    def durable(self) -> bool:
        """Whether it outlives a restart."""
        ...

    @property
    def auto_delete(self) -> bool:
        """Whether it goes with its last consumer."""
        ...

    @property
    def exclusive_owner(self) -> object | None:
        """The connection that alone may use it."""
        ...

    @property
    def arguments(self) -> FieldTable:
        """Those of its declaration."""
        ...

    @property
    def settings(self) -> Settings:
        """What arguments and policies ask for."""
        ...

    def change_settings(self, settings: Settings) -> None:
        """Put new effective settings in force."""
        ...

    @property
    def placement(self) -> Placement | None:
        """Which servers keep it; None for a queue of this node, and until they have said so."""
        ...

    # -- what is there --------------------------------------------------------------------------------------------

    @property
    def ready_count(self) -> int:
        """Messages ready for delivery."""
        ...

    @property
    def ready_bytes(self) -> int:
        """Body bytes of them."""
        ...

    @property
    def unacked_count(self) -> int:
        """Messages that were handed out and not settled."""
        ...

    @property
    def unacked_bytes(self) -> int:
        """Body bytes of them."""
        ...

    @property
    def persistent_count(self) -> int:
        """Messages that a restart would bring back."""
        ...

    @property
    def persistent_bytes(self) -> int:
        """Body bytes of them."""
        ...

    @property
    def ram_ready_count(self) -> int:
        """Ready messages whose body is in RAM."""
        ...

    @property
    def ram_ready_bytes(self) -> int:
        """Body bytes of them."""
        ...

    @property
    def memory_bytes(self) -> int:
        """Bytes that its own objects take."""
        ...

    @property
    def consumers(self) -> Consumers:
        """Those that are registered."""
        ...

    @property
    def consumer_count(self) -> int:
        """How many, blocked ones included."""
        ...

    @property
    def counts(self) -> Counts:
        """What operators see."""
        ...

    @property
    def metrics(self) -> QueueMetrics:
        """What has happened so far."""
        ...

    @property
    def is_dormant(self) -> bool:
        """Whether nothing has happened to it, so that there is nothing to be looked at."""
        ...

    @property
    def is_asleep(self) -> bool:
        """Whether it is dormant, or nothing has happened to what a start has found."""
        ...

    @property
    def is_deleted(self) -> bool:
        """Whether it is gone: who still holds it is given nothing, and what it is given is dropped."""
        ...

    @property
    def is_withheld(self) -> bool:
        """Whether there are messages that nobody gets for now."""
        ...

    @property
    def is_refused(self) -> bool:
        """Whether those who are to keep it do not make it, now or another time; False for a queue of this node."""
        ...

    def ask(self, then: Callable[[AmqpError | None], None]) -> None:
        """Learn how many messages there are, where that is known elsewhere; `then` is told if it cannot be learnt.

        At once where the messages are here. What was asked of the queue before (its making, a purge) is done by then.
        """
        ...

    def lead_by(self, server: str, then: Callable[[AmqpError | None], None]) -> None:
        """Have another of the servers that keep it lead it; `then` is told once `placement` says so, or why not."""
        ...

    def change_member(self, server: str, then: Callable[[str], None], *, is_kept: bool) -> None:
        """Have one more server keep it, or one fewer; `then` is told "" once each has everything, or why not."""
        ...

    # -- messages -------------------------------------------------------------------------------------------------

    def publish(self, messages: list[Message], flags: int, size: int) -> Outcome:
        """Take responsibility for a run: ACCEPTED, PENDING (a confirm waits), Rejected, or a Ticket (known later)."""
        ...

    def take(self, messages: list[Message], flags: int, size: int) -> Outcome:
        """As `publish`, for what has left another queue."""
        ...

    def get(self, getter: Getter) -> None:
        """Take one message from the head for basic.get; may answer in a later turn."""
        ...

    def purge(self) -> int:
        """Drop every ready message; returns how many."""
        ...

    # -- consumers ------------------------------------------------------------------------------------------------

    def attach(self, consumer: Consumer, then: Callable[[AmqpError | None], None]) -> None:
        """See that a consumer can be served, before it is added; `then`, which adds it, is told if it cannot."""
        ...

    def add_consumer(self, consumer: Consumer) -> None:
        """Register; deliveries start at the end of this turn, after consume-ok."""
        ...

    def remove_consumer(self, consumer: Consumer) -> None:
        """Forget a consumer."""
        ...

    def consumer_unblocked(self, consumer: Consumer) -> None:
        """Credit came back (ack, qos, the connection drained)."""
        ...

    def serve_last(self, consumer: Consumer) -> bool:
        """Give a consumer that is about to leave what is here for it; whether more is on its way to it."""
        ...

    def after_pump(self, callback: Callable[[], None]) -> None:
        """Run `callback` once, at the end of the next pump or of the queue."""
        ...

    # -- its life -------------------------------------------------------------------------------------------------

    def touch(self) -> None:
        """It was used: what ends unused queues begins anew."""
        ...

    def release(self, then: Callable[[AmqpError | None], None]) -> None:
        """Let go of what it has elsewhere, before it is deleted; `then` is told if that cannot be done, and why."""
        ...

    def leave(self) -> None:
        """End one that was made and is nobody's: what there is of it elsewhere stays, for it may be others', too."""
        ...

    def delete(self) -> None:
        """End: cancel consumers, forget content."""
        ...
