"""The file system that the store sees when it has a commit log.

Everything passes through to the real one but what lies in `vhosts/*/queues/`. A queue's directory is *small* at first:
its files are in memory and in the log, and nowhere else. When it has grown it *moves out*: its files are made, synced,
and its own from then on. What is written to own files is in them at once, and durable in one of two ways: few bytes for
many files go into the log, with what happened to small queues, in one group and one sync; many bytes for few files are
synced in place. Before the log's next generation begins, every own file that it was ahead of is synced.

State: the small directories, the records for the next group, the own files with something un-synced. Called by the
disk thread; `open`, `exists`, `file_size` and `read_file` also by the reader thread.

Invariants: the log never says of an own file what a younger sync in place, rename or removal made untrue (OWN_FORGET is
durable before it matters); a group is one commit, whole or not there; what a failed sync of the log may have lost is
written to the other file, once.
"""

from __future__ import annotations

import errno
from collections.abc import Collection, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, NamedTuple, cast

from burrowmq.storage.files.cache import NO_ROOM
from burrowmq.storage.files.filesystem import File, FileSystem
from burrowmq.storage.log.commit_log import DIRECTORY, CommitLog
from burrowmq.storage.log.files import (
    OwnFile,
    SmallFile,
    Unsynced,
    base_of,
    is_small,
    missing,
    opened,
)
from burrowmq.storage.log.records import Kind, pack_record
from burrowmq.storage.log.replay import Replayed, replay, seed_of
from burrowmq.storage.log.small_queues import SmallQueues

# Own files are synced in place when more bytes than these were written to them,
_LOGGED_BYTES = 128 * 1024
# or when so few files have more than `files.LARGE`, and so few others go with them.
_WITH_LARGE = 4
# Small queues that move out after one sync.
_MOVES = 32


