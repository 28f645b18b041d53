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

FEW = 64
SHARE = 32
"""Whether all that is left leaves together is looked at once a run: at its begin where these are `FEW`, else after one
in `SHARE` of them has left message by message. So the look, which sorts them all, costs each message that has left no
more than a constant, also where the others differ or are too many bytes."""


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
    seqs: list[int] = []
    messages: list[Message] = []
    expiries: list[int] = []
    size = 0
    trial = -1
    if max_count >= len(heap) > 1:
        trial = 0 if len(heap) <= FEW else len(heap) // SHARE
    while heap and len(seqs) < max_count and (size < max_bytes or not seqs):
        head = heap[0]
        if head[3] != kind or head[4] != redelivered or head[0] >= below_seq:
            break
        if len(seqs) == trial and _may_all_go(rest := sorted(heap), max_bytes - size, below_seq):
            heap.clear()
            more_seqs, more_messages, more_expiries, _, _ = zip(*rest, strict=True)
            seqs += more_seqs
            messages += more_messages
            expiries += more_expiries
            size += body_bytes(more_messages)
            break
        heapq.heappop(heap)
        seqs.append(head[0])
        messages.append(head[1])
        expiries.append(head[2])
        size += head[1].size
    return DeliveryRun(seqs, messages, size, kind, redelivered, expiries if any(expiries) else None)


def _may_all_go(entries: list[Returned], max_bytes: int, below_seq: int) -> bool:
    """Whether these, in order, may leave as one run: what came back as one does."""
    kind, redelivered = entries[0][3:]
    _, messages, _, kinds, flags = zip(*entries, strict=True)
    count = len(entries)
    return (
        entries[-1][0] < below_seq
        and kinds.count(kind) == count
        and flags.count(redelivered) == count
        and body_bytes(messages) - messages[-1].size < max_bytes
    )
