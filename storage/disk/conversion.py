"""Queues on their way from one version of their files to the other, some segments at a time.

A queue whose version changes keeps working: its new segments are of the new version at once, the others are written
anew between the commits (`storage.queue.convert`). The newest comes first, because it is still written to. When the
version changes back on the way, segments that were not written anew yet stay as they are. A deletion ends a
conversion. A start goes on with what is left: the segments' files tell their version.

What one queue's files refuse keeps no other from being converted. A segment that cannot be read, and all of a queue
whose new files the disk refuses, stay as they are until the next start, or until the version changes again. A queue
that finds no room, or whose journal does not go, comes behind the others.

State: the queues that have segments of another version than theirs, those that stay so, and the slice under way. Called
by `storage.disk.jobs` on the disk thread: `begin`, then a sync and `begin` again as long as it says so, then `prepare`,
a sync of the new files, `put_in_place`.

Invariants: a version 1 segment is written anew only when no journal says anything about its queue; a slice is bounded
in segments and bytes, so that a commit never waits long.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from burrowmq.storage.directory.context import StoreContext
from burrowmq.storage.disk.counters import Counters
from burrowmq.storage.errors import DiskFull, ReadFailed, StorageError, WriteFailed
from burrowmq.storage.files.cache import FileCache, as_storage_errors, new_file_error, write_error
from burrowmq.storage.files.filesystem import File
from burrowmq.storage.names import NAME_FILE, pack_names
from burrowmq.storage.queue.convert import Placed, Prepared, abandon, prepare, put_each_in_place
from burrowmq.storage.queue.disk import QueueDisk
from burrowmq.storage.queue.segment import Segment

# A slice ends when so many bytes were chosen.
_SLICE_BYTES = 8 * 1024 * 1024


class Conversion:
    """What is being converted."""

    def __init__(
        self,
        context: StoreContext,
        counters: Counters,
        refused: Callable[[], Collection[QueueDisk]] = tuple,
    ) -> None:
        """`refused` gives the queues that nothing is written anew of now."""
        self._refused = refused
        self._context = context
        self._counters = counters
        self._queues: dict[QueueDisk, None] = {}
        # Numbers of segments that cannot be converted, of queues that are not converted to the end.
        self._left: dict[QueueDisk, set[int]] = {}
        self._chosen: list[tuple[QueueDisk, Segment]] = []
        self._chosen_bytes = 0
        self._prepared: list[tuple[QueueDisk, Prepared]] = []

    @property
    def queues(self) -> list[QueueDisk]:
        """Those that are not done."""
        return list(self._queues)

    @property
    def queue_count(self) -> int:
        """Queues that are not done."""
        return len(self._queues)

    @property
    def left_count(self) -> int:
        """Queues that keep something of another version than theirs until the next start. Any thread."""
        return sum(_is_left(queue, numbers) for queue, numbers in list(self._left.items()))

    def set_version(self, queue: QueueDisk, version: int) -> None:
        """A queue is to be of this version, now or in time."""
        queue.set_version(version)
        # Also when it has no segment of another version: its name file has to say the new one.
        self._queues[queue] = None
        self._left.pop(queue, None)

    def discard(self, queue: QueueDisk) -> None:
        """A queue is deleted."""
        self._queues.pop(queue, None)
        self._left.pop(queue, None)

    def begin(self) -> bool:
        """Choose the segments of a slice; True when journals or names need a sync before."""
        self._chosen, self._chosen_bytes = [], 0
        is_waiting = False
        refused = self._refused()
        for queue in list(self._queues):
            if queue in refused:
                continue
            try:
                with as_storage_errors():
                    is_waiting = self._choose_of(queue) or is_waiting
            except DiskFull:
                self._put_off(queue)
                break
            except StorageError as error:
                self._give_up(queue, error)
            if self._is_slice:
                break
        return is_waiting

    @property
    def _is_slice(self) -> bool:
        limit = self._context.options.convert_slice
        return self._chosen_bytes >= _SLICE_BYTES or len(self._chosen) >= limit

    def _choose_of(self, queue: QueueDisk) -> bool:
        """Choose segments of a queue; True when it needs a sync before. Raises StorageError."""
        if queue.place.cache.is_waiting(queue.directory):
            return True  # more old files that stay until then would fill the disk
        if queue.is_conversion_held_up:
            queue.flush_journals()
        is_waiting = is_held_up = queue.is_conversion_held_up
        left = self._left.get(queue, ())
        found = [segment for segment in self._candidates(queue) if segment.number not in left]
        if not found and not is_held_up:
            if left:
                self._queues.pop(queue, None)
            else:
                self._finish(queue)
        for segment in found:
            if segment.live:
                self._chosen.append((queue, segment))
                self._chosen_bytes += segment.store_end
            elif not is_held_up:
                is_waiting = not self._is_removed(queue, segment) or is_waiting
            if self._is_slice:
                break
        return is_waiting

    @staticmethod
    def _is_removed(queue: QueueDisk, segment: Segment) -> bool:
        """Remove a segment without live entries; False when that needs a sync before. Raises StorageError."""
        path = segment.files.path(segment.number)
        try:
            queue.remove(segment)
        except DiskFull:
            raise
        except WriteFailed:
            if not queue.place.cache.stays(path):
                raise
            return False
        return True

    def _put_off(self, queue: QueueDisk) -> None:
        """Others go first."""
        if queue in self._queues:
            del self._queues[queue]
            self._queues[queue] = None

    def _leave(self, queue: QueueDisk, numbers: Iterable[int], error: StorageError) -> None:
        """Segments stay as they are until the next start; what that is for is said once for a queue."""
        if queue not in self._left:
            self._left[queue] = set()
            reason = f"not converted before the next start: {error}"
            self._context.observer.sync_failed(queue.directory, reason)
        self._left[queue].update(numbers)

    def _give_up(self, queue: QueueDisk, error: StorageError) -> None:
        """All of a queue that is not converted stays as it is until the next start."""
        self._queues.pop(queue, None)
        self._leave(queue, (segment.number for segment in queue.segments_elsewhere()), error)

    @staticmethod
    def _candidates(queue: QueueDisk) -> list[Segment]:
        """Give the segments that are not of the queue's version, the tail first."""
        found = queue.segments_elsewhere()
        return [*found[-1:], *found[:-1]]

    def prepare(self) -> list[Prepared]:
        """Write the chosen segments aside, as far as there is room, but for those that would need a sync before."""
        self._prepared = []
        refused = self._refused()
        for queue, segment in self._chosen:
            if not segment.live or queue not in self._queues or queue in refused:
                continue
            if queue.is_conversion_held_up or queue.place.cache.is_waiting(queue.directory):
                self._put_off(queue)
                continue
            try:
                with as_storage_errors():
                    self._prepared.append((queue, prepare(segment, queue.files, None)))
            except DiskFull:
                self._put_off(queue)
                break
            except ReadFailed as error:
                self._leave(queue, (segment.number,), error)
            except StorageError as error:
                self._give_up(queue, error)
        return [one for _, one in self._prepared]

    def put_in_place(self, failed: Sequence[StorageError | None]) -> Placed:
        """The prepared files count from now on, but for those whose sync failed."""
        prepared, self._prepared = self._prepared, []
        durable: list[Prepared] = []
        for (queue, one), error in zip(prepared, failed, strict=True):
            if error is None:
                durable.append(one)
            else:
                abandon(one)
                self._note(queue, error)
        placed = put_each_in_place(self._context.filesystem, durable, self._context.observer)
        for queue, one in prepared:
            if any(one is each for each in placed.without_room):
                self._put_off(queue)
        self._counters.converted_segments += placed.switched
        return placed

    def _note(self, queue: QueueDisk, error: StorageError) -> None:
        """New files of a queue failed, and are given up."""
        if isinstance(error, DiskFull):
            self._put_off(queue)
        else:
            self._give_up(queue, error)

    def _finish(self, queue: QueueDisk) -> None:
        """Say in a new name file which version the queue is of: a backup may share the old one."""
        path = f"{queue.directory}/{NAME_FILE}"
        aside = f"{path}.tmp"
        data = pack_names(queue.names, queue.version)
        cache = queue.place.cache
        try:
            if not queue.is_made or _says(cache, path, data):
                self._queues.pop(queue, None)
                return
            file = cache.create(aside, is_synced=False)
            file.pwrite(data, 0)
            del self._queues[queue]  # it is not tried again, whether what follows fails or not
            if queue.durable:
                _sync(file)
            self._context.filesystem.rename(aside, path)
        except OSError as error:
            raise write_error(path, error) from error
        finally:
            cache.forget(aside)
        cache.forget(path)
        if queue.durable:
            cache.dir_changed(queue.directory)


def _is_left(queue: QueueDisk, numbers: Collection[int]) -> bool:
    """Tell whether such segments are there still, or there were none but the file with the name."""
    return not numbers or any(one.number in numbers for one in queue.segments_elsewhere())


def _says(cache: FileCache, path: str, data: bytes) -> bool:
    """Tell whether a name file says this; one that is missing is written anew, like one that says anything else."""
    try:
        return cache.get(path).pread(len(data), 0) == data
    except FileNotFoundError:
        return False


def _sync(file: File) -> None:
    """Make a new file durable. Raises SyncFailed: nothing is lost then, the old file stays in use."""
    try:
        file.fdatasync()
    except OSError as error:
        raise new_file_error(file.path, error) from error