class LogOptions(NamedTuple):
    """Bounds: of a file of the log, of a small queue, of all small queues, of own files that the log is ahead of."""

    limit: int = 8 << 20
    queue_limit: int = 16 * 1024
    total_limit: int = 16 << 20
    behind_limit: int = 256


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
        self._data_dir = data_dir
        self._identity = identity
        self._options = options
        self._root = f"{data_dir}/vhosts/"
        self._log_dir = f"{data_dir}/{DIRECTORY}"
        self._log = CommitLog(base, data_dir, identity, seed_of(identity), options.limit)
        self._log.resume(replayed.generation, replayed.counting)
        self._small = SmallQueues(self, self._root, self._log.seed, replayed.directories)
        self._records: list[bytes] = []
        self._due: dict[str, Unsynced] = {}  # whose pieces go into the next group
        self._unsynced: dict[str, Unsynced] = {}
        self._behind: dict[str, Unsynced] = {}
        self._renamed: set[str] = set()  # own files that the log says took another's place
        self._refused: dict[
            str, OSError
        ] = {}  # own files whose sync failed when nobody could mend it
        self._changed: dict[
            str, None
        ] = {}  # directories with names that only the disk can make durable
        self._grown: dict[
            str, None
        ] = {}  # small directories that were written to since the last look
        self._stored = self._small.stored()

    # -- what files tell ------------------------------------------------------------------------------------------

    def note(self, kind: Kind, path: str, offset: int = 0, data: bytes = b"") -> None:
        """Something changed that the next group says."""
        record = pack_record(self._log.seed, kind, path[len(self._root) :], offset, data)
        self._records.append(record)
        self._small.note_changed(path.rpartition("/")[0])
        if kind is Kind.WRITE:
            self._grown[path.rpartition("/")[0]] = None
            self._stored += len(data)

    def unsynced(self, path: str) -> Unsynced:
        """Give what is known of an own file's bytes."""
        found = self._unsynced.get(path)
        if found is None:
            found = self._unsynced[path] = Unsynced()
        return found

    def settled(self, path: str) -> None:
        """All of an own file is durable in place."""
        if self._forget_own(path):
            self.flush()

    def _forget_own(self, path: str) -> bool:
        """Nothing of an own file waits for anything; True when the log says so with the next group."""
        known = self._unsynced.pop(path, None)
        self._due.pop(path, None)
        self._behind.pop(path, None)
        self._refused.pop(path, None)
        if known is None or not known.is_behind:
            return False
        self.note(Kind.OWN_FORGET, path)
        return True

    # -- groups ---------------------------------------------------------------------------------------------------

    def write_noted(self) -> None:
        """Write what was noted, so that it survives the process. Raises OSError."""
        if not self._log.is_open:
            self.begin_generation()
        pieces = self._packed_pieces()
        if not self._records and not pieces:
            return
        try:
            self._log.append(b"".join((*self._records, *pieces)))
        except OSError as error:
            if error.errno in NO_ROOM:
                raise
            self._log.spoil()
            self.begin_generation()
            return
        self._records = []
        for path, unsynced in self._due.items():
            unsynced.take_pieces()
            self._behind[path] = unsynced
        self._due = {}

    def flush(self) -> None:
        """Make durable what was noted. Raises OSError; after NO_ROOM it may be called again."""
        self.write_noted()
        if not self._log.is_durable:
            try:
                self._log.sync()
            except OSError:
                self._log.spoil()
                self.begin_generation()

    def _packed_pieces(self) -> list[bytes]:
        seed, start = self._log.seed, len(self._root)
        return [
            pack_record(seed, Kind.OWN_WRITE, path[start:], offset, data)
            for path, unsynced in self._due.items()
            for offset, data in unsynced.pieces
        ]

    def begin_generation(self) -> None:
        """Begin the log's next generation; own files that it is ahead of are synced before. Raises OSError.

        What it says of one whose sync failed goes along, until that is written elsewhere.
        """
        waiting = {**self._behind, **self._due}
        for error in self._refused.values():
            raise error
        files = {opened(one).base: path for path, one in waiting.items() if not one.is_spoilt}
        for item, error in self.base.sync_all(list(files), []):
            assert not isinstance(item, str)
            waiting[files[item]].is_spoilt = True
            self._refused[files[item]] = error
        for error in self._refused.values():
            raise error
        directories = list(self._changed)
        for _, error in self.base.sync_all([], directories):
            if not isinstance(error, FileNotFoundError):
                raise error
        kept = {path: one for path, one in waiting.items() if one.is_spoilt and one.is_behind}
        carried = self._durable_writes(kept)
        try:
            self._log.begin(chain(self._small.snapshot(), carried))
        except OSError as error:
            if error.errno in NO_ROOM:
                raise
            self._log.begin(chain(self._small.snapshot(), carried))
        self._records = []
        self._due, self._behind = {}, kept
        self._renamed.clear()
        for directory in directories:
            self._changed.pop(directory, None)
        for path in waiting.keys() - kept.keys():
            self._unsynced.pop(path, None)

    def _durable_writes(self, paths: Collection[str]) -> list[bytes]:
        """Give again what the log says of own files: it is the only place that has it since a sync of them failed."""
        if not paths:
            return []
        found = replay(self.base, self._data_dir, self._identity)
        return [
            pack_record(self._log.seed, Kind.OWN_WRITE, path, offset, data)
            for path, pieces in found.own_writes.items()
            if f"{self._root}{path}" in paths
            for offset, data in pieces
        ]

    def release(self) -> None:
        """Close what is open, at the end: nobody uses it any more."""
        self._log.release()
        for one in self._unsynced.values():
            if one.file is not None:
                one.file.base.close()

    # -- syncs ----------------------------------------------------------------------------------------------------

    def sync_all(
        self, files: Sequence[File], directories: Sequence[str]
    ) -> list[tuple[File | str, OSError]]:
        """Make files and directories durable: in one group of the log, and in place what is large."""
        own = [file for file in files if not is_small(file)]
        told: list[tuple[File | str, OSError]] = [
            (file, self._refused[file.path]) for file in own if file.path in self._refused
        ]
        own = [file for file in own if file.path not in self._refused]
        for item, _ in told:
            self._refused.pop(cast("File", item).path, None)
        is_ending = self._is_ending and self._behind.keys() <= {file.path for file in own}
        in_place = own if is_ending else self._choose(own)
        names = [path for path in directories if self._needs_disk(path)]
        failed = told + (self._sync_in_place(in_place, names) if in_place or names else [])
        try:
            if is_ending and not failed:
                self.begin_generation()
            self.flush()
        except OSError as error:
            failed.append((self._log_dir, error))
        else:
            self._move_out_grown()
            self._small.pack_idle()
        return failed

    def overdue(self) -> list[File]:
        """Give the own files that have to be durable in place before the log's next generation begins: now is the time.

        A failure of one is then told to whoever can write it elsewhere.
        """
        if self._is_ending:
            return [opened(one) for one in self._behind.values()]
        return [opened(self._unsynced[path]) for path in self._refused]

    @property
    def _is_ending(self) -> bool:
        """Whether the log's next generation should begin: not while a file that failed is not written elsewhere."""
        if not self._log.is_full and len(self._behind) <= self._options.behind_limit:
            return False
        return not any(one.is_spoilt for one in self._behind.values())

    def _sync_in_place(
        self, files: Sequence[File], directories: Sequence[str]
    ) -> list[tuple[File | str, OSError]]:
        given = {base_of(file): file for file in files}
        failed: list[tuple[File | str, OSError]] = []
        for item, error in self.base.sync_all(list(given), directories):
            failed.append((item if isinstance(item, str) else given[item], error))
        refused = {item if isinstance(item, str) else item.path for item, _ in failed}
        for path in directories:
            if path not in refused:
                self._changed.pop(path, None)
        for file in files:
            if file.path not in refused:
                self._forget_own(file.path)
            elif file.path in self._unsynced:
                self._unsynced[file.path].is_spoilt = True
                self._due.pop(file.path, None)
                if file.path in self._behind:
                    self._write_again(base_of(file))
        return failed

    def _write_again(self, file: File) -> None:
        """A failed sync may have dropped what only the log has: whoever writes the file elsewhere reads it here."""
        with suppress(
            OSError
        ):  # then it is what the kernel kept; a start would still have it from the log
            found = replay(self.base, self._data_dir, self._identity)
            for offset, data in found.own_writes.get(file.path[len(self._root) :], []):
                file.pwrite(data, offset)

    def _choose(self, files: list[File]) -> list[File]:
        """Give the files to sync in place; the others go into the next group."""
        small: list[tuple[str, Unsynced]] = []
        large: list[File] = []
        size = 0
        for file in files:
            known = self._unsynced.get(file.path)
            own = file.own if isinstance(file, SmallFile) else file
            if not isinstance(own, OwnFile) or known is None or known.is_large or known.is_spoilt:
                large.append(file)
                continue
            known.file = own
            small.append((file.path, known))
            size += known.size
        if size > _LOGGED_BYTES or (large and len(small) <= _WITH_LARGE):
            return files
        self._due.update(small)
        return large

    def _needs_disk(self, path: str) -> bool:
        if path in self._small or path == self._log_dir:
            return False
        is_of_queues = path.startswith(self._root) and path.endswith("/queues")
        return not is_of_queues or path in self._changed

    def fsync_dir(self, path: str) -> None:
        """Make the names in a directory durable."""
        if self._needs_disk(path):
            self.base.fsync_dir(path)
            self._changed.pop(path, None)
        self.flush()

    # -- moving out -----------------------------------------------------------------------------------------------

    def _move_out_grown(self) -> None:
        """Let small queues that have grown move out; what the disk refuses is tried again when they grow further."""
        grown, self._grown = self._grown, {}
        limit = self._options.queue_limit
        if self._stored > self._options.total_limit:
            self._stored = self._small.stored()
            if self._stored > self._options.total_limit:
                limit = 0
        chosen = [
            directory
            for directory in grown
            if directory in self._small and self._small.stored_in(directory) > limit
        ]
        if len(chosen) > _MOVES:
            self._grown = dict.fromkeys(chosen[_MOVES:])
            del chosen[_MOVES:]
        if chosen:
            with suppress(OSError):
                self.move_out(chosen)

    def move_out(self, directories: Sequence[str]) -> None:
        """Make the files of small queues their own. Raises OSError: then they stay small."""
        made: dict[str, File] = {}
        for directory in directories:
            self.base.rmtree(directory)
            self.base.mkdir(directory)
            for name, content in (self._small.contents(directory) or {}).items():
                path = f"{directory}/{name}"
                own = made[path] = self.base.create(path)
                for offset, data in content.pieces:
                    own.pwrite(data, offset)
                own.truncate(content.size)
        parents = {directory.rpartition("/")[0] for directory in directories}
        for _, error in self.base.sync_all(list(made.values()), [*directories, *parents]):
            raise error
        with self._small.lock:
            for path, own in made.items():
                file = self._small.opened(path)
                if file is not None:
                    file.move_out(OwnFile(self, own))
            for directory in directories:
                self._small.let_go(directory)
                self.note(Kind.MOVED_OUT, directory)

    @property
    def small_directories(self) -> list[str]:
        """The directories of small queues."""
        return self._small.names()

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
        return file if self._queue_directory(path) is None else OwnFile(self, file)

    def create(self, path: str) -> File:
        """Create a new empty file."""
        content, is_small = self._small.content(path)
        if not is_small:
            if self._queue_directory(path) is None:
                return self.base.create(path)
            self._prepare_name(path)
            return OwnFile(self, self.base.create(path))
        if content is not None:
            error = FileExistsError(errno.EEXIST, "File exists", path)
            error.add_note("create")
            raise error
        self.note(Kind.RESIZE, path, 0)
        return self._small.create(path)

    def _prepare_name(self, path: str) -> None:
        """An own file is about to be made: nothing that the log says of an earlier one may meet it."""
        is_known = self._forget_own(path)
        if path in self._renamed:
            self.base.fsync_dir(path.rpartition("/")[0])
            self.note(Kind.OWN_FORGET, path)
            self._renamed.discard(path)
            is_known = True
        if is_known:
            self.flush()

    def unlink(self, path: str) -> None:
        """Remove a file."""
        content, is_small = self._small.content(path)
        if not is_small:
            self.base.unlink(path)
            self._drop_own(path)
            return
        if content is None:
            raise missing(path, "unlink")
        self._small.unlink(path)
        self.note(Kind.UNLINK, path)

    def _drop_own(self, path: str) -> None:
        """An own file is gone from its name; the log says so before the name is used again."""
        self._due.pop(path, None)
        known = self._unsynced.get(path)
        if known is not None and known.is_behind:
            self._forget_own(path)
        else:
            self._unsynced.pop(path, None)
            self._refused.pop(path, None)

    def rename(self, source: str, target: str) -> None:
        """Rename a file, replacing the target, or a directory."""
        content, is_small = self._small.content(source)
        if is_small:
            if content is None:
                raise missing(source, "rename")
            self._small.rename(source, target)
            self.note(Kind.RENAME, source, data=target[len(self._root) :].encode())
        elif self._queue_directory(source) in (None, source):
            self.base.rename(source, target)
            if source.startswith(self._root):
                self._changed[source.rpartition("/")[0]] = None
                self._drop_below(source)
        else:
            self._rename_own(source, target)

    def _rename_own(self, source: str, target: str) -> None:
        """What the log says of the target ends with the rename, neither before nor after it."""
        written = self._unsynced.get(source)
        if written is not None:  # by its old name
            file = self.base.open(source) if written.file is None else written.file.base
            self._forget_own(source)  # also when that fails: it is never synced again
            file.fdatasync()
        known = self._unsynced.get(target)
        if known is not None and known.is_behind:
            directory = target.rpartition("/")[0]
            self.base.fsync_dir(directory)
            self.note(Kind.OWN_RENAME, source, data=target[len(self._root) :].encode())
            self.flush()
            self._renamed.add(source)
        self.base.rename(source, target)
        if source in self._renamed:
            self._changed[target.rpartition("/")[0]] = None
        for table in (self._unsynced, self._behind, self._due):
            table.pop(target, None)
        self._refused.pop(target, None)

    def mkdir(self, path: str) -> None:
        """Create a directory and its parents: a queue's is a small one."""
        if path in self._small:
            return
        if self._queue_directory(f"{path}/.") != path or self.base.exists(path):
            self.base.mkdir(path)
            return
        self._small.add(path)
        self.note(Kind.MAKE, path)

    def rmtree(self, path: str) -> None:
        """Remove a directory with all that is in it."""
        if path in self._small:
            self._small.remove(path)
            self._grown.pop(path, None)
            self.note(Kind.REMOVE_TREE, path)
            return
        self.base.rmtree(path)
        if path.startswith(self._root):
            self._changed[path.rpartition("/")[0]] = None
            self._drop_below(path)

    def _drop_below(self, path: str) -> None:
        """A directory is gone: the log says so."""
        below = f"{path}/"
        for name in self._small.below(path):
            self._small.remove(name)
        tables: tuple[dict[str, Any], ...] = (
            self._unsynced,
            self._due,
            self._behind,
            self._refused,
        )
        for table in tables:
            for name in [name for name in table if name.startswith(below)]:
                del table[name]
        self.note(Kind.REMOVE_TREE, path)

    # -- looking --------------------------------------------------------------------------------------------------

    @property
    def opens(self) -> int:
        """How often an existing file was opened (again)."""
        return self.base.opens

    def keep_spare(self) -> None:
        """See `FileSystem`."""
        self.base.keep_spare()

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
            return self.base.read_file(path)
        if content is None:
            raise missing(path, "read")
        return content.read(content.size, 0)

    def file_size(self, path: str) -> int:
        """Give the length of the file at path."""
        content, is_small = self._small.content(path)
        if not is_small:
            return self.base.file_size(path)
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
        """Give a file a second name; a small one is copied."""
        content, is_small = self._small.content(source)
        if not is_small:
            self.base.link(source, target)
            return
        if content is None:
            raise missing(source, "link")
        self.base.create(target).pwrite(content.read(content.size, 0), 0)
