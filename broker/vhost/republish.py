"""Dead letters on their way: from the queue that gave a message up to where its dead-letter exchange leads.

One per vhost, handed to queues as `QueueContext.republish`. The exchange is looked up each time; when it is missing,
the message is dropped, and that is counted. Publishing is internal, unconfirmed and one-way. A queue in which the
message died before, with no reject since, is taken out of its targets: that would be a cycle.

When `x-death` has no room for another entry, the oldest entries go first, in the end all of them, and the message goes
on. Two things drop a message, and both are logged: a dead-letter routing key that is longer than the wire can carry,
and a bug, met on the way or in a target. A bug must cost neither the messages behind this one, nor other queues, nor
the connection or timer whose turn it happened to be. A message is counted after it was tried, never before.

`on_stored` is told when a copy has to reach the disk (virtual host, from which queue, to which): before the original's
acknowledgement does. `on_passed_on` is told the same of what died when it arrived: there is no original, so that who
published it waits for the copy. `on_way` is told of copies that no disk has, since these may go on to one.

State owned: dead letters that wait while others are being published. A target that is full, or whose time to live is 0,
gives up messages itself. These wait for the ones on their way instead of being published from inside them, so that a
chain of queues may be as long as an operator likes.

Source: RabbitMQ's dead-letter exchange guide; rabbit_dead_letter.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Sequence
from operator import or_

from burrowmq.broker.exchange.base import Exchange
from burrowmq.broker.queue.outcome import PENDING, Rejected
from burrowmq.broker.queue.port import QueuePort
from burrowmq.broker.queue.queue import Queue
from burrowmq.broker.queue.rules.dead_letter import Death, dead_keys, first_record, is_cycle, record
from burrowmq.broker.report.metrics import NodeMetrics
from burrowmq.broker.report.observer import Observer
from burrowmq.broker.vhost.dropped_letters import DroppedLetters
from burrowmq.broker.vhost.router import is_elsewhere, is_no_queue
from burrowmq.broker.vhost.vhost import Vhost
from burrowmq.protocol.codec import Message, body_bytes, by_priority, first_deaths
from burrowmq.protocol.constants import TABLE_SIZE_MAX
from burrowmq.protocol.errors import FrameError
from burrowmq.protocol.properties import decode
from burrowmq.protocol.table import FieldTable


class Republisher:
    """Dead-letters for one vhost."""

    def __init__(
        self,
        vhost: Vhost,
        metrics: NodeMetrics,
        observer: Observer,
        frame_max: int = 0,
        on_stored: Callable[[str, str, str], None] = lambda *_: None,
        on_passed_on: Callable[[str, str, str], None] = lambda *_: None,
        on_way: Callable[[str, str, str], None] = lambda *_: None,
    ) -> None:
        self._when_stored = on_stored
        self._when_passed_on = on_passed_on
        self._when_on_way = on_way
        # No table is longer, whatever frames may be.
        self._header_max = min(frame_max or TABLE_SIZE_MAX, TABLE_SIZE_MAX)
        self._vhost = vhost
        self._metrics = metrics
        self._observer = observer
        self._dropped = DroppedLetters(vhost.name, observer)
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
            self._metrics.count_dropped(
                death.reason, len(messages), of_quorum=self._is_of_quorum(death)
            )
            return
        lost = 0
        if self._vhost.routes_by_key(exchange):
            for stretch, expiration, is_plain in first_deaths(messages, self._header_max):
                if is_plain:
                    lost += self._send_alike(exchange, stretch, expiration, death)
                else:
                    lost += self._send(exchange, stretch[0], death)
        else:
            for message in messages:
                lost += self._send(exchange, message, death)
        of_quorum = self._is_of_quorum(death)
        self._metrics.count_dead_lettered(death.reason, len(messages) - lost, of_quorum=of_quorum)
        self._metrics.count_dropped(death.reason, lost, of_quorum=of_quorum)

    def _is_of_quorum(self, death: Death) -> bool:
        queue = self._vhost.queues.get(death.queue)
        return queue is not None and queue.kind == "quorum"

    def _send_alike(
        self, exchange: Exchange, messages: list[Message], expiration: bytes | None, death: Death
    ) -> int:
        """Publish a run of first deaths that go the same way; how many are lost."""
        try:
            dead, event = first_record(messages, expiration, death)
            queues = self._vhost.route(exchange, dead_keys(messages[0], death), None)
            return self._hand_over(exchange, queues, dead, (death, [event]))
        except FrameError as error:
            self._impossible(death, error)
            return len(messages)
        except Exception as error:  # noqa: BLE001 - these must not cost those behind them
            self._bug_found(death, error)
            return len(messages)

    def _send(self, exchange: Exchange, message: Message, death: Death) -> int:
        """Publish one dead letter; 1 when it is lost."""
        try:
            dead, deaths = record(message, death, self._header_max)
            queues = self._vhost.route(
                exchange, dead_keys(message, death), lambda: decode(dead.raw)
            )
            return self._hand_over(exchange, queues, [dead], (death, deaths))
        except FrameError as error:
            # Drop it, as if its exchange routed it nowhere: the queue that gave it up has to go on.
            self._impossible(death, error)
        except Exception as error:  # noqa: BLE001 - one message must not cost those behind it
            self._bug_found(death, error)
        return 1

    def _hand_over(
        self,
        exchange: Exchange,
        queues: Sequence[QueuePort],
        dead: list[Message],
        died: tuple[Death, Sequence[FieldTable]],
    ) -> int:
        """Give dead letters to their queues; how many a bug kept out of every queue that they were to reach."""
        death, deaths = died
        exchange.publish_in += len(dead)
        failures = [0] * len(dead)
        for queue in queues:
            if is_cycle(queue.name, death, deaths):
                self._dropped.cycle_cut(queue.name)
                continue
            failed = self._put_by_level(queue, dead, death)
            for place in failed:
                failures[place] += 1
            if not is_no_queue(queue):
                exchange.publish_out += len(dead) - len(failed)
        return failures.count(len(queues)) if queues else 0

    def _put_by_level(self, queue: QueuePort, dead: list[Message], death: Death) -> Sequence[int]:
        """Publish to one queue, each priority by itself, so that a fault at one costs no other; as `_put`."""
        if not isinstance(queue, Queue) or len(queue.levels) == 1 or queue.settings.is_limited:
            return self._put(queue, dead, death)
        failed: list[int] = []
        for _, part, _, places in by_priority(dead, len(queue.levels) - 1, list(range(len(dead)))):
            assert places is not None, "they were given"
            failed += [places[at] for at in self._put(queue, part, death)]
        return failed

    def _put(self, queue: QueuePort, dead: list[Message], death: Death) -> Sequence[int]:
        """Publish to one queue; the places of what a bug kept out of it."""
        before = _taken(queue)
        try:
            flags = functools.reduce(or_, [message.flags for message in dead])
            outcome = queue.take(dead, flags, body_bytes(dead))
            # What a queue elsewhere keeps is no part of any commit here.
            if outcome.is_pending if isinstance(outcome, Rejected) else outcome == PENDING:
                self._on_stored(death, queue.name)
            elif isinstance(queue, Queue) and (isinstance(outcome, Rejected) or not queue.durable):
                self._on_way(death, queue.name)
        except Exception as error:  # noqa: BLE001 - one queue must not cost the others
            taken = _taken_since(queue, before)
            if taken:
                self._on_stored(death, queue.name)
            if taken is None or len(dead) - taken < 2:
                self._bug_found(death, error)
                return range(taken or 0, len(dead))
            # One message's fault must not cost the rest.
            queue.metrics.publish -= len(dead) - taken
            return [
                place for place in range(taken, len(dead)) if self._put(queue, [dead[place]], death)
            ]
        return ()

    def _on_stored(self, death: Death, target: str) -> None:
        self._when_stored(self._vhost.name, death.queue, target)
        if death.is_new:
            self._when_passed_on(self._vhost.name, death.queue, target)

    def _on_way(self, death: Death, target: str) -> None:
        """A queue that keeps nothing of them on disk has them, or has passed them on to one that does."""
        tell = self._when_passed_on if death.is_new else self._when_on_way
        tell(self._vhost.name, death.queue, target)

    def _impossible(self, death: Death, error: FrameError) -> None:
        self._dropped.impossible(death.queue, str(error))

    def _bug_found(self, death: Death, error: Exception) -> None:
        self._observer.bug_found(f"dead letters of '{self._vhost.name}' '{death.queue}'", error)


def _taken(queue: QueuePort) -> tuple[int, int]:
    """How many messages a queue has taken, as long as it drops none; and ids that it has given."""
    if is_no_queue(queue) or is_elsewhere(queue):
        return 0, 0
    metrics = queue.metrics
    taken = queue.ready_count + metrics.deliver + metrics.deliver_no_ack
    ids = sum(level.next_seq for level in queue.levels) if isinstance(queue, Queue) else 0
    return taken, ids


def _taken_since(queue: QueuePort, before: tuple[int, int]) -> int | None:
    """How many messages of a run, from its first on, it took before it failed; None when nobody can tell."""
    if is_no_queue(queue) or is_elsewhere(queue):
        return None
    now = _taken(queue)
    if queue.settings.is_limited:
        return 0 if now == before else None
    return now[0] - before[0]
