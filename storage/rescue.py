"""Messages whose sync failed, written again from memory.

State: none. Called by the writer on the disk thread, under its lock, after the shared store gave up the files whose
fdatasync failed. Invariants: an entry is changed only while it is live and still names the handle that was given up; the
old handle loses exactly the references that the new one gets. Source: fsync semantics of Linux: after a failed sync the
pages count as clean, so that syncing again would report success for lost data.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence

from storage.batch import Append
from storage.queue_disk import QueueDisk
from storage.queue_index import KIND_SHARED, Segment
from storage.record import ENTRY_PRESENT
from storage.types import StoredMessage
from storage.vhost_store import VhostStore, forget_handles


def messages_of(
    queue: QueueDisk, segment: Segment, runs: Sequence[Append]
) -> dict[int, StoredMessage]:
    """Give the messages in memory that lie in a segment, by place."""
    base = segment.number * queue.index.entry_count
    found: dict[int, StoredMessage] = {}
    for run in runs:
        for slot, message in enumerate(run.messages, run.first_seq - base):
            if 0 <= slot < queue.index.entry_count:
                found[slot] = message
    return found


def append_again(
    store: VhostStore,
    ranges: Sequence[tuple[int, int]],
    queues: Mapping[int, QueueDisk],
    runs: Mapping[int, Sequence[Append]],
) -> None:
    """Append the messages of given-up handles again and let the index entries name the new ones. Raises WriteFailed."""
    old_handles: dict[int, int] = {}
    again: list[StoredMessage] = []
    for queue_id in queues:
        for run in runs.get(queue_id, ()):
            for message in run.messages:
                handle = message.handle
                is_given_up = any(first <= handle <= last for first, last in ranges)
                if is_given_up and id(message) not in old_handles:
                    old_handles[id(message)] = handle
                    again.append(message)
    if not again:
        return
    forget_handles(again)
    store.append(again)
    moved = dict.fromkeys(old_handles, 0)
    for queue_id, queue in queues.items():
        for run in runs.get(queue_id, ()):
            for seq, message in enumerate(run.messages, run.first_seq):
                old = old_handles.get(id(message))
                if old is not None and _relocate(queue, seq, old, message):
                    moved[id(message)] += 1
    for message in again:
        count = moved[id(message)]
        if count:
            store.add_refs([message] * (count - 1))
            store.drop_refs([old_handles[id(message)]] * count)
        else:  # elided, or acked since
            store.drop_refs([message.handle])
            message.handle = old_handles[id(message)]


def _relocate(queue: QueueDisk, seq: int, old: int, message: StoredMessage) -> bool:
    """Let a live entry name its message's new handle; False when it is not there."""
    number, slot = divmod(seq, queue.index.entry_count)
    segment = queue.index.segments.get(number)
    if segment is None or not segment.live_mask() >> slot & 1:
        return False
    columns = queue.index.load(number, slot, slot)
    is_its = columns.kinds[0] == KIND_SHARED and columns.locations[0] == old
    if columns.statuses[0] != ENTRY_PRESENT or not is_its:
        return False
    queue.index.relocate(segment, slot, columns._replace(locations=array("Q", [message.handle])))
    return True
