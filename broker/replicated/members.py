"""One more server keeps a queue's stream, or one fewer: exactly the one that is named.

The servers choose whom a stream is given and whom it loses (`cluster.members`). So their choice is looked at, and as
long as it is another one, the replica that is not wanted is moved on: of three servers once at most, of five a few
times. Each time a majority has everything, and clients go on.

A queue that is to have a single member is not delivered from meanwhile: a consumer that goes on then may pass over a
message, which nobody is given, and whose acknowledgement the servers take for granted (3 of 22 runs on a busy machine,
nats-server 2.15). The pause ends by itself should this front-end not come to end it.

Each look decides what is to be done next from what the servers say then, so that an answer that is lost, or an election
meanwhile, costs a look. State owned: which servers are wanted, until when, whether deliveries are paused. Called by the
queues (`change_member`).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from burrowmq.broker.queue.placement import LAST_MEMBER
from burrowmq.broker.replicated.stream import Asking, QueueStream, Waiting
from burrowmq.broker.turn.clock import Scheduler
from burrowmq.cluster import api, members
from burrowmq.cluster.api import Document, Refusal, Request
from burrowmq.cluster.members import REPLICAS_MAX, Membership, membership_of

LOOK_S: Final = 0.2
PATIENCE_S: Final = 50.0
"""A client waits for a minute; the servers go on with what they have begun."""
MOVES_MAX: Final = 20
PAUSE_S: Final = 60.0
"""Longer than the patience: a pause does not end before the change that it is for."""
TIMED_OUT: Final = "the operation timed out and may not have been completed"


class MemberChange:
    """`then` is told once, "" when the queue's members are those that are wanted and each has everything."""

    def __init__(
        self,
        stream: str,
        server: str,
        asking: Asking,
        scheduler: Scheduler,
        then: Waiting,
        *,
        is_kept: bool,
        consumer: str = "",
    ) -> None:
        """`consumer` is that of all of a queue's front-ends; a stream that is read by place has none."""
        self._stream = stream
        self._consumer = consumer
        self._server = server
        self._is_kept = is_kept
        self._asking = asking
        self._scheduler = scheduler
        self._then = then
        self._may_be_paused = self._is_paused = False
        self._wanted: frozenset[str] = frozenset()
        self._until_s = scheduler.monotonic() + PATIENCE_S
        self._moves_left = MOVES_MAX
        self._reason = ""

    def begin(self) -> None:
        """Look who keeps it now, and refuse what cannot be."""
        self._asking.ask(api.stream_state(self._stream), self._on_found)

    def _on_found(self, found: Document | Refusal) -> None:
        if isinstance(found, Refusal):
            self._end(found.text)
            return
        now = membership_of(found)
        if (self._server in now.members) is self._is_kept and now.is_settled:
            self._end("")
            return
        reason = self._objection(now)
        if reason:
            self._end(reason)
            return
        self._wanted = frozenset(now.members) ^ {self._server}
        self._go_on(found, now)

    def _objection(self, now: Membership) -> str:
        away = sorted(set(now.members) - set(now.online))
        if away:
            return f"no member is added or removed while one is down: {', '.join(away)}"
        if not now.leader or now.is_changing or now.replicas != len(now.members):
            return "its members are being changed already, or nobody leads it"
        if (self._server in now.members) is self._is_kept:  # which has yet to catch up
            return "its members do not have all of it yet"
        if self._is_kept and len(now.members) >= REPLICAS_MAX:
            return f"it has {REPLICAS_MAX} members, which is the most"
        if not self._is_kept and len(now.members) == 1:
            return LAST_MEMBER
        return ""

    def _look(self) -> None:
        self._asking.ask(api.stream_state(self._stream), self._on_state)

    def _on_state(self, found: Document | Refusal) -> None:
        if not isinstance(found, Refusal):
            self._go_on(found, membership_of(found))
        elif api.is_for_now(found):  # they elect
            self._look_later(found.text)
        else:
            self._end(found.text)

    def _look_later(self, reason: str = "") -> None:
        self._reason = reason or self._reason
        if self._scheduler.monotonic() < self._until_s:
            self._scheduler.call_later(LOOK_S, self._look)
        else:
            self._end(f"{TIMED_OUT}: {self._reason}" if self._reason else TIMED_OUT)

    def _go_on(self, state: Document, now: Membership) -> None:
        """What is to be done next; nothing while the servers are at it."""
        present = frozenset(now.members)
        if not now.is_settled:
            self._look_later()
        elif present == self._wanted:
            self._end("")
        elif now.replicas != len(self._wanted):
            self._resize(state, now)
        elif self._moves_left:
            self._moves_left -= 1
            self._do(members.move_away(self._stream, min(present - self._wanted)))
        else:
            chosen = ", ".join(now.members)
            self._end(f"the servers chose others time and again; those that keep it now: {chosen}")

    def _resize(self, state: Document, now: Membership) -> None:
        """Where there are to be fewer, the leader stays: so it is to be one that is wanted."""
        if now.leader in self._wanted and self._needs_pause:
            self._pause(state)
        elif now.leader in self._wanted:
            self._do(members.resize(state, len(self._wanted)))
        else:
            self._do(api.step_down(self._stream, min(self._wanted)))

    @property
    def _needs_pause(self) -> bool:
        return bool(self._consumer) and len(self._wanted) == 1 and not self._is_paused

    def _pause(self, state: Document) -> None:
        """Those that are on their way by then have arrived before the next look."""
        self._may_be_paused = True  # also if the answer is lost

        def on_paused() -> None:
            self._is_paused = True

        self._do(api.pause_consumer(self._stream, self._consumer, _later(state)), on_paused)

    def _end(self, reason: str) -> None:
        if not self._may_be_paused:
            self._then(reason)
            return

        def on_resumed(found: Document | Refusal) -> None:
            is_for_now = isinstance(found, Refusal) and api.is_for_now(found)
            if is_for_now and self._scheduler.monotonic() < self._until_s + PAUSE_S:
                self._scheduler.call_later(LOOK_S, lambda: self._end(reason))
            else:  # it is over, or their clocks will end it
                self._then(reason)

        self._asking.ask(api.pause_consumer(self._stream, self._consumer), on_resumed)

    def _do(self, request: Request, when_done: Callable[[], None] = lambda: None) -> None:
        def on_answer(found: Document | Refusal) -> None:
            if not isinstance(found, Refusal):
                when_done()
                self._look_later()
            elif members.is_for_now(found):
                self._look_later(found.text)
            else:
                self._end(found.text)

        self._asking.ask(request, on_answer)


def _later(state: Document) -> str:
    """`PAUSE_S` after an answer, by the clock of the server that gave it; "" where it does not say."""
    try:
        at = datetime.fromisoformat(str(state.get("ts"))[:19])
    except ValueError:
        return ""
    return (at + timedelta(seconds=PAUSE_S)).isoformat() + "Z"


def change_member(
    stream: QueueStream,
    server: str,
    asking: Asking,
    scheduler: Scheduler,
    then: Waiting,
    *,
    is_kept: bool,
) -> None:
    """Have one more server keep a queue's stream, or one fewer; who keeps it is known before `then` is told."""

    def on_changed(reason: str) -> None:
        stream.refresh()
        then(reason)

    name, consumer = stream.name, stream.consumer
    MemberChange(
        name, server, asking, scheduler, on_changed, is_kept=is_kept, consumer=consumer
    ).begin()
