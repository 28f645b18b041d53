"""Messages whose sync failed, written again: from memory, or as they can still be read.

State: none. Called by the writer on the disk thread, under its lock, after the shared store gave up the files whose
fdatasync failed. Invariants: an entry is changed only while it is live; the old handle loses exactly the references
that the new one gets. Source: fsync semantics of Linux: after a failed sync the pages count as clean, so that syncing
again would report success for lost data.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from storage.batch import Append
from storage.errors import StorageError
from storage.queue_convert import prepare, publish, sync
from storage.queue_disk import QueueDisk
from storage.queue_segment import Segment, bits_of, slots_of
from storage.types import CarriedMessage, StoredMessage, StoreObserver
from storage.vhost_store import VhostStore, forget_handles


@dataclass(slots=True)
class _Place:
    """A live entry that names a given-up handle."""

    queue: QueueDisk
    segment: Segment
    slot: int


def messages_of(
    queue: QueueDisk, segment: Segment, runs: Iterable[Append]
) -> dict[int, StoredMessage]:
    """Give the messages in memory that lie in a segment, by place."""
    entry_count = queue.index.entry_count
    base = segment.number * entry_count
    return {
        slot: message
        for run in runs
        for slot, message in enumerate(run.messages, run.first_seq - base)
        if 0 <= slot < entry_count
    }


def rewrite_v1(
    queue: QueueDisk, failed: set[str], runs: Iterable[Append], observer: StoreObserver
) -> None:
    """Write the version 1 segments anew whose file or journal may not be what was written. Raises StorageError."""
    files = queue.files_v1()
    files.take_back()
    segments = [
        segment
        for segment in queue.segments_v1()
        if files.files.path(segment.number) in failed or files.is_in_journal(segment)
    ]
    filesystem = queue.cache.filesystem
    prepared = [
        prepare(queue, segment, 1, messages_of(queue, segment, runs)) for segment in segments
    ]
    sync(filesystem, prepared)
    publish(filesystem, prepared, observer)
    files.abandon()
    if queue.durable:
        try:
            filesystem.fsync_dir(queue.directory)
        except OSError as error:
            raise StorageError(f"{queue.directory}: {error}") from error


def append_again(
    store: VhostStore,
    ranges: Sequence[tuple[int, int]],
    queues: Sequence[QueueDisk],
    in_memory: Iterable[StoredMessage],
) -> None:
    """Append what given-up handles hold once more and let the entries name the new ones.

    A batch may be half applied: messages in memory whose entries are still to be written count too. Raises WriteFailed
    or SyncFailed. A message that is neither in memory nor readable keeps its old handle.
    """
    places = _places(queues, ranges)
    messages = {
        message.handle: message
        for message in in_memory
        if message.handle in places
        or (_is_in(message.handle, ranges) and store.contains(message.handle))
    }
    for handle in places.keys() - messages.keys():
        entry = store.read([handle])[0]
        if entry is not None:
            messages[handle] = CarriedMessage(*entry)
    old_handles = sorted(messages)
    again = [messages[handle] for handle in old_handles]
    if not again:
        return
    refs = [store.store_of(handle).refs_of(handle) for handle in old_handles]
    forget_handles(again)
    store.append(again)
    for old, message, count in zip(old_handles, again, refs, strict=True):
        for place in places.get(old, ()):
            queue = place.queue
            entry_columns = queue.load(place.segment.number, place.slot, place.slot)
            new = entry_columns._replace(locations=array("Q", [message.handle]))
            queue.relocate(place.segment, place.slot, new)
        store.add_refs([message] * (count - 1))
        store.drop_refs([old] * count)


def _places(
    queues: Sequence[QueueDisk], ranges: Sequence[tuple[int, int]]
) -> Mapping[int, list[_Place]]:
    """Find the live entries that name a handle in one of the ranges."""
    places: dict[int, list[_Place]] = {}
    for queue in queues:
        for segment in queue.index.segments.values():
            if not segment.shared:
                continue
            columns = queue.columns_of(segment)
            for slot in slots_of(segment.live_mask() & bits_of(columns.kinds)):
                handle = columns.locations[slot]
                if _is_in(handle, ranges):
                    places.setdefault(handle, []).append(_Place(queue, segment, slot))
    return places


def _is_in(handle: int, ranges: Sequence[tuple[int, int]]) -> bool:
    return any(first <= handle <= last for first, last in ranges)
