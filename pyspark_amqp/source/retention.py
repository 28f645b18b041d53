"""Whether a stream still had what a task should read: offsets without a message are gaps, or are lost.

State: a Retention owns where the first gap is that has not been explained. Lives in one task, for one range.

A stream's first offset tells a gap from a loss: what is not removed when it is asked was not when the gap was seen.
RabbitMQ's streams hardly have gaps; BurrowMQ's have one between any two chunks, so that it is asked for a second's gaps
at once, and for the last ones at the range's end.

Invariant: a range that ends without an error has no gap that was not explained.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from pyspark_amqp.options import StreamQueueOptions
from pyspark_amqp.options.connection import may_rotate
from pyspark_amqp.source.patience import Clock, persist
from pyspark_amqp.source.ranges import Range
from pyspark_amqp.source.tail import NothingCame, asked
from pyspark_amqp.wire.stream_queue import FIRST, end_offset, offset_at

_LOG: Final = logging.getLogger("pyspark_amqp")
EVERY_S: Final = 1.0
OTHER: Final = "It was deleted and declared again, or has lost its end"


class OffsetsGone(Exception):
    """A stream does not have the messages any more that a batch names."""


class Retention:
    """Tells gaps of one range from losses.

    `first_now` asks for the stream's first offset, `end_now` for the one after its last; None: it has no message.
    """

    def __init__(
        self,
        range_: Range,
        first_now: Callable[[], int | None],
        end_now: Callable[[], int | None],
        *,
        fails: bool,
        clock: Clock | None = None,
    ) -> None:
        self._queue, _, self._end = range_
        self._first_now = first_now
        self._end_now = end_now
        self._fails = fails
        self._clock = clock or Clock()
        self._gap: int | None = None
        self._asked_at_s: float | None = None

    def note(self, at: int, offsets: Sequence[int]) -> None:
        """Take account of messages that came where `at` was the next offset. Raises: OffsetsGone, WireError."""
        if self._gap is None and offsets[-1] - at >= len(offsets):
            place = next(n for n, found in enumerate(offsets) if found > at + n)
            self._gap = offsets[place - 1] + 1 if place else at
        if self._gap is None or self._gap >= self._end:
            return
        now = self._clock.now_s()
        is_over = offsets[-1] + 1 >= self._end
        if is_over or self._asked_at_s is None or now - self._asked_at_s >= EVERY_S:
            gap, self._gap, self._asked_at_s = self._gap, None, now
            first = self._first_now()
            if first is None or first > gap:
                self._tell(gap, first)

    def has_ended(self, at: int) -> bool:
        """Whether nothing from `at` on is left of the range. Raises: OffsetsGone, WireError."""
        first = self._first_now()
        if first is not None and first < self._end:
            end = self._end_now()
            if end is None or end > at:
                return False
            self._tell_lost(at, self._end, f"it ends before {end} now", OTHER)
            return True
        self._tell(at, first)
        return True

    def _tell(self, at: int, first: int | None) -> None:
        end = self._end if first is None else min(first, self._end)
        now = "it has no message now" if first is None else f"its first is {first} now"
        self._tell_lost(at, end, now, "Its retention is shorter than the query's pauses")

    def _tell_lost(self, at: int, end: int, now: str, why: str) -> None:
        told = f"stream '{self._queue}': offsets {at} to {end - 1} are gone; {now}"
        if self._fails:
            raise OffsetsGone(f"{told}. {why}; failOnDataLoss=false goes on without them")
        _LOG.warning("%s: %d offsets are left out", told, end - at)


def tell_others(ends: Mapping[str, tuple[int, int]], *, fails: bool) -> None:
    """Say of streams where they have ended, and where they end now: the query begins them anew. Raises: OffsetsGone."""
    told = [
        f"stream '{queue}' ends before {end} now, and did before {known}"
        for queue, (known, end) in ends.items()
    ]
    if fails:
        raise OffsetsGone(
            f"{'; '.join(told)}. {OTHER}; failOnDataLoss=false begins again with the first message"
        )
    for each in told:
        _LOG.warning("%s. %s: it is read from its first message on", each, OTHER)


def first_now(options: StreamQueueOptions, queue: str) -> int | None:
    """Return a stream's first offset; None where, after all patience, it has no message. Raises: WireError."""

    def ask() -> int:
        first = asked(options.addresses, queue, lambda c, q: offset_at(c, q, FIRST))
        if first is None:
            step = f"reading '{queue}'"
            raise NothingCame(options.addresses[0].place, step, "its first message does not come")
        return first

    try:
        return persist(ask, options.retry_timeout_s, may_rotate=may_rotate(options.addresses))
    except NothingCame:
        return None


def end_now(options: StreamQueueOptions, queue: str) -> int | None:
    """Return the offset after a stream's last message; None where none comes. Raises: WireError."""
    return persist(
        lambda: asked(options.addresses, queue, end_offset),
        options.retry_timeout_s,
        may_rotate=may_rotate(options.addresses),
    )
