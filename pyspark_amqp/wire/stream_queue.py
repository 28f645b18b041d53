"""Stream queues, by AMQP 0-9-1: read from an offset on, as often as one likes; nothing is taken.

State: a StreamConsumer owns what a Consumer does. Called by the source, on connections of their own.

Each message has a number, its offset, which the broker adds to its headers. `basic.consume` says where to begin:

    first, last, next   the oldest message; the first of the last chunk that was written; what comes from now on
    a number            that offset, or the oldest if it has gone
    a Timestamp         the first chunk that was written then or later (a chunk holds up to some thousand messages)

Offsets go up, and have gaps: where RabbitMQ's keeps other things than messages, and between BurrowMQ's chunks.
Acknowledging only lets more come.

Invariant: what `end_offset` says is not more than what can be read. Source: RabbitMQ's "Streams", probed with 3.10.8.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from pyspark_amqp.wire import framing as f
from pyspark_amqp.wire.connection import Connection
from pyspark_amqp.wire.consumer import PREFETCH_MAX, SIZE_MAX, Consumer, ack
from pyspark_amqp.wire.deliveries import Deliveries
from pyspark_amqp.wire.errors import (
    ChannelClosed,
    ConnectionClosed,
    ConnectionLost,
    NotReady,
    UnsuitableQueue,
)
from pyspark_amqp.wire.properties import BadProperties, decode
from pyspark_amqp.wire.table import BadTable, Timestamp

FIRST, LAST, NEXT = "first", "last", "next"
WINDOW: Final = 4000
_HEADER: Final = "x-stream-offset"
_MARK: Final = bytes((len(_HEADER),)) + _HEADER.encode() + b"l"
# How long a stream may take to send its first message, when it has one.
_FIRST_WAIT_S: Final = 1.0
# Where another node has it, and for some seconds after a start.
_NOT_READY: Final = (
    "does not have a replica on the local node",
    "is down or inaccessible",
    "is inaccessible: ",
)
# In the first second after a start: the stream's own processes are not there yet.
_INTERNAL_ERROR: Final = 541
_NO_ARGUMENT: Final = f"invalid arg '{_HEADER}'"
_ROUND: Final = b"\x00\x00\x00\x00"

Position: TypeAlias = "str | int | Timestamp"


class StreamConsumer:
    """Reads one stream from a position on; at most `window` messages are on their way."""

    def __init__(
        self, connection: Connection, queue: str, position: Position, window: int = WINDOW
    ) -> None:
        """Start reading.

        Raises: UnsuitableQueue, where it is no stream; NotReady; ChannelClosed, where it is not there (404).
        """
        self._connection = connection
        self._window = window
        try:
            self._consumer = Consumer(connection, queue, window, {_HEADER: position})
        except ChannelClosed as error:
            step = f"reading '{queue}'"
            if any(text in error.reply_text for text in _NOT_READY):
                raise NotReady(connection.place, step, error.reply_text) from error
            if _NO_ARGUMENT in error.reply_text:
                raise UnsuitableQueue(connection.place, step, "it is no stream") from error
            raise
        except ConnectionClosed as error:
            if error.reply_code != _INTERNAL_ERROR:
                raise
            raise NotReady(connection.place, f"reading '{queue}'", str(error)) from error

    def read(
        self,
        count: int,
        *,
        idle_timeout_s: float,
        size_limit: int = SIZE_MAX,
        linger_s: float | None = None,
    ) -> Deliveries:
        """Return up to `count` messages, fewer when none came for so long; as many more may come then.

        Raises: UnsuitableQueue, and nothing is acknowledged, for messages that a broker without streams sent;
        ConnectionLost, where the stream was deleted.
        """
        found = self._consumer.read(
            min(count, max(1, self._window // 2)),
            idle_timeout_s=idle_timeout_s,
            size_limit=size_limit,
            linger_s=linger_s,
        )
        step = f"reading '{found.queue}'"
        if len(found):
            if offset_of(found.properties[0]) is None:
                self._connection.close()
                raise UnsuitableQueue(self._connection.place, step, "its messages have no offsets")
            ack(self._connection, found.last_tag)
        elif self._consumer.is_cancelled:
            self._connection.close()
            raise ConnectionLost(self._connection.place, step, "the broker ended it")
        return found

    def read_what_is_there(self, count: int, wait_s: float) -> Deliveries:
        """Return what the stream has sent when it has answered a later question; wait so long for a first message."""
        self._round()
        found = self.read(count, idle_timeout_s=0.0)
        if not len(found) and wait_s:
            found = self.read(1, idle_timeout_s=wait_s)
        return found

    def _round(self) -> None:
        """Return when the broker has answered; what came before stays to be read."""
        qos = _ROUND + self._window.to_bytes(2, "big") + b"\x00"
        self._connection.call(f.BASIC_QOS, qos, f.BASIC_QOS_OK)


def offset_of(block: bytes) -> int | None:
    """Return a message's offset from its property block, None if it came from no stream."""
    at = block.find(_MARK)
    if at < 0:
        return None
    end = at + len(_MARK)
    if block.find(_MARK, end) < 0 and len(block) >= end + 8:
        return int.from_bytes(block[end : end + 8], "big", signed=True)
    # Somebody's header holds the same octets: look at all of them.
    try:
        headers = decode(block).get("headers")
    except (BadProperties, BadTable):
        return None
    found = headers.get(_HEADER) if isinstance(headers, dict) else None
    return found if type(found) is int else None  # a timestamp is one, too, and may be too large


def offset_at(connection: Connection, queue: str, position: Position) -> int | None:
    """Return the first offset at a position; None when there is no message there, or not yet.

    The connection is for this only: messages go on coming. Raises: as StreamConsumer.
    """
    consumer = StreamConsumer(connection, queue, position, window=1)
    found = consumer.read_what_is_there(1, _FIRST_WAIT_S)
    return offset_of(found.properties[0]) if len(found) else None


def end_offset(connection: Connection, queue: str) -> int | None:
    """Return the offset after the last message; None when the stream has none. As `offset_at` for the connection."""
    consumer = StreamConsumer(connection, queue, LAST, window=PREFETCH_MAX)
    found = consumer.read_what_is_there(PREFETCH_MAX, _FIRST_WAIT_S)
    last: int | None = None
    while len(found):
        last = offset_of(found.properties[-1])
        found = consumer.read_what_is_there(PREFETCH_MAX, 0.0)
    return None if last is None else last + 1


def counted_to(connection: Connection, queue: str, at: int, count: int, idle_s: float) -> int:
    """Return the offset after so many messages from `at` on, after fewer where none comes for so long.

    At least `at` and one for each message. As `offset_at` for the connection.
    """
    consumer = StreamConsumer(connection, queue, at, window=min(PREFETCH_MAX, 2 * count))
    end, left = at, count
    while left:
        found = consumer.read(left, idle_timeout_s=idle_s)
        if not len(found):
            return max(end, at + count)
        offsets = [offset_of(block) for block in found.properties]
        left -= sum(each is not None and each >= at for each in offsets)
        end = (offsets[-1] or 0) + 1
    return end
