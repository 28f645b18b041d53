"""Dead letters that are to be stored before their originals go (dead-letter-strategy at-least-once of quorum queues).

One per vhost, handed to queues as `QueueContext.republish_surely`. As `republish`, but message by message, and `then`
is told whether all queues that the message is for have it: on disk where they keep it there, at a majority where a
cluster does. Where no exchange or no route is, nobody has it. `settled` are those who have had it from an earlier
attempt: they are not given it again.

A queue in which the message died before, with no reject since, is left out: that would be a cycle. State owned: none
but what the log has heard.

Source: RabbitMQ's rabbit_fifo_dlx_worker.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from burrowmq.broker.queue.outcome import PENDING, Outcome, Rejected
from burrowmq.broker.queue.rules.dead_letter import Death, dead_keys, is_cycle, record
from burrowmq.broker.report.observer import Observer
from burrowmq.broker.turn.clock import Scheduler
from burrowmq.broker.vhost.dropped_letters import DroppedLetters
from burrowmq.broker.vhost.vhost import Vhost
from burrowmq.protocol.codec import Message
from burrowmq.protocol.constants import TABLE_SIZE_MAX
from burrowmq.protocol.errors import FrameError
from burrowmq.protocol.properties import decode
from burrowmq.storage.engine import Engine


class SureLetters:
    """Those of one vhost."""

    def __init__(
        self,
        vhost: Vhost,
        engine: Engine,
        scheduler: Scheduler,
        observer: Observer,
        refused_in: Callable[[int], Collection[tuple[str, str]]],
        frame_max: int = 0,
    ) -> None:
        self._vhost = vhost
        self._engine = engine
        self._scheduler = scheduler
        self._dropped = DroppedLetters(vhost.name, observer)
        self._refused_in = refused_in
        self._header_max = min(frame_max or TABLE_SIZE_MAX, TABLE_SIZE_MAX)

    def __call__(
        self, death: Death, message: Message, settled: set[str], then: Callable[[bool], None]
    ) -> None:
        """Publish it to whom has not had it; `then` is called once, when the outcome is known."""
        exchange = self._vhost.exchanges.get(death.exchange.decode("utf-8", "surrogateescape"))
        if exchange is None:
            then(False)
            return
        try:
            dead, deaths = record(message, death, self._header_max)
        except FrameError as error:
            self._dropped.impossible(death.queue, str(error))
            then(True)  # it never will be possible
            return
        routed = self._vhost.route(exchange, dead_keys(message, death), lambda: decode(dead.raw))
        targets = []
        for queue in routed:
            if is_cycle(queue.name, death, deaths):
                self._dropped.cycle_cut(queue.name)
            elif queue.name not in settled:
                targets.append(queue)
        exchange.publish_in += 1
        exchange.publish_out += len(targets)
        taking = _Taking(bool(routed), settled, then)
        for queue in targets:
            # Not `take`: what the disk refuses would be kept in memory, once more with each attempt.
            outcome = queue.publish([dead], dead.flags, dead.size)
            taking.wait(queue.name, outcome, self._when_committed)
        taking.begun()

    def _when_committed(self, name: str, then: Callable[[bool], None]) -> None:
        """Call `then` with whether the disk has refused what that queue was given."""
        epoch, queue = self._engine.epoch, (self._vhost.name, name)
        self._engine.require_sync()
        self._scheduler.when_committed(epoch, lambda: then(queue in self._refused_in(epoch)))
        self._scheduler.touch()


class _Taking:
    """One message on its way to its queues; it waits for each of them, and for all to have been asked."""

    def __init__(self, is_routed: bool, settled: set[str], then: Callable[[bool], None]) -> None:
        self._is_stored = is_routed
        self._settled = settled
        self._then = then
        self._open_count = 1

    def wait(
        self,
        name: str,
        outcome: Outcome,
        when_committed: Callable[[str, Callable[[bool], None]], None],
    ) -> None:
        """One of them has been asked."""
        self._open_count += 1
        if isinstance(outcome, Rejected):
            self._known(name, outcome.indexes)
        elif isinstance(outcome, int):
            if outcome == PENDING:
                when_committed(
                    name, lambda is_refused: self._known(name, (0,) if is_refused else ())
                )
            else:
                self._known(name, ())
        elif outcome.is_done:
            self._known(name, outcome.refused)
        else:
            ticket = outcome
            ticket.on_done = lambda: self._known(name, ticket.refused)

    def begun(self) -> None:
        """All of them have."""
        self._one_less()

    def _known(self, name: str, refused: Collection[int]) -> None:
        if refused:
            self._is_stored = False
        else:
            self._settled.add(name)
        self._one_less()

    def _one_less(self) -> None:
        self._open_count -= 1
        if not self._open_count:
            self._then(self._is_stored)
