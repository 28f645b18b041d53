"""A stream queue's stream: as `stream.QueueStream`, but without a consumer, and with limits that policies change.

A policy's limits are the stream's own: it is changed when the policy is, and when it is found to be otherwise. Without
a policy of its own a front-end leaves them as they are, for others may have one.

State owned: the limits that are to be, and whether they are. Called by `broker.replicated.stream_queue`.
"""

from __future__ import annotations

from collections.abc import Callable

from burrowmq.broker.replicated.stream import Asking, QueueStream, Waiting
from burrowmq.broker.turn.clock import Scheduler
from burrowmq.cluster import api, retained
from burrowmq.cluster.api import Depth, Document, Refusal, Request
from burrowmq.cluster.retained import Limits, RetainedSettings


class RetainedStream(QueueStream):
    """That of one queue; `is_by_policy` when its limits are not those of its arguments.

    When it is `renewed`, nothing of what was known of it holds.
    """

    consumer = ""

    def __init__(
        self,
        settings: RetainedSettings,
        asking: Asking,
        scheduler: Scheduler,
        changed: Callable[[], None],
        counted: Callable[[], None],
        *,
        renewed: Callable[[bool], None],
        is_ours: bool,
        is_by_policy: bool,
    ) -> None:
        super().__init__(
            settings, asking, scheduler, changed, counted, is_ours=is_ours, renewed=renewed
        )
        self.first, self.last = 1, 0
        """Sequences of the oldest chunk and of the newest one."""
        self._limits = settings.limits
        self._is_change_due = is_by_policy

    def limit(self, limits: Limits) -> None:
        """Keep so much from now on."""
        if limits != self._limits:
            self._limits = limits
            self._is_change_due = True
            self.refresh()

    def _on_stream(self, found: Document | Refusal) -> None:
        # Taken: by the queue's own, as it was declared elsewhere, or limited since.
        if isinstance(found, Refusal) and found.error != api.STREAM_NAME_TAKEN:
            self._on_failed(found)
        else:
            self._note_age(found)
            self._on_there()

    def _look_request(self) -> Request:
        return retained.counted_state(self.name)

    def _measure(self, stream: Document, waiting: list[Waiting]) -> None:
        request = retained.change_limits(stream, self._limits) if self._is_change_due else None
        if request is None:
            self._is_change_due = False
            self._on_measured(stream, waiting)
            return

        def on_changed(answer: Document | Refusal) -> None:
            if isinstance(answer, Refusal) and (
                api.is_no_room(answer) or not api.is_for_now(answer)
            ):
                # It keeps the limits that it has, and is there; the next look tries again.
                self._on_measured(stream, waiting)
            elif isinstance(answer, Refusal):
                self._on_looked(answer, waiting)
            else:
                self._asking.ask(self._look_request(), lambda found: self._on_state(found, waiting))

        self._asking.ask(request, on_changed)

    def _on_measured(self, stream: Document, waiting: list[Waiting]) -> None:
        amount = retained.amount_of(stream)
        self.first, self.last = amount.first, amount.last
        found = Depth(amount.message_count, amount.byte_count, amount.first, 0, 0, False, 0)
        self._on_looked(found, waiting)
