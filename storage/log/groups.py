"""What the log says next: the group of a commit, and the snapshot that a generation begins with.

State: the records for the next group; the small queues and what is known of own files, of which both are made; the
directories whose names only the disk can make durable. Called by `storage.log.syncs`, `.filesystem` and the open files
(`files.Journal`) on the disk thread. Invariants: a group is one commit, whole or not there; every own file that the log
is ahead of is durable in place before the next generation begins, or repeated in it; behind each group that is written
the log says nothing of such a file that is older than what the file has; what a failed write or sync of the log may
have lost is written to the other file, once. What the disk refuses of a queue's directory keeps no generation from
beginning: it says again what the one before said of the names in there.
"""

from __future__ import annotations

import errno
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain

from burrowmq.records import NamedTuple
from burrowmq.storage.errors import error_text
from burrowmq.storage.files.cache import NO_ROOM
from burrowmq.storage.files.filesystem import File, FileSystem
from burrowmq.storage.log.commit_log import CommitLog
from burrowmq.storage.log.content import Piece
from burrowmq.storage.log.files import Bytes, OwnWrite, opened
from burrowmq.storage.log.own_files import OwnFiles
from burrowmq.storage.log.records import Kind, pack_record, pack_writes
from burrowmq.storage.log.replay import Replayed, replay, seed_of
from burrowmq.storage.log.small_queues import SmallQueues
from burrowmq.storage.record import pack_log_writes

# To note a rename, when the log has to be begun anew meanwhile.
_ATTEMPTS = 3


class LogOptions(NamedTuple):
    """Bounds: of a file of the log, of a small queue, of all small queues, of own files that the log is ahead of."""

    limit: int = 8 << 20
    queue_limit: int = 16 * 1024
    total_limit: int = 16 << 20
    behind_limit: int = 256


