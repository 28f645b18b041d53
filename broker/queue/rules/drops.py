"""What the length limits of a queue have dropped, on its way out: dead letters where the queue says so, else just gone.

What is in RAM goes at once. What is on disk, and is to become a dead letter, has to be read before: it waits here, in
order, is not ready any more, and stays in the store until its copies are on their way. What is dropped behind it
waits too, and what arrives meanwhile goes to disk (`Backlog.dying_count`), so that the wait takes no memory. After a
crash what waited is ready again, and dropped again.

`drops_by_level` says what has to go when messages of several priorities arrive. State owned: what waits, and the read
under way. Called by `rules.limits`, which decides what is dropped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import TypeAlias, TypeGuard

from burrowmq.broker.queue.order.backlog import Backlog
from burrowmq.broker.queue.order.pending_read import PendingRead
from burrowmq.broker.queue.outcome import ACCEPTED, PENDING
from burrowmq.broker.queue.rules.dead_letter import DeadLetters
from burrowmq.broker.queue.run import DeliveryRun, Loaded
from burrowmq.broker.queue.serve.rate import ConsumptionRate
from burrowmq.broker.words.no_items import NoItems
from burrowmq.protocol.codec import Message, body_bytes, by_priority
from burrowmq.protocol.constants import PERSISTENT

READ_COUNT = 2048
READ_BYTES = 1 << 20

Waiting: TypeAlias = tuple[Backlog, DeliveryRun | range]

# What a queue has before anything waits, and all of them share: an empty deque weighs 700 bytes.
_NOTHING: deque[Waiting] = NoItems()


class Drops:
    """Those of one queue, which outlives a restart if it `is_durable`.

    `changed` has the queue pumped, so that the turn in which a read is answered ends as any other.
    """

    __slots__ = ("_changed", "_dead_letters", "_is_durable", "_rate", "_read", "_waiting")

    def __init__(
        self,
        dead_letters: DeadLetters,
        rate: ConsumptionRate,
        *,
        is_durable: bool,
        changed: Callable[[], None],
    ) -> None:
        self._dead_letters = dead_letters
        self._rate = rate
        self._is_durable = is_durable
        self._changed = changed
        self._waiting = _NOTHING
        self._read: PendingRead | None = None
        """Made with the first read, and let go with the queue: it holds this in a circle."""

    @property
    def are_waiting(self) -> bool:
        """Whether something has to be read before anything else that is dropped may go."""
        return bool(self._waiting)

    @property
    def waiting_count(self) -> int:
        """How many messages wait."""
        return sum(_length(what) for _, what in self._waiting)

    @property
    def is_reading(self) -> bool:
        """Whether a read is under way."""
        return self._read is not None and self._read.is_under_way

    def end(self) -> None:
        """The queue is gone, and what waits with it."""
        if self._read is not None:
            self._read.void()
        self._read = None
        self._waiting = _NOTHING

    def outcome(self, flags: int) -> int:
        """What a publisher is told of messages dropped on arrival: their copies may have to reach the disk."""
        is_kept = self._is_durable and bool(flags & PERSISTENT) and not self._dead_letters.is_off
        return PENDING if is_kept else ACCEPTED

    def send(self, messages: list[Message]) -> None:
        """Messages that were never in the queue, while nothing waits."""
        self._dead_letters.send("maxlen", messages, is_new=True)

    def bury(self, backlog: Backlog, run: DeliveryRun) -> None:
        """A run that was taken from the head of a level."""
        if self._waiting:
            backlog.dying_count += len(run.messages)
            self._waiting.append((backlog, run))
            return
        if not self._dead_letters.is_off:
            # Who is dropped as a dead letter is wanted in RAM as much as who is consumed.
            self._rate.note(len(run.messages))
        self._dead_letters.send("maxlen", run.messages)
        backlog.forget(run.seqs, run.messages, run.kind, run.size)

    def bury_unread(self, backlog: Backlog, seqs: range) -> None:
        """Messages that were taken, unread, from the head of a level on disk."""
        if self._dead_letters.is_off:
            self._dead_letters.drop("maxlen", len(seqs))
            backlog.log.ack(seqs.start, seqs.stop - 1, None)
            return
        self._rate.note(len(seqs))
        backlog.dying_count += len(seqs)
        last = self._waiting[-1] if self._waiting else None
        if last is not None and last[0] is backlog and _continues(last[1], seqs):
            self._waiting[-1] = (backlog, range(last[1].start, seqs.stop))
        else:
            if self._waiting is _NOTHING:
                self._waiting = deque()
            self._waiting.append((backlog, seqs))
        self._go_on()

    # -- what waits ---------------------------------------------------------------------------------------------

    def _on_read(self) -> None:
        self._go_on()
        self._changed()

    def _go_on(self) -> None:
        """Send on what waits, as far as it is in RAM; have the next of it read."""
        waiting = self._waiting
        while waiting and not self.is_reading:
            backlog, what = waiting[0]
            if isinstance(what, range):
                where = what.start, min(len(what), READ_COUNT), READ_BYTES
                if self._read is None:
                    self._read = PendingRead(self._on_read)
                self._read.begin(backlog.log, where, READ_COUNT, self._accept)
            else:
                waiting.popleft()
                backlog.dying_count -= len(what.messages)
                self._dead_letters.send("maxlen", what.messages)
                backlog.forget(what.seqs, what.messages, what.kind, what.size)

    def _accept(self, loaded: list[Loaded], next_seq: int) -> None:
        """The store has read from the first that waits on. What it does not give is gone, or damaged.

        What is damaged leaves the store by itself, with its bytes kept: it must not be acknowledged before.
        """
        backlog, seqs = self._waiting[0]
        assert isinstance(seqs, range), "only what is on disk is read"
        stop = min(next_seq, seqs.stop) if next_seq > seqs.start else seqs.stop
        backlog.dying_count -= stop - seqs.start
        if stop < seqs.stop:
            self._waiting[0] = (backlog, range(stop, seqs.stop))
        else:
            self._waiting.popleft()
        messages = [message for seq, message, _ in loaded if seq < stop]
        self._dead_letters.send("maxlen", messages)
        if len(messages) == stop - seqs.start:
            backlog.log.ack(seqs.start, stop - 1, messages, body_bytes(messages))
        elif messages:
            backlog.log.ack_many([seq for seq, _, _ in loaded if seq < stop])


def _length(what: DeliveryRun | range) -> int:
    return len(what) if isinstance(what, range) else len(what.messages)


def _continues(what: DeliveryRun | range, seqs: range) -> TypeGuard[range]:
    return isinstance(what, range) and what.stop == seqs.start


def drops_by_level(
    messages: list[Message], ready: list[int], most: int
) -> Iterator[tuple[int, int | list[int]]]:
    """What goes, in order, when these arrive one by one where `most` may be ready, and so many are on each level.

    Each time one is too many the oldest of the highest level goes. Yields (level, how many of those that were ready),
    or (level, the places of some that arrived).
    """
    top = len(ready) - 1
    places = list(range(len(messages)))
    levels = [0] * len(messages)
    for level, _, _, found in by_priority(messages, top, places):
        for place in found or ():
            levels[place] = level
    left = list(ready)
    arrived: dict[int, deque[int]] = {}
    count = sum(ready)
    highest = top
    ways: list[tuple[int, bool]] = []  # level, was it ready
    gone: list[int] = []
    for place, level in enumerate(levels):
        arrived.setdefault(level, deque()).append(place)
        count += 1
        highest = max(highest, level)
        while count > most:
            while not left[highest] and not arrived.get(highest):
                highest -= 1
            was_ready = left[highest] > 0
            if was_ready:
                left[highest] -= 1
            ways.append((highest, was_ready))
            gone.append(-1 if was_ready else arrived[highest].popleft())
            count -= 1
    for (level, was_ready), group in groupby(zip(ways, gone, strict=True), itemgetter(0)):
        some = [place for _, place in group]
        yield level, len(some) if was_ready else some
