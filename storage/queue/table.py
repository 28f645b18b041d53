"""The index segments of one queue, in order of their numbers.

State: the segments that have live entries, or that are about to be written to. Owned by `storage.queue.disk`; the files
of each version take their segments out of it when these are removed. Called on the disk thread; the reader thread looks
at it under the lock of `storage.disk.jobs`.
"""

from __future__ import annotations

from collections.abc import Iterator

from burrowmq.storage.queue.segment import IndexFiles, Segment

# What a Segment object and its place in the table weigh; a bit set weighs entry_count / 8 more.
_SEGMENT_BYTES = 320
# The tail of an empty queue goes at once, not at the next idle moment, when its bodies take more than this. Below,
# a queue that is emptied all the time would spend more on files that come and go than on what is written to them.
_EMPTY_TAIL = 4 * 1024 * 1024


class SegmentTable:
    """See the module."""

    __slots__ = ("entry_count", "segments")

    def __init__(self, entry_count: int) -> None:
        self.entry_count = entry_count  # places in a segment
        self.segments: dict[int, Segment] = {}  # in the order of their numbers

    def __iter__(self) -> Iterator[Segment]:
        """Give the segments in order; those that go meanwhile do no harm."""
        return iter(list(self.segments.values()))

    @property
    def numbers(self) -> list[int]:
        """Those of the segments, sorted."""
        return list(self.segments)

    @property
    def memory_bytes(self) -> int:
        """Bytes of the segment objects. Also called on the loop."""
        segments = list(self.segments.values())
        bit_sets = sum(segment.live_bits is not None for segment in segments)
        return _SEGMENT_BYTES * len(segments) + bit_sets * (self.entry_count // 4)

    def of(self, files: IndexFiles) -> list[Segment]:
        """Give the segments that lie in these files, in order."""
        return [segment for segment in self if segment.files is files]

    def adopt(self, segment: Segment) -> None:
        """Take a segment in."""
        segments, number = self.segments, segment.number
        is_last = not segments or number > next(reversed(segments))
        segments[number] = segment
        if not is_last:
            self.segments = dict(sorted(segments.items()))

    def forget(self, segment: Segment) -> None:
        """Take a segment out."""
        del self.segments[segment.number]

    def clear(self) -> None:
        """Take all out."""
        self.segments.clear()

    def is_tail(self, segment: Segment) -> bool:
        """Whether it is the last one, to which the next message goes while there is a place."""
        return segment.number == next(reversed(self.segments))

    def is_spent(self, segment: Segment, *, is_idle: bool) -> bool:
        """Whether a segment's files may go: all in it is acked, and it is not about to be written to again."""
        return not segment.live and (
            is_idle
            or not self.is_tail(segment)
            or segment.used == self.entry_count
            or segment.store_end > _EMPTY_TAIL
        )
