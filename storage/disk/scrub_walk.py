"""What the scrubber reads, in which order, and what it says of what it finds.

The queues, segment by segment (`storage.queue.verify`); of the shared stores what frames the records, which are read
with the queues that they are in, once a pass however many those are; the commit log. What fails its check is a
suspicion: the disk thread looks again under the lock, and only what fails then is set aside.

State owned: where it is, the damaged files, which messages of the shared stores were looked at in this pass. Called by
`storage.disk.scrub` on the reader thread. Invariants: the lock is held for a view of one segment, never while anything
is read; a refused read raises and says nothing about the bytes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from burrowmq.records import NamedTuple
from burrowmq.storage.directory.context import StoreContext
from burrowmq.storage.disk.counters import Counters
from burrowmq.storage.disk.reader import Reader
from burrowmq.storage.errors import ReadFailed, error_text
from burrowmq.storage.log.commit_log import DIRECTORY as LOG_DIRECTORY
from burrowmq.storage.queue.disk import QueueDisk
from burrowmq.storage.queue.record_reader import RecordReader
from burrowmq.storage.queue.verify import verify
from burrowmq.storage.queue.view import SegmentView
from burrowmq.storage.shared.vhost_store import VhostStore

STEP_BYTES: Final = 512
"""What a step counts for at least."""
# What the frame of a shared segment counts for.
_FRAME_BYTES: Final = 4096
# So many damaged files are named.
_FILES_KEPT: Final = 100
# In place of a queue's id: the files of a shared store, the commit log.
_STORE: Final = -1
_LOG: Final = -2


class Place(NamedTuple):
    """A queue, a shared store or the commit log, and in a queue the segment."""

    queue_id: int
    directory: str
    segment: int = 0


def _nothing() -> None:
    return None


class ScrubWalk:
    """See the module."""

    def __init__(
        self,
        context: StoreContext,
        queues: Mapping[int, QueueDisk],
        reader: Reader,
        counters: Counters,
        why_unjudged: Callable[[int], str],
        lock: threading.Lock,
    ) -> None:
        self.at = Place(0, "")
        self.tell_found: Callable[[], None] = _nothing
        self._context = context
        self._queues = queues
        self._reader = reader
        self._counters = counters
        self._why_unjudged = why_unjudged
        self._lock = lock
        # Places of the shared stores that were whole in this pass, by vhost and segment.
        self._seen: dict[tuple[str, int], int] = {}
        self._damaged: dict[str, str] = {}
        self._damaged_before: dict[str, str] = {}

    # -- a pass ---------------------------------------------------------------------------------------------------

    def begin_pass(self) -> None:
        """Everything is looked at again."""
        self._seen.clear()
        self._damaged_before, self._damaged = self._damaged, {}

    def end_pass(self) -> None:
        """What was damaged before and is not any more is forgotten."""
        self._seen.clear()
        self._damaged_before = {}
        self.at = Place(0, "")

    def units(self) -> list[tuple[str, int]]:
        """Give all that there is to read now, as (directory, id)."""
        context = self._context
        found = [
            (queue.directory, queue_id)
            for queue_id, queue in dict(self._queues).items()
            if queue.index.numbers
        ]
        for vhost in context.vhosts():
            stores = (vhost.persistent, vhost.transient)
            found += [(store.options.directory, _STORE) for store in stores]
        if context.log is not None:
            found.append((f"{context.data_dir}/{LOG_DIRECTORY}", _LOG))
        return found

    def directory_of(self, queue_id: int) -> str:
        """Give where an open queue lies; nothing for one that is gone."""
        queue = self._queues.get(queue_id)
        return queue.directory if queue is not None else ""

    def weigh(self) -> int:
        """About how many bytes a pass reads."""
        total = sum(
            store.live_bytes
            for vhost in self._context.vhosts()
            for store in (vhost.persistent, vhost.transient)
        )
        for queue in list(self._queues.values()):
            for segment in list(queue.index.segments.values()):
                total += STEP_BYTES + 32 * segment.used
                total += segment.store_end * segment.live // max(segment.used, 1)
        return total

    @property
    def position(self) -> str:
        """Where it is, in words."""
        queue = self._queues.get(self.at.queue_id)
        if queue is None:
            return self.at.directory.removeprefix(f"{self._context.data_dir}/")
        names = queue.names
        return f"queue '{names.name}' in vhost '{names.vhost}', segment {self.at.segment}"

    @property
    def damaged_files(self) -> tuple[tuple[str, str], ...]:
        """The damaged files that it knows of, and what is wrong with them."""
        return tuple({**self._damaged_before, **self._damaged}.items())

    # -- one queue, or store --------------------------------------------------------------------------------------

    # -- one queue ------------------------------------------------------------------------------------------------

    def slices(self, place: Place) -> Iterator[int]:
        """Check all of it, a queue from a segment on; gives the bytes of each slice. Raises ReadFailed."""
        self.at = place
        if place.queue_id == _STORE:
            return self._slices_of_store(place.directory)
        if place.queue_id == _LOG:
            return self._slices_of_log()
        return self._slices_of_queue(*place)

    def _slices_of_store(self, directory: str) -> Iterator[int]:
        """Check what frames the records of a shared store: headers and seals. Its records are checked by queue."""
        stores = {
            one.options.directory: one
            for vhost in self._context.vhosts()
            for one in (vhost.persistent, vhost.transient)
        }
        store = stores.get(directory)
        for path in store.paths() if store is not None else ():
            assert store is not None
            try:
                with self._lock:
                    frame = store.frame_of(path)
                what = frame() if frame is not None else ""
                if what and frame is not None and frame():  # at the second look too
                    self._note_damaged(path, what)
            except (
                FileNotFoundError
            ):  # removed meanwhile, or missing: whoever reads a record of it is told
                continue
            except OSError as error:
                raise ReadFailed(error_text(error, path)) from error
            yield _FRAME_BYTES

    def _slices_of_log(self) -> Iterator[int]:
        """Check the commit log; all that it has is in memory, too, and is written anew when it is damaged."""
        log = self._context.log
        try:
            for size, what in log.groups.damage() if log is not None else ():
                if what:
                    with self._lock:
                        self._context.renew_log()
                    self._context.observer.file_damaged(
                        f"{self._context.data_dir}/{LOG_DIRECTORY}", f"{what}: it is written anew"
                    )
                    self._counters.scrub_renewed += 1
                    self.tell_found()
                yield size
        except OSError as error:
            raise ReadFailed(error_text(error, LOG_DIRECTORY)) from error

    def _slices_of_queue(self, queue_id: int, directory: str, first: int) -> Iterator[int]:
        queue = self._queue_of(queue_id, directory)
        for number in list(queue.index.numbers) if queue is not None else ():
            if number < first:
                continue
            self.at = Place(queue_id, directory, number)
            with self._lock:
                taken = self._view(queue_id, directory, number)
            if taken is None:
                continue
            view, reader, vhost = taken
            base = number * self._context.options.segment_entry_count
            for one in verify(view, reader, partial(self._check_shared, vhost)):
                for slot, reason in one.bad:
                    self._reader.suspect(queue_id, base + slot, reason)
                    self.tell_found()
                yield max(one.size, STEP_BYTES)
            self._take_problems(queue_id, view)

    def _queue_of(self, queue_id: int, directory: str) -> QueueDisk | None:
        queue = self._queues.get(queue_id)
        return queue if queue is not None and queue.directory == directory else None

    def _view(
        self, queue_id: int, directory: str, number: int
    ) -> tuple[SegmentView, RecordReader, VhostStore] | None:
        """Under the lock: a view of a segment; None when it is gone. Raises ReadFailed."""
        queue = self._queue_of(queue_id, directory)
        segment = queue.index.segments.get(number) if queue is not None else None
        if queue is None or segment is None or not segment.live:
            return None
        reason = self._why_unjudged(queue_id)
        if reason:
            raise ReadFailed(f"nobody knows what is on disk: {reason}")
        try:
            view = segment.files.view(segment)
        except FileNotFoundError:  # whoever reads it is told of each message
            self._note_damaged(segment.files.path(number), "missing")
            return None
        except OSError as error:
            raise ReadFailed(error_text(error, queue.directory)) from error
        reader = queue.place.reader._replace(is_checked=True)
        return view, reader, self._context.vhost(queue.vhost)

    def _check_shared(self, vhost: VhostStore, handles: Sequence[int]) -> tuple[list[bool], int]:
        """Check messages of the shared store, each once a pass however many queues it is in."""
        fresh = [handle for handle in handles if not self._is_seen(vhost, handle)]
        found = dict(zip(fresh, vhost.read(fresh), strict=True)) if fresh else {}
        size = 0
        for handle, one in found.items():
            if one is not None:
                size += len(one[1])
                place = vhost.directory, handle >> 32
                self._seen[place] = self._seen.get(place, 0) | 1 << (handle & 0xFFFF_FFFF)
        return [handle not in found or found[handle] is not None for handle in handles], size

    def _is_seen(self, vhost: VhostStore, handle: int) -> bool:
        seen = self._seen.get((vhost.directory, handle >> 32), 0)
        return bool(seen >> (handle & 0xFFFF_FFFF) & 1)

    def _note_damaged(self, path: str, what: str) -> None:
        if path not in self._damaged and path not in self._damaged_before:
            self._context.observer.file_damaged(path, what)
        if len(self._damaged) < _FILES_KEPT:
            self._damaged[path] = what

    def _take_problems(self, queue_id: int, view: SegmentView) -> None:
        """What is wrong with a segment's files, and with no message of it."""
        for problem in view.problems:
            self._note_damaged(*problem)
        if view.has_lost_acks:
            self._reader.miss_acks(queue_id, view.number, view.generation, view.lost_acks)
            self.tell_found()
