"""Bytes of own files that the log has, and that are not written to the files themselves yet.

A commit is durable once its group is in the log. To write each message into two files of its queue at once as well
costs a call for each, and the next commit's bytes lie right behind. So they are *held back* in memory, and written out
many commits at a time: when they are more than the bound, and always before the file is synced in place, which it is
when the log's generation ends. Whoever reads the file meanwhile sees them (`files.OwnFile`). To a process that is
killed they are what un-synced bytes are to a power cut: the next start takes them from the log.

State: the files that have some, and how many. Called by `storage.log.short_way`, `.groups` and `.syncs` on the disk
thread. Invariants: what is held back is in the log, or waits for the next group like anything that is written
(`files.Unsynced`); what a file refuses stays held back, and the file counts as one whose sync failed when it is to be
durable in place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from burrowmq.storage.files.filesystem import FileSystem
from burrowmq.storage.log.files import OwnFile, OwnWrite


class HeldBack:
    """See the module."""

    def __init__(self, base: FileSystem, limit: int) -> None:
        """`limit`: bytes; with more, all are written out."""
        self._base = base
        self._limit = limit
        self._files: dict[str, OwnFile] = {}
        self._size = 0  # no less than they have: what a file writes by itself is still counted

    @property
    def is_full(self) -> bool:
        """Whether it is time to write all of it out."""
        return self._size > self._limit

    def hold(self, writes: Sequence[OwnWrite]) -> None:
        """Keep what was written to own files; it is in the log, or will be."""
        files = self._files
        for file, data, offset in writes:
            file.hold(data, offset)
            files[file.path] = file
            self._size += len(data)

    def drop(self, path: str) -> None:
        """A file is gone from its name: only who has it open still reads it."""
        if self._files.pop(path, None) is not None:
            self._count()

    def drop_below(self, directory: str) -> None:
        """A directory is gone, with all below it."""
        below = f"{directory}/"
        for path in [path for path in self._files if path.startswith(below)]:
            del self._files[path]
        self._count()

    def write_out_all(self) -> dict[OwnFile, OSError]:
        """Write all of it to the files; gives those that refused it, which keep theirs."""
        return self.write_out(list(self._files.values()))

    def write_out(self, files: Iterable[OwnFile]) -> dict[OwnFile, OSError]:
        """Write what these have to them, with one call if nothing is refused; gives those that refused it."""
        having = [file for file in files if file.held]
        if not having:
            return {}
        writes = [(one.base, bytes(data), offset) for one in having for offset, data in one.held]
        refused: dict[OwnFile, OSError] = {}
        if self._base.write_some(writes) == len(writes):
            for file in having:
                file.let_held_go()
        else:
            for file in having:
                try:
                    file.write_held()
                except OSError as error:
                    refused[file] = error
        for file in having:
            if not file.held:
                self._files.pop(file.path, None)
        self._count()
        return refused

    def _count(self) -> None:
        self._size = sum(len(data) for file in self._files.values() for _, data in file.held)
