"""Looking at what is ready in a queue, in its order, and changing nothing: no message is handed out, marked or moved.

What is in RAM is taken as it is when it begins, of all levels; what is on disk is noted then, and read piece by piece
from the store. A message that is settled meanwhile may or may not be among those found, every other one is, once.
State owned: one walk. Called by whoever shows messages (`embedded.commands`) or compares them (`broker.imports`), on
the loop; a queue in use pays nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from burrowmq.broker.queue.order.backlog import Backlog
from burrowmq.broker.queue.queue import Queue
from burrowmq.protocol.codec import Message
from burrowmq.records import NamedTuple
from burrowmq.storage.types import LoadedMessage

READ_BYTES = 1 << 20
"""So much is read from the store at a time."""


class Seen(NamedTuple):
    """One ready message, with its level and its place there."""

    level: int
    seq: int
    message: Message
    expiry_ms: int
    """In `Clock.deadline_ms`, 0 for none."""
    redelivered: bool


def browse(queue: Queue, limit: int, on_done: Callable[[list[Seen]], None]) -> None:
    """Find the first `limit` ready messages; `on_done` gets them in the order of delivery, at once or later."""
    _Walk([_Part(level) for level in queue.levels if level.count], limit, on_done).go_on()


def browse_from(
    level: Backlog, first_seq: int, limit: int, on_done: Callable[[list[Seen]], None]
) -> None:
    """Of one level find the first `limit` that are ready and not older than `first_seq`; else as `browse`."""
    _Walk([_Part(level, first_seq)], limit, on_done).go_on()


class _Part:
    """What one level had when the look began: messages in RAM, and what has to be read."""

    def __init__(self, level: Backlog, first_seq: int = 0) -> None:
        self.level = level
        in_ram = [*level.requeued.heap, *level.ram.entries(level.redelivered_below)]
        self.found = [
            Seen(level.level, seq, message, expiry, redelivered)
            for seq, message, expiry, _, redelivered in in_ram
            if seq >= first_seq
        ]
        self.in_ram = len(self.found)
        ranges: list[tuple[int, int, bool | None]] = list(level.requeued.parked)
        if level.disk.count:
            ranges.append((level.disk.first, level.next_seq, None))
        self.ranges = [
            (max(first, first_seq), stop, redelivered)
            for first, stop, redelivered in reversed(ranges)
            if stop > first_seq
        ]


class _Walk:
    """One look, from the highest level down."""

    def __init__(
        self, parts: list[_Part], limit: int, on_done: Callable[[list[Seen]], None]
    ) -> None:
        self._parts = parts
        self._limit = limit
        self._on_done = on_done
        self._found: list[Seen] = []

    def go_on(self) -> None:
        """Look at one level after the other, as far as nothing has to be read."""
        while self._parts and len(self._found) < self._limit:
            if not self._read(self._parts[-1]):
                return
            self._found += sorted(self._parts.pop().found, key=_seq)
        self._on_done(self._found[: self._limit])

    def _read(self, part: _Part) -> bool:
        """Read what is noted; False when an answer is on its way, which goes on then."""
        while part.ranges and len(part.found) + len(self._found) < self._limit + part.in_ram:
            first, stop, _ = part.ranges[-1]
            answer = part.level.log.read(first, stop - first, READ_BYTES, self._on_read)
            if answer is None:
                return False
            self._accept(part, *answer)
        return True

    def _on_read(self, loaded: list[LoadedMessage], next_seq: int) -> None:
        self._accept(self._parts[-1], loaded, next_seq)
        self.go_on()

    def _accept(self, part: _Part, loaded: list[LoadedMessage], next_seq: int) -> None:
        first, stop, redelivered = part.ranges.pop()
        level = part.level
        for seq, message, expiry in loaded:
            if seq < stop:
                is_again = seq < level.redelivered_below if redelivered is None else redelivered
                assert isinstance(message, Message), "what the store is given, it gives back"
                part.found.append(Seen(level.level, seq, message, expiry, is_again))
        if first < next_seq < stop:
            part.ranges.append((next_seq, stop, redelivered))


def _seq(seen: Seen) -> int:
    return seen.seq
