"""One queue's disk side: what a put, an ack and idle work do, in files of either version."""

from __future__ import annotations

import errno

import pytest

from burrowmq.storage.errors import DiskFull, NoDescriptors
from burrowmq.storage.names import QueueNames
from burrowmq.storage.queue.disk import QueueDisk
from tests.support.queue_on_disk import COUNT, bodies_of, files_in, messages, queue_on, seqs_of
from tests.support.sim_filesystem import SimFileSystem


@pytest.fixture(params=[1, 2])
def queue(request: pytest.FixtureRequest) -> QueueDisk:
    return queue_on(SimFileSystem(), request.param)


def filesystem_of(queue: QueueDisk) -> SimFileSystem:
    filesystem = queue.place.cache.filesystem
    assert isinstance(filesystem, SimFileSystem)
    return filesystem


def test_what_is_put_is_read_in_order(queue: QueueDisk) -> None:
    sent = messages(0, 100)
    queue.put(0, sent[:40], None)
    queue.put(40, sent[40:COUNT], None)
    queue.put(COUNT, sent[COUNT:], None)
    assert seqs_of(queue) == list(range(100))
    assert bodies_of(queue) == [message.raw for message in sent]
    assert queue.is_live(99)
    assert not queue.is_live(100)


def test_the_first_message_makes_the_directory_with_the_name(queue: QueueDisk) -> None:
    filesystem = filesystem_of(queue)
    assert not queue.is_made
    queue.make()
    queue.make()  # an attempt that was cut off does no harm
    assert queue.is_made
    assert filesystem.content("/q/.queue_name").endswith(f"INDEX: v{queue.version}\n".encode())


def test_acks_by_range_and_by_number_drop_the_references(queue: QueueDisk) -> None:
    queue.put(0, messages(0, 30, handle=100), None)
    queue.put(30, messages(30, 5), None)
    dropped: list[int] = []
    queue.ack(0, 4, None, dropped)
    queue.ack_seqs([7, 9, 31, 9], dropped)
    queue.ack(7, 9, None, dropped)
    assert sorted(dropped) == [100, 101, 102, 103, 104, 107, 108, 109]
    assert seqs_of(queue) == [5, 6, *range(10, 31), 32, 33, 34]
    assert sorted(queue.all_handles()) == [105, 106, *range(110, 130)]


@pytest.mark.parametrize("way", ["range", "numbers"])
def test_an_ack_that_found_no_descriptor_drops_its_references_when_it_is_taken_again(
    way: str,
) -> None:
    queue = queue_on(SimFileSystem(), 2)
    queue.put(0, messages(0, 30, handle=100), None)
    queue.place.cache.sync()
    queue.place.cache.release_clean()
    filesystem_of(queue).fail("open", errno.EMFILE)
    dropped: list[int] = []

    def ack() -> None:
        if way == "range":
            queue.ack(3, 5, None, dropped)
        else:
            queue.ack_seqs([3, 4, 5], dropped)

    with pytest.raises(NoDescriptors):
        ack()
    assert (seqs_of(queue), dropped, queue.unread) == (list(range(30)), [], "")
    ack()
    assert (dropped, queue.unread) == ([103, 104, 105], "")
    assert len(queue.all_handles()) == sum(segment.shared for segment in queue.index) == 27


def test_references_are_counted_down_with_the_acks_also_over_a_segments_edge(
    queue: QueueDisk,
) -> None:
    sent = messages(0, COUNT + 6, handle=100)
    queue.put(0, sent[:COUNT], None)
    queue.put(COUNT, sent[COUNT:], None)
    dropped: list[int] = []
    first, last = COUNT - 2, COUNT + 2
    queue.ack(first, last, sent[first : last + 1], dropped)
    assert dropped == list(range(100 + first, 101 + last))
    assert [segment.shared for segment in queue.index] == [COUNT - 2, 3]
    queue.ack(first - 1, last + 1, sent[first - 1 : last + 2], dropped)
    assert dropped[5:] == [99 + first, 101 + last], "the others were acked before"


def test_given_messages_spare_a_look_at_the_index(queue: QueueDisk) -> None:
    sent = messages(0, 5, handle=50)
    queue.put(0, sent, None)
    queue.keep_up(is_idle=True)
    filesystem_of(queue).fail("pread", times=9)
    dropped: list[int] = []
    queue.ack(0, 4, sent, dropped)
    assert (dropped, queue.unread) == ([50, 51, 52, 53, 54], "")


