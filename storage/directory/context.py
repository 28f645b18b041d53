"""What belongs to one data directory: its layout, its identity, and the vhosts and queues in it.

    STORE.json                     identity and the recorded limits
    commit_log/0.log  1.log        small queues, and small writes to others (storage.log)
    CLEAN  terms                   only between a clean stop and the next start
    definitions.db                 durable definitions
    quarantine/                    copies of bad bytes
    scrub.json                     how far the scrubber is
    vhosts/<hash>/.vhost_name      whose
      msg_store_persistent/  msg_store_transient/    shared stores
      queues/<hash>[-<level>]/     durable queues: .queue_name, N.qi, N.qs (version 2), N.idx, N.jif (version 1)
      transient/<hash>/            other queues; removed at every start, like the transient store

State: the open files, the vhosts' stores, the recovered queues that nobody opened yet. Called by recovery, then by the
writer on the disk thread, but for `find_recovered` and `note_opened` (`Writer.bind`). Invariants: a directory's name is
durable before anything in it is reported durable; a deleted queue's directory is durably gone before another of the
same name is made.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import field
from operator import attrgetter

from burrowmq.records import dataclass
from burrowmq.storage import real_time as time
from burrowmq.storage.directory.definition_store import DefinitionStore
from burrowmq.storage.directory.removals import Removals
from burrowmq.storage.directory.terms import (
    FILE_SIZE_KEY,
    SEGMENT_MARGIN,
    RecordedStore,
    reserve_segments,
)
from burrowmq.storage.errors import (
    DirectoryFailed,
    DiskFull,
    StorageError,
    SyncFailed,
    WriteFailed,
    error_text,
)
from burrowmq.storage.files.cache import NO_ROOM, FileCache, new_file_error, write_error
from burrowmq.storage.files.filesystem import FileSystem
from burrowmq.storage.log.commit_log import DIRECTORY as LOG_DIRECTORY
from burrowmq.storage.log.files import is_small
from burrowmq.storage.log.filesystem import LogFileSystem
from burrowmq.storage.names import QueueNames, level_in, vhost_directory
from burrowmq.storage.queue.directory import directory_at
from burrowmq.storage.queue.disk import QueueDisk
from burrowmq.storage.queue.journal_limits import JournalLimits
from burrowmq.storage.shared.store import MessageStore, MessageStoreOptions
from burrowmq.storage.shared.vhost_store import TRANSIENT_SEGMENTS, VhostStore
from burrowmq.storage.types import LoadMessage, RecoveredQueue, StoreObserver, StoreOptions

VHOST_NAME_FILE = ".vhost_name"
GONE = ".gone"
"""How the name of a directory ends that was deleted and could not be removed."""


# What a vhost has for one run of the store only.
_OF_ONE_RUN = ("transient", "msg_store_transient", "msg_store_persistent/index")
# Open files that each shared store may have at least: it writes one and reads from another.
_FILES_MIN = 2
# What is shown of the shared stores, summed over vhosts; docs/storage.md says what bounds them.
_SHARED_COUNTERS = (
    "files",
    "total_bytes",
    "live_bytes",
    "live_messages",
    "appended_bytes",
    "copied_bytes",
    "compactions",
    "compaction_debt_bytes",
    "read_errors",
    "unreadable_records",
    "open_files",
)


# Each commit asks: no generator.
_UNSYNCED = attrgetter("persistent.unsynced_bytes")


def queue_files(open_files: int) -> int:
    """Give how many of `open_files` may be files of queues: two thirds; the shared stores have the rest."""
    return max(open_files - open_files // 3, 1)


def behind_files(open_files: int) -> int:
    """Give how many of those of queues the commit log may keep open until they are synced."""
    return open_files // 4


@dataclass(slots=True)
class StoreContext:
    """One data directory that is in use."""

    data_dir: str
    filesystem: FileSystem
    options: StoreOptions
    observer: StoreObserver
    load_message: LoadMessage
    recorded: RecordedStore
    definitions: DefinitionStore
    cache: FileCache
    # By directory, because the file that names a queue may be damaged.
    recovered: dict[str, tuple[QueueDisk, RecoveredQueue]] = field(default_factory=dict)
    journals: JournalLimits = field(default_factory=JournalLimits)
    log: LogFileSystem | None = None
    # An index could not be read, and references were not given back for that reason.
    is_miscounted: bool = False
    removals: Removals = field(default_factory=Removals)
    leftover_trees: list[str] = field(default_factory=list)
    _vhosts: dict[str, VhostStore] = field(default_factory=dict)

    # -- vhosts ---------------------------------------------------------------------------------------------------

    def vhost_dir(self, vhost: str) -> str:
        """Give a vhost's directory."""
        return f"{self.data_dir}/vhosts/{vhost_directory(vhost)}"

    def vhosts(self) -> list[VhostStore]:
        """The vhosts that have a store."""
        return list(self._vhosts.values())

    def vhost(self, vhost: str) -> VhostStore:
        """Give a vhost's stores, made if need be. Raises WriteFailed or SyncFailed."""
        store = self._vhosts.get(vhost)
        if store is None:
            try:
                store = self._make_vhost(vhost)
            except (
                DiskFull,
                DirectoryFailed,
            ):  # a second sync of a directory says nothing of its names
                raise
            except (WriteFailed, OSError):  # one call that fails ends no store
                store = self._make_vhost(vhost)
            self.adopt_vhost(store)
        return store

    def _make_vhost(self, vhost: str) -> VhostStore:
        self._make_vhost_dir(vhost)
        store = self.build_vhost(vhost)
        store.persistent.open_empty(self.recorded.first_segment)
        return store

    def has_vhost(self, vhost: str) -> bool:
        """Tell whether a vhost's stores are in use."""
        return vhost in self._vhosts

    def build_vhost(self, vhost: str) -> VhostStore:
        """Give a vhost's stores, the persistent one not opened yet."""
        directory = self.vhost_dir(vhost)
        persistent = self._message_store(f"{directory}/msg_store_persistent", is_durable=True)
        transient = self._message_store(f"{directory}/msg_store_transient", is_durable=False)
        transient.open_empty(TRANSIENT_SEGMENTS)
        return VhostStore(vhost, directory, persistent, transient)

    def begin_vhost(self, vhost: str) -> VhostStore:
        """Wipe what a vhost that was there before this start has of that time only, and build its stores.

        Raises WriteFailed when something of it can be neither removed nor renamed: what is written from now on would
        have the same names.
        """
        directory = self.vhost_dir(vhost)
        for place in (directory, f"{directory}/queues", f"{directory}/msg_store_persistent"):
            self.take_leftovers(place)
        for place in (f"{directory}/{name}" for name in _OF_ONE_RUN):
            try:
                if self.filesystem.exists(place):
                    self._clear_away(place)
            except DiskFull:
                raise
            except WriteFailed as error:
                raise WriteFailed(
                    f"{place} can be neither removed nor renamed, and nothing in it is needed any more: remove it by"
                    f" hand ({error})"
                ) from error
        return self.build_vhost(vhost)

    def adopt_vhost(self, store: VhostStore) -> None:
        """Take a vhost's stores in."""
        self._vhosts[store.vhost] = store
        self._share_files()

    def _share_files(self) -> None:
        """Divide a third of the open files among the shared stores; the rest is for queues (`queue_files`)."""
        share = self.options.open_files // 3 // max(2 * len(self._vhosts), 1)
        for store in self._vhosts.values():
            for one in (store.persistent, store.transient):
                one.set_open_files(max(share, _FILES_MIN))

    def _message_store(self, directory: str, *, is_durable: bool) -> MessageStore:
        return MessageStore(
            self.filesystem,
            MessageStoreOptions(
                directory=directory,
                quarantine_directory=f"{self.data_dir}/quarantine",
                identity=self.recorded.identity,
                segment_size_limit=self.options.segment_size_limit,
                is_durable=is_durable,
                index=self.options.store_index,
            ),
        )

    def _make_vhost_dir(self, vhost: str) -> None:
        directory = self.vhost_dir(vhost)
        path = f"{directory}/{VHOST_NAME_FILE}"
        try:
            self.filesystem.mkdir(f"{directory}/queues")
            if self.filesystem.exists(path):
                self.filesystem.unlink(path)
            file = self.filesystem.create(path)
            file.pwrite(vhost.encode(), 0)
            file.fdatasync()
        except OSError as error:
            raise write_error(path, error) from error
        for changed in (directory, f"{self.data_dir}/vhosts", self.data_dir):
            try:
                self.filesystem.fsync_dir(changed)
            except OSError as error:
                if error.errno in NO_ROOM:
                    raise write_error(changed, error) from error
                raise DirectoryFailed(error_text(error, changed), changed) from error

    def delete_vhost(self, vhost: str) -> None:
        """Remove everything of a vhost."""
        store = self._vhosts.pop(vhost, None)
        if store is not None:
            next_segment = store.persistent.next_segment_no
            self.recorded.begin_above(next_segment)
            store.persistent.give_up()
            store.transient.give_up()
            self._share_files()
        directory = self.vhost_dir(vhost)
        for path in [path for path in list(self.recovered) if path.startswith(f"{directory}/")]:
            del self.recovered[path]
        self.remove_tree(directory)

    # -- queues ---------------------------------------------------------------------------------------------------

    def queue_dir(self, names: QueueNames, durable: bool) -> str:
        """Give a queue's directory."""
        kind = "queues" if durable else "transient"
        return f"{self.vhost_dir(names.vhost)}/{kind}/{names.directory}"

    def new_queue(self, names: QueueNames, durable: bool) -> QueueDisk:
        """Give the object of a queue that has nothing on disk yet."""
        self.vhost(names.vhost)
        return self.queue_at(names, self.queue_dir(names, durable), durable=durable)

    def queue_at(self, names: QueueNames, directory: str, *, durable: bool = True) -> QueueDisk:
        """Give the object of the queue in a directory."""
        identity, entry_count = self.recorded.identity, self.options.segment_entry_count
        place = directory_at(directory, identity, entry_count, self.cache, is_durable=durable)
        return QueueDisk(names, place, self.journals)

    def keep_recovered(self, queue: QueueDisk, found: RecoveredQueue) -> None:
        """Keep a recovered queue until somebody opens it."""
        found.version = queue.newest_version
        self.recovered[queue.directory] = (queue, found)

    def find_recovered(self, names: QueueNames) -> QueueDisk:
        """Give a recovered queue to whoever opens it: that tells its name, if its own file does not."""
        queue, _ = self.recovered[self.queue_dir(names, durable=True)]
        queue.name_again(names)
        return queue

    def note_opened(self, queue: QueueDisk) -> None:
        """Somebody has opened a recovered queue."""
        del self.recovered[queue.directory]

    def unopened(self) -> list[QueueDisk]:
        """The recovered queues that nobody opened."""
        return [queue for queue, _ in list(self.recovered.values())]

    def take_unclaimed(self, kept: Collection[tuple[str, str]]) -> list[QueueDisk]:
        """Give the recovered queues that nobody opened, but for these: a vhost, and the name of a directory."""
        unclaimed = [
            queue
            for queue in self.unopened()
            if (queue.vhost, queue.directory.rpartition("/")[2]) not in kept
        ]
        for queue in unclaimed:
            del self.recovered[queue.directory]
        return unclaimed

    def take_namesakes(self, names: Collection[tuple[str, str]]) -> list[QueueDisk]:
        """Give the recovered queues of these names (vhost, queue) that nobody opened, all levels of them.

        They are known by their directories: what they are called may not be.
        """
        levels = {level_in(queue.directory) for queue in self.unopened()} if names else set()
        every = [QueueNames(*one, level) for one in names for level in levels]
        found = [self.recovered.pop(self.queue_dir(one, durable=True), None) for one in every]
        return [one[0] for one in found if one is not None]

    def reserve_segments(self) -> None:
        """Reserve more segment numbers when a shared store comes near the last reserved one. Raises WriteFailed.

        Not at a start: one that ends before it appends anything, again and again, would use all of them up. Where
        there are none any more it raises StorageError: the next ones are those of transient messages.
        """
        highest = max((store.persistent.next_segment_no for store in self.vhosts()), default=0)
        if highest + SEGMENT_MARGIN > TRANSIENT_SEGMENTS:
            raise StorageError(
                f"{self.data_dir}: the shared stores have no segment number left; write them anew with another"
                f" {FILE_SIZE_KEY}: `burrowmq-store --data-dir {self.data_dir} resegment --file-size N`"
            )
        if highest + SEGMENT_MARGIN >= self.recorded.ceiling:
            self.recorded.begin_above(highest)
            reserve_segments(self.filesystem, self.recorded)

    def remove_queue(self, queue: QueueDisk, *, is_defined: bool = False) -> None:
        """Remove a queue's directory. Raises WriteFailed or SyncFailed.

        `is_defined`: a start that comes before the next commit of definitions finds the queue declared.
        """
        if is_defined and queue.durable:
            self._remove_whole(queue.directory)
        else:
            self.remove_tree(queue.directory, is_synced=queue.durable)
        queue.forget()

    def _remove_whole(self, directory: str) -> None:
        """Remove a directory so that a crash leaves all of it or nothing. Raises WriteFailed or SyncFailed.

        Some files of a queue without the others would be messages without their acks. Where there is no room for the
        new name, definitions have none either.
        """
        before = len(self.leftover_trees)
        for _ in range(2):
            try:
                self._set_apart(directory)
            except DiskFull:
                raise
            except WriteFailed:
                continue
            break
        self.remove_tree(directory)  # one that is in the log alone, too; makes the new name durable
        self._sweep_trees(before)

    def remove_tree(self, directory: str, *, is_synced: bool = True) -> None:
        """Remove a directory, durably. Raises WriteFailed or SyncFailed.

        What cannot be removed gets a name that nobody looks for, and goes at a later attempt or start.
        """
        self.cache.forget_tree(directory)
        parent = directory.rpartition("/")[0]
        self._clear_away(directory)
        if not is_synced:
            return
        try:
            self.filesystem.fsync_dir(parent)
        except FileNotFoundError:
            return
        except OSError as error:
            raise new_file_error(parent, error) from error

    def _clear_away(self, directory: str) -> None:
        try:
            self.filesystem.rmtree(directory)
        except OSError as error:
            if error.errno in NO_ROOM:
                raise write_error(directory, error) from error
            self._set_apart(directory)

    def _set_apart(self, directory: str) -> None:
        apart = f"{directory}.{time.time_ns()}{GONE}"
        try:
            self.filesystem.rename(directory, apart)
        except FileNotFoundError:
            return  # it went before the error, or the disk has never had it
        except OSError as error:
            raise write_error(directory, error) from error
        self.leftover_trees.append(apart)

    def sweep(self) -> None:
        """Remove what could not be removed before, as far as it can be now."""
        self.cache.sweep()
        for store in self._stores():
            store.sweep()
        self._sweep_trees()

    def _sweep_trees(self, first: int = 0) -> None:
        """Those from the first of these on: a deletion tries its own, however many are left of others."""
        leftovers, self.leftover_trees = self.leftover_trees[first:], self.leftover_trees[:first]
        for path in leftovers:
            try:
                self.filesystem.rmtree(path)
            except OSError:
                self.leftover_trees.append(path)

    def take_leftovers(self, directory: str) -> None:
        """At a start: what could not be removed from a directory by then. Raises OSError."""
        if self.filesystem.exists(directory):
            names = self.filesystem.listdir(directory)
            found = {f"{directory}/{name}" for name in names if name.endswith(GONE)}
            self.leftover_trees += sorted(found.difference(self.leftover_trees))

    @property
    def leftover_count(self) -> int:
        """Files and directories that should be gone and cannot be removed."""
        left = sum(store.leftover_count for store in self._stores())
        return self.cache.leftover_count + len(self.leftover_trees) + left

    def _stores(self) -> Iterator[MessageStore]:
        for vhost in self.vhosts():
            yield from (vhost.persistent, vhost.transient)

    # -- the whole ------------------------------------------------------------------------------------------------

    def note_miscounted(self) -> None:
        """References were not given back: a clean stop leaves no terms, so that the next start counts them."""
        self.is_miscounted = True

    def shared_stats(self) -> dict[str, int]:
        """Counters and sizes of the shared stores, summed over vhosts. Also called on the loop."""
        shared = dict.fromkeys(_SHARED_COUNTERS, 0)
        for vhost in self.vhosts():
            for store in (vhost.persistent, vhost.transient):
                found = store.stats()
                for name in shared:
                    shared[name] += found[name]
        return shared

    @property
    def has_noted(self) -> bool:
        """Whether the commit log has something to write of the commits so far."""
        return self.log is not None and self.log.groups.has_noted

    def write_log(self) -> None:
        """Write what the commit log has of the commits so far, so that it survives the process. Raises OSError."""
        if self.log is not None:
            self.log.write_noted()

    def look_at_grown(self) -> None:
        """Have small queues that have grown get files of their own, as each sync does. This syncs files."""
        if self.log is not None:
            self.log.look_at_grown()

    @property
    def is_log_full(self) -> bool:
        """Whether the commit log should begin its next generation, which a sync does."""
        return self.log is not None and self.log.is_full

    def renew_log(self) -> None:
        """The commit log is damaged: the next sync, which is due now, writes all that it has anew."""
        if self.log is not None:
            self.log.groups.renew()
            self.cache.dir_changed(f"{self.data_dir}/{LOG_DIRECTORY}")

    @property
    def is_packing_due(self) -> bool:
        """Whether many small queues take more memory than they need. Any thread."""
        return self.log is not None and self.log.is_packing_due

    def pack_small(self) -> None:
        """Let some small queues take less: their files are open for nobody, and cost nothing to open again."""
        if self.log is not None:
            self.cache.release_clean(is_small)
            self.log.pack_idle()

    def sync(self) -> None:
        """Sync the queues' files at a start or stop, when nothing can be written elsewhere. Raises SyncFailed."""
        failed = self.cache.sync()
        if failed:
            raise SyncFailed(", ".join(failed.values()))

    def release_clean_files(self) -> None:
        """Close every file that has no un-synced bytes."""
        self.cache.release_clean()
        for vhost in self.vhosts():
            vhost.release_files()

    def release(self) -> None:
        """Close all files, at the end: after a stop, clean or not, nobody uses them any more."""
        for vhost in self.vhosts():
            vhost.release_files()
            for store in (vhost.persistent, vhost.transient):
                store.give_up()
        self.cache.release()
        if self.log is not None:
            self.log.release()
        with suppress(StorageError):  # a clean stop has closed it, and said what it had to say
            self.definitions.close()

    def is_dirty(self) -> bool:
        """Tell whether anything written is not durable yet."""
        return bool(self.cache.dirty_count or any(map(_UNSYNCED, self._vhosts.values())))
