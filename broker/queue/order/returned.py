"""The messages of a backlog that were handed out and came back: a heap by sequence id.

Functions on a plain list, as in `heapq`: its length is asked for on every run, and a method for that would cost a call.
What was recovered with gaps between the ids is kept here too, since each entry has an id of its own. Called by
`broker.queue.order.requeued`; the backlog itself calls `unlogged_runs`.

Invariant: the list is a heap before and after each call. Ids are different, so an entry is never compared beyond its
id.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from burrowmq.broker.queue.order.parked import NO_SEQ
from burrowmq.broker.queue.run import LOGGED, DeliveryRun, Returned
from burrowmq.protocol.codec import Message, body_bytes


def merge(heap: list[Returned], entries: list[Returned]) -> list[Returned]:
    """The heap with `entries` in it, which may be either list; cheap when few come back, and when all do."""
    if not heap:
        entries.sort()
        return entries
    if len(entries) > len(heap):
        heap.extend(entries)
        heapq.heapify(heap)
    else:
        for entry in entries:
            heapq.heappush(heap, entry)
    return heap


def unlogged_runs(entries: list[Returned]) -> Iterator[list[Returned]]:
    """Of entries in order, those that the store does not have, as runs of consecutive ids."""
    run: list[Returned] = []
    for entry in entries:
        if entry[3] & LOGGED:
            continue
        if run and entry[0] != run[-1][0] + 1:
            yield run
            run = []
        run.append(entry)
    if run:
        yield run


def take(
    heap: list[Returned], max_count: int, max_bytes: int, below_seq: int = NO_SEQ
) -> DeliveryRun:
    """Remove messages from the head that have the first one's kind and redelivered flag, and ids below `below_seq`.

    The first has to be below it and is always taken; more are until a limit is reached.
    """
    kind, redelivered = heap[0][3:]
    if max_count >= len(heap) > 1 and (run := _take_all(heap, max_bytes, below_seq)) is not None:
        return run
    seqs: list[int] = []
    messages: list[Message] = []
    expiries: list[int] = []
    size = 0
    while heap and len(seqs) < max_count and (size < max_bytes or not seqs):
        head = heap[0]
        if head[3] != kind or head[4] != redelivered or head[0] >= below_seq:
            break
        heapq.heappop(heap)
        seqs.append(head[0])
        messages.append(head[1])
        expiries.append(head[2])
        size += head[1].size
    return DeliveryRun(seqs, messages, size, kind, redelivered, expiries if any(expiries) else None)


def _take_all(heap: list[Returned], max_bytes: int, below_seq: int) -> DeliveryRun | None:
    """Remove everything, in order, if it may go together: what came back as a run leaves as one."""
    kind, redelivered = heap[0][3:]
    seqs, messages, expiries, kinds, flags = zip(*sorted(heap), strict=True)
    size = body_bytes(messages)
    is_reached_before = size - messages[-1].size >= max_bytes
    count = len(seqs)
    is_alike = kinds.count(kind) == count and flags.count(redelivered) == count
    if seqs[-1] >= below_seq or is_reached_before or not is_alike:
        return None
    heap.clear()
    due = list(expiries) if any(expiries) else None
    return DeliveryRun(seqs, list(messages), size, kind, redelivered, due)
