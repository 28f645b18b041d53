"""What others see of a stream queue without asking the cluster: its counts, and whose they are.

Of how many messages there are, this is what the last look and what was published here since come to. Nothing is ever
taken out for a client, so that all are ready, whoever holds some of them unacknowledged: as RabbitMQ counts.

State owned: none; `broker.replicated.stream_queue` is one of these, and keeps what is counted here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from burrowmq.broker.queue.context import QueueContext
from burrowmq.broker.queue.counts import Counts
from burrowmq.broker.queue.placement import Placement
from burrowmq.broker.queue.run import DeliveryRun, Kind, Returned
from burrowmq.broker.queue.serve.consumer import Consumer, Consumers
from burrowmq.broker.replicated.reader import Reader
from burrowmq.broker.replicated.retained_stream import RetainedStream
from burrowmq.broker.report.metrics import QueueMetrics
from burrowmq.protocol.codec import Message

OBJECTS_BYTES: Final = 4096
"""What the parts of a queue weigh without any message, roughly."""


class Nothing:
    """Where the deliveries of a stream come from, as far as their way back is concerned: they have none."""

    level = 0
    has_expiries = False
    count = 0
    log_id = 0  # nothing of it is in this node's store

    def live_count(self, now_ms: int, most: int) -> int:
        """Nothing is served from here."""
        return 0

    def take(self, max_count: int, max_bytes: int) -> DeliveryRun | None:
        """Nothing is served from here."""
        return None

    def forget(
        self, seqs: Sequence[int], messages: list[Message] | None, kind: Kind, size: int
    ) -> None:
        """They stay."""

    def give_back(self, entries: list[Returned], size: int) -> None:
        """They were never away."""


NOTHING: Final = Nothing()


class StreamFigures:
    """The part of `broker.queue.port.QueuePort` that only looks."""

    kind = "stream"
    is_dormant = False
    is_asleep = False
    is_withheld = False
    durable = True
    auto_delete = False
    exclusive_owner: object | None = None
    unacked_count = 0
    unacked_bytes = 0
    ram_ready_count = 0
    ram_ready_bytes = 0

    consumers: Consumers
    counts: Counts
    _context: QueueContext
    _message_count: int
    """In the stream, as far as this front-end knows."""
    _readers: dict[Consumer, Reader]
    _stream: RetainedStream

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
        """Messages in the stream."""
        return self._message_count

    @property
    def ready_bytes(self) -> int:
        """Octets of them, with what the stream adds to each."""
        return self._stream.byte_count

    @property
    def persistent_count(self) -> int:
        """All are."""
        return self.ready_count

    @property
    def persistent_bytes(self) -> int:
        """Bytes of them."""
        return self.ready_bytes

    @property
    def memory_bytes(self) -> int:
        """Bytes that its objects take here."""
        return OBJECTS_BYTES + sum(reader.size for reader in self._readers.values())

    @property
    def consumer_count(self) -> int:
        """Those of this front-end."""
        return len(self.consumers)

    @property
    def metrics(self) -> QueueMetrics:
        """What has happened so far, here."""
        return self.counts.metrics
