"""Open files of all queues together: a bounded cache, and what has to be synced.

State: the open files by path, least recently used first, the files and directories that were written since their last
sync ("dirty"), the files that could not be removed, and those that stay until their directory's names are durable.
Called by the queues' files on the disk thread. The reader thread gets its files here too, under the lock of
`storage.disk.jobs`; it may go on reading one that is no longer in the cache, or unlinked, because a file closes with
its last reference.

Invariants: a dirty file stays open until it was synced, so that its sync hears of a write-back that failed; a sync that
failed is never tried again on that file. Stores, indexes and directories are synced together, in any order: nothing is
confirmed before all are, and recovery drops an index entry whose body is not there. A file that has taken another's
place is not removed before it is durable that that one is gone: alone, the other would count again.

Beside the cache stand the translations of the operating system's errors into the store's.
"""

from __future__ import annotations

import errno
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import NoReturn

from burrowmq.storage.errors import (
    DirectoryFailed,
    DiskFull,
    NoDescriptors,
    StorageError,
    SyncFailed,
    SyncFull,
    WriteFailed,
    error_text,
)
from burrowmq.storage.files.filesystem import NO_DESCRIPTORS, File, FileSystem

# Too many open files count as a full disk: that passes, too, and says nothing about the file.
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG}) | NO_DESCRIPTORS


def write_error(path: str, error: OSError) -> WriteFailed:
    """Translate a refused write."""
    if error.errno in NO_DESCRIPTORS:
        return NoDescriptors(error_text(error, path))
    kind = DiskFull if error.errno in NO_ROOM else WriteFailed
    return kind(error_text(error, path))


def new_file_error(path: str, error: OSError) -> StorageError:
    """Translate a failed sync of a file that is not in use yet, or of a directory: without room it is tried again."""
    if error.errno in NO_ROOM:
        return write_error(path, error)
    return SyncFailed(error_text(error, path))


def sync_error(path: str, error: OSError) -> SyncFailed:
    """Translate a failed sync of a file in use, which is not synced again."""
    is_full = error.errno in NO_ROOM and error.errno not in NO_DESCRIPTORS
    return (SyncFull if is_full else SyncFailed)(error_text(error, path))


class _Translation:
    """A block in which an OSError becomes a WriteFailed. It has no state: one does for all blocks and threads."""

    __slots__ = ()

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, where: object) -> None:
        if isinstance(error, OSError):
            raise write_error("", error) from error


_TRANSLATION = _Translation()


def as_storage_errors() -> _Translation:
    """Translate every OSError that nobody further in has handled. Each commit does it several times."""
    return _TRANSLATION


def open_file(filesystem: FileSystem, path: str) -> File:
    """Open a file, at the second attempt if need be. Raises OSError; NoDescriptors, which nobody takes for damage."""
    try:
        return filesystem.open(path)
    except OSError as error:
        if error.errno in NO_DESCRIPTORS:
            raise NoDescriptors(error_text(error, path)) from error
        if isinstance(error, FileNotFoundError):
            raise
    return filesystem.open(path)


def rename(filesystem: FileSystem, source: str, target: str) -> OSError | None:
    """Give a file another name; the error when nobody knows whether it has it. Raises OSError: it has not."""
    try:
        filesystem.rename(source, target)
    except OSError as error:
        try:
            is_there = filesystem.exists(source)
        except OSError:
            return error
        if is_there:
            raise
        return error
    return None


def parent_of(path: str) -> str:
    """Give the directory of a path."""
    return path.rpartition("/")[0]


def _nobodys(_: str) -> bool:
    return False


def _everybodys(_: File) -> bool:
    return True


BUFFER_BYTES = 512 * 1024
NOTHING: Mapping[File, str] = MappingProxyType({})


