"""Looking at what is ready in a queue, in its order, and changing nothing: no message is handed out, marked or moved.

What is in RAM is taken as it is when it begins; what is on disk is read then, piece by piece, from the store. A message
that is settled meanwhile may or may not be among those found. State owned: one walk. Called by whoever shows messages
(`embedded.commands`), on the loop; a queue in use pays nothing for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from burrowmq.broker.queue.order.backlog import Backlog
from burrowmq.broker.queue.queue import Queue
from burrowmq.protocol.codec import Message
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
    _Walk(queue, limit, on_done).go_on()


class _Walk:
    """One look, from the highest level down."""

    def __init__(self, queue: Queue, limit: int, on_done: Callable[[list[Seen]], None]) -> None:
        self._levels = [level for level in queue.levels if level.count]
        self._limit = limit
        self._on_done = on_done
        self._found: list[Seen] = []
        self._level: Backlog | None = None
        self._here: list[Seen] = []
        self._ranges: list[tuple[int, int, bool | None]] = []

    def go_on(self) -> None:
        """Look at one level after the other, as far as nothing has to be read."""
        while len(self._found) < self._limit:
            if self._level is None:
                if not self._levels:
                    break
                self._begin(self._levels.pop())
            if not self._read():
                return
            self._found += sorted(self._here, key=_seq)
            self._level = None
        self._on_done(self._found[: self._limit])

    def _begin(self, level: Backlog) -> None:
        """Take what is in RAM, and note what has to be read; the store's parts in the order of their places."""
        self._level = level
        in_ram = [*level.requeued.heap, *level.ram.entries(level.redelivered_below)]
        self._here = [
            Seen(level.level, seq, message, expiry, redelivered)
            for seq, message, expiry, _, redelivered in in_ram
        ]
        self._ranges = [(first, stop, is_again) for first, stop, is_again in level.requeued.parked]
        if level.disk.count:
            self._ranges.append((level.disk.first, level.next_seq, None))
        self._ranges.reverse()

    def _read(self) -> bool:
        """Read what is noted; False when an answer is on its way, which goes on then."""
        level = self._level
        assert level is not None
        while self._ranges and len(self._here) + len(self._found) < self._limit + len(
            level.ram.messages
        ):
            first, stop, _ = self._ranges[-1]
            answer = level.log.read(first, stop - first, READ_BYTES, self._on_read)
            if answer is None:
                return False
            self._accept(*answer)
        return True

    def _on_read(self, loaded: list[LoadedMessage], next_seq: int) -> None:
        self._accept(loaded, next_seq)
        self.go_on()

    def _accept(self, loaded: list[LoadedMessage], next_seq: int) -> None:
        level = self._level
        assert level is not None
        first, stop, redelivered = self._ranges.pop()
        for seq, message, expiry in loaded:
            if seq < stop:
                is_again = seq < level.redelivered_below if redelivered is None else redelivered
                assert isinstance(message, Message), "what the store is given, it gives back"
                self._here.append(Seen(level.level, seq, message, expiry, is_again))
        if first < next_seq < stop:
            self._ranges.append((next_seq, stop, redelivered))


def _seq(seen: Seen) -> int:
    return seen.seq
