"""DiskRange: where it begins, what it holds, and what is dropped from it unread."""

from __future__ import annotations

from burrowmq.broker.queue.order.disk_range import DiskRange
from burrowmq.broker.queue.order.start_batch_rest import StartBatchRest
from burrowmq.broker.queue.run import DURABLE, TRANSIENT
from tests.support.messages import message


def filled(*sizes: int, keeps_sizes: bool = True) -> DiskRange:
    """One message of each size, ids from 5 on."""
    disk = DiskRange()
    disk.keep_sizes(is_on=keeps_sizes)
    messages = [message(b"x" * size) for size in sizes]
    disk.append(5, messages, sum(sizes), TRANSIENT)
    return disk


def test_it_begins_with_the_first_run():
    disk = filled(3, 3)
    disk.append(7, [message(b"yy")], 2, DURABLE)
    assert (disk.first, disk.count, disk.bytes) == (5, 3, 8)


def test_dropping_by_equal_sizes():
    disk = filled(3, 3, 3, 1)
    assert disk.drop(9, 4) == (range(5, 7), 3, TRANSIENT)
    assert disk.drop(9, 99) == (range(7, 8), 3, TRANSIENT)
    assert (disk.first, disk.count, disk.bytes) == (8, 1, 1)
    assert disk.drop(9, 99) == (range(8, 9), 1, TRANSIENT)
    assert disk.drop(9, 99) is None


def test_sizes_are_known_of_a_range_that_began_with_them_only():
    disk = filled(3, keeps_sizes=False)
    disk.keep_sizes(is_on=True)
    disk.append(6, [message(b"x")], 1, TRANSIENT)
    assert disk.drop(1, 99) is None
    disk = filled(3)
    disk.keep_sizes(is_on=False)
    disk.prepend(2, [([message(b"xxx")] * 3, DURABLE)], 9)
    assert (disk.first, disk.count, disk.bytes, disk.drop(1, 99)) == (2, 4, 12, None)


def test_sizes_of_what_went_to_disk_in_front_are_known():
    disk = filled(3)
    disk.prepend(3, [([message(b"xx")], DURABLE), ([message(b"y")], TRANSIENT)], 3)
    assert (disk.first, disk.count, disk.bytes) == (3, 3, 6)
    assert [disk.drop(9, 99) for _ in range(3)] == [
        (range(3, 4), 2, DURABLE),
        (range(4, 5), 1, TRANSIENT),
        (range(5, 6), 3, TRANSIENT),
    ]


def test_where_an_id_is_missing_nothing_goes_unread():
    disk = filled(3)
    disk.prepend(3, [([message(b"xx")], DURABLE)], 2)
    assert disk.drop(9, 99) is None, "id 4 is gone"
    disk = filled(3, 3, 3)
    assert disk.skip(1, 3, 7, 8) == (1, 0)
    assert (disk.first, disk.count, disk.drop(9, 99)) == (7, 1, None)


def test_more_than_there_are_ids_for_is_lost_and_its_bytes_are_told_at_the_end():
    disk = DiskRange()
    disk.recover(10, 6, 60)
    assert disk.skip(2, 20, 13, 20) == (0, 0), (
        "one id was acked before, or one message is lost: nobody knows"
    )
    assert disk.skip(1, 10, 18, 20) == (1, 0), "two ids are left, and three messages were counted"
    assert (disk.count, disk.bytes) == (2, 30)
    assert disk.skip(2, 20, 20, 20) == (0, 10)
    assert (disk.first, disk.count, disk.bytes) == (20, 0, 0)


def test_what_was_read_leaves_and_takes_overtaken_bodies_along():
    disk = filled(3, 3, 1)
    disk.start_batch_rest = StartBatchRest([(6, message(b"yyy"), 0), (7, message(b"z"), 0)])
    disk.skip(2, 6, 7, 8)
    assert (disk.first, disk.count, disk.bytes, len(disk.start_batch_rest)) == (7, 1, 1, 1)
    assert disk.drop(9, 99) == (range(7, 8), 1, TRANSIENT)


def test_what_the_store_has_lost_is_gone_at_the_end_of_the_range():
    disk = filled(3, 3, 1)
    disk.skip(1, 3, 8, 8)
    assert (disk.first, disk.count, disk.bytes) == (8, 0, 0)


def test_forgotten():
    disk = filled(3, 3)
    disk.start_batch_rest = StartBatchRest([(6, message(b"yyy"), 0)])
    disk.clear()
    assert (disk.count, disk.bytes, len(disk.start_batch_rest)) == (0, 0, 0)
    assert disk.drop(1, 1) is None


def test_it_says_what_was_not_found_once_all_was_read():
    disk = filled(3, 4, 5)
    assert disk.skip(1, 3, 6, 8) == (0, 0)
    assert disk.skip(1, 5, 8, 8) == (1, 4)
    assert (disk.first, disk.count, disk.bytes) == (8, 0, 0)
    assert filled(3).skip(2, 9, 6, 8) == (0, 0)  # more than was promised


def test_how_many_are_persistent_is_known_with_the_sizes_or_when_there_is_none() -> None:
    disk = filled(3, 3)
    disk.append(7, [message(b"yy", persistent=True)], 2, DURABLE)
    assert disk.known_durable == (1, 2)
    assert filled(3, keeps_sizes=False).known_durable is None
    disk.remove(1, 3)
    assert disk.known_durable is None
    disk.clear()
    assert disk.known_durable == (0, 0)
