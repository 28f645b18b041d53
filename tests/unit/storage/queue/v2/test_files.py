"""Version 2 of a queue: the pair of files of each segment."""

from __future__ import annotations

from burrowmq.storage.queue.disk import QueueDisk
from burrowmq.storage.queue.entries import InMemory
from burrowmq.storage.queue.v2.index import entries_at, read_acks
from tests.simulation.store_world import SilentObserver
from tests.support.queue_on_disk import COUNT, bodies_of, files_in, messages, queue_on, seqs_of
from tests.support.sim_filesystem import SimFileSystem


def filled(filesystem: SimFileSystem, count: int = COUNT) -> QueueDisk:
    queue = queue_on(filesystem)
    queue.put(0, messages(0, count), None)
    return queue


def test_a_store_file_is_made_when_a_small_message_needs_it() -> None:
    filesystem = SimFileSystem()
    queue = queue_on(filesystem)
    queue.put(0, messages(0, 5, handle=10), None)
    assert files_in(filesystem) == {"0.qi"}
    queue.put(5, messages(5, 1), None)
    assert files_in(filesystem) == {"0.qi", "0.qs"}


def test_a_mixed_run_keeps_its_order() -> None:
    queue = queue_on(SimFileSystem())
    made = [
        *messages(0, 2),
        *messages(2, 2, handle=70),
        *messages(4, 1),
        *messages(5, 1, handle=80),
    ]
    queue.put(0, made, None)
    (segment,) = queue.index
    columns = segment.columns()
    assert columns.kinds == b"\2\2\1\1\2\1"
    assert [columns.locations[at] for at in (2, 3, 5)] == [70, 71, 80]
    assert [size > 0 for size in columns.sizes] == [True, True, False, False, True, False]


def test_acks_are_written_when_half_a_segment_has_some_or_there_is_time() -> None:
    queue = filled(SimFileSystem())
    queue.ack(0, COUNT // 2 - 2, None, [])
    assert queue.keep_up(is_idle=False) == (True, [])
    queue.ack(COUNT // 2 - 1, COUNT // 2 - 1, None, [])
    is_left, flushed = queue.keep_up(is_idle=False)
    assert (is_left, [segment.number for segment in flushed]) == (False, [0])
    queue.ack(40, 40, None, [])
    is_left, flushed = queue.keep_up(is_idle=True)
    assert (is_left, len(flushed)) == (False, 1)


def test_a_segment_is_shrunk_when_most_of_it_is_dead() -> None:
    filesystem = SimFileSystem()
    queue = filled(filesystem)
    (segment,) = queue.index
    before = segment.store_end
    queue.ack(0, COUNT // 2, None, [])
    assert segment.files.shrink(segment, SilentObserver()) is None
    queue.ack(COUNT // 2, COUNT - 5, None, [])
    assert segment.files.shrink(segment, SilentObserver()) == 0
    assert segment.store_end < before / 4
    assert files_in(filesystem) == {"0.qi", "0.g1.qs"}
    assert bodies_of(queue) == [message.raw for message in messages(COUNT - 4, 4)]


def test_a_rescue_writes_only_what_failed_anew() -> None:
    filesystem = SimFileSystem()
    queue = filled(filesystem)
    queue.put(COUNT, messages(COUNT, 3), None)
    sent = InMemory(dict(enumerate(messages(COUNT, 3))), {})
    filesystem.damage("/q/1.qs", 70, b"\xff")
    for step in queue.rescue_steps({"/q/1.qs"}, lambda _: sent, SilentObserver()):
        step()
    assert files_in(filesystem) == {"0.qi", "0.qs", "1.qi", "1.g1.qs"}
    assert bodies_of(queue) == [message.raw for message in messages(0, COUNT + 3)]


def test_a_cut_says_what_was_live() -> None:
    filesystem = SimFileSystem()
    queue = filled(filesystem, 40)
    queue.ack(0, 9, None, [])
    index, store = queue.cut()
    queue.ack(10, 39, None, [])
    queue.keep_up(is_idle=False)
    assert index.pieces is not None
    data = b"".join(index.pieces(filesystem.open("/q/0.qi")))
    assert len(data) == index.size
    _, synced_end, acked = read_acks(data[: entries_at(COUNT)], COUNT)
    assert (synced_end, acked) == (store.size, ((1 << COUNT) - 1) & ~(((1 << 30) - 1) << 10))
    assert (store.path, store.is_final, store.pieces) == ("/q/0.qs", False, None)


def test_only_a_full_store_that_is_not_the_last_never_changes_again() -> None:
    queue = filled(SimFileSystem())
    assert [file.is_final for file in queue.cut()] == [False, False]
    queue.put(COUNT, messages(COUNT, 2), None)
    assert [file.is_final for file in queue.cut()] == [False, True, False, False]


def test_removing_takes_both_files() -> None:
    filesystem = SimFileSystem()
    queue = filled(filesystem)
    queue.ack(0, COUNT - 1, None, [])
    (segment,) = queue.index
    queue.remove(segment)
    assert (files_in(filesystem), seqs_of(queue)) == (set(), [])