def test_an_ack_holds_although_the_index_cannot_be_read() -> None:
    queue = queue_on(SimFileSystem())
    queue.put(0, messages(0, 5, handle=50), None)
    filesystem_of(queue).fail("pread", times=2)
    dropped: list[int] = []
    queue.ack_seqs([1], dropped)
    assert (dropped, seqs_of(queue)) == ([], [0, 2, 3, 4])
    assert "pread failed" in queue.take_unread()
    assert queue.take_unread() == "", "it is told once"


def test_an_ack_goes_over_a_segments_edge(queue: QueueDisk) -> None:
    queue.put(0, messages(0, COUNT), None)
    queue.put(COUNT, messages(COUNT, 20), None)
    queue.ack(0, COUNT + 2, None, [])
    assert seqs_of(queue) == list(range(COUNT + 3, COUNT + 20))


def test_a_segment_of_acked_messages_goes_and_the_tail_when_there_is_time(queue: QueueDisk) -> None:
    queue.put(0, messages(0, COUNT), None)
    queue.put(COUNT, messages(COUNT, 5), None)
    queue.ack(0, COUNT + 4, None, [])
    queue.keep_up(is_idle=False)
    assert queue.index.numbers[-1] == 1
    for _ in range(3):
        queue.keep_up(is_idle=True)
        assert queue.place.cache.sync() == {}
        queue.after_sync()
    assert queue.index.numbers == []
    assert files_in(filesystem_of(queue)) == set()
    assert not queue.has_journal


def test_a_refused_write_counts_nothing(queue: QueueDisk) -> None:
    queue.put(0, messages(0, 5), None)
    filesystem_of(queue).fail("pwrite", errno.ENOSPC, keep=10)
    with pytest.raises(DiskFull):
        queue.put(5, messages(5, 5), None)
    assert seqs_of(queue) == [0, 1, 2, 3, 4]
    queue.put(5, messages(5, 5), None)
    assert bodies_of(queue) == [message.raw for message in messages(0, 10)]


def test_new_segments_are_of_the_queues_version_old_ones_stay(queue: QueueDisk) -> None:
    old = queue.version
    queue.put(0, messages(0, COUNT), None)
    assert queue.is_all_of(old)
    queue.set_version(3 - old)
    queue.put(COUNT, messages(COUNT, 10), None)
    assert queue.newest_version == 3 - old
    assert [segment.number for segment in queue.segments_elsewhere()] == [0]
    assert not queue.is_all_of(3 - old)
    assert queue.is_conversion_held_up == (old == 1)  # the first segment is in the journal
    assert seqs_of(queue) == list(range(COUNT + 10))
    assert bodies_of(queue) == [message.raw for message in messages(0, COUNT + 10)]


def test_a_full_segment_is_marked_when_it_is_durable_if_that_spares_a_look() -> None:
    for version, is_wanted in ((1, False), (2, True)):
        queue = queue_on(SimFileSystem(), version)
        assert queue.put(0, messages(0, COUNT - 1), None) is None
        filled = queue.put(COUNT - 1, messages(COUNT - 1, 1), None)
        assert (filled is not None) == is_wanted
        if filled is not None:
            queue.mark_synced(filled)
            assert filled.synced_end == filled.store_end > 0


def test_a_backup_takes_the_files_of_segments_before_journals(queue: QueueDisk) -> None:
    queue.put(0, messages(0, COUNT, 400), None)
    queue.put(COUNT, messages(COUNT, 2), None)
    names = [file.path.rpartition("/")[2] for file in queue.cut()]
    assert names == (["0.idx", "1.jif"] if queue.version == 1 else ["0.qi", "0.qs", "1.qi", "1.qs"])


def test_a_queue_without_files_weighs_nothing(queue: QueueDisk) -> None:
    assert queue.memory_bytes == 0
    queue.put(0, messages(0, 5), None)
    assert 300 < queue.memory_bytes < 2000
    queue.forget()
    assert seqs_of(queue) == []
    assert queue.memory_bytes <= 400


def test_who_opens_a_queue_says_whose_it_is(queue: QueueDisk) -> None:
    names = QueueNames("/", "another", 2)
    queue.name_again(names)
    queue.mark_made()
    assert (queue.names, queue.is_made, queue.vhost) == (names, True, "/")
