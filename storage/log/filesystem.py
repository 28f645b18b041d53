"""The file system that the store sees when it has a commit log.

Everything passes through to the real one but what lies in `vhosts/*/queues/`. A queue's directory is *small* at first:
its files are in memory and in the log, and nowhere else. When it has grown it *moves out*: its files are made, synced,
and its own from then on; what is written to own files is in them at once. How what was written becomes durable is the
matter of `storage.log.syncs`. This module knows where a path lies, and what the log has to be told of names.

State: none of its own; small queues and own files are those of `storage.log.groups`. Called by the disk thread; `open`,
`exists`, `file_size` and `read_file` also by the reader thread. Invariant: the log never says of an own file what a
younger rename or removal made untrue (OWN_FORGET is durable before it matters).
"""

from __future__ import annotations

import errno
from collections.abc import Sequence

from burrowmq.storage.files.cache import parent_of
from burrowmq.storage.files.filesystem import File, FileSystem, Write
from burrowmq.storage.log.commit_log import DIRECTORY
from burrowmq.storage.log.content import end_of, painted
from burrowmq.storage.log.files import OwnFile, as_own, missing
from burrowmq.storage.log.groups import Groups, LogOptions
from burrowmq.storage.log.records import Kind
from burrowmq.storage.log.replay import Replayed
from burrowmq.storage.log.short_way import ShortWay
from burrowmq.storage.log.syncs import Syncs


