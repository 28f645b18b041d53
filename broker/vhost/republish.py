"""Dead letters on their way: from the queue that gave a message up to where its dead-letter exchange leads.

One per vhost, handed to queues as `QueueContext.republish`. The exchange is looked up each time; when it is missing,
the message is dropped, and that is counted. Publishing is internal, unconfirmed and one-way. A queue in which the
message died before, with no reject since, is taken out of its targets: that would be a cycle.

When `x-death` has no room for another entry, the oldest entries go first, in the end all of them, and the message goes
on. Two things drop a message, and both are logged: a dead-letter routing key that is longer than the wire can carry,
and a bug, met on the way or in a target. A bug must cost neither the messages behind this one, nor other queues, nor
the connection or timer whose turn it happened to be. A message is counted after it was tried, never before.

`on_stored` is told when a copy has to reach the disk: before the original's acknowledgement does.

State owned: dead letters that wait while others are being published. A target that is full, or whose time to live is 0,
gives up messages itself. These wait for the ones on their way instead of being published from inside them, so that a
chain of queues may be as long as an operator likes.

Source: RabbitMQ's dead-letter exchange guide; rabbit_dead_letter.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from burrowmq.broker.exchange.base import Exchange
from burrowmq.broker.queue.outcome import Rejected
from burrowmq.broker.queue.queue import Queue
from burrowmq.broker.queue.rules.dead_letter import Death, dead_keys, is_cycle, record
from burrowmq.broker.report.metrics import NodeMetrics
from burrowmq.broker.report.observer import Observer
from burrowmq.broker.vhost.vhost import Vhost
from burrowmq.protocol.codec import Message
from burrowmq.protocol.constants import TABLE_SIZE_MAX
from burrowmq.protocol.errors import FrameError
from burrowmq.protocol.properties import decode


class Republisher:
    """Dead-letters for one vhost."""

    def __init__(
        self,
        vhost: Vhost,
        metrics: NodeMetrics,
        observer: Observer,
        frame_max: int = 0,
        on_stored: Callable[[], None] = lambda: None,
    ) -> None:
        self._on_stored = on_stored
        # No table is longer, whatever frames may be.
        self._header_max = min(frame_max or TABLE_SIZE_MAX, TABLE_SIZE_MAX)
        self._vhost = vhost
        self._metrics = metrics
        self._observer = observer
        self._waiting: deque[tuple[Death, Sequence[Message]]] = deque()
        self._is_publishing = False

    def __call__(self, death: Death, messages: Sequence[Message]) -> None:
        """Publish `messages`, which died so; the caller removes the originals."""
        if self._is_publishing:
            self._waiting.append((death, list(messages)))
            return
        self._is_publishing = True
        try:
            self._publish(death, messages)
            while self._waiting:
                self._publish(*self._waiting.popleft())
        finally:
            self._is_publishing = False

    def _publish(self, death: Death, messages: Sequence[Message]) -> None:
        exchange = self._vhost.exchanges.get(death.exchange.decode("utf-8", "surrogateescape"))
        if exchange is None:
            self._metrics.count_dropped(death.reason, len(messages))
            return
        lost = 0
        for message in messages:
            try:
                lost += not self._send(exchange, message, death)
            except FrameError as error:
                # Drop it, as if its exchange routed it nowhere: the queue that gave it up has to go on.
                self._observer.dead_letter_impossible(self._vhost.name, death.queue, str(error))
                lost += 1
            except Exception as error:  # noqa: BLE001 - one message must not cost those behind it
                self._bug_found(death, error)
                lost += 1
        self._metrics.count_dead_lettered(death.reason, len(messages) - lost)
        self._metrics.count_dropped(death.reason, lost)

    def _send(self, exchange: Exchange, message: Message, death: Death) -> bool:
        """Publish one dead letter; False when a bug kept it out of every queue that it was to reach."""
        dead, deaths = record(message, death, self._header_max)
        queues = self._targets(exchange, dead, dead_keys(message, death))
        exchange.publish_in += 1
        failed = 0
        for queue in queues:
            if is_cycle(queue.name, death, deaths):
                self._observer.dead_letter_cycle_cut(self._vhost.name, queue.name)
                continue
            try:
                outcome = queue.publish([dead], dead.flags, dead.size)
                if outcome.is_pending if isinstance(outcome, Rejected) else outcome:
                    self._on_stored()
            except Exception as error:  # noqa: BLE001 - one queue must not cost the others
                self._bug_found(death, error)
                failed += 1
            else:
                exchange.publish_out += 1
        return not failed or failed < len(queues)

    def _bug_found(self, death: Death, error: Exception) -> None:
        self._observer.bug_found(f"dead letters of '{self._vhost.name}' '{death.queue}'", error)

    def _targets(
        self, exchange: Exchange, dead: Message, keys: tuple[bytes, ...]
    ) -> Sequence[Queue]:
        headers = decode(dead.raw).headers or {}
        return self._vhost.route(exchange, keys, lambda: headers)
