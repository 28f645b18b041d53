"""LoopScheduler: stages in their fixed order, marks, commits, lag."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

import pytest

from burrowmq.broker.turn import loop_scheduler
from burrowmq.broker.turn.loop_scheduler import (
    LAG_BUCKETS_S,
    PUMP_S,
    TOGETHER,
    LoopScheduler,
    SystemEntropy,
)
from burrowmq.broker.turn.outbox import MANY, Outbox
from burrowmq.storage import real_time
from tests.support.bench.loop import ManualLoop


class World:
    def __init__(self) -> None:
        self.loop = ManualLoop()
        self.order: list[str] = []
        self.scheduler = LoopScheduler(
            cast("Any", self.loop), lambda: self.order.append("hand over")
        )


class Part:
    """A queue, a channel and a connection in one."""

    def __init__(self, world: World, name: str = "") -> None:
        self.world = world
        self.name = name
        self.is_dirty = False
        self.is_confirm_dirty = False
        self.waits_for = 0
        self.on_flush: Any = lambda: None

    def pump(self) -> None:
        assert not self.is_dirty
        self.world.order.append(f"pump{self.name}")
        self.world.scheduler.confirms_dirty(self)

    def flush(self) -> None:
        self.world.order.append(f"write{self.name}")
        self.on_flush()

    def emit_confirms(self, committed_epoch: int) -> bool:
        self.world.order.append(f"confirm{self.name} {committed_epoch}")
        return self.waits_for > committed_epoch


def test_the_stages_have_their_order_whatever_was_marked_first():
    world = World()
    output, queue, channel = Part(world), Part(world), Part(world)
    world.scheduler.output_dirty(output)
    world.scheduler.confirms_dirty(channel)
    world.scheduler.queue_dirty(queue)
    world.loop.run_once()
    assert world.order == ["pump", "hand over", "confirm 0", "confirm 0", "write"]


def test_marks_of_one_turn_are_one_callback_and_one_call_each():
    world = World()
    queue = Part(world)
    queue.pump = lambda: world.order.append("pump")  # type: ignore[method-assign]
    for _ in range(100):
        world.scheduler.queue_dirty(queue)
        world.scheduler.touch()
    world.loop.run()
    assert world.order == ["pump", "hand over"]
    assert world.loop.callbacks_run == 1


def test_what_a_stage_makes_for_an_earlier_one_waits_for_the_next_turn():
    world = World()
    output, queue = Part(world), Part(world)
    queue.pump = lambda: world.order.append("pump")  # type: ignore[method-assign]
    output.on_flush = lambda: world.scheduler.queue_dirty(queue)
    world.scheduler.output_dirty(output)
    world.loop.run()
    assert world.order == ["hand over", "write", "pump", "hand over"]
    assert world.scheduler.turns == 2


def test_what_a_stage_makes_for_a_later_one_needs_no_turn_of_its_own():
    world = World()
    queue, output = Part(world), Part(world)
    queue.pump = lambda: world.scheduler.output_dirty(output)  # type: ignore[method-assign]
    world.scheduler.queue_dirty(queue)
    world.loop.run()
    assert (world.order, world.scheduler.turns) == (["hand over", "write"], 1)


def test_queues_that_take_long_together_are_pumped_in_several_turns_each_once():
    world = World()
    scheduler = world.scheduler
    now, served = [0.0], list[int]()
    scheduler.monotonic = lambda: now[0]

    def pump(number: int) -> None:
        now[0] += PUMP_S / TOGETHER
        served.append(number)

    queues = [Part(world) for _ in range(3 * TOGETHER)]
    late = Part(world)
    for number, queue in enumerate([*queues, late]):
        queue.pump = partial(pump, number)  # type: ignore[method-assign]
    for queue in queues:
        scheduler.queue_dirty(queue)
    world.loop.run_once()
    first = list(served)
    assert world.order == ["hand over"], "the turn has all its stages"
    scheduler.queue_dirty(late)
    scheduler.queue_dirty(queues[-1])
    world.loop.run()
    assert first == list(range(2 * TOGETHER))
    assert served == list(range(3 * TOGETHER + 1))
    assert not any(queue.is_dirty for queue in (*queues, late))


def test_those_who_have_sent_much_go_on_behind_the_answers_of_a_turn():
    world = World()
    intake = world.scheduler.intake

    def go_on() -> None:
        world.order.append("taken in")
        intake.spend(1)
        world.scheduler.touch()

    intake.wait(go_on)  # which is reason enough for a turn
    intake.wait(go_on)
    world.scheduler.output_dirty(Part(world))
    world.loop.run_once()
    assert world.order == ["hand over", "write", "taken in"]
    world.scheduler.output_dirty(Part(world))
    world.loop.run()
    assert world.order[3:] == ["hand over", "write", "taken in", "hand over"]
    assert intake.has_time()


def test_a_turn_that_fails_costs_nobody_who_waits_for_its_end():
    world = World()
    world.scheduler._hand_over = [].pop
    world.scheduler.intake.wait(lambda: world.order.append("taken in"))
    with pytest.raises(IndexError):
        world.loop.run()
    assert world.order == ["taken in"]


def test_nobody_goes_on_after_the_end():
    world = World()
    world.scheduler.intake.wait(lambda: world.order.append("taken in"))
    world.scheduler.stop()
    world.loop.run()
    assert world.order == []


def test_what_is_staged_within_a_turn_is_handed_over_in_the_next():
    world = World()
    output = Part(world)
    output.on_flush = world.scheduler.touch
    world.scheduler.output_dirty(output)
    world.loop.run()
    assert world.order == ["hand over", "write", "hand over"]


def test_a_turn_that_fails_is_not_the_last():
    world = World()
    world.scheduler._hand_over = [].pop
    world.scheduler.touch()
    with pytest.raises(IndexError):
        world.loop.run()
    world.scheduler._hand_over = lambda: world.order.append("hand over")
    world.scheduler.touch()
    world.loop.run()
    assert world.order == ["hand over"]


def test_a_channel_that_waits_for_the_disk_is_asked_again_after_the_commit():
    world = World()
    channel = Part(world)
    channel.waits_for = 2
    world.scheduler.confirms_dirty(channel)
    world.loop.run()
    world.scheduler.on_committed(1)
    world.loop.run()
    assert channel.is_confirm_dirty
    world.scheduler.on_committed(2)
    world.loop.run()
    asked = [step for step in world.order if step.startswith("confirm")]
    assert asked == ["confirm 0", "confirm 1", "confirm 2"]
    assert not channel.is_confirm_dirty
    world.scheduler.on_committed(3)
    world.loop.run()
    assert len([step for step in world.order if step.startswith("confirm")]) == 3


def test_of_many_channels_the_second_half_has_its_confirms_in_the_next_turn():
    world = World()
    channels = [Part(world, f" {number}") for number in range(loop_scheduler.HALVED + 1)]
    for channel in channels[1:]:
        world.scheduler.confirms_dirty(channel)
    world.loop.run_once()
    assert len(world.order) == 1 + loop_scheduler.HALVED, "these are not many yet"
    world.order.clear()
    for channel in channels:
        world.scheduler.confirms_dirty(channel)
    half = len(channels) // 2
    world.loop.run_once()
    first, world.order[:] = [*world.order], []
    world.scheduler.confirms_dirty(channels[0])
    world.loop.run_once()
    assert first == ["hand over", *(f"confirm {number} 0" for number in range(half))]
    later = [*range(half, len(channels)), 0]
    assert world.order == ["hand over", *(f"confirm {number} 0" for number in later)]
    assert not world.loop.ready


def test_once_the_store_has_failed_all_of_many_channels_are_told_at_once():
    world = World()
    channels = [Part(world, f" {number}") for number in range(3 * loop_scheduler.HALVED)]
    for channel in channels:
        world.scheduler.confirms_wait(channel, 1)
    world.scheduler.on_failed()
    world.loop.run_once()
    assert len([each for each in world.order if each.startswith("confirm")]) == len(channels)


def test_outputs_of_many_are_sent_together(monkeypatch: pytest.MonkeyPatch):
    world = World()
    sent: list[list[int]] = []

    def send_each(descriptors: list[int], octets: list[bytes]) -> list[int]:
        sent.append(descriptors)
        return [len(each) for each in octets]

    world.scheduler.outbox = Outbox(world.scheduler._report, send_each)

    class Output(Part):
        descriptor = 7

        def flush(self) -> None:
            super().flush()
            if world.scheduler.outbox.is_open:
                world.scheduler.outbox.put(self, b"confirm")

        def sent(self, data: bytes, size: int) -> None:
            world.order.append(f"sent{self.name}")

    for count in (MANY - 1, MANY):
        world.order.clear()
        outputs = [Output(world, f" {number}") for number in range(count)]
        for output in outputs:
            world.scheduler.output_dirty(output)
        world.loop.run_once()
    assert sent == [[7] * MANY]
    assert world.order == [
        "hand over",
        *(f"write {number}" for number in range(MANY)),
        *(f"sent {number}" for number in range(MANY)),
    ]
    assert not world.scheduler.outbox.is_open


def test_a_channel_that_waits_for_a_commit_is_not_asked_before():
    world = World()
    first, second = Part(world, "a"), Part(world, "b")
    world.scheduler.confirms_wait(first, 1)
    world.scheduler.confirms_wait(second, 2)
    world.scheduler.confirms_wait(second, 3)
    world.loop.run()
    assert world.order == ["hand over"]
    world.scheduler.on_committed(1)
    world.loop.run()
    world.scheduler.on_committed(2)
    world.loop.run()
    asked = [step for step in world.order if step.startswith("confirm")]
    assert asked == ["confirma 1", "confirmb 2"]
    world.scheduler.confirms_wait(first, 2)  # durable already
    world.loop.run()
    assert world.order[-1] == "confirma 2"


def test_what_has_come_from_elsewhere_is_confirmed_though_a_commit_is_waited_for():
    world = World()
    channel = Part(world)
    channel.waits_for = 2
    world.scheduler.confirms_wait(channel, 2)
    world.loop.run()
    world.order.clear()
    world.scheduler.confirms_dirty(channel)  # nothing that it owes has come
    world.loop.run()
    assert world.order == []
    for _ in range(2):
        world.scheduler.confirms_completed(channel)
    world.loop.run()
    assert world.order == ["hand over", "confirm 0"]
    world.order.clear()
    world.scheduler.on_committed(2)
    world.loop.run()
    assert world.order == ["hand over", "confirm 2"]
    world.order.clear()
    world.scheduler.confirms_completed(channel)
    world.loop.run()
    assert world.order == ["hand over", "confirm 2"]


def test_a_commit_that_is_reported_at_the_hand_over_needs_no_turn_of_its_own():
    world = World()
    channel = Part(world)
    world.scheduler.confirms_wait(channel, 1)
    world.scheduler._hand_over = lambda: world.scheduler.on_committed(1)
    world.loop.run()
    assert (world.order, world.scheduler.turns) == (["confirm 1"], 1)


def test_one_waits_whatever_others_are_due():
    world = World()
    scheduler = world.scheduler
    first, second = Part(world, "a"), Part(world, "b")
    assert not scheduler.is_one_waiting
    scheduler.confirms_wait(first, 1)
    scheduler.output_dirty(second)
    assert scheduler.is_one_waiting
    scheduler.when_committed(1, lambda: None)
    assert not scheduler.is_one_waiting
    scheduler.on_committed(1)
    assert scheduler.is_one_waiting
    scheduler.confirms_wait(second, 2)
    assert not scheduler.is_one_waiting


def test_a_lone_waiter_is_one_beside_whom_nobody_is_due_anything():
    world = World()
    scheduler = world.scheduler
    first, second = Part(world, "a"), Part(world, "b")
    assert not scheduler.lone_waiter
    scheduler.confirms_wait(first, 1)
    assert scheduler.lone_waiter == id(first)
    scheduler.output_dirty(second)
    assert not scheduler.lone_waiter
    world.loop.run()
    assert scheduler.lone_waiter == id(first)
    scheduler.when_committed(1, lambda: None)
    assert not scheduler.lone_waiter
    scheduler.on_committed(1)
    assert scheduler.lone_waiter == id(first), "it is due something, and may wait for more"
    scheduler.confirms_wait(second, 2)
    assert not scheduler.lone_waiter
    world.loop.run()
    assert scheduler.lone_waiter == id(second)
    scheduler.confirms_wait(first, 2)
    assert not scheduler.lone_waiter
    scheduler.on_committed(2)
    assert not scheduler.lone_waiter
    world.loop.run()
    scheduler.confirms_wait(first, 3)
    scheduler.confirms_wait(second, 4)
    assert not scheduler.lone_waiter
    scheduler.confirms_completed(first)
    assert not scheduler.lone_waiter


def test_nobody_waits_for_a_store_that_has_failed():
    world = World()
    waiting, late = Part(world, "a"), Part(world, "b")
    world.scheduler.confirms_wait(waiting, 1)
    world.loop.run()
    world.scheduler.on_failed()
    world.scheduler.confirms_wait(late, 2)
    world.loop.run()
    assert world.order[1:] == ["hand over", "confirma 0", "confirmb 0"]


def test_waiters_are_called_in_order_once_their_batch_is_durable():
    world = World()
    for epoch in (1, 1, 2):
        world.scheduler.when_committed(epoch, lambda e=epoch: world.order.append(f"durable {e}"))
    world.loop.run()
    assert world.order == ["hand over"], "waiting makes sure that the batch is handed over"
    world.scheduler.on_committed(1)
    assert world.order[1:] == ["durable 1", "durable 1"]
    world.scheduler.when_committed(1, lambda: world.order.append("at once"))
    world.scheduler.on_committed(2)
    assert world.order[3:] == ["at once", "durable 2"]


def test_who_is_gone_is_not_called_and_not_kept(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(loop_scheduler, "WAITERS_MIN", 10)
    world = World()
    world.scheduler._waiters_max = 10
    for number in range(1000):
        waiter = world.scheduler.when_committed(1, lambda: world.order.append("gone"))
        waiter.cancel()
        if not number % 100:
            world.scheduler.when_committed(1, lambda n=number: world.order.append(f"{n}"))
        assert len(world.scheduler._waiters) <= 40
    world.scheduler.on_committed(1)
    assert world.order == [f"{number}" for number in range(0, 1000, 100)]


def test_a_channel_that_is_gone_is_not_asked_for_its_confirms():
    world = World()
    gone, other = Part(world, "a"), Part(world, "b")
    for channel, epoch in ((gone, 1), (other, 2)):
        world.scheduler.confirms_wait(channel, epoch)
    world.loop.run()
    world.scheduler.confirms_gone(gone)
    assert world.scheduler.lone_waiter == id(other)
    world.scheduler.on_committed(2)
    world.loop.run()
    assert world.order[1:] == ["hand over", "confirmb 2"]


def test_lag_is_counted_in_buckets():
    world = World()
    world.scheduler.watch_lag(0.0)
    for _ in range(3):
        world.loop.run_once()
    assert sum(world.scheduler.lag_counts) == 3
    assert len(world.scheduler.lag_counts) == len(LAG_BUCKETS_S) + 1
    assert world.scheduler.lag_max_s >= 0.0


def test_lag_is_measured_more_rarely_while_there_are_no_turns():
    world = World()
    world.scheduler.watch_lag(0.5)
    world.loop.advance(5.0)
    assert sum(world.scheduler.lag_counts) == 1
    world.scheduler.touch()
    world.loop.advance(1.0)
    assert sum(world.scheduler.lag_counts) == 3  # at 5.5 seconds, and at 6.0
    world.loop.advance(4.5)
    assert sum(world.scheduler.lag_counts) == 3


def test_entropy_differs():
    tokens = {SystemEntropy().token(16) for _ in range(10)}
    assert len(tokens) == 10
    assert {len(token) for token in tokens} == {16}


def test_nothing_happens_any_more_after_the_stop():
    world = World()
    timer_runs: list[str] = []
    world.scheduler.call_later(1.0, lambda: timer_runs.append("before"))
    world.scheduler.watch_lag(0.1)
    world.loop.advance(1.0)
    assert timer_runs == ["before"]
    world.scheduler.call_later(1.0, lambda: timer_runs.append("after"))
    world.scheduler.queue_dirty(Part(world, "q"))
    world.scheduler.stop()
    world.loop.advance(10.0)
    world.scheduler.touch()
    world.loop.run()
    assert timer_runs == ["before"]
    assert world.order == []
    assert sum(world.scheduler.lag_counts) == 1


def test_deadlines_begin_with_the_wall_clock_and_never_jump(monkeypatch: pytest.MonkeyPatch):
    now = {"wall": 1_700_000_000_000_000_000, "monotonic": 5_000_000_000}
    monkeypatch.setattr(real_time, "time_ns", lambda: now["wall"])
    monkeypatch.setattr(real_time, "monotonic_ns", lambda: now["monotonic"])
    scheduler = World().scheduler
    assert scheduler.deadline_ms() == scheduler.wall_ms() == 1_700_000_000_000
    now["monotonic"] += 2_000_000_000
    now["wall"] -= 7200 * 10**9  # somebody sets the clock
    assert scheduler.deadline_ms() == 1_700_000_002_000
    assert scheduler.wall_ms() == 1_700_000_000_000 - 7_200_000
    assert World().scheduler.deadline_ms() == scheduler.wall_ms()  # the next start goes by it
