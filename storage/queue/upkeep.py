"""What one queue's files need when there is time: acks written to them, journals emptied, empty segments removed.

State: none. Called by the writer and by the end of recovery, on the disk thread. Invariants: an ack is written no later
than at the next idle moment; a segment without live entries goes, the one at the queue's end only when that is worth
making it again.
"""

from __future__ import annotations

from burrowmq.storage.queue.disk import QueueDisk
from burrowmq.storage.queue.segment import Segment
from burrowmq.storage.queue.v1.index import QueueIndexV1

# The tail of an empty queue goes at once, not at the next idle moment, when its store is larger than this. Below,
# a queue that is emptied all the time would spend more on files that come and go than on what is written to them.
_EMPTY_TAIL = 4 * 1024 * 1024


def settle(queue: QueueDisk, *, is_idle: bool) -> tuple[bool, list[Segment]]:
    """Remove segments without live entries and write ack bits that are due.

    Gives whether acks are left to write, and the segments whose acks were written: some bodies there are dead.
    """
    is_left = queue.v1 is not None and _settle_v1(queue, queue.v1, is_idle)
    flushed: list[Segment] = []
    index = queue.index
    for number in list(index.numbers):
        segment = index.segments[number]
        if segment.version == 1:
            continue
        if _is_spent(queue, segment, is_idle):
            queue.remove(segment)
        elif segment.pending_acks and (is_idle or segment.pending_acks >= index.entry_count // 2):
            index.flush_acks(segment, queue.durable)
            flushed.append(segment)
        elif segment.pending_acks:
            is_left = True
    return is_left, flushed


def _is_spent(queue: QueueDisk, segment: Segment, is_idle: bool) -> bool:
    """Whether a segment's files may go: all in it is acked, and it is not about to be written to again."""
    index = queue.index
    return not segment.live and (
        is_idle
        or segment.number != index.numbers[-1]
        or segment.used == index.entry_count
        or segment.store_end > _EMPTY_TAIL
    )


def _settle_v1(queue: QueueDisk, files: QueueIndexV1, is_idle: bool) -> bool:
    """The same for the version 1 segments: acks go to the journal; once the queue is quiet, all of it goes."""
    if is_idle:
        files.trim()
    segments = queue.segments_v1()
    half = queue.index.entry_count // 2
    due = [segment for segment in segments if segment.pending_acks]
    is_due = is_idle or any(
        one.pending_acks >= half or _is_spent(queue, one, is_idle) for one in segments
    )
    has_journal = files.journal.path is not None
    if not has_journal and not due and all(segment.live for segment in segments):
        return not files.can_flush
    is_quiet = not files.wrote_lately
    if is_idle:
        files.wrote_lately = False
    if files.can_flush and (files.is_full or (is_due and (is_quiet or not has_journal))):
        tail = segments[-1] if segments else None
        queue.flush_v1(tail if tail is not None and not _is_spent(queue, tail, is_idle) else None)
        return not files.can_flush
    if is_due and due:
        files.write_acks(due, queue.durable)
    return True