class LogFileSystem:
    """See the module; satisfies storage.files.filesystem.FileSystem."""

    def __init__(
        self,
        base: FileSystem,
        data_dir: str,
        identity: bytes,
        options: LogOptions,
        replayed: Replayed,
    ) -> None:
        self.base = base
        self.groups = Groups(base, data_dir, identity, options, replayed)
        self._root = self.groups.root
        self._small = self.groups.small
        self._own = self.groups.own
        self._syncs = Syncs(base, self.groups, f"{data_dir}/{DIRECTORY}", options)
        self.short_way = ShortWay(base, self.groups, self._syncs)

    # -- what becomes durable -------------------------------------------------------------------------------------

    def sync_all(
        self, files: Sequence[File], directories: Sequence[str]
    ) -> list[tuple[File | str, OSError]]:
        """Make files and directories durable."""
        return self._syncs.sync_all(files, directories)

    def write_some(self, writes: Sequence[Write]) -> int:
        """Write several: own files with one call, then those that are in memory."""
        own = [as_own(file) for file, _, _ in writes]
        outside = [
            (file.base, data, offset)
            for file, (_, data, offset) in zip(own, writes, strict=True)
            if file is not None
        ]
        left = self.base.write_some(outside) if outside else 0
        for done, (file, (given, data, offset)) in enumerate(zip(own, writes, strict=True)):
            if file is None:
                try:
                    given.pwrite(data, offset)
                except OSError:  # of a transient queue's file: who writes it again hears why
                    return done
            elif left:
                left -= 1
                file.note_written(data, offset)
            else:
                return done
        return len(writes)

    def overdue(self) -> list[File]:
        """Give the own files that have to be durable in place before the log's next generation begins."""
        return self._syncs.overdue()

    def refused(self) -> list[tuple[File | str, OSError]]:
        """Give the own files whose sync failed as a generation began, and that nobody was told of yet."""
        return self._syncs.refused()

    def fsync_dir(self, path: str) -> None:
        """Make the names in a directory durable."""
        self._syncs.fsync_dir(path)

    def write_noted(self) -> None:
        """Write what the log has of the commits so far, so that it survives the process. Raises OSError."""
        self.groups.write_noted()

    def look_at_grown(self) -> None:
        """Let small queues that have grown move out, where no sync comes that does so."""
        self._syncs.look_at_small()

    @property
    def is_full(self) -> bool:
        """Whether the next generation should begin, which a sync of all does."""
        return self.groups.is_ending

    def distrust(self) -> None:
        """The last process was killed: what it wrote to own files and did not sync is in no log. Until `settle`.

        Neither is a queue's directory that it removed, and whose name may come back with a power cut.
        """
        self._syncs.is_in_place = True
        for vhost in self.base.listdir(self._root[:-1]):
            directory = f"{self._root}{vhost}/queues"
            if self.base.exists(directory):
                self.groups.changed[directory] = None

    def settle(self) -> None:
        """A start has looked at everything: what nobody has open takes less memory from here on."""
        self._syncs.is_in_place = False
        self._small.pack_all_idle()

    @property
    def is_packing_due(self) -> bool:
        """Whether many small queues take more memory than they need. Any thread."""
        return self._small.is_packing_due

    def pack_idle(self) -> None:
        """Nothing else is to be done: let some of those of which no file is open take less."""
        self._small.pack_idle(is_at_rest=True)

    def release(self) -> None:
        """Close what is open, at the end: nobody uses it any more."""
        self.groups.release()

    # -- names ----------------------------------------------------------------------------------------------------

    def _queue_directory(self, path: str) -> str | None:
        """Give the queue's directory that a path below it belongs to; None when it belongs to none."""
        if not path.startswith(self._root):
            return None
        parts = path[len(self._root) :].split("/", 4)
        if len(parts) < 3 or parts[1] != "queues":
            return None
        return f"{self._root}{parts[0]}/queues/{parts[2]}"

    def open(self, path: str) -> File:
        """Open an existing file."""
        small, is_small = self._small.open(path)
        if small is not None:
            return small
        if is_small:
            raise missing(path, "open")
        file = self.base.open(path)
        return file if self._queue_directory(path) is None else OwnFile(self.groups, file)

    def create(self, path: str) -> File:
        """Create a new empty file."""
        content, is_small = self._small.content(path)
        if not is_small:
            if self._queue_directory(path) is None:
                return self.base.create(path)
            self._prepare_name(path)
            return OwnFile(self.groups, self.base.create(path))
        if content is not None:
            error = FileExistsError(errno.EEXIST, "File exists", path)
            error.add_note("create")
            raise error
        self.groups.note(Kind.RESIZE, path, 0)
        return self._small.create(path)

    def _prepare_name(self, path: str) -> None:
        """An own file is about to be made: nothing that the log says of an earlier one may meet it."""
        self.groups.settle_rename(path)
        self._settle_gone(path)
        is_known = self.groups.forget(path) or self.groups.is_forgetting(path)
        if path in self._own.renamed:
            self.base.fsync_dir(path.rpartition("/")[0])
            self.groups.note(Kind.OWN_FORGET, path)
            del self._own.renamed[path]
            is_known = True
        if is_known:
            self.groups.flush()

    def _settle_gone(self, path: str) -> None:
        """A name is about to be used again: it is durable that the file which had it is gone."""
        if self._own.is_gone(path):
            directory = parent_of(path)
            self.base.fsync_dir(directory)
            self.groups.names_synced(directory)

    def unlink(self, path: str) -> None:
        """Remove a file."""
        content, is_small = self._small.content(path)
        if not is_small:
            self.groups.settle_rename(path)
            self.base.unlink(path)
            self._own.drop(path)
            return
        if content is None:
            raise missing(path, "unlink")
        self._small.unlink(path)
        self.groups.note(Kind.UNLINK, path)

    def rename(self, source: str, target: str) -> None:
        """Rename a file, replacing the target, or a directory."""
        content, is_small = self._small.content(source)
        if is_small:
            if content is None:
                raise missing(source, "rename")
            self._small.rename(source, target)
            self.groups.note(Kind.RENAME, source, data=target[len(self._root) :].encode())
        elif self._queue_directory(source) in (None, source):
            self.base.rename(source, target)
            if source.startswith(self._root):
                self.groups.changed[source.rpartition("/")[0]] = None
                self._drop_below(source)
        else:
            self._rename_own(source, target)

    def _rename_own(self, source: str, target: str) -> None:
        """What the log says of the target ends with the rename, neither before nor after it."""
        written = self._own.get(source)
        if written is not None:  # by its old name
            file = self.base.open(source) if written.file is None else written.file.base
            self.groups.forget(source)  # also when that fails: it is never synced again
            file.fdatasync()
        directory = target.rpartition("/")[0]
        self._settle_gone(target)
        if self.groups.is_forgetting(target):  # another had its name
            self.groups.flush()
        if self._own.is_behind(target):
            self.base.fsync_dir(directory)
            self.groups.note_rename(source, target)
        try:
            self.base.rename(source, target)
        except OSError:
            self.groups.take_rename_back(source, target)
            raise
        if self._own.note_renamed(source, target):
            self.groups.changed[directory] = None

    def mkdir(self, path: str) -> None:
        """Create a directory and its parents: a queue's is a small one."""
        if path in self._small:
            return
        if self._queue_directory(f"{path}/.") != path or self.base.exists(path):
            self.base.mkdir(path)
            return
        self._small.add(path)
        self.groups.note(Kind.MAKE, path)

    def rmtree(self, path: str) -> None:
        """Remove a directory with all that is in it."""
        if path in self._small:
            has_left = self._small.is_refused(path)
            self._small.remove(path)
            self.groups.note(Kind.REMOVE_TREE, path)
            if has_left:  # what it left when it could not move out is no queue's
                self.base.rmtree(path)
                self.groups.changed[path.rpartition("/")[0]] = None
            return
        self.base.rmtree(path)
        if path.startswith(self._root):
            self.groups.changed[path.rpartition("/")[0]] = None
            self._drop_below(path)

    def _drop_below(self, path: str) -> None:
        """A directory is gone: the log says so."""
        if self._queue_directory(f"{path}/.") != path:  # that of a vhost, or all queues of one
            for name in self._small.below(path):
                self._small.remove(name)
        self._own.drop_below(path)
        self.groups.note(Kind.REMOVE_TREE, path)

    # -- looking --------------------------------------------------------------------------------------------------

    @property
    def opens(self) -> int:
        """How often an existing file was opened (again)."""
        return self.base.opens

    def keep_spare(self) -> None:
        """See `FileSystem`."""
        self.base.keep_spare()

    def let_go(self) -> None:
        """See `FileSystem`."""
        self.base.let_go()

    def reserve(self, path: str, size: int) -> None:
        """See `FileSystem`."""
        self.base.reserve(path, size)

    def disk_free(self, path: str) -> int:
        """See `FileSystem`."""
        return self.base.disk_free(path)

    def read_file(self, path: str) -> bytes:
        """Read a whole file."""
        content, is_small = self._small.content(path)
        if not is_small:
            found = self.base.read_file(path)
            pieces = self._own.held(path)
            return painted(pieces, 0, max(len(found), end_of(pieces)), found) if pieces else found
        if content is None:
            raise missing(path, "read")
        return content.read(content.size, 0)

    def file_size(self, path: str) -> int:
        """Give the length of the file at path."""
        content, is_small = self._small.content(path)
        if not is_small:
            return max(self.base.file_size(path), end_of(self._own.held(path)))
        if content is None:
            raise missing(path, "stat")
        return content.size

    def exists(self, path: str) -> bool:
        """Tell whether a file or directory is there."""
        if path in self._small:
            return True
        content, is_small = self._small.content(path)
        return content is not None if is_small else self.base.exists(path)

    def listdir(self, path: str) -> list[str]:
        """Give the names in a directory, sorted."""
        contents = self._small.contents(path)
        if contents is not None:
            return sorted(contents)
        names = self.base.listdir(path)
        if not path.startswith(self._root) or not path.endswith("/queues"):
            return names
        start = len(path) + 1
        return sorted({*names, *(name[start:] for name in self._small.below(path))})

    def link(self, source: str, target: str) -> None:
        """Give a file a second name; one that the disk does not have all of is copied."""
        content, is_small = self._small.content(source)
        if not is_small and not self._own.held(source):
            self.base.link(source, target)
            return
        if is_small and content is None:
            raise missing(source, "link")
        self.base.create(target).pwrite(self.read_file(source), 0)
