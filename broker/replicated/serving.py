"""Who is given what a replicated queue has on its shelf: consumers in their turn, who waits for basic.get, or nobody.

What has expired, or was delivered more often than it may be, leaves the shelf as a dead letter before anybody is
served. State owned: the way back of deliveries (`origin`), the limit of deliveries. Called by
`broker.replicated.queue` at the end of a turn.
"""

from __future__ import annotations

from collections.abc import Callable

from burrowmq.broker.queue.counts import Counts
from burrowmq.broker.queue.origin import Origin
from burrowmq.broker.queue.rules.settings import Settings
from burrowmq.broker.queue.serve.consumer import Consumers
from burrowmq.broker.queue.serve.getters import Getter
from burrowmq.broker.queue.serve.rate import ConsumptionRate
from burrowmq.broker.queue.serve.serving import Dealing
from burrowmq.broker.replicated.burial import Burial
from burrowmq.broker.replicated.intake import Intake
from burrowmq.broker.replicated.shelf import Shelf
from burrowmq.broker.turn.clock import Scheduler


class Serving:
    """That of one queue."""

    def __init__(
        self,
        queue_name: str,
        scheduler: Scheduler,
        intake: Intake,
        *,
        consumers: Consumers,
        counts: Counts,
        burial: Burial,
        on_return: Callable[[], None],
        changed: Callable[[], None],
    ) -> None:
        self._intake = intake
        self._shelf = intake.shelf
        self._consumers = consumers
        self._burial = burial
        self._delivery_limit: int | None = None
        self._origin = Origin(
            queue_name,
            intake.shelf,
            counts,
            consumers.leavers,
            dead_letter=burial.reject,
            on_return=on_return,
            changed=changed,
        )
        self._dealing = Dealing(
            [self._origin],
            consumers,
            counts,
            ConsumptionRate(scheduler),
            scheduler,
            head=self._head,
            load=_never,
            changed=changed,
        )

    def apply(self, settings: Settings) -> None:
        """Put these in force."""
        self._delivery_limit = settings.delivery_limit
        self._origin.allow(settings.consumer_timeout_ms)

    def pump(self) -> None:
        """Serve who waits."""
        if self._delivery_limit is not None:
            seqs, messages = self._shelf.take_beyond(self._delivery_limit)
            if seqs:
                self._burial.bury("delivery_limit", seqs, messages)
        self._intake.serve_getters(self._origin, self._head)
        if self._consumers.leavers:
            self._consumers.hand_over()
        self._dealing.serve()

    def drop(self, count: int) -> int:
        """Drop up to so many from the head, as more than there may be; how many."""
        dropped = 0
        while dropped < count and (run := self._shelf.take(count - dropped, 1 << 30)) is not None:
            assert run.messages is not None, "they are here"
            self._burial.bury("maxlen", run.seqs, run.messages)
            dropped += len(run.seqs)
        return dropped

    def get(self, getter: Getter) -> None:
        """Give one message to who asks with basic.get, now or, also where others wait, when the queue is pumped."""
        if self._intake.get(getter):
            self._intake.serve_getters(self._origin, self._head)

    def _head(self) -> Shelf | None:
        if self._shelf.has_expiries:
            seqs, messages = self._shelf.take_expired()
            if seqs:
                self._burial.bury("expired", seqs, messages)
        return self._shelf if self._shelf.count else None

    def end(self) -> None:
        """The queue is gone."""
        self._origin.end()


def _never(_: Shelf, __: int) -> bool:
    return False
