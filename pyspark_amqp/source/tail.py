"""Where streams end: asked of the broker once, and again when something has come.

State: a Tail owns a connection for each stream, on which it waits at the end for a next message. Lives on the driver
for one run of a query. Spark asks a hundred times a second while nothing comes: then nothing is sent.

Invariants: an end never goes back; nothing that is read here is a row of anybody; a queue that is no stream is refused
by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from pyspark_amqp.options.connection import Addresses, may_rotate
from pyspark_amqp.source.patience import persist
from pyspark_amqp.wire import Connection, WireError, connect
from pyspark_amqp.wire.stream_queue import (
    FIRST,
    NEXT,
    Position,
    StreamConsumer,
    end_offset,
    offset_at,
)
from pyspark_amqp.wire.table import Timestamp

T = TypeVar("T")


class _Watch:
    """Waits at one stream's end for a message."""

    def __init__(self, addresses: Addresses, queue: str, end: int | None) -> None:
        self._connection = connect(addresses)
        self._consumer = StreamConsumer(self._connection, queue, FIRST if end is None else end, 2)

    def has_more(self) -> bool:
        """Whether a message has come. Raises: WireError, where the connection broke."""
        return len(self._consumer.read(1, idle_timeout_s=0.0)) > 0

    def close(self) -> None:
        self._connection.close()


class Tail:
    """The ends of a query's streams."""

    def __init__(self, addresses: Addresses, queues: Iterable[str], retry_timeout_s: float) -> None:
        self._addresses = addresses
        self._queues = tuple(queues)
        self._retry_timeout_s = retry_timeout_s
        self._ends: dict[str, int | None] = {}
        self._watches: dict[str, _Watch] = {}

    def ends(self) -> dict[str, int]:
        """Return the offset after each stream's last message; without streams that have none. Raises: WireError."""
        return self._patiently(self._ask_all)

    def begins(self, positions: Mapping[str, Position]) -> dict[str, int]:
        """Return the offset at each of these positions; without streams that have no message. Raises: WireError."""
        return self._patiently(lambda: self._begin_all(positions))

    def close(self) -> None:
        """Close all connections."""
        for watch in self._watches.values():
            watch.close()
        self._watches.clear()

    def _patiently(self, ask: Callable[[], T]) -> T:
        rotates = may_rotate(self._addresses)
        return persist(ask, self._retry_timeout_s, may_rotate=rotates)

    def _ask_all(self) -> dict[str, int]:
        for queue in self._queues:
            if not self._stands_still(queue):
                end = asked(self._addresses, queue, end_offset)
                if end is not None:
                    self._ends[queue] = max(end, self._ends.get(queue) or 0)
                self._watch(queue)
        return {queue: end for queue, end in self._ends.items() if end is not None}

    def _stands_still(self, queue: str) -> bool:
        watch = self._watches.get(queue)
        if watch is None:
            return False
        try:
            if not watch.has_more():
                return True
        except WireError:  # it broke since it was asked last
            pass
        watch.close()
        del self._watches[queue]
        return False

    def _watch(self, queue: str) -> None:
        self._watches[queue] = _Watch(self._addresses, queue, self._ends.get(queue))

    def _begin_all(self, positions: Mapping[str, Position]) -> dict[str, int]:
        found = {}
        for queue, position in positions.items():
            begin = self._begin(queue, position)
            if begin is not None:
                found[queue] = begin
        return found

    def _begin(self, queue: str, position: Position) -> int | None:
        if isinstance(position, int) and not isinstance(position, Timestamp):
            return position
        found = None
        if position != NEXT:
            found = asked(self._addresses, queue, lambda c, q: offset_at(c, q, position))
        # A time that has not come yet begins where the stream ends, as RabbitMQ has it.
        return asked(self._addresses, queue, end_offset) if found is None else found


def asked(
    addresses: Addresses, queue: str, ask: Callable[[Connection, str], int | None]
) -> int | None:
    """Ask on a connection of its own. Raises: UnsuitableQueue, WireError."""
    with connect(addresses) as connection:
        return ask(connection, queue)
