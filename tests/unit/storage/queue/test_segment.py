"""An index segment in memory: what it counts, its generations, what a clean stop writes down of it."""

from __future__ import annotations

import pytest

from burrowmq.storage.errors import ReadFailed
from burrowmq.storage.queue.disk import QueueDisk
from burrowmq.storage.queue.segment import Segment
from tests.support.queue_on_disk import messages, queue_on
from tests.support.sim_filesystem import SimFileSystem


@pytest.fixture(params=[1, 2])
def queue(request: pytest.FixtureRequest) -> QueueDisk:
    """A queue of either version with ten messages, four of them in the shared store."""
    queue = queue_on(SimFileSystem(), request.param)
    queue.put(0, [*messages(0, 6), *messages(6, 4, handle=100)], None)
    return queue


def segment_of(queue: QueueDisk) -> Segment:
    (segment,) = queue.index
    return segment


def test_what_is_written_is_counted(queue: QueueDisk) -> None:
    segment = segment_of(queue)
    assert (segment.live, segment.shared, segment.used) == (10, 4, 10)
    segment.drop_references(3)
    assert segment.shared == 1


def test_a_refused_read_is_tried_once_more(queue: QueueDisk) -> None:
    queue.keep_up(is_idle=True)  # version 1 has its entries in the file then
    queue.keep_up(is_idle=True)
    segment = segment_of(queue)
    filesystem = queue.place.cache.filesystem
    assert isinstance(filesystem, SimFileSystem)
    filesystem.fail("pread", times=1)
    assert list(segment.load(6, 9).locations) == [100, 101, 102, 103]
    segment.files.forget()  # nothing is kept from that read
    filesystem.fail("pread", times=2)
    with pytest.raises(ReadFailed, match="pread failed"):
        segment.columns()


def test_a_new_generation_begins_with_what_is_kept(queue: QueueDisk) -> None:
    segment = segment_of(queue)
    segment.remove(0, 4)
    segment.note_acks_in_file(0b11111)
    files = queue.files_in(3 - queue.version)
    segment.begin_generation(files, 700, 600, 5, segment.live_mask())
    assert segment.files is files
    assert (segment.generation, segment.store_end, segment.synced_end) == (1, 700, 600)
    assert (segment.epoch, segment.acked_in_file, segment.acked()) == (5, 0, 0)
    assert segment.live_slots(0, 64) == [5, 6, 7, 8, 9]


@pytest.mark.parametrize("acked", [[], [0, 1, 2], [3, 8]])
def test_what_a_clean_stop_writes_down_is_all(queue: QueueDisk, acked: list[int]) -> None:
    segment = segment_of(queue)
    for slot in acked:
        segment.remove(slot, slot)
    again = Segment.with_state(segment.state, segment.files)
    assert again.state == segment.state
    assert again.live_mask() == segment.live_mask()
    assert again.acked() == segment.acked()
