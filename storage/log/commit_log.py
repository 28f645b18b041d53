"""The two files of the commit log, and the generation that is being written.

A generation begins with a snapshot of all that lies in the log alone; groups follow. When it is full the next one
begins in the other file, which is written over: no file grows for long, and what is written over needs no new blocks.
Where a file has to grow, zeros go before the groups, so that their sync has no length and no blocks to make durable.

State: which file is written, up to where, and what of it is durable. Called by `storage.log.filesystem` on the disk
thread. Invariants: a generation counts once the last part of its snapshot is whole, and until then the one before does;
a file whose sync failed is never synced again, but made anew; a group that was not written whole is written over.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from burrowmq.storage.files.filesystem import File, FileSystem
from burrowmq.storage.log import records

DIRECTORY: Final = "commit_log"
_GROW: Final = 1 << 20
_PART: Final = 256 * 1024
# Groups of at most so many bytes are written and synced with one call; for larger ones it is slower than two.
_THROUGH: Final = 64 * 1024
# A generation that cannot end yet takes as many times what it should.
_MOST_ROOMS: Final = 4


def paths(data_dir: str) -> tuple[str, str]:
    """Give the paths of both files."""
    return f"{data_dir}/{DIRECTORY}/0.log", f"{data_dir}/{DIRECTORY}/1.log"


class CommitLog:
    """See the module."""

    def __init__(
        self, filesystem: FileSystem, data_dir: str, identity: bytes, seed: int, limit: int
    ) -> None:
        self.seed = seed
        self.generation = 0
        self.syncs = 0
        self._filesystem = filesystem
        self._data_dir = data_dir
        self._paths = paths(data_dir)
        self._header = records.pack_header(identity)
        self._limit = limit
        self._counting = 1  # the file with the newest whole generation
        self._grow = min(_GROW, max(limit // 4, 512))
        self._spoilt: set[str] = set()  # files that must not be synced again
        self._file: File | None = None
        self._end = 0
        self._grown = 0  # the file has blocks up to here, durable ones
        self._room = 0  # the next generation begins when this is reached
        self._sequence = 0
        self._durable = 0

    @property
    def is_durable(self) -> bool:
        """Whether all groups are."""
        return self._durable == self._sequence

    def resume(self, generation: int, counting: int) -> None:
        """No file has a younger generation than this; the one that counts is in this file."""
        self.generation, self._counting = generation, counting

    @property
    def is_open(self) -> bool:
        """Whether a generation was begun whose file has not failed."""
        return self._file is not None

    @property
    def is_full(self) -> bool:
        """Whether the next generation should begin."""
        return self._end >= self._room

    @property
    def is_overfull(self) -> bool:
        """Whether it can wait for that no longer."""
        return self._end >= _MOST_ROOMS * self._room

    def renew(self) -> None:
        """What the file says cannot be believed: the next generation should begin."""
        self._room = 0

    def damage(self) -> Iterator[tuple[int, str]]:
        """Read the generation that is written, as far as it is: (bytes, what is wrong). Any thread. Raises OSError.

        The other file counts for nothing. One that ends meanwhile is given up: all of it is in the next.
        """
        file, end, generation = self._file, self._end, self.generation
        if file is None:
            return
        for size, what in records.damage_in(file, end, generation, self.seed):
            if self.generation != generation or self._file is not file:
                return
            yield size, what

    def append(self, payload: bytes) -> None:
        """Write a group. Raises OSError: then it is not there."""
        group = records.pack_group(
            self.seed, self.generation, 0, self._sequence + 1, self._durable, payload
        )
        self._write(group)

    def takes_through(self, size: int) -> bool:
        """Whether a group with so many bytes of records is written and made durable with one call.

        That says nothing of groups before it, and nothing of the blocks that a file gets when it grows.
        """
        end = self._end + records.GROUP_SIZE + size
        return size <= _THROUGH and end <= self._grown and self.is_open and self.is_durable

    def append_through(self, payload: bytes) -> None:
        """Write a group and make it durable. Raises OSError: then the file must not be used any more."""
        assert self._file is not None
        group = records.pack_group(
            self.seed, self.generation, 0, self._sequence + 1, self._durable, payload
        )
        self._file.write_through(group, self._end)
        self.syncs += 1
        self._end += len(group)
        self._sequence += 1
        self._durable = self._sequence

    def sync(self) -> None:
        """Make all groups durable. Raises OSError: then the file must not be used any more."""
        assert self._file is not None
        self._file.fdatasync()
        self.syncs += 1
        self._durable = self._sequence

    def release(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def spoil(self) -> None:
        """The file that is written failed: it is not used any more."""
        if self._file is not None:
            self._spoilt.add(self._file.path)
            self._file = None

    def begin(self, snapshot: Iterator[bytes]) -> None:
        """Begin the next generation in the other file, durably.

        Raises OSError. The one before is what counts then, and nothing may be added to it, since the new one may be
        there all the same: call it again.
        """
        self._file = None
        self.generation += 1
        self._sequence = self._durable = 0
        file = self._file = self._open(self._paths[1 - self._counting])
        try:
            self._write_snapshot(snapshot)
            self.sync()
        except OSError:
            self._spoilt.add(file.path)
            self._file = None
            raise
        self._counting = 1 - self._counting
        self._room = max(self._limit, 2 * self._end)

    def _open(self, path: str) -> File:
        """Give a file to write over; both are there from the first time on, so that a missing one is noticed."""
        filesystem, directory = self._filesystem, f"{self._data_dir}/{DIRECTORY}"
        filesystem.mkdir(directory)
        for one in self._paths:
            if one in self._spoilt or not filesystem.exists(one):
                self._make(one)
        file = filesystem.open(path)
        # Always: whoever made it may not have come to this.
        filesystem.fsync_dir(directory)
        filesystem.fsync_dir(self._data_dir)
        self._grown = file.size()
        if self._grown > 2 * self._limit:
            file.truncate(self._limit)
            self._grown = self._limit
        file.pwrite(self._header, 0)
        self._end = records.HEADER_SIZE
        return file

    def _make(self, path: str) -> None:
        if path in self._spoilt and path == self._paths[self._counting]:
            return  # it is read for as long as it counts
        aside = f"{path}.new"
        if self._filesystem.exists(aside):
            self._filesystem.unlink(aside)
        self._filesystem.create(aside)
        self._filesystem.rename(aside, path)
        self._spoilt.discard(path)

    def _write_snapshot(self, snapshot: Iterator[bytes]) -> None:
        parts: list[bytes] = []
        size = 0
        for part in snapshot:
            parts.append(part)
            size += len(part)
            if size >= _PART:
                self._write_part(parts, records.SNAPSHOT)
                parts, size = [], 0
        self._write_part(parts, records.SNAPSHOT | records.SNAPSHOT_END)

    def _write_part(self, parts: list[bytes], flags: int) -> None:
        payload = b"".join(parts)
        self._write(
            records.pack_group(self.seed, self.generation, flags, self._sequence + 1, 0, payload)
        )

    def _write(self, group: bytes) -> None:
        file = self._file
        assert file is not None
        end = self._end + len(group)
        if end > self._grown:
            grown = max(end, self._grown + self._grow)
            file.pwrite(bytes(grown - end), end)
            self._grown = grown
        file.pwrite(group, self._end)
        self._end = end
        self._sequence += 1
