"""Queues on their way from one version of their files to the other, some segments at a time.

A queue whose version changes keeps working: its new segments are of the new version at once, the others are written
anew between the commits (`storage.queue.convert`). The newest comes first, because it is still written to. When the
version changes back on the way, segments that were not written anew yet stay as they are. A deletion ends a
conversion. A start goes on with what is left: the segments' files tell their version.

State: the queues that have segments of another version than theirs, and the slice under way. Called by
`storage.disk.jobs` on the disk thread: `begin`, then a sync and `begin` again as long as it says so, then `prepare`, a
sync of the new files, `put_in_place`.

Invariants: a version 1 segment is written anew only when no journal says anything about its queue; a slice is bounded
in segments and bytes, so that a commit never waits long.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from burrowmq.storage.directory.context import StoreContext
from burrowmq.storage.disk.counters import Counters
from burrowmq.storage.errors import DiskFull, StorageError
from burrowmq.storage.files.cache import new_file_error, write_error
from burrowmq.storage.files.filesystem import File
from burrowmq.storage.names import NAME_FILE, pack_names
from burrowmq.storage.queue.convert import Prepared, abandon, prepare, put_in_place
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
        self._looked_at: QueueDisk | None = None
        self._context = context
        self._counters = counters
        self._queues: dict[QueueDisk, None] = {}
        self._chosen: list[tuple[QueueDisk, Segment]] = []
        self._prepared: list[Prepared] = []

    @property
    def queues(self) -> list[QueueDisk]:
        """Those that are not done."""
        return list(self._queues)

    @property
    def queue_count(self) -> int:
        """Queues that are not done."""
        return len(self._queues)

    def set_version(self, queue: QueueDisk, version: int) -> None:
        """A queue is to be of this version, now or in time."""
        queue.set_version(version)
        # Also when it has no segment of another version: its name file has to say the new one.
        self._queues[queue] = None

    def discard(self, queue: QueueDisk) -> None:
        """A queue is deleted, or cannot be converted any further."""
        self._queues.pop(queue, None)

    def begin(self) -> bool:
        """Choose the segments of a slice; True when journals or names need a sync before. Raises StorageError.

        A queue that the disk refuses what has to be done before stays as it is until the next start.
        """
        self._chosen = []
        try:
            return self._choose()
        except DiskFull:
            raise
        except StorageError:
            if self._looked_at is not None:
                self.discard(self._looked_at)
            raise

    def _choose(self) -> bool:
        is_waiting = False
        size = 0
        refused = self._refused()
        for queue in list(self._queues):
            if queue in refused:
                continue
            self._looked_at = queue
            if queue.place.cache.is_waiting(queue.directory):
                is_waiting = True  # more old files that stay until then would fill the disk
                continue
            if queue.is_conversion_held_up:
                queue.flush_journals()
                is_waiting = is_waiting or queue.is_conversion_held_up
            found = self._candidates(queue)
            if not found and not queue.is_conversion_held_up:
                self._finish(queue)
            for segment in found:
                if segment.live:
                    self._chosen.append((queue, segment))
                    size += segment.store_end
                elif not queue.is_conversion_held_up:
                    queue.remove(segment)
                if size >= _SLICE_BYTES or len(self._chosen) >= self._context.options.convert_slice:
                    return is_waiting
        return is_waiting

    @staticmethod
    def _candidates(queue: QueueDisk) -> list[Segment]:
        """Give the segments that are not of the queue's version, the tail first."""
        found = queue.segments_elsewhere()
        return [*found[-1:], *found[:-1]]

    def prepare(self) -> list[Prepared]:
        """Write the chosen segments aside. Raises StorageError, and has then given them up."""
        self._prepared = []
        try:
            for queue, segment in self._chosen:
                if segment.live and queue not in self._refused():
                    self._prepared.append(prepare(segment, queue.files, None))
        except StorageError:
            self.abandon()
            raise
        return self._prepared

    def abandon(self) -> None:
        """Give up what was prepared."""
        for one in self._prepared:
            abandon(one)
        self._prepared = []

    def put_in_place(self) -> None:
        """The prepared files are durable: they count from now on. Raises StorageError."""
        prepared, self._prepared = self._prepared, []
        put_in_place(self._context.filesystem, prepared, self._context.observer)
        self._counters.converted_segments += len(prepared)

    def give_up_chosen(self) -> None:
        """The queues of this slice stay as they are, with segments of both versions, until the next start."""
        for queue, _ in self._chosen:
            self.discard(queue)

    def _finish(self, queue: QueueDisk) -> None:
        """Say in a new name file which version the queue is of: a backup may share the old one."""
        path = f"{queue.directory}/{NAME_FILE}"
        aside = f"{path}.tmp"
        data = pack_names(queue.names, queue.version)
        cache = queue.place.cache
        try:
            if not queue.is_made or cache.get(path).pread(len(data), 0) == data:
                self.discard(queue)
                return
            file = cache.create(aside, is_synced=False)
            file.pwrite(data, 0)
            self.discard(queue)  # it is not tried again, whether what follows fails or not
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


def _sync(file: File) -> None:
    """Make a new file durable. Raises SyncFailed: nothing is lost then, the old file stays in use."""
    try:
        file.fdatasync()
    except OSError as error:
        raise new_file_error(file.path, error) from error
