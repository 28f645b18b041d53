"""Reading a range of a queue: what is chosen, within which limits, and what damage costs."""

from __future__ import annotations

import pytest

from burrowmq.storage.errors import ReadFailed
from burrowmq.storage.loop.staged_commit import ReadRequest
from burrowmq.storage.queue.disk import QueueDisk
from burrowmq.storage.queue.header import HEADER_SIZE
from burrowmq.storage.queue.read import ReadPlan, fetch_records, plan_read
from burrowmq.storage.queue.v1.blocks import BLOCK_SIZE
from burrowmq.storage.record import ENTRY_SIZE
from burrowmq.storage.types import ALL, EMBEDDED_ONLY
from tests.support.queue_on_disk import COUNT, messages, queue_on
from tests.support.sim_filesystem import SimFileSystem


@pytest.fixture(params=[1, 2])
def queue(request: pytest.FixtureRequest) -> QueueDisk:
    return queue_on(SimFileSystem(), request.param)


def plan(
    queue: QueueDisk,
    first: int = 0,
    limit: int = 1000,
    count: int = 1000,
    size: int = 1 << 20,
    wanted: int = ALL,
) -> ReadPlan:
    return plan_read(queue, ReadRequest(0, first, limit, count, size, nobody, wanted))


def nobody(*_: object) -> None:
    raise AssertionError("a plan answers nobody")


def bodies(planned: ReadPlan) -> list[bytes | None]:
    records, _ = fetch_records(planned, None)  # type: ignore[arg-type] - nothing is shared
    return [None if one is None else one[1] for one in records]


def test_a_range_ends_at_each_of_its_limits(queue: QueueDisk) -> None:
    queue.put(0, messages(0, COUNT), None)
    queue.put(COUNT, messages(COUNT, 30), None)
    queue.ack(5, 9, None, [])
    assert (plan(queue, 3, 12).seqs, plan(queue, 3, 12).next_seq) == ([3, 4, 10, 11], 12)
    assert (plan(queue, 60, 200, 6).seqs, plan(queue, 60, 200, 6).next_seq) == (
        list(range(60, 66)),
        66,
    )
    size = messages(0, 1)[0].size
    assert plan(queue, 0, 200, 50, 3 * size).seqs == [0, 1, 2]
    assert plan(queue, 0, 200, 50, 1).seqs == [0]  # at least one
    assert (plan(queue, 94, 200).seqs, plan(queue, 94, 200).next_seq) == ([], 200)


def test_a_plan_stays_right_whatever_goes_meanwhile(queue: QueueDisk) -> None:
    sent = messages(0, 40, 400)  # version 1: to the segment file at once
    queue.put(0, sent, None)
    planned = plan(queue)
    queue.ack(0, 39, None, [])
    for _ in range(3):
        queue.keep_up(is_idle=True)
        queue.place.cache.sync()
        queue.after_sync()
    assert queue.index.numbers == []
    assert bodies(planned) == [message.raw for message in sent]


def test_expiries_are_given_with_the_messages(queue: QueueDisk) -> None:
    queue.put(0, messages(0, 10), range(500, 510))
    assert plan(queue, 4, 7).expiries == [504, 505, 506]


def test_shared_messages_are_named_by_handle_and_can_be_left_out(queue: QueueDisk) -> None:
    queue.put(0, [*messages(0, 3), *messages(3, 2, handle=70), *messages(5, 3)], None)
    everything = plan(queue)
    assert (everything.seqs, everything.handles) == (list(range(8)), [70, 71])
    assert everything.shared_positions == [3, 4]
    without = plan(queue, wanted=EMBEDDED_ONLY)
    assert (without.seqs, without.left_out) == ([0, 1, 2, 5, 6, 7], 2)
    few = plan(queue, wanted=2)  # it ends before the next shared body once it has two
    assert (few.seqs, few.next_seq) == ([0, 1, 2], 3)


def test_what_was_read_badly_is_read_again_before_it_counts_as_bad() -> None:
    """Version 1 keeps the entries that it has read."""
    filesystem = SimFileSystem()
    queue = queue_on(filesystem, version=1)
    queue.put(0, messages(0, 5), None)
    queue.flush_journals()
    place = HEADER_SIZE + BLOCK_SIZE + 3 * ENTRY_SIZE + 9
    was = filesystem.content("/q/0.idx")[place : place + 1]
    filesystem.damage("/q/0.idx", place, b"\xff")
    assert plan(queue).corrupt == [3]
    filesystem.damage("/q/0.idx", place, was)
    planned = plan(queue)
    assert (planned.seqs, planned.corrupt) == (list(range(5)), [])


@pytest.mark.parametrize("operation", ["pread", "open"])
def test_a_read_that_is_refused_costs_nothing(operation: str) -> None:
    for part in ("0.qi", "0.qs"):
        filesystem = SimFileSystem()
        queue = queue_on(filesystem)
        queue.put(0, messages(0, COUNT), None)
        queue.place.cache.sync()
        queue.place.cache.release_clean()
        filesystem.fail(operation, times=4, path_part=part)
        for _ in range(2 if operation == "pread" else 1):
            with pytest.raises(ReadFailed, match=rf"{part}.* failed: .*EIO"):
                bodies(plan(queue))
        filesystem.heal()
        planned = plan(queue)
        assert (len(planned.seqs), planned.corrupt) == (COUNT, [])
        assert None not in bodies(planned)


def test_an_index_that_is_gone_costs_its_messages() -> None:
    filesystem = SimFileSystem()
    queue = queue_on(filesystem)
    queue.put(0, messages(0, COUNT), None)
    queue.place.cache.sync()
    queue.place.cache.forget("/q/0.qi")
    filesystem.unlink("/q/0.qi")
    planned = plan(queue)
    assert (planned.seqs, planned.corrupt) == ([], list(range(COUNT)))


def test_a_bad_entry_is_passed_over_and_reported() -> None:
    filesystem = SimFileSystem()
    queue = queue_on(filesystem)
    queue.put(0, messages(0, 10), None)
    filesystem.damage("/q/0.qi", 64 + 2 * (32 + COUNT // 8) + 4 * 32 + 9, b"\xff")
    planned = plan(queue)
    assert (planned.seqs, planned.corrupt) == ([0, 1, 2, 3, 5, 6, 7, 8, 9], [4])
    assert bodies(planned) == [
        one.raw for one in messages(0, 10) if one.raw != messages(4, 1)[0].raw
    ]


def test_a_file_that_cannot_be_opened_costs_its_bodies() -> None:
    filesystem = SimFileSystem()
    queue = queue_on(filesystem)
    queue.put(0, messages(0, 3), None)
    queue.place.cache.sync()
    queue.place.cache.forget("/q/0.qs")
    filesystem.unlink("/q/0.qs")
    assert bodies(plan(queue)) == [None, None, None]
