"""What others see of a replicated queue without asking the cluster: its counts, and whose they are.

Of how many messages there are, this is what the last look and what has happened here since come to. State owned: none;
`broker.replicated.queue` is one of these, and keeps what is counted here.
"""

from __future__ import annotations

from typing import Final

from burrowmq.broker.queue.context import QueueContext
from burrowmq.broker.queue.counts import Counts
from burrowmq.broker.queue.placement import Placement
from burrowmq.broker.queue.serve.consumer import Consumers
from burrowmq.broker.replicated.burial import Burial
from burrowmq.broker.replicated.intake import Intake
from burrowmq.broker.replicated.shelf import Shelf
from burrowmq.broker.replicated.stream import QueueStream
from burrowmq.broker.report.metrics import QueueMetrics

OBJECTS_BYTES: Final = 4096
"""What the parts of a queue weigh without any message, roughly."""


class Figures:
    """The part of `broker.queue.port.QueuePort` that only looks."""

    kind = "quorum"
    is_dormant = False
    is_asleep = False
    durable = True
    auto_delete = False
    exclusive_owner: object | None = None

    is_deleted: bool
    consumers: Consumers
    counts: Counts
    _burial: Burial
    _context: QueueContext
    _intake: Intake
    _message_count: int
    """In the stream, as far as this front-end knows."""
    _shelf: Shelf
    _stream: QueueStream

    @property
    def vhost_name(self) -> str:
        """The virtual host in which it is."""
        return self._context.vhost_name

    @property
    def is_refused(self) -> bool:
        """Whether the servers do not make it."""
        return self._stream.is_refused

    @property
    def placement(self) -> Placement | None:
        """Which servers keep it, as of the last look."""
        return self._stream.placement

    @property
    def ready_count(self) -> int:
        """Messages ready for delivery, here or at another front-end."""
        away_count = self.counts.unacked_count + self._burial.count
        return max(0, self._message_count - away_count)

    @property
    def ready_bytes(self) -> int:
        """Octets of them, with what the stream adds to each."""
        return max(0, self._stream.byte_count - self.counts.unacked_bytes)

    @property
    def unacked_count(self) -> int:
        """Messages that this front-end has handed out."""
        return self.counts.unacked_count

    @property
    def unacked_bytes(self) -> int:
        """Body bytes of them."""
        return self.counts.unacked_bytes

    @property
    def persistent_count(self) -> int:
        """All are."""
        return self.ready_count + self.counts.unacked_count

    @property
    def persistent_bytes(self) -> int:
        """Bytes of them."""
        return self.ready_bytes + self.counts.unacked_bytes

    @property
    def ram_ready_count(self) -> int:
        """Messages that were pulled."""
        return self._shelf.count

    @property
    def ram_ready_bytes(self) -> int:
        """Body bytes of them."""
        return self._shelf.size

    @property
    def memory_bytes(self) -> int:
        """Bytes that its objects take here."""
        return OBJECTS_BYTES + self._shelf.size

    @property
    def consumer_count(self) -> int:
        """Those of this front-end."""
        return len(self.consumers)

    @property
    def metrics(self) -> QueueMetrics:
        """What has happened so far, here."""
        return self.counts.metrics

    @property
    def is_withheld(self) -> bool:
        """Whether there may be messages that nobody gets, since the cluster does not answer."""
        return not self.is_deleted and self._intake.is_unanswered
