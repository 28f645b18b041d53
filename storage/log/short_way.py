"""The short way of a few small writes: into the log, without a look at anything else.

Most commits are a message or two for queues whose files are there. Nothing else waits for a sync then, no generation
ends, no sync of a file has failed: what `storage.log.syncs` and `storage.log.own_files` would work out is known. Where
it is not, `is_open` says so before anything is written, and where the log refuses it the usual way goes on from there.
From their own files such writes are held back (`storage.log.held_back`).

State: none. Called by `storage.disk.short_commits` on the disk thread. Invariant: after `write`, either `make_durable`
says True or `note` tells the usual way what was written.
"""

from __future__ import annotations

from collections.abc import Sequence

from burrowmq.storage.files.filesystem import Write
from burrowmq.storage.log.files import OwnWrite, as_own, is_small
from burrowmq.storage.log.groups import Groups
from burrowmq.storage.log.syncs import Syncs


class ShortWay:
    """See the module."""

    def __init__(self, groups: Groups, syncs: Syncs) -> None:
        self._groups = groups
        self._syncs = syncs

    @property
    def is_open(self) -> bool:
        """Whether a sync would do nothing but write a group, and no more is held back than should be."""
        groups = self._groups
        return (
            groups.own.is_plain
            and not self._syncs.is_about_to_do_more
            and not groups.held_back.is_full
        )

    def write(self, writes: Sequence[Write]) -> list[OwnWrite] | None:
        """Write to small files, and give what is for own ones; None: it is too much for the log at once."""
        own: list[OwnWrite] = []
        for given, data, offset in writes:
            file = as_own(given)
            if file is not None:
                own.append((file, data, offset))
        if not self._groups.own.takes_at_once(own):
            return None
        if len(own) < len(writes):
            for given, data, offset in writes:
                if is_small(given):
                    given.pwrite(data, offset)
        return own

    def make_durable(self, own: Sequence[OwnWrite]) -> bool:
        """Have all of it in the log, durably; False: the usual way has to do so, after `note`."""
        groups = self._groups
        if not groups.log_at_once(own):
            return False
        groups.held_back.hold(own)
        groups.write_out_if_due()
        self._syncs.look_at_small()
        return True

    def note(self, own: Sequence[OwnWrite]) -> None:
        """The log does not have it: it counts as written to the files, which wait for a sync."""
        self._groups.held_back.hold(own)
        for file, data, offset in own:
            file.note_written(data, offset)
