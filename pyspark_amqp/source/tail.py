"""Where streams end: asked of the broker once, and again when something has come.

State: a Tail owns a connection for each stream, on which it waits at the end for a next message, and another one for
each whose beginning is not known yet. Lives on the driver for one run of a query. Spark asks a hundred times a second
while nothing comes: then nothing is sent.

A stream that ends before what was read of it, or before what was said of it, may be slow to say all that it has: an end
goes back only where, after all patience, nothing comes from there. Then it is another stream of that name.

Invariants: nothing that is read here is a row of anybody; a queue that is no stream is refused
by name; of a stream that has nothing, `next` and `last` begin with the first message that comes after they were asked
for, however late the answer is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

from pyspark_amqp.options import StreamQueueOptions
from pyspark_amqp.options.connection import Addresses, may_rotate
from pyspark_amqp.source.patience import persist
from pyspark_amqp.wire import Connection, NotReady, WireError, connect, queue_state
from pyspark_amqp.wire.stream_queue import (
    FIRST,
    NEXT,
    Position,
    StreamConsumer,
    counted_to,
    end_offset,
    offset_at,
    offset_of,
)
from pyspark_amqp.wire.table import Timestamp

T = TypeVar("T")


class NothingCame(NotReady):
    """The stream has nothing there, or is slow because one of its servers has just gone."""


class _Watch:
    """Waits at one position of a stream for a message."""

    def __init__(self, addresses: Addresses, queue: str, position: Position) -> None:
        self._connection = connect(addresses)
        self._found: int | None = None
        try:
            self._consumer = StreamConsumer(self._connection, queue, position, 2)
        except BaseException:
            self._connection.close()
            raise

    def found(self) -> int | None:
        """Return the first message's offset, None until it has come. Raises: WireError, where the connection broke."""
        if self._found is None:
            came = self._consumer.read(1, idle_timeout_s=0.0)
            self._found = offset_of(came.properties[0]) if len(came) else None
        return self._found

    def close(self) -> None:
        self._connection.close()


