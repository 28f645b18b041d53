"""Queues, exchanges and bindings: asking for them, declaring and removing them.

Owns no state. Called by the source (what is ready?), by the sink's option to declare its queue, by jobs.

Invariants: `queue_state` never creates anything. A refusal closes the connection, as every channel
error does here, and comes as ChannelClosed with the broker's text.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from pyspark_amqp.wire import framing as f
from pyspark_amqp.wire.connection import Connection
from pyspark_amqp.wire.errors import ChannelClosed
from pyspark_amqp.wire.layout import Layout
from pyspark_amqp.wire.table import FieldTable, encode_table

_COUNTS: Final = Layout(">II")
_OTHER_TYPE: Final = re.compile(r"inequivalent arg 'x-queue-type' .* current is '(quorum|stream)'")
_PASSIVE, _DURABLE, _EXCLUSIVE, _AUTO_DELETE = 1, 2, 4, 8


class QueueState(NamedTuple):
    """What the broker says of a queue."""

    name: str
    ready_count: int
    consumer_count: int


def queue_state(connection: Connection, queue: str) -> QueueState:
    """Ask for a queue that exists: one round trip.

    Raises: ChannelClosed (404) when it does not.
    """
    return _declare(connection, queue, _PASSIVE, {})


def queue_type(connection: Connection, queue: str) -> str | None:
    """Return `quorum` or `stream` for such a queue of RabbitMQ, None for any other, and where this user may not ask.

    AMQP has no question for it. A declaration as a classic queue is refused with the type that it has; one of another
    type is refused for an argument that no queue can have, so that nothing is ever declared by this. The connection is
    closed by the refusal. Raises: WireError.
    """
    try:
        _declare(connection, queue, _DURABLE, {"x-queue-type": "classic", "x-max-priority": "none"})
    except ChannelClosed as error:
        found = _OTHER_TYPE.search(error.reply_text)
        return None if found is None else found[1]
    return None


def declare_queue(
    connection: Connection,
    queue: str,
    *,
    is_durable: bool = True,
    is_exclusive: bool = False,
    arguments: FieldTable | None = None,
) -> QueueState:
    """Declare a queue; an empty name lets the broker choose one."""
    bits = _DURABLE * is_durable | _EXCLUSIVE * is_exclusive
    return _declare(connection, queue, bits, arguments or {})


def _declare(connection: Connection, queue: str, bits: int, arguments: FieldTable) -> QueueState:
    sent = b"\x00\x00" + f.shortstr(queue) + bytes((bits,)) + encode_table(arguments)
    reply = connection.call(f.QUEUE_DECLARE, sent, f.QUEUE_DECLARE_OK, queue)
    with connection.parsing(f"queue.declare '{queue}'"):
        name, pos = f.read_shortstr(reply, 0)
        ready_count, consumer_count = _COUNTS.unpack_from(reply, pos)
        return QueueState(name, ready_count, consumer_count)


def declare_exchange(connection: Connection, exchange: str, kind: str = "direct") -> None:
    """Declare a durable exchange."""
    sent = b"\x00\x00" + f.shortstr(exchange) + f.shortstr(kind) + bytes((_DURABLE,))
    sent += encode_table({})
    connection.call(f.EXCHANGE_DECLARE, sent, f.EXCHANGE_DECLARE_OK, exchange)


def bind_queue(connection: Connection, queue: str, exchange: str, binding_key: str = "") -> None:
    """Bind a queue to an exchange."""
    sent = b"\x00\x00" + f.shortstr(queue) + f.shortstr(exchange) + f.shortstr(binding_key)
    sent += b"\x00" + encode_table({})
    connection.call(f.QUEUE_BIND, sent, f.QUEUE_BIND_OK, queue)


def purge_queue(connection: Connection, queue: str) -> int:
    """Drop what is ready; return how many messages that were."""
    sent = b"\x00\x00" + f.shortstr(queue) + b"\x00"
    return int.from_bytes(connection.call(f.QUEUE_PURGE, sent, f.QUEUE_PURGE_OK, queue))


def delete_queue(connection: Connection, queue: str) -> int:
    """Delete a queue; return how many messages went with it."""
    sent = b"\x00\x00" + f.shortstr(queue) + b"\x00"
    return int.from_bytes(connection.call(f.QUEUE_DELETE, sent, f.QUEUE_DELETE_OK, queue))
