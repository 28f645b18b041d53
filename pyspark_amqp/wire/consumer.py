"""Bulk consuming and looking: a queue's messages into columns, acknowledged by one method.

State: a Consumer owns its prefetch, the message whose frames have begun to arrive, and whether the
broker cancelled it. Called by the source's tasks and by jobs, on a connection of their own.

Invariants: nothing is acknowledged but by `settle`, which cancels first: an acknowledgement that frees
prefetch would make the broker send more into a consumer that stops. `settle` returns after the broker
has handled the acknowledgement (it has answered a later method on the channel). Closing the connection
instead gives everything back to the queue. `peek` acknowledges nothing; the queue keeps its order, but
its messages come as redelivered from then on.

Source: AMQP 0-9-1 basic class; RabbitMQ's consumer cancel notifications.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Final

from pyspark_amqp.wire import framing as f
from pyspark_amqp.wire.connection import Connection
from pyspark_amqp.wire.deliveries import CONSUMER_TAG, Deliveries, Delivery, take_deliveries
from pyspark_amqp.wire.errors import BadFrame
from pyspark_amqp.wire.table import FieldTable, encode_table

PREFETCH_MAX: Final = 65535
SIZE_MAX: Final = 1 << 62
_PEEK_WINDOW: Final = 200
_TAG: Final = bytes((len(CONSUMER_TAG),)) + CONSUMER_TAG.encode()
_DELIVER_FIXED: Final = 4 + len(_TAG)


@dataclass(slots=True)
class _Partial:
    """A message of which some frames have not arrived."""

    tag: int
    is_redelivered: bool
    route: bytes
    properties: bytes | None = None
    size: int = 0
    pieces: list[bytes] = field(default_factory=list)
    arrived: int = 0


class Consumer:
    """Consumes one queue; at most `prefetch_count` messages are on their way unacknowledged."""

    def __init__(
        self,
        connection: Connection,
        queue: str,
        prefetch_count: int,
        arguments: FieldTable | None = None,
    ) -> None:
        """Start consuming; raises ChannelClosed when the broker refuses."""
        if not 0 < prefetch_count <= PREFETCH_MAX:
            raise ValueError(f"prefetch_count is from 1 to {PREFETCH_MAX}, not {prefetch_count}")
        self.queue = queue
        self.is_cancelled = False
        """The broker ended the consumer: the queue was deleted."""
        self._connection = connection
        self._partial: _Partial | None = None
        qos = b"\x00\x00\x00\x00" + prefetch_count.to_bytes(2, "big") + b"\x00"
        connection.call(f.BASIC_QOS, qos, f.BASIC_QOS_OK)
        sent = b"\x00\x00" + f.shortstr(queue) + _TAG + b"\x00" + encode_table(arguments or {})
        connection.call(f.BASIC_CONSUME, sent, f.BASIC_CONSUME_OK, queue)

    def read(
        self,
        count: int,
        *,
        idle_timeout_s: float,
        size_limit: int = SIZE_MAX,
        linger_s: float | None = None,
    ) -> Deliveries:
        """Return up to `count` messages: fewer when none came for `idle_timeout_s` or it is cancelled.

        Once there is one, `linger_s` is how long the next may take. Stops after the message that takes bodies and
        properties to `size_limit`. Call it with no more than the prefetch allows.

        Raises: ConnectionLost, ChannelClosed, ConnectionClosed.
        """
        step = f"consuming '{self.queue}'"
        found = Deliveries(self.queue)
        transport = self._connection.transport
        deadline = time.monotonic() + idle_timeout_s
        while len(found) < count and found.size_bytes < size_limit and not self.is_cancelled:
            before = len(found)
            if self._partial is None and not self._connection.has_waiting:
                transport.pos = take_deliveries(
                    transport.data, transport.pos, found, count, size_limit
                )
            if len(found) == before and not self._take_frame(found, deadline, step):
                break
            pause_s = idle_timeout_s if linger_s is None or not len(found) else linger_s
            deadline = time.monotonic() + pause_s
        return found

    def settle(self, deliveries: Deliveries) -> None:
        """Cancel the consumer, acknowledge everything up to the last of these; the broker has done so.

        What was delivered beyond them goes back to the queue when the connection closes.
        """
        self.cancel()
        if deliveries.last_tag:
            ack(self._connection, deliveries.last_tag)
        barrier(self._connection)

    def cancel(self) -> None:
        """Stop deliveries; those that came meanwhile stay unacknowledged."""
        if self.is_cancelled:
            return
        self.is_cancelled = True
        self._connection.on_frame = _drop_content
        try:
            self._connection.call(f.BASIC_CANCEL, _TAG + b"\x00", f.BASIC_CANCEL_OK, self.queue)
        finally:
            self._connection.on_frame = None

    def _take_frame(self, found: Deliveries, deadline: float, step: str) -> bool:
        """Deal with one frame the long way (large or unusual messages); False: none came."""
        frame = self._connection.next_frame(deadline, step)
        if frame is None:
            return False
        with self._connection.parsing(step):
            self._take(frame, found, step)
        return True

    def _take(self, frame: f.Frame, found: Deliveries, step: str) -> None:
        ids = frame.method
        if ids == f.BASIC_CANCEL:
            self.is_cancelled = True
        elif ids == f.BASIC_DELIVER:
            self._partial = _begin(frame.payload)
        elif self._partial is None or frame.type == f.METHOD:
            raise BadFrame(self._connection.place, step, f"unexpected frame of type {frame.type}")
        else:
            whole = _continue(self._partial, frame)
            if whole is not None:
                found.append(self._partial.tag, whole)
                self._partial = None


def ack(connection: Connection, last_tag: int) -> None:
    """Acknowledge everything up to the tag, without waiting until the broker has handled it."""
    octets = f.method(f.BASIC_ACK, f.U64.pack(last_tag) + b"\x01")
    connection.send(octets, "basic.ack")


def barrier(connection: Connection) -> None:
    """Return when the broker has handled everything that was sent before on the channel."""
    connection.on_frame = _drop_content
    try:
        connection.call(f.BASIC_QOS, b"\x00\x00\x00\x00\x00\x01\x00", f.BASIC_QOS_OK)
    finally:
        connection.on_frame = None


def get(connection: Connection, queue: str, count: int, size_limit: int = SIZE_MAX) -> Deliveries:
    """Take up to `count` messages that are ready now, unacknowledged; ends where the queue is empty.

    Asks for no more when bodies and properties come to `size_limit`. What was asked for before still comes: one message
    at first, then as many as came so far (up to 200) as far as they would fit if they were of the same size.
    """
    step = f"basic.get '{queue}'"
    request = f.method(f.BASIC_GET, b"\x00\x00" + f.shortstr(queue) + b"\x00")
    found = Deliveries(queue)
    asked = answered = 0
    is_empty = False
    while answered < asked or not (
        is_empty or len(found) >= count or found.size_bytes >= size_limit
    ):
        if answered == asked:
            asked += (more := min(_window(found, size_limit), count - len(found)))
            connection.send(request * more, step)
        with connection.parsing(step):
            one = _answer(connection, step)
        answered += 1
        if one is None:
            is_empty = True
        else:
            found.append(*one)
    return found


def _window(found: Deliveries, size_limit: int) -> int:
    """Return how many messages to ask for at once: nobody knows how large they are before some are here."""
    if not len(found):
        return 1
    fitting = (size_limit - found.size_bytes) * len(found) // max(1, found.size_bytes)
    return max(1, min(_PEEK_WINDOW, len(found), fitting))


def peek(connection: Connection, queue: str, count: int, size_limit: int = SIZE_MAX) -> Deliveries:
    """Return up to `count` messages and leave them in the queue, in their order, now as redelivered.

    RabbitMQ puts them back in its own time: some milliseconds later for hundreds of messages.
    """
    found = get(connection, queue, count, size_limit)
    if found.last_tag:
        octets = f.method(f.BASIC_NACK, f.U64.pack(found.last_tag) + b"\x03")
        connection.send(octets, "basic.nack")
        barrier(connection)
    return found


def _answer(connection: Connection, step: str) -> tuple[int, Delivery] | None:
    """Return the tag and message that answer one basic.get; None: the queue is empty."""
    deadline = time.monotonic() + connection.timeout_s
    partial: _Partial | None = None
    while (frame := connection.next_frame(deadline, step)) is not None:
        if frame.method == f.BASIC_GET_EMPTY:
            return None
        if frame.method == f.BASIC_GET_OK:
            tag, flag = f.U64.unpack_from(frame.payload, 4)[0], frame.payload[12]
            partial = _Partial(tag, flag != 0, frame.payload[13:-4])
        elif partial is None:
            raise BadFrame(connection.place, step, f"unexpected frame of type {frame.type}")
        else:
            whole = _continue(partial, frame)
            if whole is not None:
                return partial.tag, whole
    raise connection.reply_timeout(step, connection.timeout_s)


def _begin(payload: bytes) -> _Partial:
    tag = f.U64.unpack_from(payload, _DELIVER_FIXED)[0]
    at = _DELIVER_FIXED + 8
    return _Partial(tag, payload[at] != 0, payload[at + 1 :])


def _continue(partial: _Partial, frame: f.Frame) -> Delivery | None:
    """Add a header or body frame; return the message when it is whole."""
    if frame.type == f.HEADER:
        partial.size = f.CONTENT_HEADER.unpack_from(frame.payload)[2]
        partial.properties = frame.payload[f.CONTENT_HEADER.size :]
    else:
        partial.pieces.append(frame.payload)
        partial.arrived += len(frame.payload)
    if partial.properties is None or partial.arrived < partial.size:
        return None
    body = b"".join(partial.pieces)
    return Delivery(partial.route, partial.properties, body, partial.is_redelivered)


def _drop_content(frame: f.Frame) -> bool:
    """Drop deliveries that nobody waits for any more; they stay unacknowledged."""
    return frame.type != f.METHOD or frame.method in {f.BASIC_DELIVER, f.BASIC_CANCEL}
