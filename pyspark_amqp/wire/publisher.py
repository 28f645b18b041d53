"""Publishing in bulk: a window of unconfirmed messages, confirms and returns collected meanwhile.

State: how many messages were sent, which of them are confirmed, how many were refused and which came
back. Called by the sink's tasks and by jobs, on a connection of their own.

Messages come as octets: the frames of one basic.publish each, made by the converters or by
`message_octets`. Mandatory is part of those octets. A broker confirms what no queue took, so only
mandatory messages that come back tell of a missing binding.

Invariants: at most `window` messages and WINDOW_BYTES (or one message) are unconfirmed, so that what a
broker must hold for us, returns above all, has a limit; `flush` returns only when every message was
confirmed, else it raises. After an error what was not confirmed may or may not be in its queues.

Source: RabbitMQ's publisher confirms (ack with `multiple`, return before ack).
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from pyspark_amqp.wire import framing as f
from pyspark_amqp.wire.connection import Connection
from pyspark_amqp.wire.errors import PublishRefused, PublishReturned, Returned
from pyspark_amqp.wire.properties import message_id

WINDOW: Final = 2000
WINDOW_BYTES: Final = 8 << 20
EXAMPLES_MAX: Final = 100
_PIECE_COUNT: Final = 512
_PIECE_BYTES: Final = 1 << 20


class Published(NamedTuple):
    """What became of everything that was sent."""

    confirmed_count: int
    refused_count: int
    returned_count: int


class Publisher:
    """Publishes on a connection that does nothing else; `flush` at the end."""

    def __init__(
        self, connection: Connection, *, window: int = WINDOW, confirm_timeout_s: float = 60.0
    ) -> None:
        """Switch the channel to confirms."""
        if window < 1:
            raise ValueError(f"window is at least 1, not {window}")
        self.sent_count = self.refused_count = self.returned_count = 0
        self.returned: list[Returned] = []
        """The first of those that came back."""
        self._connection = connection
        self._window = window
        self._confirm_timeout_s = confirm_timeout_s
        self._floor = 0  # everything up to this number is confirmed
        self._above: set[int] = set()  # single confirms beyond the floor
        self._pieces: deque[tuple[int, int]] = deque()  # last number and octets of each write
        self._unconfirmed_bytes = 0
        self._return_payload: bytes | None = None
        connection.call(f.CONFIRM_SELECT, b"\x00", f.CONFIRM_SELECT_OK)

    @property
    def unconfirmed_count(self) -> int:
        """Return how many messages the broker has not answered for."""
        return self.sent_count - self._floor - len(self._above)

    def send(self, messages: Sequence[bytes]) -> None:
        """Publish these, waiting for confirms whenever the window is full.

        Raises: StepTimeout, ConnectionLost, ConnectionClosed, ChannelClosed (404: no such exchange).
        """
        pos = 0
        while pos < len(messages):
            room = self._window - self.unconfirmed_count
            if room <= 0 or self._unconfirmed_bytes >= WINDOW_BYTES:
                # Write half a window at a time: one write for many messages instead of one after each confirm.
                self._await_unconfirmed(self._window // 2, WINDOW_BYTES // 2)
                continue
            end = _piece_end(messages, pos, min(room, _PIECE_COUNT))
            octets = b"".join(messages[pos:end])
            self.sent_count += end - pos
            self._pieces.append((self.sent_count, len(octets)))
            self._unconfirmed_bytes += len(octets)
            self._connection.send(octets, self._step(), self._confirm_timeout_s)
            pos = end
            self._take_what_is_here()

    def flush(self) -> Published:
        """Wait for all confirms.

        Raises: PublishRefused, PublishReturned, and what `send` raises.
        """
        totals = self.settle()
        if totals.refused_count:
            raise PublishRefused(self._connection.place, "publishing", totals.refused_count)
        if totals.returned_count:
            raise PublishReturned(
                self._connection.place, "publishing", totals.returned_count, self.returned
            )
        return totals

    def settle(self) -> Published:
        """Wait for all answers and count them; refused and returned messages raise nothing here."""
        self._await_unconfirmed(0, 0)
        confirmed_count = self.sent_count - self.refused_count
        return Published(confirmed_count, self.refused_count, self.returned_count)

    def _await_unconfirmed(self, most: int, most_bytes: int) -> None:
        """Wait until no more than so much is unconfirmed; the time limit runs from the last confirm."""
        while (before := self.unconfirmed_count) > most or self._unconfirmed_bytes > most_bytes:
            deadline = time.monotonic() + self._confirm_timeout_s
            while self.unconfirmed_count == before:
                frame = self._connection.next_frame(deadline, self._step())
                if frame is None:
                    raise self._connection.reply_timeout(self._step(), self._confirm_timeout_s)
                self._take(frame)

    def _take_what_is_here(self) -> None:
        now = time.monotonic()
        while (frame := self._connection.next_frame(now, self._step())) is not None:
            self._take(frame)

    def _take(self, frame: f.Frame) -> None:
        with self._connection.parsing(self._step()):
            self._take_one(frame)

    def _take_one(self, frame: f.Frame) -> None:
        ids = frame.method
        if ids in {f.BASIC_ACK, f.BASIC_NACK}:
            tag, bits = f.U64.unpack_from(frame.payload, 4)[0], frame.payload[12]
            settled_count = self._confirm(tag, is_multiple=bits & 1 != 0)
            if ids == f.BASIC_NACK:
                self.refused_count += settled_count
        elif ids == f.BASIC_RETURN:
            self._return_payload = frame.payload
        elif frame.type == f.HEADER and self._return_payload is not None:
            self.returned_count += 1
            if len(self.returned) < EXAMPLES_MAX:
                block = frame.payload[f.CONTENT_HEADER.size :]
                self.returned.append(_returned(self._return_payload, block))
            self._return_payload = None
        # Body frames of a returned message: the sender has the body.

    def _confirm(self, tag: int, *, is_multiple: bool) -> int:
        """Note the answer for one or all up to a number; return how many are settled by it."""
        before = self.unconfirmed_count
        if is_multiple and tag > self._floor:
            self._floor = tag
            self._above = {number for number in self._above if number > tag}
        elif tag > self._floor:
            self._above.add(tag)
        while self._floor + 1 in self._above:
            self._floor += 1
            self._above.remove(self._floor)
        while self._pieces and self._pieces[0][0] <= self._floor:
            self._unconfirmed_bytes -= self._pieces.popleft()[1]
        return before - self.unconfirmed_count

    def _step(self) -> str:
        return f"publishing ({self.unconfirmed_count} messages unconfirmed)"


def message_octets(
    exchange: str,
    routing_key: str,
    body: bytes,
    *,
    properties: bytes = b"\x00\x00",
    mandatory: bool = True,
    frame_max: int = f.FRAME_MAX,
) -> bytes:
    """Return the frames that publish one message; `properties` is a block with its flag word."""
    return b"".join(
        (
            f.publish_method(exchange.encode(), routing_key.encode(), mandatory=mandatory),
            f.frame(f.HEADER, f.CHANNEL, f.CONTENT_HEADER.pack(60, 0, len(body)) + properties),
            *body_frames(body, frame_max),
        )
    )


def body_frames(body: bytes, frame_max: int) -> Iterable[bytes]:
    """Yield a body's frames, none for an empty one."""
    most = frame_max - f.FRAME_OVERHEAD
    for start in range(0, len(body), most):
        yield f.frame(f.BODY, f.CHANNEL, body[start : start + most])


def _piece_end(messages: Sequence[bytes], start: int, count: int) -> int:
    """Return where a write of moderate size ends: it holds at least one message."""
    end = min(start + count, len(messages))
    while end > start + 1 and sum(map(len, messages[start:end])) > _PIECE_BYTES:
        end = start + (end - start) // 2
    return end


def _returned(payload: bytes, block: bytes) -> Returned:
    code = int.from_bytes(payload[4:6], "big")
    text, pos = f.read_shortstr(payload, 6)
    exchange, pos = f.read_shortstr(payload, pos)
    routing_key, _ = f.read_shortstr(payload, pos)
    return Returned(code, text, exchange, routing_key, message_id(block))
