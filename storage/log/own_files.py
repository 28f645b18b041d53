"""What the log knows of own files: what was written to each since all of it was last durable in place.

A file is *due* while its bytes go into the next group, and *behind* from then on: the log says something of it that the
file itself may not have durably. What is written *over* that goes into the next group too, synced or not: else a start
would put back what was there before. It is *gone* when it was removed and the log says something of it: with the power
it may have its name again, so that the log goes on saying that until its directory is durable. It is *refused* when a
sync of it failed where nobody could write it elsewhere.

State: these tables, by path; files that are due or behind stay open, so that their sync hears of a failed write-back.
Called by `storage.log.groups`, `.syncs` and `.filesystem` on the disk thread; does no I/O. Invariant: `forget` says
whether the log has to be told, `take_gone` of whom, and nothing is forgotten that the log still repeats.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, cast

from burrowmq.storage.files.cache import parent_of
from burrowmq.storage.files.filesystem import File
from burrowmq.storage.log.content import Piece
from burrowmq.storage.log.files import (
    Bytes,
    OwnFile,
    OwnWrite,
    SmallFile,
    Unsynced,
    is_large,
    opened,
)

# Own files are synced in place when more bytes than these were written to them, or more for each of many files
# than its sync costs: 4 KB, a megabyte in all;
_LOGGED_BYTES = 128 * 1024
_LOGGED_EACH = 4 * 1024
_LOGGED_MOST = 1024 * 1024
# or when so few files have more than `files.LARGE`, and so few others go with them.
_WITH_LARGE = 4


def _most(count: int) -> int:
    """So many bytes of so many files go into the log."""
    return min(max(_LOGGED_BYTES, _LOGGED_EACH * count), _LOGGED_MOST)


class OwnFiles:
    """See the module."""

    def __init__(self) -> None:
        self._known: dict[str, Unsynced] = {}
        self._due: dict[str, Unsynced] = {}
        self._behind: dict[str, Unsynced] = {}
        self._refused: dict[str, OSError] = {}
        self._over: dict[str, list[Piece]] = {}
        self._gone: dict[str, list[str]] = {}  # by directory
        self.renamed: dict[str, str] = {}  # files that the log says took another's place, and whose
        # (source, target): the log may say that this has happened, and it has not.
        self.renaming: tuple[str, str] | None = None

    # -- one file -------------------------------------------------------------------------------------------------

    def get(self, path: str) -> Unsynced | None:
        """Give what is known of a file's bytes, if anything waits."""
        return self._known.get(path)

    def noted(self, path: str) -> Unsynced:
        """Give what is known of a file's bytes, to add to it."""
        found = self._known.get(path)
        if found is None:
            found = self._known[path] = Unsynced()
        return found

    def wrote(self, path: str, data: Bytes, offset: int) -> None:
        """Something was written to a file."""
        known = self._known.get(path)
        if known is None:
            known = self._known[path] = Unsynced()
        elif offset < known.said_end:
            self._over.setdefault(path, []).append((offset, bytes(data)))
        known.add(data, offset)

    def forget(self, path: str) -> bool:
        """Nothing of a file waits for anything; True when the log has to say so."""
        known = self._known.pop(path, None)
        self._due.pop(path, None)
        self._behind.pop(path, None)
        self._over.pop(path, None)
        self._refused.pop(path, None)
        return known is not None and known.is_behind

    def drop(self, path: str) -> None:
        """A file is gone from its name; once that is durable `take_gone` tells of it."""
        if self.forget(path):
            self._gone.setdefault(parent_of(path), []).append(path)

    def is_gone(self, path: str) -> bool:
        """Whether the log says something of a file that had this name, and may have it again."""
        return path in self._gone.get(parent_of(path), ())

    def take_gone(self, directory: str) -> list[str]:
        """The names in a directory are durable: give the files there that are gone."""
        return self._gone.pop(directory, [])

    def gone_from(self) -> Iterable[str]:
        """Give the directories that files are gone from."""
        return self._gone

    def gone(self, directories: Iterable[str]) -> list[str]:
        """Give the files that are gone from these."""
        return [path for directory in directories for path in self._gone.get(directory, ())]

    def renamed_in(self, directories: Collection[str]) -> dict[str, str]:
        """Give those of `renamed` that are in these."""
        return {
            source: target
            for source, target in self.renamed.items()
            if parent_of(target) in directories
        }

    def keep_names(self, directories: Collection[str]) -> None:
        """The next generation has begun, which says something of what is gone or renamed in these alone."""
        self._gone = {one: paths for one, paths in self._gone.items() if one in directories}
        self.renamed = self.renamed_in(directories)

    def drop_below(self, directory: str) -> None:
        """A directory is gone, with all below it."""
        below = f"{directory}/"
        tables: tuple[dict[str, Any], ...] = (self._known, self._due, self._behind, self._over)
        for table in (*tables, self._refused, self._gone, self.renamed):
            for name in [name for name in table if name.startswith(below) or name == directory]:
                del table[name]

    def is_behind(self, path: str) -> bool:
        """Whether the log says something of a file that the file itself may not have durably."""
        known = self._known.get(path)
        return known is not None and known.is_behind

    def note_renamed(self, source: str, target: str) -> bool:
        """A file has taken the place of another; True when it is the log that says so first."""
        self.forget(target)
        if self.renaming != (source, target):
            return False
        self.renamed[source] = target
        self.renaming = None
        return True

    def resized(self, path: str, size: int) -> None:
        """A file was cut or extended."""
        self.noted(path).resize(size)

    def hold(self, path: str, pieces: Iterable[Piece]) -> None:
        """The disk takes what only the log has of a spoilt file no more: who reads the file gets it from here."""
        self.noted(path).held = list(pieces)

    def held(self, path: str) -> Sequence[Piece]:
        """Give what is held of a file. Any thread."""
        known = self._known.get(path)
        return known.held if known is not None else ()

    def spoil(self, path: str) -> bool:
        """A sync of a file failed: it is never synced again. True when only the log has some of its bytes for sure."""
        known = self._known.get(path)
        if known is None:
            return False
        known.is_spoilt = True
        self._due.pop(path, None)
        return path in self._behind

    def takes_at_once(self, writes: Sequence[OwnWrite]) -> bool:
        """Whether these writes go into the next group: nothing else waits in their files, and they are few bytes."""
        size = 0
        for file, data, _ in writes:
            known = self._known.get(file.path)
            if known is not None and (known.pieces or known.is_large or known.is_spoilt):
                return False
            if is_large(len(data)):
                return False
            size += len(data)
        return size <= _most(len(writes))

    # -- the next group -------------------------------------------------------------------------------------------

    def choose(self, files: list[File]) -> list[File]:
        """Give the files to sync in place; the others are due."""
        small: list[tuple[str, Unsynced]] = []
        large: list[File] = []
        size = 0
        for file in files:
            known = self._known.get(file.path)
            own = file.own if isinstance(file, SmallFile) else file
            if not isinstance(own, OwnFile) or known is None or known.is_large or known.is_spoilt:
                large.append(file)
                continue
            known.file = own
            small.append((file.path, known))
            size += known.size
        if size > _most(len(small)) or (large and len(small) <= _WITH_LARGE):
            return files
        self._due.update(one for one in small if one[1].pieces)
        return large

    def take_due_below(self, directories: Iterable[str]) -> list[File]:
        """Give the files below some directories that are due: they are not any more."""
        below = tuple(f"{directory}/" for directory in directories)
        paths = [path for path in self._due if path.startswith(below)]
        return [opened(self._due.pop(path)) for path in paths]

    def take_due_large(self, others: Iterable[File]) -> list[File]:
        """Give those that were cut since they are due, since the log had no room: no group can have them any more.

        Not those among `others`, of which `choose` finds that out.
        """
        known = {file.path for file in others}
        paths = [path for path, one in self._due.items() if one.is_large]
        found = [(path, opened(self._due.pop(path))) for path in paths]
        return [file for path, file in found if path not in known]

    def due(self) -> list[tuple[str, Unsynced]]:
        """Give the files of which what is not durable goes into the next group, with their paths."""
        return [one for one in self._due.items() if not one[1].is_large]

    @property
    def has_due(self) -> bool:
        """Whether anything is due from before."""
        return bool(self._due)

    @property
    def has_pieces(self) -> bool:
        """Whether anything is due, or was written over what the log says."""
        return bool(self._due or self._over)

    def over(self) -> list[tuple[str, list[Piece]]]:
        """Give what was written over what the log says of files that are not due, with their paths."""
        return [one for one in self._over.items() if one[0] not in self._due]

    def written_over(self, path: str) -> list[Piece]:
        """Give what was written over what the log says of a file, and is not in the log yet."""
        return self._over.get(path, [])

    def note_logged(self) -> None:
        """What was due, and what was written over what the log says, is in the log."""
        for path, pieces in self._over.items():
            self._known[path].note_said(pieces)
        self._over = {}
        logged = self.due()
        for path, unsynced in logged:
            unsynced.take_pieces()
            del self._due[path]
        self._behind.update(logged)

    @property
    def is_plain(self) -> bool:
        """Whether nothing is due, refused, or on its way to another name."""
        return not self._due and not self._refused and self.renaming is None

    def note_logged_at_once(self, writes: Iterable[OwnWrite]) -> None:
        """What was just written is in the log."""
        for file, data, offset in writes:
            known = self._behind.get(file.path)
            if known is None:
                known = self.noted(file.path)
                known.file = file
                known.is_behind = True
                self._behind[file.path] = known
            end = offset + len(data)
            if end > known.said_end:  # noqa: PLR1730 - a call for each message of a commit
                known.said_end = end

    # -- the next generation --------------------------------------------------------------------------------------

    @property
    def behind_count(self) -> int:
        """How many files the log is ahead of."""
        return len(self._behind)

    @property
    def has_spoilt(self) -> bool:
        """Whether one that the log is ahead of is not written elsewhere yet."""
        return any(one.is_spoilt for one in self._behind.values())

    def has_all_behind(self, files: Iterable[File]) -> bool:
        """Whether all that the log is ahead of are among these."""
        paths = {file.path for file in files}
        return all(one.is_spoilt or path in paths for path, one in self._behind.items())

    def waiting(self) -> dict[str, Unsynced]:
        """Give those that have to be durable in place before the next generation begins."""
        return {**self._behind, **self._due}

    def overdue(self) -> list[File]:
        """Give the files that the log is ahead of."""
        return [opened(one) for one in self._behind.values() if not one.is_spoilt]

    def begin(self, waiting: Iterable[str]) -> None:
        """The next generation has begun; of those that waited, it only repeats what it says of spoilt ones."""
        kept = self.spoilt(waiting)
        self._due, self._behind = {}, kept
        self.renaming = None
        for path in waiting:
            if path not in kept:
                self._over.pop(path, None)
                if path not in self._refused:
                    self._known.pop(path, None)

    def spoilt(self, paths: Iterable[str]) -> dict[str, Unsynced]:
        """Give those of which the log is the only place that has everything, since a sync of them failed."""
        return {
            path: one
            for path in paths
            if (one := self._known.get(path)) is not None and one.is_spoilt and one.is_behind
        }

    # -- refused --------------------------------------------------------------------------------------------------

    def refuse(self, path: str, error: OSError) -> None:
        """A sync of this file failed and nobody was told yet who can write it elsewhere."""
        self._refused[path] = error
        self.spoil(path)

    @property
    def has_refused(self) -> bool:
        """Whether any was refused that nobody was told of yet."""
        return bool(self._refused)

    def refused(self) -> list[File]:
        """Give the files that were refused."""
        return [opened(self._known[path]) for path in self._refused]

    def take_refused(
        self, files: Iterable[File]
    ) -> tuple[list[tuple[File | str, OSError]], list[File]]:
        """Give those of some files that were refused, with the error, which is told now; and the others."""
        told: list[tuple[File | str, OSError]] = []
        others: list[File] = []
        for file in files:
            error = self._refused.get(file.path)
            if error is None:
                others.append(file)
            else:
                told.append((file, error))
        for item, _ in told:
            self._refused.pop(cast("File", item).path, None)
        return told, others

    def release(self) -> None:
        """Close what is open, at the end."""
        for one in self._known.values():
            if one.file is not None:
                one.file.base.close()
