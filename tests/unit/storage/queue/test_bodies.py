"""Bodies on their way from old files to new ones."""

from __future__ import annotations

import errno
from collections.abc import Set as AbstractSet

import pytest

from burrowmq.storage import record
from burrowmq.storage.errors import ReadFailed
from burrowmq.storage.files.filesystem import File
from burrowmq.storage.queue.bodies import DamagedBodies, KeptBodies
from tests.support.queue_on_disk import messages, queue_on
from tests.support.sim_filesystem import SimFileSystem
from tests.support.stored_message import FakeMessage


class Copying:
    """A segment with six messages, the fourth of them in the shared store."""

    def __init__(self) -> None:
        self.filesystem = SimFileSystem()
        self.queue = queue_on(self.filesystem)
        self.messages = [*messages(0, 3), *messages(3, 1, handle=9), *messages(4, 2)]
        self.queue.put(0, self.messages, None)
        (self.segment,) = self.queue.index

    def bodies(
        self,
        kept: int,
        in_memory: dict[int, FakeMessage] | None = None,
        unchecked: AbstractSet[int] = frozenset(),
    ) -> KeptBodies:
        """Those of the kept places."""
        columns = self.segment.columns()
        seed = self.queue.place.seed
        return KeptBodies(0, seed, columns, kept, in_memory, self._source, unchecked)

    def _source(self):
        columns = self.segment.columns()
        return self.segment.files.body_files(self.segment, columns.kinds)

    def copied(self, bodies: KeptBodies, at: int) -> tuple[File, int]:
        """Write them to a new file."""
        target = self.filesystem.create("/new")
        return target, bodies.copy(target, at)

    def read(self, file: File, bodies: KeptBodies, at: int, slots: list[int]) -> list[object]:
        """What is in the new file."""
        placed = bodies.placed_at(at)
        offsets = [placed.locations[slot] for slot in slots]
        data = file.pread(1 << 20, 0)
        return record.unpack_many(data, offsets, 0, slots, self.queue.place.seed)


def test_kept_bodies_follow_each_other_and_keep_their_checks() -> None:
    copying = Copying()
    bodies = copying.bodies(0b101101)
    file, end = copying.copied(bodies, 100)
    assert end == 100 + bodies.total == file.size()
    found = copying.read(file, bodies, 100, [0, 2, 5])
    assert found == [copying.messages[slot].record for slot in (0, 2, 5)]
    placed = bodies.placed_at(100)
    assert placed.statuses == b"\1\0\1\1\0\1"
    assert placed.locations[3] == 9  # the shared one keeps its handle


def test_what_is_in_memory_is_not_read() -> None:
    copying = Copying()
    copying.filesystem.damage("/q/0.qs", 70, b"\xff")
    kept = dict(enumerate(copying.messages))
    bodies = copying.bodies(0b110111, kept)
    file, _ = copying.copied(bodies, 0)
    found = copying.read(file, bodies, 0, [0, 1, 2, 4, 5])
    assert found == [copying.messages[slot].record for slot in (0, 1, 2, 4, 5)]


def test_what_cannot_be_read_is_an_error() -> None:
    copying = Copying()
    exact = copying.bodies(0b11)
    copying.filesystem.fail("pread", errno.EIO, times=2, path_part="0.qs")
    with pytest.raises(ReadFailed):
        copying.copied(exact, 0)
    copying = Copying()
    rescued = copying.bodies(0b11, {1: copying.messages[1]})
    copying.filesystem.fail("pread", errno.EIO, times=2, path_part="0.qs")
    with pytest.raises(ReadFailed):
        copying.copied(rescued, 0)


def test_what_is_damaged_is_said_unless_it_is_to_be_copied_as_it_is() -> None:
    copying = Copying()
    copying.filesystem.damage("/q/0.qs", 70, b"\xff")
    with pytest.raises(DamagedBodies, match=r"0\.qs: damaged") as found:
        copying.copied(copying.bodies(0b110111), 0)
    assert (found.value.path, found.value.slots) == ("/q/0.qs", [0])
    bodies = copying.bodies(0b110111, unchecked={0})
    copying.filesystem.unlink("/new")
    file, _ = copying.copied(bodies, 0)
    expected = [None, *(copying.messages[slot].record for slot in (1, 2, 4, 5))]
    assert copying.read(file, bodies, 0, [0, 1, 2, 4, 5]) == expected