class Groups:
    """See the module."""

    def __init__(
        self,
        base: FileSystem,
        data_dir: str,
        identity: bytes,
        options: LogOptions,
        replayed: Replayed,
    ) -> None:
        self.root = f"{data_dir}/vhosts/"
        self._base = base
        self._data_dir = data_dir
        self._identity = identity
        self._log = CommitLog(base, data_dir, identity, seed_of(identity), options.limit)
        self._log.resume(replayed.generation, replayed.counting)
        self.small = SmallQueues(self, self.root, self._log.seed, replayed.directories)
        self.own = OwnFiles()
        self._behind_limit = options.behind_limit
        self.changed: dict[str, None] = {}  # directories with names that only the disk has
        self._records: list[bytes] = []
        self._forgetting: set[str] = set()  # own files of which this is not durable yet

    # -- what files tell ------------------------------------------------------------------------------------------

    def note(self, kind: Kind, path: str, offset: int = 0, data: bytes = b"") -> None:
        """Something changed that the next group says."""
        record = pack_record(self._log.seed, kind, path[len(self.root) :], offset, data)
        self._records.append(record)
        if kind is Kind.OWN_FORGET:
            self._forgetting.add(path)
        written = len(data) if kind is Kind.WRITE else 0
        self.small.note_changed(path.rpartition("/")[0], written)

    def wrote(self, path: str, data: Bytes, offset: int) -> None:
        """Something was written to an own file."""
        self.own.wrote(path, data, offset)

    def resized(self, path: str, size: int) -> None:
        """An own file was cut or extended."""
        self.own.resized(path, size)

    def held(self, path: str) -> Sequence[Piece]:
        """Give what an own file says whatever can be read of it: a sync of it failed. Any thread."""
        return self.own.held(path)

    def settled(self, path: str) -> None:
        """All of an own file is durable in place."""
        if self.forget(path):
            self.flush()

    def forget(self, path: str) -> bool:
        """Nothing of an own file waits for anything; True when the log says so with the next group."""
        is_told = self.own.forget(path)
        if is_told:
            self.note(Kind.OWN_FORGET, path)
        return is_told

    def names_synced(self, directory: str) -> None:
        """The names in a directory are durable: the next group says which files are gone from there."""
        self.changed.pop(directory, None)
        for path in self.own.take_gone(directory):
            self.note(Kind.OWN_FORGET, path)

    def is_forgetting(self, path: str) -> bool:
        """Whether a start may still write to this name what the log said of a file that had it."""
        return path in self._forgetting

    # -- renames --------------------------------------------------------------------------------------------------

    def note_rename(self, source: str, target: str) -> None:
        """Have the log say durably that an own file takes the place of one that it is ahead of. Raises OSError.

        After an error it may say so, or not: nothing is added to it, and `source` stays, before the next generation.
        """
        if self.own.renaming is not None:  # another, that was refused
            self.flush()
        for _ in range(_ATTEMPTS):
            generation = self._log.generation
            self.own.renaming = source, target
            self.note(Kind.OWN_RENAME, source, data=target[len(self.root) :].encode())
            try:
                self.flush()
            except OSError:
                self._log.spoil()
                raise
            # One that has begun says nothing of it, and may say again what it is ahead of.
            if self._log.generation == generation or not self.own.is_behind(target):
                return
        raise OSError(errno.EIO, "the log takes no note of a rename", target)

    def take_rename_back(self, source: str, target: str) -> None:
        """The rename did not happen: the next generation begins, which does not say that it has. Raises OSError."""
        if self.own.renaming == (source, target):
            self._log.spoil()
            self.begin_generation()

    def settle_rename(self, path: str) -> None:
        """This file is to go from its name: first, nothing says that it takes another's place. Raises OSError."""
        if self.own.renaming is not None and self.own.renaming[0] == path:
            self.flush()

    # -- groups ---------------------------------------------------------------------------------------------------

    @property
    def has_noted(self) -> bool:
        """Whether the next group says anything."""
        return bool(self._records) or self.own.has_pieces

    def write_noted(self) -> None:
        """Write what was noted, so that it survives the process. Raises OSError."""
        payload = self._payload()
        if payload:
            self._write(payload)

    def flush(self) -> None:
        """Make durable what was noted. Raises OSError; after NO_ROOM it may be called again."""
        payload = self._payload()
        if payload and self._log.takes_through(len(payload)):
            self._write_through(payload)
        elif payload:
            self._write(payload)
        if not self._log.is_durable:
            try:
                self._log.sync()
            except OSError:
                self._log.spoil()
                self.begin_generation()
        self._forgetting.clear()

    def log_at_once(self, writes: Sequence[OwnWrite]) -> bool:
        """Make durable what was noted, and what was just written to own files of which nothing is due.

        False: it is not. Nothing is known of the files then; `flush` goes on once they are due.
        """
        log, start = self._log, len(self.root)
        named = [(file.path[start:].encode(), offset, data) for file, data, offset in writes]
        payload = pack_log_writes(log.seed, Kind.OWN_WRITE, named)
        if self._records:
            payload = b"".join((*self._records, payload))
        is_through = log.takes_through(len(payload))
        try:
            if not is_through:
                log.append(payload)
        except OSError:  # it is not there: the usual way tries it again
            return False
        try:
            if is_through:
                log.append_through(payload)
            else:
                log.sync()
        except OSError:
            log.spoil()
            return False
        self._records = []
        self.own.note_logged_at_once(writes)
        return True

    def _payload(self) -> bytes:
        """Give the records of the next group. Raises OSError."""
        if not self._log.is_open:
            self.begin_generation()
        parts: list[bytes] = []
        start = len(self.root)
        # Before what was noted, which may end what the log says of such a file.
        for path, pieces in self.own.over():
            parts += pack_writes(self._log.seed, Kind.OWN_WRITE, path[start:], pieces)
        parts += self._records
        for path, unsynced in self.own.due():
            parts += pack_writes(self._log.seed, Kind.OWN_WRITE, path[start:], unsynced.pieces)
        return b"".join(parts)

    def _write(self, payload: bytes) -> None:
        try:
            self._log.append(payload)
        except OSError as error:
            if error.errno in NO_ROOM:
                raise
            self._log.spoil()
            self.begin_generation()
        else:
            self._note_written()

    def _write_through(self, payload: bytes) -> None:
        try:
            self._log.append_through(payload)
        except OSError:
            # Whether it is there nobody knows, so that it is not tried again even for want of room.
            self._log.spoil()
            self.begin_generation()
        else:
            self._note_written()

    def _note_written(self) -> None:
        self._records = []
        self.own.note_logged()

    def damage(self) -> Iterator[tuple[int, str]]:
        """Read what the log has on disk; see `CommitLog.damage`."""
        return self._log.damage()

    def renew(self) -> None:
        """The next sync writes all of it anew."""
        self._log.renew()

    # -- generations ----------------------------------------------------------------------------------------------

    @property
    def is_ending(self) -> bool:
        """Whether the next generation should begin: while a failed file is not written elsewhere, only if it must."""
        return self.is_full and (self._log.is_overfull or not self.own.has_spoilt)

    @property
    def is_full(self) -> bool:
        """Whether the next generation should begin if it can."""
        return self._log.is_full or self.own.behind_count > self._behind_limit

    @property
    def is_open(self) -> bool:
        """Whether a generation was begun whose file has not failed."""
        return self._log.is_open

    def begin_generation(self) -> list[tuple[str, OSError]]:
        """Begin the log's next generation; own files that it is ahead of are synced before. Raises OSError.

        Gives the queues' directories that the disk refuses: names in them last because of what the log says. What it
        says of a file whose sync failed goes along, until that is written elsewhere; who can do so is told of it by the
        next sync of all (`Syncs.refused`). Neither is a reason not to begin: to write it elsewhere may take the log.
        """
        waiting = self.own.waiting()
        files = {opened(one).base: path for path, one in waiting.items() if not one.is_spoilt}
        failed = self._base.sync_all(list(files), [])
        for item, error in failed:
            assert not isinstance(item, str)
            self.own.refuse(files[item], error)
        self.write_back({files[item]: item for item, _ in failed if not isinstance(item, str)})
        refused = self._sync_names()
        carried = self._said_again({*self.own.spoilt(waiting), *self.own.gone(refused)})
        carried = [*self._renamed_again(refused), *carried]  # behind it is what was written since
        try:
            self._log.begin(chain(self.small.snapshot(), carried))
        except OSError as error:
            if error.errno in NO_ROOM:
                raise
            self._log.begin(chain(self.small.snapshot(), carried))
        self._records = []
        self._forgetting.clear()
        self.small.retry_refused()  # all of them was just written once more
        self.own.begin(waiting)
        told = [(path, error) for path, error in refused.items() if path in self.changed]
        self.changed = {path: None for path, _ in told}
        self.own.keep_names(refused)
        return told

    def _sync_names(self) -> dict[str, OSError]:
        """Have durable which directories and files are there; gives the queues' directories that the disk refuses.

        Of files that are gone from those, or renamed there, the log goes on saying what it said: no other queue is to
        suffer from it. Raises OSError.
        """
        directories = dict.fromkeys([*self.changed, *self.own.gone_from()])
        refused: dict[str, OSError] = {}
        for item, error in self._base.sync_all([], list(directories)):
            if isinstance(error, FileNotFoundError):
                continue
            if not isinstance(item, str) or not self._is_of_a_queue(item):
                raise error
            refused[item] = error
        return refused

    def _is_of_a_queue(self, directory: str) -> bool:
        return directory.startswith(self.root) and directory.count("/", len(self.root)) == 2

    def _renamed_again(self, directories: Collection[str]) -> list[bytes]:
        """Say again which files took another's place in these: with the power it may be the other's again."""
        start = len(self.root)
        return [
            pack_record(self._log.seed, Kind.OWN_RENAME, source[start:], 0, target[start:].encode())
            for source, target in self.own.renamed_in(directories).items()
        ]

    def _said_again(self, paths: Collection[str]) -> list[bytes]:
        """Give again what the log says of own files: it is the only place that has it since a sync of them failed."""
        return [
            pack_record(self._log.seed, Kind.OWN_WRITE, path[len(self.root) :], offset, data)
            for path, pieces in self.said_of(paths).items()
            for offset, data in pieces
        ]

    def said_of(self, paths: Collection[str]) -> dict[str, list[Piece]]:
        """Read what the log says was written to own files. Raises OSError or StorageError."""
        if not paths:
            return {}
        found = replay(self._base, self._data_dir, self._identity)
        said = found.own_writes
        if self.own.renaming is not None:  # it did not happen, whatever the log says
            source, target = (path[len(self.root) :] for path in self.own.renaming)
            said[target] = [*found.replaced.get(source, ()), *said.get(target, ())]
        return {
            path: pieces for name, pieces in said.items() if (path := f"{self.root}{name}") in paths
        }

    def write_back(self, files: Mapping[str, File]) -> None:
        """A failed sync may have dropped what only the log has: whoever writes the files elsewhere reads it there.

        Where the disk does not take it, it is held in memory and laid over what can be read. Where the log cannot be
        read, it has failed itself: a start has all of it, and nobody may read the files before. Raises OSError: EIO.
        """
        only = [path for path in files if self.own.spoil(path)]
        try:
            said = self.said_of(set(only))  # for all of them: it reads the whole log
        except OSError as error:
            failure = OSError(errno.EIO, error_text(error, only[0]))
            failure.add_note("writing back")
            raise failure from error
        for path in only:
            pieces = [*said.get(path, ()), *self.own.written_over(path)]
            try:
                for offset, data in pieces:
                    files[path].pwrite(data, offset)
            except OSError:  # also for want of room: whatever it is, it concerns this file alone
                self.own.hold(path, pieces)

    def release(self) -> None:
        """Close what is open, at the end: nobody uses it any more."""
        self._log.release()
        self.own.release()
