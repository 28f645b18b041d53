"""What expires in the stream, where nobody pulls it: a queue of which nobody consumes drops its messages all the same.

What is here expires on the shelf. What nobody has pulled is looked at in the stream, which counts as no delivery: the
first message that was not delivered says when it is due. Then it is pulled, and expires on the shelf like others.

    looked -> peek (direct get) -> its deadline -> pull -> on the shelf -> the one behind it -> peek ...

With a TTL of the queue's own, messages expire in their order: as long as all that were pulled are due, twice as many
are tried with one peek at the last of them. With `expiration` alone it is one by one, since the head decides.

State owned: whether anything may expire, which message is looked at, and when it is due. Called by
`broker.replicated.queue`; the server's time of a message and this node's clock are compared, so they have to agree.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from burrowmq.broker.replicated.front_end import FrontEnd
from burrowmq.broker.replicated.stream import CONSUMER
from burrowmq.cluster import api
from burrowmq.cluster.record import RecordError, unpack
from burrowmq.cluster.wire import Delivered, WireError, decode_headers, encode_publish
from burrowmq.protocol.codec import Message, deadlines

STEP_MAX: Final = 256
PATIENCE_MS: Final = 2_000.0
"""What is asked and not answered for so long is asked again."""
NEVER: Final = 0


def deadline_of(message: Message, ttl_ms: int | None, stored_ms: int) -> int:
    """When a message expires by the queue's TTL and its own `expiration`, whichever is less; NEVER."""
    return deadlines([message], -1 if ttl_ms is None else ttl_ms, stored_ms)[0]


class Overdue:
    """That of one queue; `put` takes what was pulled, `on_blind` is called when a look is needed."""

    def __init__(
        self,
        stream: str,
        front_end: FrontEnd,
        wall_ms: Callable[[], int],
        put: Callable[[list[Delivered]], None],
        on_blind: Callable[[], None],
        changed: Callable[[], None],
    ) -> None:
        self._stream = stream
        self._front_end = front_end
        self._wall_ms = wall_ms
        self._put = put
        self._on_blind = on_blind
        self._changed = changed
        self.ttl_ms: int | None = None
        """The queue's."""
        self.has_own = False
        """Whether something that was published here expires by itself."""
        self._is_watching = False  # it is known, or asked, or for others to see which is the first
        self._sid = 0
        self._inbox = b""
        self._head = 0  # the first message that nobody was given; 0: not known, or there is none
        self._step = 1  # so many from there on are tried at once
        self._deadline_ms: int | None = None  # of the last of these, when it was looked at
        self._asked_ms: float | None = None  # when something was asked that is not answered

    def stored(self, *, is_pulled: bool) -> None:
        """There is more in the stream, which somebody pulls or not."""
        self._is_watching &= is_pulled

    def watch(self, now_ms: float, ready_count: int, *, is_resting: bool) -> None:
        """Where this node pulls nothing (`is_resting`), somebody has to see that what is due goes."""
        if not is_resting:
            self.rest()
            self._is_watching = False
            return
        may_expire = self.has_own or self.ttl_ms is not None
        if may_expire and not self._is_watching and ready_count:
            self._is_watching = True
            self._on_blind()  # who is the first?
        self.send(now_ms)

    def looked(self, head: int) -> None:
        """The stream's first message that was not delivered, 0 where there is none or somebody pulls."""
        if head != self._head:
            self._go_to(head)

    def _go_to(self, head: int, step: int = 1) -> None:
        self._head, self._step = head, step
        self._deadline_ms = self._asked_ms = None

    def send(self, now_ms: float) -> None:
        """Look, or pull what is due."""
        if not self._head:
            return
        if self._asked_ms is not None:
            if now_ms < self._asked_ms + PATIENCE_MS:
                return
            self._go_to(self._head)
        if self._deadline_ms is None:
            self._ask(api.get_message(self._stream, self._head + self._step - 1), b"peek", now_ms)
        elif self._deadline_ms and self._wall_ms() >= self._deadline_ms:
            self._ask(api.pull_now(self._stream, CONSUMER, self._step), b"pull", now_ms)
        elif self._step > 1:
            self._go_to(self._head)  # not all of them: then how long has the first?
            self.send(now_ms)

    def _ask(self, request: api.Request, what: bytes, now_ms: float) -> None:
        if not self._sid:
            self._sid, self._inbox = self._front_end.subscribe(self._on_answers)
        self._asked_ms = now_ms
        reply = b"%b.%b.%d" % (self._inbox, what, self._head + self._step - 1)
        self._front_end.write(encode_publish(request.subject, request.payload, reply))

    def _on_answers(self, deliveries: list[Delivered]) -> None:
        pulled = [each for each in deliveries if api.place_of(each.reply) is not None]
        if pulled:
            self._on_pulled(pulled)
        last = self._head + self._step - 1
        for each in deliveries:
            if each.reply:
                continue
            if each.subject == b"%b.pull.%d" % (self._inbox, last):
                self._lose()  # somebody else has it
            elif each.subject == b"%b.peek.%d" % (self._inbox, last):
                self._on_peeked(each, last)
        self._changed()

    def _on_pulled(self, pulled: list[Delivered]) -> None:
        self._put(pulled)
        last = max(place.sequence for each in pulled if (place := api.place_of(each.reply)))
        wanted = self._head + self._step - 1
        if last == wanted:
            more = min(STEP_MAX, 2 * self._step) if self.ttl_ms is not None else 1
            self._go_to(last + 1, more)
        elif last > wanted:
            self._lose()

    def _lose(self) -> None:
        """The first message is not what it was: a look will tell."""
        self._go_to(0)
        self._on_blind()

    def _on_peeked(self, found: Delivered, last: int) -> None:
        """The message itself, with the stream's words in its headers; or a status, where it is not there."""
        try:
            headers = decode_headers(found.headers)
            if headers.status or headers.values.get("Nats-Sequence") != str(last):
                if self._step > 1:
                    self._go_to(self._head)
                else:
                    self._lose()
                return
            stored = datetime.fromisoformat(headers.values["Nats-Time-Stamp"])
            message = unpack(found.payload)
        except (WireError, RecordError, KeyError, ValueError):
            self._deadline_ms, self._asked_ms = NEVER, None  # who pulls it will say what it is
            return
        self._asked_ms = None
        self._deadline_ms = deadline_of(message, self.ttl_ms, int(stored.timestamp() * 1000))

    def due_ms(self, now_ms: float) -> float | None:
        """When `send` has something to do, if nothing happens; None for never."""
        if self._asked_ms is not None:
            return self._asked_ms + PATIENCE_MS
        if not self._head or self._deadline_ms == NEVER:
            return None
        if self._deadline_ms is None:
            return now_ms
        return now_ms + max(0, self._deadline_ms - self._wall_ms())

    def rest(self) -> None:
        """This node pulls, or has no connection: the next look says where to begin."""
        self._go_to(0)

    def end(self) -> None:
        """The queue is gone."""
        if self._sid:
            self._front_end.unsubscribe(self._sid)
            self._sid = 0
        self._go_to(0)
