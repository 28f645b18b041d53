"""A segment's pair written anew."""

from __future__ import annotations

import errno

import pytest

from burrowmq.storage.errors import DirectoryFailed, DiskFull, ReadFailed
from burrowmq.storage.queue.disk import QueueDisk
from burrowmq.storage.queue.entries import InMemory
from burrowmq.storage.queue.segment import Segment
from burrowmq.storage.queue.v2.index import QueueIndex, entries_at
from burrowmq.storage.queue.v2.rewrite import Pair, rewrite
from burrowmq.storage.queue.v2.store import QueueStore
from burrowmq.storage.record import ENTRY_SIZE
from tests.simulation.store_world import SilentObserver
from tests.support.queue_on_disk import COUNT, bodies_of, files_in, messages, queue_on, seqs_of
from tests.support.sim_filesystem import SimFileSystem
from tests.support.stored_message import FakeMessage


class Rewriting:
    """A segment with ten messages, four of them acked."""

    def __init__(self) -> None:
        self.filesystem = SimFileSystem()
        self.queue: QueueDisk = queue_on(self.filesystem)
        self.queue.put(0, messages(0, 10), None)
        self.queue.ack(0, 3, None, [])
        self.segment: Segment = self.queue.index.segments[0]
        self.observer = SilentObserver()

    def rewrite(
        self, in_memory: dict[int, FakeMessage] | None = None, spoilt: tuple[str, ...] = ()
    ) -> int:
        """Write it anew."""
        place = self.queue.place
        pair = Pair(place, QueueIndex(place), QueueStore(place))
        kept = None if in_memory is None else InMemory({**in_memory}, {})
        return rewrite(pair, self.segment, kept, self.observer, spoilt)


def test_dead_bodies_are_left_out_and_places_stay() -> None:
    one = Rewriting()
    before = one.segment.store_end
    assert one.rewrite() == 0
    assert (one.segment.generation, one.segment.store_end < before) == (1, True)
    assert seqs_of(one.queue) == [4, 5, 6, 7, 8, 9]
    assert bodies_of(one.queue) == [message.raw for message in messages(4, 6)]
    assert files_in(one.filesystem) == {"0.qi", "0.g1.qs"}


def test_a_bad_entry_is_left_where_it_is_unless_a_rescue_has_to_go_on() -> None:
    one = Rewriting()
    one.filesystem.damage("/q/0.qi", entries_at(COUNT) + 6 * ENTRY_SIZE, b"?")
    with pytest.raises(ReadFailed, match="damaged"):
        one.rewrite()
    assert one.segment.live == 6, "whoever reads it has it set aside"
    assert one.rewrite({}) == 1
    assert seqs_of(one.queue) == [4, 5, 7, 8, 9]
    assert one.observer.events["record_lost"] == 1


def test_a_bad_body_in_a_file_that_is_given_up_is_lost_unless_it_is_in_memory() -> None:
    one = Rewriting()
    location = one.segment.columns().locations[6]
    one.filesystem.damage("/q/0.qs", location + 60, b"\xff")
    assert one.rewrite({}, ("/q/0.qs",)) == 1
    assert seqs_of(one.queue) == [4, 5, 7, 8, 9]
    assert one.observer.events["record_lost"] == 1
    one = Rewriting()
    one.filesystem.damage("/q/0.qs", location + 60, b"\xff")
    assert one.rewrite({6: messages(6, 1)[0]}) == 0
    assert bodies_of(one.queue) == [message.raw for message in messages(4, 6)]


@pytest.mark.parametrize("slot", [4, 6, 9])
def test_a_bad_body_in_a_file_that_is_not_given_up_is_copied_as_it_is(slot: int) -> None:
    one = Rewriting()
    columns = one.segment.columns()
    location, size = columns.locations[slot], columns.sizes[slot]
    one.filesystem.damage("/q/0.qs", location + 60, b"\xff")
    before = one.filesystem.content("/q/0.qs")[location : location + size]
    assert one.rewrite({}, ("/q/0.qi",)) == 0
    assert seqs_of(one.queue) == [4, 5, 6, 7, 8, 9]
    columns = one.segment.columns()
    location, size = columns.locations[slot], columns.sizes[slot]
    assert one.filesystem.content("/q/0.g1.qs")[location : location + size] == before
    assert not one.observer.events["record_lost"]


@pytest.mark.parametrize("operation", ["create", "pwrite", "rename"])
def test_without_room_the_old_pair_stays(operation: str) -> None:
    one = Rewriting()
    one.filesystem.fail(operation, errno.ENOSPC)
    with pytest.raises(DiskFull):
        one.rewrite()
    assert files_in(one.filesystem) == {"0.qi", "0.qs"}
    assert bodies_of(one.queue) == [message.raw for message in messages(4, 6)]


def test_a_good_pair_that_cannot_be_read_stays() -> None:
    one = Rewriting()
    one.filesystem.fail("pread", times=2, path_part="0.qs")
    with pytest.raises(ReadFailed):
        one.rewrite()
    assert one.segment.generation == 0
    assert bodies_of(one.queue) == [message.raw for message in messages(4, 6)]


def test_an_unsure_name_ends_the_store() -> None:
    one = Rewriting()
    one.filesystem.fail("fsync_dir", nth=2)  # after the rename
    with pytest.raises(DirectoryFailed):
        one.rewrite()