class Tail:
    """The ends of a query's streams."""

    def __init__(self, options: StreamQueueOptions) -> None:
        self._addresses = options.addresses
        self._queues = tuple(options.starting)
        self._idle_s = options.idle_timeout_s
        self._retry_timeout_s = options.retry_timeout_s
        self._ends: dict[str, int] = {}
        self._known: dict[str, int] = {}  # as it was said last
        self.others: dict[str, int] = {}
        """Streams that end before this offset, up to which there was one; who begins with it forgets it."""
        self._watches: dict[str, _Watch] = {}
        self._pins: dict[str, _Watch] = {}

    def ends(self, read: Mapping[str, int] | None = None) -> dict[str, int]:
        """Return the offset after each stream's last message; without streams that have none. Raises: WireError.

        `read`: up to where each was read. Which of them are not those any more is in `others` then.
        """
        self._patiently(self._ask_all)
        for queue, end in self._ends.items():
            known = max(self._known.get(queue, 0), (read or {}).get(queue, 0))
            if end >= known or queue in self.others:
                continue
            if self._reaches(queue, known):
                self._ends[queue] = known
                self._patiently(partial(self._watch, queue, known))
            else:
                self.others[queue] = known
        self._known = dict(self._ends)
        return dict(self._ends)

    def begins(self, positions: Mapping[str, Position]) -> dict[str, int]:
        """Return the offset at each of these positions; without streams that have no message. Raises: WireError."""
        return self._patiently(lambda: self._begin_all(positions))

    def reach(self, queue: str, at: int, count: int, end: int) -> int:
        """Return where so many messages from `at` on end, not beyond `end`. Raises: WireError.

        That is `count` offsets farther, unless the stream says that it has fewer messages than offsets: then they are
        counted, which takes as long as a task needs to receive them.
        """
        if at + count >= end:
            return end
        if not self._patiently(lambda: self._has_gaps(queue, end)):
            return at + count
        counted = self._patiently(lambda: self._counted_to(queue, at, count))
        return min(counted, end)

    def close(self) -> None:
        """Close all connections."""
        for watches in (self._watches, self._pins):
            for watch in watches.values():
                watch.close()
            watches.clear()

    def _patiently(self, ask: Callable[[], T]) -> T:
        rotates = may_rotate(self._addresses)
        return persist(ask, self._retry_timeout_s, may_rotate=rotates)

    def _ask_all(self) -> None:
        for queue in self._queues:
            if not self._stands_still(queue):
                end = asked(self._addresses, queue, end_offset)
                if end is not None:
                    self._ends[queue] = end
                self._watch(queue, FIRST if end is None else end)

    def _reaches(self, queue: str, end: int) -> bool:
        """Whether there is a message at the offset before an end, or behind it."""

        def ask() -> int:
            found = asked(self._addresses, queue, lambda c, q: offset_at(c, q, end - 1))
            if found is None:
                step = f"reading '{queue}'"
                raise NothingCame(self._addresses[0].place, step, f"nothing comes from {end - 1}")
            return found

        try:
            return self._patiently(ask) >= end - 1
        except NothingCame:
            return False

    def _stands_still(self, queue: str) -> bool:
        watch = self._watches.get(queue)
        if watch is None:
            return False
        try:
            if watch.found() is None:
                return True
        except WireError:  # it broke since it was asked last
            pass
        watch.close()
        del self._watches[queue]
        return False

    def _watch(self, queue: str, position: Position) -> None:
        former = self._watches.pop(queue, None)
        if former is not None:
            former.close()
        self._watches[queue] = _Watch(self._addresses, queue, position)

    def _begin_all(self, positions: Mapping[str, Position]) -> dict[str, int]:
        found = {}
        for queue, position in positions.items():
            begin = self._begin(queue, position)
            if begin is not None:
                found[queue] = begin
                self._unpin(queue)
        return found

    def _begin(self, queue: str, position: Position) -> int | None:
        if isinstance(position, int) and not isinstance(position, Timestamp):
            return position
        if position == FIRST:
            return asked(self._addresses, queue, lambda c, q: offset_at(c, q, FIRST))
        # Before anything is asked: what comes while a stream without messages does not answer is new, too.
        came = self._came_since(queue)
        found = None
        if position != NEXT:
            found = asked(self._addresses, queue, lambda c, q: offset_at(c, q, position))
        elif came is not None:
            return came
        if found is None:
            # A time that has not come yet begins where the stream ends, as RabbitMQ has it.
            found = asked(self._addresses, queue, end_offset)
            came = self._came_since(queue)
        return min((each for each in (found, came) if each is not None), default=None)

    def _came_since(self, queue: str) -> int | None:
        """Return the offset of the first message since this was asked first, None while there is none."""
        pin = self._pins.get(queue)
        if pin is None:
            pin = self._pins[queue] = _Watch(self._addresses, queue, NEXT)
        try:
            return pin.found()
        except WireError:
            self._unpin(queue)
            raise

    def _unpin(self, queue: str) -> None:
        pin = self._pins.pop(queue, None)
        if pin is not None:
            pin.close()

    def _counted_to(self, queue: str, at: int, count: int) -> int:
        with connect(self._addresses) as connection:
            return counted_to(connection, queue, at, count, self._idle_s)

    def _has_gaps(self, queue: str, end: int) -> bool:
        """Whether the stream says that it has fewer messages than offsets; RabbitMQ 3.10 says none of any stream."""
        count = asked(self._addresses, queue, lambda c, q: queue_state(c, q).ready_count)
        if not count:
            return False
        first = asked(self._addresses, queue, lambda c, q: offset_at(c, q, FIRST))
        return first is not None and count < end - first


def asked(
    addresses: Addresses, queue: str, ask: Callable[[Connection, str], int | None]
) -> int | None:
    """Ask on a connection of its own. Raises: UnsuitableQueue, WireError."""
    with connect(addresses) as connection:
        return ask(connection, queue)