class FileCache:
    """Open files, at most `limit` of them that are clean.

    `buffer_bytes` and `is_checked` say how all queues' stores write and read: in pieces of what size, and whether the
    checksum of a message on its way to a consumer is verified.
    """

    def __init__(
        self,
        filesystem: FileSystem,
        limit: int,
        buffer_bytes: int = BUFFER_BYTES,
        is_checked: bool = True,
    ) -> None:
        self.filesystem = filesystem
        self.limit = limit
        self.buffer_bytes = buffer_bytes
        self.is_checked = is_checked
        self.syncs = 0
        self.was_full = False
        """Whether every file that the last sync failed for did so for want of room."""
        self.failed_directories: dict[str, str] = {}
        """Those of single queues (see `sync`) that the last sync failed for, and why."""
        self._open: OrderedDict[str, File] = OrderedDict()
        self._dirty_stores: dict[str, File] = {}
        self._dirty_indexes: dict[str, File] = {}
        self._dirty_dirs: dict[str, None] = {}
        self._leftovers: dict[str, str] = {}  # with what has taken their place, if that matters
        # The same of files that stay until a directory is durable, for each that found no room to become so.
        self._behind: dict[str, dict[str, str]] = {}
        # Files that stay until it is durable that what they took the place of is gone.
        self._alone: set[str] = set()

    def get(self, path: str) -> File:
        """Give the file at path, opened if need be. Raises OSError, or DiskFull while there is no descriptor for it."""
        file = self._open.get(path)
        if file is None:
            file = self._dirty_stores.get(path) or self._dirty_indexes.get(path)
            if file is None:
                file = self._open_anyway(path)
            self._keep(path, file)
        else:
            self._open.move_to_end(path)
        return file

    def create(self, path: str, is_synced: bool) -> File:
        """Create a file; is_synced: its name has to become durable. Raises WriteFailed."""
        try:
            file = self._create_anyway(path)
        except OSError as error:
            raise write_error(path, error) from error
        self._keep_name(path)
        self._keep(path, file)
        if is_synced:
            self._dirty_dirs[parent_of(path)] = None
        return file

    def _open_anyway(self, path: str) -> File:
        """Open; files that need not stay open make room for it."""
        try:
            return open_file(self.filesystem, path)
        except NoDescriptors:
            if not self.release_clean():
                raise
        return open_file(self.filesystem, path)

    def _create_anyway(self, path: str) -> File:
        try:
            return self.filesystem.create(path)
        except FileExistsError:
            # Names are used once: an attempt that failed left it, and it could not be unlinked then.
            self.filesystem.unlink(path)
        except OSError as error:
            if error.errno not in NO_DESCRIPTORS or not self.release_clean():
                raise
        return self.filesystem.create(path)

    def _keep(self, path: str, file: File) -> None:
        self._open[path] = file
        if len(self._open) > self.limit:
            self._open.popitem(last=False)

    def store_written(self, path: str, file: File) -> None:
        """A store file has bytes that are not durable."""
        self._dirty_stores[path] = file

    def index_written(self, path: str, file: File) -> None:
        """An index file has bytes that are not durable."""
        self._dirty_indexes[path] = file

    def dir_changed(self, path: str) -> None:
        """A directory has names that are not durable."""
        self._dirty_dirs[path] = None

    def unlink(self, path: str) -> None:
        """Remove a file and forget it; nothing happens when it is not there.

        Nor does it matter what was answered where the file is gone: nothing is to be written to one without a name.
        Raises WriteFailed: then the next sync still makes durable what was written to it, since a start may find it.
        """
        if self._leftovers or self._behind or self._alone:
            self._unlink_older(path)
        try:
            self.filesystem.unlink(path)
        except FileNotFoundError:
            self.forget(path)
            return
        except OSError as error:
            if self._may_be_there(path):
                raise write_error(path, error) from error
        self.forget(path)
        self._dirty_dirs[parent_of(path)] = None

    def _may_be_there(self, path: str) -> bool:
        """Whether a file is there all the same that was to be removed, or nobody can tell."""
        try:
            return self.filesystem.exists(path)
        except OSError:
            return True

    def _unlink_older(self, path: str) -> None:
        """Remove what a file has taken the place of. Raises WriteFailed, also until that is durable."""
        if path in self._behind.get(parent_of(path), {}).values():
            raise WriteFailed(f"{path}: it stays until there is room to sync its directory")
        for old in [old for old, by in self._leftovers.items() if by == path]:
            self.unlink(old)
            self._leftovers.pop(old, None)
            self._alone.add(path)
        if path in self._alone:
            raise WriteFailed(f"{path}: it stays until it is durable that the older one is gone")

    def stays(self, path: str) -> bool:
        """Whether a file cannot be removed before a sync: what it took the place of is not durably gone."""
        return path in self._alone or path in self._behind.get(parent_of(path), {}).values()

    def unlink_or_leave(self, path: str, by: str = "") -> None:
        """Remove a file that a start would remove too; when that fails `sweep` tries again.

        Where its directory `is_waiting` it stays until then. `by` is the file that has taken its place: it stays as
        long. A name that is used again is no leftover any more (`create`, `replaced`).
        """
        waiting = self._behind.get(parent_of(path))
        if waiting is not None:
            waiting[path] = by
            return
        try:
            self.unlink(path)
        except WriteFailed:
            self._leftovers[path] = by
        else:
            if by:
                self._alone.add(by)

    def replaced(self, path: str) -> None:
        """Another file has this name now, by a rename."""
        self._keep_name(path)
        self.forget(path)

    def _keep_name(self, path: str) -> None:
        """There is a file of this name that is needed."""
        self._leftovers.pop(path, None)
        if self._behind:
            self._behind.get(parent_of(path), {}).pop(path, None)

    def sweep(self) -> None:
        """Remove what could not be removed before."""
        leftovers, self._leftovers = self._leftovers, {}
        for path, by in leftovers.items():
            self.unlink_or_leave(path, by)

    def sync_names(self, directory: str) -> None:
        """Make the names in a directory durable; without room for that it `is_waiting`. Raises DirectoryFailed."""
        for path, reason in self.sync_names_of((directory,)).items():
            raise DirectoryFailed(reason, path)

    def sync_names_of(self, directories: Collection[str]) -> dict[str, str]:
        """Make the names in several directories durable; gives those where that failed, and why."""
        refused: dict[str, str] = {}
        failed = dict(self.filesystem.sync_all((), sorted(directories)))
        for path in directories:
            error = failed.get(path)
            if error is None:
                self._names_are_durable(path)
            elif error.errno in NO_ROOM:
                self._behind.setdefault(path, {})
                self._dirty_dirs[path] = None
            else:
                refused[path] = error_text(error, path)
        return refused

    def is_waiting(self, directory: str) -> bool:
        """Whether names in it found no room to become durable, and wait for the next sync."""
        return directory in self._behind

    def _names_are_durable(self, directory: str) -> None:
        self._leftovers.update(self._behind.pop(directory, {}))
        self._alone = {path for path in self._alone if parent_of(path) != directory}

    @property
    def has_outlived(self) -> bool:
        """Whether files are there that would count again without the ones that have taken their place."""
        return any(self._leftovers.values()) or any(
            by for waiting in self._behind.values() for by in waiting.values()
        )

    @property
    def leftover_count(self) -> int:
        """Files that should be gone and are there."""
        return len(self._leftovers) + sum(map(len, list(self._behind.values())))

    def forget(self, path: str) -> None:
        """Forget an open file, dirty or not."""
        self._open.pop(path, None)
        self._dirty_stores.pop(path, None)
        self._dirty_indexes.pop(path, None)

    def forget_tree(self, path: str) -> None:
        """Forget everything below a directory that is going away."""
        prefix = path + "/"
        for files in (self._open, self._dirty_stores, self._dirty_indexes):
            for name in [name for name in files if name.startswith(prefix)]:
                del files[name]
        for name in [name for name in self._leftovers if name.startswith(prefix)]:
            del self._leftovers[name]
        for name in [name for name in self._behind if name == path or name.startswith(prefix)]:
            del self._behind[name]
        self._alone = {name for name in self._alone if not name.startswith(prefix)}
        for name in [name for name in self._dirty_dirs if name == path or name.startswith(prefix)]:
            del self._dirty_dirs[name]

    @property
    def dirty_count(self) -> int:
        """Files and directories that wait for a sync."""
        return len(self._dirty_stores) + len(self._dirty_indexes) + len(self._dirty_dirs)

    @property
    def room(self) -> int:
        """How many more files may wait for a sync: they have to stay open until then."""
        return self.limit - len(self._dirty_stores) - len(self._dirty_indexes)

    @property
    def is_crowded(self) -> bool:
        """Tell whether the files that have to stay open until they are synced are as many as may be open at all."""
        return len(self._dirty_stores) + len(self._dirty_indexes) >= self.limit

    def refuse_more(self) -> NoReturn:
        """It `is_crowded`: raise NoDescriptors."""
        raise NoDescriptors(f"more than {self.limit} files wait for a sync")

    def release_clean(self, is_meant: Callable[[File], bool] = _everybodys) -> int:
        """Close every file of those meant that need not stay open; gives how many."""
        dirty = self._dirty_stores.keys() | self._dirty_indexes.keys()
        clean = [path for path, file in self._open.items() if path not in dirty and is_meant(file)]
        for path in clean:
            del self._open[path]
        return len(clean)

    def release(self) -> None:
        """Close every file, synced or not."""
        for files in (self._open, self._dirty_stores, self._dirty_indexes):
            for file in files.values():
                file.close()
            files.clear()

    @property
    def open_count(self) -> int:
        """Files that are open."""
        return len(self._open.keys() | self._dirty_stores.keys() | self._dirty_indexes.keys())

    def sync(
        self,
        others: Mapping[File, str] = NOTHING,
        is_own: Callable[[str], bool] = _nobodys,
    ) -> dict[str, str]:
        """Make everything durable: stores, indexes and directories. Gives the files whose sync failed, and why.

        `others` are files of somebody else, with their paths, that are synced in the same call: a journalling file
        system takes about as long for all of them as for one. Raises DirectoryFailed when a directory's fails, unless
        it `is_own` of a queue: then it is in `failed_directories`; DiskFull when there is no room or no descriptor for
        it, which may be tried again.
        """
        paths = dict(others)
        for file in self.filesystem.overdue():
            paths[file] = file.path
        for dirty in (self._dirty_stores, self._dirty_indexes):
            paths.update(zip(dirty.values(), dirty.keys(), strict=True))
        directories = list(self._dirty_dirs)
        self._dirty_stores.clear()
        self._dirty_indexes.clear()
        self._dirty_dirs.clear()
        self.syncs += len(paths)
        failed: dict[str, str] = {}
        is_full = True
        unsure: set[str] = set()
        refused: OSError | None = None
        broken: DirectoryFailed | None = None
        self.failed_directories = {}
        failures = self.filesystem.sync_all(list(paths), directories)
        for item, error in (*failures, *self.filesystem.refused()):
            if not isinstance(item, str):
                path = paths.get(item, item.path)
                self._open.pop(path, None)
                failed[path] = error_text(error, path)
                is_full = is_full and error.errno in NO_ROOM
                continue
            unsure.add(item)
            if error.errno in NO_ROOM:
                self._dirty_dirs[item] = None
                refused = error
            elif isinstance(error, FileNotFoundError):  # gone: its queue was deleted since
                continue
            elif is_own(item):
                self.failed_directories[item] = error_text(error, item)
            else:  # nothing can be written elsewhere instead of a name: the store is done
                broken = DirectoryFailed(error_text(error, item), item)
        if self._behind or self._alone:
            for path in [path for path in directories if path not in unsure]:
                self._names_are_durable(path)
        if broken is not None:
            raise broken
        self.was_full = bool(failed) and is_full
        if refused is not None and not failed:
            raise write_error("", refused) from refused
        return failed
