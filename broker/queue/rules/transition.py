"""New settings on a queue that has messages: what a change of policy does to what is there.

The order is RabbitMQ's: limits come into force before the overflow behaviour, so a policy that brings `max-length` and
`reject-publish` together still drops the excess from the head, once. Then the mode: to lazy, everything in RAM goes
to disk within this turn, and publishers wait for as long as that takes to be written (the store's backlog holds
them); to default, one start batch is loaded. What was handed out stays in RAM until it is settled. A changed version is
handed to the store, which converts the files while the queue goes on.

State owned: the settings that wait until the excess is gone. Called by the queue whenever its settings were computed
anew, changed or not.

Source: rabbit_amqqueue_process:process_args_policy; the classic lazy queue guide.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from burrowmq.broker.queue.memory.paging import START_BATCH_BYTES, Paging
from burrowmq.broker.queue.order.levels import Levels
from burrowmq.broker.queue.rules.settings import Settings


class Transition:
    """That of one queue, made for a change and kept while something of it waits.

    `are_exceeded` says whether more is ready than limits allow; `apply` puts settings in force for what happens from
    now on; `after_pump` has a callback run once, at the end of the queue's next pump; `changed` has the queue pumped in
    this turn.
    """

    __slots__ = (
        "_after_pump",
        "_apply",
        "_are_exceeded",
        "_changed",
        "_levels",
        "_paging",
        "_waiting",
    )

    def __init__(
        self,
        levels: Levels,
        paging: Paging,
        *,
        are_exceeded: Callable[[], bool],
        apply: Callable[[Settings], None],
        after_pump: Callable[[Callable[[], None]], None],
        changed: Callable[[], None],
    ) -> None:
        self._levels = levels
        self._paging = paging
        self._are_exceeded = are_exceeded
        self._apply = apply
        self._after_pump = after_pump
        self._changed = changed
        self._waiting: Settings | None = None

    def put_in_force(self, before: Settings, settings: Settings) -> None:
        """Go over from the settings in force to these, content included."""
        # Whatever waited to be in force has been overtaken, also by settings that are equal to those in force.
        self._waiting = None
        if settings == before:
            return
        if before.overflow == "drop-head" != settings.overflow:
            self._apply(replace(settings, overflow="drop-head"))
            self._waiting = settings
            self._stop_dropping(settings)
        else:
            self._apply(settings)
        if before.mode != settings.mode:
            if settings.mode == "lazy":
                self._paging.page_out()
            else:
                self._paging.load_start_batch(START_BATCH_BYTES)
        if before.version != settings.version:
            self._levels.convert(settings.version)
            self._changed()

    @property
    def is_waiting(self) -> bool:
        """Whether settings wait until the excess is gone."""
        return self._waiting is not None

    def end(self) -> None:
        """The queue is gone: nothing comes into force any more."""
        self._waiting = None

    def _stop_dropping(self, settings: Settings) -> None:
        """Reject from now on, or as soon as the excess that has to be read from disk is gone."""
        if self._waiting is not settings:
            return  # newer settings have come meanwhile
        if self._are_exceeded() and self._levels.is_loading:
            self._after_pump(lambda: self._stop_dropping(settings))
        else:
            self._waiting = None
            self._apply(settings)
