"""What is made durable in the log, and what in place.

Few bytes for many own files go into the log, with what happened to small queues, in one group and one sync; many bytes
for few files are synced in place. After that, small queues that have grown move out (`storage.log.moving_out`).

State: the bounds. Called by `storage.log.filesystem` on the disk thread. Invariant: the log never says of an own file
what a younger sync in place made untrue (OWN_FORGET is durable before anybody is told).
"""

from __future__ import annotations

from collections.abc import Sequence

from burrowmq.storage.files.filesystem import File, FileSystem
from burrowmq.storage.log.files import base_of, is_small
from burrowmq.storage.log.groups import Groups, LogOptions
from burrowmq.storage.log.moving_out import move_out

# Small queues that move out after one sync.
_MOVES = 32


class Syncs:
    """See the module."""

    def __init__(self, base: FileSystem, groups: Groups, log_dir: str, options: LogOptions) -> None:
        self._base = base
        self._groups = groups
        self._log_dir = log_dir
        self._options = options
        self.is_in_place = False
        """Whether own files are synced in place whatever their size: not all of their bytes are of this process."""

    def sync_all(
        self, files: Sequence[File], directories: Sequence[str]
    ) -> list[tuple[File | str, OSError]]:
        """Make files and directories durable."""
        groups = self._groups
        told: list[tuple[File | str, OSError]] = []
        own = [file for file in files if not is_small(file)]
        if groups.own.has_refused:
            told, own = self._take_refused(own)
        is_ending = groups.is_ending and groups.own.has_all_behind(own)
        grown = groups.own.take_due_large(own) if groups.own.has_due else []
        in_place = own if is_ending or self.is_in_place else groups.own.choose(own)
        in_place = [*in_place, *grown] if grown else in_place
        names = [path for path in directories if self._needs_disk(path)]
        failed = told + (self._sync_in_place(in_place, names) if in_place or names else [])
        nameless = [item for item, _ in failed if isinstance(item, str)]
        if nameless:  # a name there may lead to an older file, and the log knows names only
            failed += self._sync_in_place(groups.own.take_due_below(nameless), [])
        try:
            if is_ending and not failed:
                failed += groups.begin_generation()
            groups.flush()
        except OSError as error:
            failed.append((self._log_dir, error))
        else:
            self.look_at_small()
        return failed + self._take_refused(own)[0] if groups.own.has_refused else failed

    @property
    def is_about_to_do_more(self) -> bool:
        """Whether the next sync does more than write a group: in place, or begin a generation."""
        return self.is_in_place or not self._groups.is_open or self._groups.is_full

    def look_at_small(self) -> None:
        """A group is written: small queues that have grown move out, some of those that nobody uses take less."""
        small = self._groups.small
        if small.has_grown:
            self._move_out_grown()
        small.pack_idle()

    def overdue(self) -> list[File]:
        """Give the own files that have to be durable in place before the log's next generation begins: now is the time.

        A failure of one is then told to whoever can write it elsewhere.
        """
        return self._groups.own.overdue() if self._groups.is_ending else []

    def refused(self) -> list[tuple[File | str, OSError]]:
        """Give the own files whose sync failed as a generation began, and that nobody was told of yet; each once."""
        own = self._groups.own
        return self._take_refused(own.refused())[0] if own.has_refused else []

    def fsync_dir(self, path: str) -> None:
        """Make the names in a directory durable."""
        if self._needs_disk(path):
            self._base.fsync_dir(path)
            self._groups.names_synced(path)
        self._groups.flush()

    def _needs_disk(self, path: str) -> bool:
        groups = self._groups
        if path in groups.small or path == self._log_dir:
            return False
        is_of_queues = path.startswith(groups.root) and path.endswith("/queues")
        return not is_of_queues or path in groups.changed

    def _sync_in_place(
        self, files: Sequence[File], directories: Sequence[str]
    ) -> list[tuple[File | str, OSError]]:
        groups = self._groups
        given = {base_of(file): file for file in files}
        failed: list[tuple[File | str, OSError]] = []
        for item, error in self._base.sync_all(list(given), directories):
            failed.append((item if isinstance(item, str) else given[item], error))
        refused = {item if isinstance(item, str) else item.path for item, _ in failed}
        for path in directories:
            if path not in refused:
                groups.names_synced(path)
        for file in files:
            if file.path not in refused:
                groups.forget(file.path)
        return failed + self._write_back([file for file in files if file.path in refused])

    def _take_refused(
        self, files: Sequence[File]
    ) -> tuple[list[tuple[File | str, OSError]], list[File]]:
        """Give those of some files whose sync failed as a generation began, to be told now; and the others."""
        told, others = self._groups.own.take_refused(files)
        refused = [file for file, _ in told if not isinstance(file, str)]
        return told + self._write_back(refused), others

    def _write_back(self, files: Sequence[File]) -> list[tuple[File | str, OSError]]:
        """Have in files whose sync failed what only the log has; where that cannot be, the log has failed."""
        try:
            self._groups.write_back({file.path: base_of(file) for file in files})
        except OSError as error:
            return [(self._log_dir, error)]
        return []

    def _move_out_grown(self) -> None:
        """Let small queues that have grown move out; those that the disk refuses stay small."""
        options, small = self._options, self._groups.small
        grown = small.take_grown(options.queue_limit, options.total_limit, _MOVES)
        if not grown:
            return
        try:
            move_out(self._base, self._groups, grown)
        except OSError:
            for directory in grown:  # one of them is at fault
                try:
                    move_out(self._base, self._groups, [directory])
                except OSError:
                    small.note_refused(directory)
