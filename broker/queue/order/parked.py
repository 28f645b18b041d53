"""Messages of a backlog that were handed out, came back, and went to disk: ranges of sequence ids.

A consumer without a prefetch limit that disconnects gives back whatever it was sent; their bodies must not all be kept
in RAM. State owned: the ranges (every id in one is ready, and in the store), how many messages and body bytes they
are, and whether they count as redelivered. Called by `broker.queue.order.backlog`, which reads them from the store
again when it is their turn.

Invariants: ranges are in order, apart, and not empty; cost is by ranges, of which there are few unless every other
message was settled. What is added takes its place among them when they are looked at next, so that messages which come
back one by one are not sorted each time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence

from burrowmq.broker.words.no_items import NoItems
from burrowmq.records import NamedTuple

NO_SEQ = 1 << 62
ADDED_MAX = 1024
"""Ranges, and as many as are in order already, that may wait for their places; those that touch weigh less as one."""
LONG = 64
"""Ids in a range from which on it is read by itself. Shorter ones are read with what others hold between them."""


class Range(NamedTuple):
    """The ids from `first` up to and without `stop`."""

    first: int
    stop: int
    redelivered: bool


# What a backlog without any has, and all of them share: an empty deque weighs 700 bytes.
_NO_RANGES: deque[Range] = NoItems()


class Parked:
    """The ranges of one backlog."""

    __slots__ = ("_added", "_ranges", "bytes", "count", "first_seq")

    def __init__(self) -> None:
        self._ranges = _NO_RANGES
        self._added: list[Range] = []
        self.count = 0
        self.bytes = 0
        self.first_seq = NO_SEQ

    def __iter__(self) -> Iterator[Range]:
        return iter(self._in_order())

    @property
    def read_span(self) -> int:
        """Ids that a read from the first one on may look at: the first range, with its neighbours if it is short."""
        ranges = self._in_order()
        first, stop, _ = ranges[0]
        return stop - first if stop - first >= LONG else ranges[-1].stop - first

    def add(self, seqs: Sequence[int], flags: Sequence[bool], size: int) -> None:
        """Take in messages by their ids, in order, `size` body bytes together, none of which is here.

        `flags`: whether each counts as redelivered.
        """
        self.count += len(seqs)
        self.bytes += size
        if seqs:
            self.first_seq = min(self.first_seq, seqs[0])
            self._added += _ranges(seqs, flags)
        if len(self._added) > ADDED_MAX + len(self._ranges):
            self._in_order()

    def _in_order(self) -> deque[Range]:
        """The ranges, with what was added."""
        if not self._added:
            return self._ranges
        self._ranges = deque(_joined([*self._ranges, *self._added]))
        self._added = []
        return self._ranges

    def take(self, seqs: Iterable[int], next_seq: int) -> list[bool | None]:
        """Take out all ids below `next_seq`; says of each of `seqs`, in order, if it is redelivered, None: not here."""
        taken: deque[Range] = deque()
        ranges = self._in_order()
        while ranges and ranges[0].first < next_seq:
            head = ranges.popleft()
            if head.stop > next_seq:
                ranges.appendleft(Range(next_seq, head.stop, head.redelivered))
                head = Range(head.first, next_seq, head.redelivered)
            self.count -= head.stop - head.first
            taken.append(head)
        self._note_first()
        flags: list[bool | None] = []
        for seq in seqs:
            while taken and taken[0].stop <= seq:
                taken.popleft()
            is_here = bool(taken) and taken[0].first <= seq
            flags.append(taken[0].redelivered if is_here else None)
        return flags

    def remove(self, seqs: Collection[int]) -> set[int]:
        """Take out these ids, as far as they are here; which ones are. `shrink` says how many bytes they were."""
        found: set[int] = set()
        kept: list[Range] = []
        for first, stop, redelivered in self._in_order():
            at = first
            for seq in sorted(seq for seq in seqs if first <= seq < stop):
                if at < seq:
                    kept.append(Range(at, seq, redelivered))
                found.add(seq)
                at = seq + 1
            if at < stop:
                kept.append(Range(at, stop, redelivered))
        if found:
            self._ranges = deque(kept)
            self.count -= len(found)
            self._note_first()
        return found

    def shrink(self, size: int) -> None:
        """What was taken out were so many body bytes; what the store has lost took its bytes along."""
        self.bytes = self.bytes - size if self.count else 0

    def _note_first(self) -> None:
        self.first_seq = self._ranges[0].first if self._ranges else NO_SEQ


def _ranges(seqs: Sequence[int], flags: Sequence[bool]) -> list[Range]:
    """Ids in order, none twice, as ranges: by the thousand they are few, and cost no step of the interpreter each."""
    found: list[Range] = []
    at, end = 0, len(seqs)
    while at < end:
        redelivered = flags[at]
        try:
            alike = flags.index(not redelivered, at)
        except ValueError:
            alike = end
        while at < alike:
            stop = _gap(seqs, at, alike)
            found.append(Range(seqs[at], seqs[stop - 1] + 1, redelivered))
            at = stop
    return found


def _gap(seqs: Sequence[int], at: int, end: int) -> int:
    """Where ids stop to follow each other from `at` on, at `end` at the latest. O(log of how far that is)."""
    shift = seqs[at] - at
    step = 1
    while at + step < end and seqs[at + step] - at - step == shift:
        step *= 2
    # Up to here they follow each other, and not at `high` any more.
    low, high = at + step // 2, min(at + step, end)
    while low + 1 < high:
        middle = (low + high) // 2
        if seqs[middle] - middle == shift:
            low = middle
        else:
            high = middle
    return high


def _joined(ranges: list[Range]) -> list[Range]:
    """Ranges in order, and those that touch and are alike as one."""
    joined: list[Range] = []
    for each in sorted(ranges):
        last = joined[-1] if joined else None
        if last is not None and last.stop == each.first and last.redelivered == each.redelivered:
            joined[-1] = Range(last.first, each.stop, each.redelivered)
        else:
            joined.append(each)
    return joined


class _Nothing(Parked):
    """One for all backlogs that have nothing parked yet: whoever would add to it gets an error."""

    __slots__ = ()

    def add(self, seqs: Sequence[int], flags: Sequence[bool], size: int) -> None:
        """It stays empty."""
        raise TypeError("this is shared: make one before something is parked")


NOTHING_PARKED: Parked = _Nothing()
