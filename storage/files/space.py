"""What happens when the disk is full: publishers are told, the ballast goes, and both come back with the space.

The ballast is an empty file for which a start reserves space. Without it a full disk would stay full: acknowledgements
free space, but they wait behind messages for which there is none. When the disk is full the ballast is removed, whether
a commit finds that or idle work, with which acknowledgements are written where nobody publishes. Then what is in memory
can be written, acknowledgements follow, and segments empty or are compacted. When there is room for the ballast again
it is reserved again, and only then publishers may go on. A file system that is too small for a ballast, or refuses it
again and again though there is room, is used without one; one that an earlier start has reserved is kept, however
little is free.

State owned: the ballast's file, whether space is short. Called on the disk thread; `tell` gets what the loop has to
know. Invariant: every True that was told is followed by a False once there is room.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from burrowmq.storage.files.cache import NO_ROOM
from burrowmq.storage.files.filesystem import FileSystem
from burrowmq.storage.types import StoreObserver

BALLAST_FILE: Final = "ballast"
# A new one is reserved only where it is a small part of what is free, and again only with room to spare.
_SHARE = 8
_SPARE = 3
# Publishers wait for so many attempts that fail for another reason than want of room; the next shortage tries it again.
_ATTEMPTS = 20


def give_up_ballast(filesystem: FileSystem, data_dir: str) -> bool:
    """Remove a ballast that an earlier start reserved; False when there is none. Raises OSError."""
    path = f"{data_dir}/{BALLAST_FILE}"
    if not filesystem.exists(path):
        return False
    filesystem.unlink(path)
    return True


class Space:
    """The room on the store's disk."""

    def __init__(
        self,
        filesystem: FileSystem,
        data_dir: str,
        ballast_bytes: int,
        observer: StoreObserver,
        tell: Callable[[bool], None],
    ) -> None:
        self._filesystem = filesystem
        self._data_dir = data_dir
        self._path = f"{data_dir}/{BALLAST_FILE}"
        self._size = ballast_bytes
        self._observer = observer
        self._tell = tell
        self.is_short = False
        self.reason = ""
        """Which write found no room last, while space is short."""
        self.is_held_up = False
        """Whether idle work found no room the last time, whatever commits find: a quota may be one queue's alone."""
        self.has_ballast = False
        self._refusals = 0  # of the ballast, since space is short
        if ballast_bytes and (self._is_there() or self._free() >= _SHARE * ballast_bytes):
            self.has_ballast = self._reserve()
        self._is_wanted = self.has_ballast

    def ran_out(self, reason: str) -> bool:
        """A write found no room. True when it is worth trying again at once: the ballast was just given up."""
        if not self.is_short:
            self.is_short, self.reason, self._refusals = True, reason, 0
            self._observer.space_exhausted(reason, True)
            self._tell(True)
        if not self.has_ballast:
            return False
        self.has_ballast = False
        self._remove()
        return True

    def look(self) -> None:
        """A write that found no room succeeded: end the shortage if there is room for the ballast again.

        Not while idle work `is_held_up`: it would be back with the next moment.
        """
        if not self.is_short or self.is_held_up:
            return
        if self._is_wanted and not self.has_ballast:
            if self._free() < _SPARE * self._size:
                return
            self.has_ballast = self._reserve()
            if not self.has_ballast and self._refusals < _ATTEMPTS:
                return
        self.is_short, self.reason = False, ""
        self._observer.space_exhausted("", False)
        self._tell(False)

    def _free(self) -> int:
        try:
            return self._filesystem.disk_free(self._data_dir)
        except OSError:
            return 0

    def _is_there(self) -> bool:
        try:
            return self._filesystem.exists(self._path)
        except OSError:
            return False

    def _reserve(self) -> bool:
        try:
            if not self._filesystem.exists(self._path) or self._is_cut_off():
                self._filesystem.reserve(self._path, self._size)
        except OSError as error:
            self._refusals += error.errno not in NO_ROOM
            self._remove()
            return False
        return True

    def _is_cut_off(self) -> bool:
        """Whether a killed process has not reserved all of it, and there is room for the rest as for a new one."""
        size = self._filesystem.file_size(self._path)
        return size < self._size and self._free() >= _SHARE * self._size

    def _remove(self) -> None:
        try:
            self._filesystem.unlink(self._path)
        except OSError:
            return
