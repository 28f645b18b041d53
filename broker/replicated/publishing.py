"""The way of a replicated queue's messages into its stream: runs become tickets, bursts go out, answers come back.

State owned: the window, and whether publishers are held back because more waits in it than it takes. Called by
`broker.replicated.queue`, which says when there is somebody to send to; `stored` is told how many messages of a ticket
the stream has.
"""

from __future__ import annotations

from collections.abc import Callable

from burrowmq.broker.queue.outcome import Outcome, Rejected
from burrowmq.broker.replicated.front_end import FrontEnd
from burrowmq.cluster.denied import kind_of
from burrowmq.cluster.record import pack
from burrowmq.cluster.window import HEADERS_MAX, Window
from burrowmq.cluster.wire import Delivered
from burrowmq.protocol.codec import Message


class Publishing:
    """That of one queue."""

    def __init__(
        self,
        stream: str,
        front_end: FrontEnd,
        stored: Callable[[int], None],
        changed: Callable[[], None],
        make_window: Callable[[bytes, bytes, bytes], Window] = Window,
    ) -> None:
        self._front_end = front_end
        self._stored = stored
        self._changed = changed
        self._is_crowded = False
        self.open_count = 0
        """Messages of which nothing is known yet."""
        self._open_bytes = 0  # of them
        self.new_bytes = 0.0
        """Octets that no look has counted, less what was acknowledged since, as far as one can tell."""
        self._stream = stream
        self._sid, inbox = front_end.subscribe(self._on_answers)
        front_end.publishes(stream, self._on_refused)
        self.window = make_window(stream.encode(), b"%b.%d" % (front_end.token, self._sid), inbox)
        self._record_max: int | None = None
        self.limit(None)

    def opened(self) -> None:
        """There is a connection: what the servers take may be less than before."""
        self.window.limit(self._payload_max)
        self._tell_trouble()
        self._tell_done()

    def limit(self, record_max: int | None) -> None:
        """The stream keeps no longer records than that; None where it has no limit."""
        self._record_max = record_max
        self.window.payload_max = self._payload_max

    @property
    def _payload_max(self) -> int:
        found = self._front_end.payload_max
        return found if self._record_max is None else min(found, self._record_max + HEADERS_MAX)

    def publish(self, messages: list[Message], now_ms: float) -> Outcome:
        """Take a run; its ticket says when a majority has it."""
        window = self.window
        if window.is_full and window.is_stalled(now_ms):
            window.refused_count += len(messages)
            return Rejected(list(range(len(messages))), is_pending=False)
        payloads = [pack(message) for message in messages]
        ticket = window.add(payloads, now_ms)
        ticket.size = sum(map(len, payloads))
        self.new_bytes += ticket.size
        self._open_bytes += ticket.size
        self.open_count += len(messages)
        ticket.is_crowded = window.is_full
        self._is_crowded |= ticket.is_crowded
        return ticket

    def _on_answers(self, deliveries: list[Delivered]) -> None:
        now_ms = self._front_end.now_ms()
        for delivered in deliveries:
            self.window.answered(delivered, now_ms)
        self._tell_trouble()
        self._tell_done()
        self._changed()

    def _on_refused(self, reason: str) -> None:
        """The account may not publish there, as the front-end has told."""
        self.window.denied(reason)
        self._tell_done()
        self._changed()

    def _tell_trouble(self) -> None:
        trouble = self.window.trouble
        if trouble:
            text = f"what is published is refused: {trouble}"
            self._front_end.trouble(kind_of(text), text)

    def _tell_done(self) -> None:
        for ticket in self.window.take_done():
            self.open_count -= ticket.count
            self._open_bytes -= ticket.size
            self._stored(ticket.count - len(ticket.refused))
            if ticket.on_done is not None:
                ticket.on_done()

    def looked(self) -> None:
        """A look has counted what is stored."""
        self.new_bytes = self._open_bytes

    def forgotten(self, size: float) -> None:
        """So many octets were acknowledged, or dropped."""
        self.new_bytes = max(0.0, self.new_bytes - size)

    def send(self, now_ms: float) -> None:
        """Send what is due."""
        self._front_end.write(self.window.poll(now_ms))
        self._end_turn(now_ms)

    def expire(self, now_ms: float) -> None:
        """Nothing can be sent: what has waited for too long is refused."""
        self.window.expire(now_ms)
        self._end_turn(now_ms)

    def _end_turn(self, now_ms: float) -> None:
        self._tell_done()
        if self._is_crowded and (not self.window.is_full or self.window.is_stalled(now_ms)):
            self._is_crowded = False
            self._front_end.on_eased()

    def end(self, reason: str) -> None:
        """The queue is gone: what is not answered is refused."""
        self.window.give_up(reason)
        self._tell_done()
        self._front_end.unsubscribe(self._sid)
        self._front_end.publishes(self._stream, None)
        if self._is_crowded:
            self._is_crowded = False
            self._front_end.on_eased()
