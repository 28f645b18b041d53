"""The short way of a few small writes: into their files, and into the log, without a look at anything else.

Most commits are a message or two for queues whose files are there. Nothing else waits for a sync then, no generation
ends, no sync of a file has failed: what `storage.log.syncs` and `storage.log.own_files` would work out is known. Where
it is not, `is_open` says so before anything is written, and where the log refuses it the usual way goes on from there.

State: none. Called by `storage.disk.short_commits` on the disk thread. Invariant: after `write`, either `make_durable`
says True or `note` tells the usual way what was written.
"""

from __future__ import annotations

from collections.abc import Sequence

from burrowmq.storage.files.filesystem import FileSystem, Write
from burrowmq.storage.log.files import OwnWrite, as_own, is_small
from burrowmq.storage.log.groups import Groups
from burrowmq.storage.log.syncs import Syncs


class ShortWay:
    """See the module."""

    def __init__(self, base: FileSystem, groups: Groups, syncs: Syncs) -> None:
        self._base = base
        self._groups = groups
        self._syncs = syncs

    @property
    def is_open(self) -> bool:
        """Whether a sync would do nothing but write a group."""
        return self._groups.own.is_plain and not self._syncs.is_about_to_do_more

    def write(self, writes: Sequence[Write]) -> list[OwnWrite] | None:
        """Write to files that nothing waits for, and give the own ones; None: refused, or too much for the log."""
        own: list[OwnWrite] = []
        outside: list[Write] = []
        for given, data, offset in writes:
            file = as_own(given)
            if file is not None:
                own.append((file, data, offset))
                outside.append((file.base, data, offset))
        if not self._groups.own.takes_at_once(own):
            return None
        if outside and self._base.write_some(outside) < len(outside):
            return None
        if len(own) < len(writes):
            for given, data, offset in writes:
                if is_small(given):
                    given.pwrite(data, offset)
        return own

    def make_durable(self, own: Sequence[OwnWrite]) -> bool:
        """Have all of it in the log, durably; False: the usual way has to do so, after `note`."""
        return self._groups.log_at_once(own)

    def look_at_grown(self) -> None:
        """After one or more that are durable: do what `Syncs` does after each of its own. This syncs files."""
        self._syncs.look_at_small()

    def note(self, own: Sequence[OwnWrite]) -> None:
        """It is in the files, and the log does not have it."""
        for file, data, offset in own:
            file.note_written(data, offset)
