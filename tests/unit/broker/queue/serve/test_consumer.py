"""Consumers: serving order, blocking, priorities, single active consumer."""

from __future__ import annotations

import random

import pytest

from burrowmq.broker.queue.serve.consumer import SEARCHED_MAX, UNLIMITED, Consumer, Consumers
from tests.support.fake_scheduler import FakeScheduler
from tests.support.queue_bench import Inbox


def consumer(tag: str, *, limit: int = UNLIMITED, **options) -> Consumer:
    return Consumer(tag, Inbox(limit), **options)


def tags(found: list[Consumer]) -> list[str]:
    return [each.tag for each in found]


def ring(*members: Consumer, **options) -> Consumers:
    consumers = Consumers(**options)
    for member in members:
        consumers.add(member)
    return consumers


def test_credit_is_the_smaller_of_prefetch_and_channel():
    assert consumer("a").credit() == UNLIMITED
    assert consumer("a", prefetch_count=3).credit() == 3
    assert consumer("a", prefetch_count=3, limit=2).credit() == 2
    assert consumer("a", prefetch_count=3, no_ack=True).credit() == UNLIMITED
    busy = consumer("a", prefetch_count=3)
    busy.unacked_count = 5
    assert busy.credit() == -2


def test_turns():
    consumers = ring(consumer("a"), consumer("b"), consumer("c"))
    assert tags(consumers.ready(10)) == ["a", "b", "c"]
    assert tags(consumers.ready(2)) == ["a", "b"]
    consumers.served(0, 1)
    assert tags(consumers.ready(10)) == ["b", "c", "a"]
    consumers.served(0, 5)
    assert tags(consumers.ready(10)) == ["a", "b", "c"]


def test_a_blocked_consumer_is_set_aside_and_comes_back_last():
    stuck = consumer("a", limit=0)
    consumers = ring(stuck, consumer("b"), consumer("c"))
    assert consumers.open_count == 3
    assert tags(consumers.ready(10)) == ["b", "c"]
    assert (stuck.is_blocked, consumers.open_count) == (True, 2)
    assert not consumers.unblock(stuck)
    stuck.channel.limit = 1
    assert consumers.unblock(stuck)
    assert not consumers.unblock(stuck)
    assert tags(consumers.ready(10)) == ["b", "c", "a"]


def test_the_only_one_is_blocked_as_if_it_had_been_asked():
    waits = consumer("low", priority=-1, limit=0)
    states = []
    for block in (Consumers.block_sole, lambda consumers: consumers.ready(1)):
        only = consumer("a", prefetch_count=1)
        consumers = ring(waits, only)
        assert tags(consumers.ready(10)) == ["a"]
        waits.channel.limit = 0
        consumers.remove(waits)
        only.unacked_count = 1
        block(consumers)
        states.append((only.is_blocked, consumers.open_count, consumers.sole, consumers.ready(1)))
        only.unacked_count = 0
        assert consumers.unblock(only)
        assert consumers.sole is only
        assert tags(consumers.ready(10)) == ["a"]
    assert states == [(True, 0, None, [])] * 2


def test_lower_priorities_wait_until_the_higher_cannot_take():
    high = consumer("high", priority=9, limit=1)
    consumers = ring(consumer("low"), high, consumer("negative", priority=-1))
    assert tags(consumers.ready(10)) == ["high"]
    high.channel.limit = 0
    assert tags(consumers.ready(10)) == ["low"]


def test_removing():
    a, b = consumer("a"), consumer("b", limit=0)
    consumers = ring(a, b)
    consumers.ready(2)
    assert consumers.remove(b)
    assert not consumers.remove(b)
    assert (len(consumers), consumers.open_count, list(consumers)) == (1, 1, [a])
    b.channel.limit = 1
    assert not consumers.unblock(b), (
        "a cancelled consumer that settles late must not be served again"
    )
    assert consumers.remove(a)
    assert consumers.ready(1) == []


def test_single_active_consumer_elects_the_highest_priority_that_can_take():
    a, b, c = consumer("a"), consumer("b", limit=0, priority=1), consumer("c", priority=1)
    consumers = ring(a, b, c, is_single_active=True)
    assert (a.is_active, b.is_active, c.is_active) == (True, False, False)
    assert tags(consumers.ready(10)) == ["a"]
    consumers.remove(a)
    assert consumers.active is c
    consumers.remove(c)
    assert consumers.active is b
    assert not consumers.unblock(c)
    consumers.remove(b)
    assert consumers.active is None


def test_all_give_way_to_one_and_so_do_those_that_come():
    held = consumer("held", prefetch_count=1, exclusive=False)
    consumers = ring(consumer("a"), held, consumer("high", priority=5))
    held.unacked_count = 1
    assert tags(consumers.ready(9)) == ["high"]
    mover = consumer("mover", limit=2)
    consumers.add(mover)
    consumers.give_way(mover)
    consumers.add(consumer("late", priority=9))
    assert tags(consumers.ready(9)) == ["mover"]
    assert (consumers.open_count, consumers.sole) == (1, mover)
    held.unacked_count = 0
    assert not consumers.unblock(held)
    assert [each.tag for each in consumers if each.is_active] == ["mover"]
    assert tags(consumers.ready(9)) == ["mover"]


def test_a_successor_waits_for_what_the_active_one_holds_on_another_channel():
    a, b = consumer("a"), consumer("b")
    consumers = ring(a, b, is_single_active=True)
    a.unacked_count = 2
    consumers.remove(a)
    assert (consumers.active, b.is_active) == (b, True)
    assert (consumers.leavers, consumers.open_count) == ([a], 0)
    a.unacked_count = 1
    consumers.hand_over()
    assert (consumers.leavers, consumers.ready(1)) == ([a], [])
    a.unacked_count = 0
    consumers.hand_over()
    assert (consumers.leavers, tags(consumers.ready(1))) == ([], ["b"])


def test_a_successor_on_the_same_channel_does_not_wait():
    inbox = Inbox()
    a, b = Consumer("a", inbox), Consumer("b", inbox)
    consumers = ring(a, b, is_single_active=True)
    a.unacked_count = 1
    consumers.remove(a)
    assert tags(consumers.ready(1)) == ["b"]


def test_a_successor_that_leaves_while_it_waits_is_followed_by_the_next():
    a, b, c = consumer("a"), consumer("b"), consumer("c")
    consumers = ring(a, b, c, is_single_active=True)
    a.unacked_count = 1
    consumers.remove(a)
    consumers.remove(b)
    assert (consumers.active, consumers.ready(1)) == (c, [])
    a.unacked_count = 0
    consumers.hand_over()
    assert tags(consumers.ready(1)) == ["c"]


def test_consumers_that_follow_an_exclusive_one_wait_too_in_their_order():
    a, b, c = consumer("a", exclusive=True), consumer("b"), consumer("c")
    consumers = ring(a)
    a.unacked_count = 1
    consumers.remove(a)
    consumers.add(b)
    consumers.add(c)
    assert consumers.ready(2) == []
    consumers.stop_waiting(a)
    assert tags(consumers.ready(2)) == ["b", "c"]
    consumers.stop_waiting(a)


def test_nobody_waits_for_a_consumer_that_shared_the_queue():
    a, b = consumer("a"), consumer("b")
    consumers = ring(a, b)
    a.unacked_count = 1
    consumers.remove(a)
    assert (consumers.leavers, tags(consumers.ready(1))) == ([], ["b"])


@pytest.mark.parametrize("seed", range(20))
def test_those_who_leave_long_rings_change_nothing_for_the_others(seed):
    draw = random.Random(seed)
    consumers, model = Consumers(), {}
    for number in range(400):
        here = [each for members in model.values() for each in members]
        if len(here) < 3 or draw.random() < (0.7 if number < 200 else 0.2):
            come = consumer(f"{number}", priority=draw.choice([0, 0, 0, 0, 1]))
            consumers.add(come)
            model.setdefault(come.priority, []).append(come)
            continue
        gone = draw.choice(here)
        assert consumers.remove(gone)
        model[gone.priority].remove(gone)
        assert consumers.open_count == len(here) - 1
        if draw.random() < 0.1:
            best = model[max(priority for priority, members in model.items() if members)]
            assert consumers.ready(3) == best[:3]
            consumers.served(best[0].priority, 2)
            turned = 2 % len(best)
            best[:] = best[turned:] + best[:turned]
    assert {priority: list(members) for priority, members in consumers.rings} == {
        priority: members for priority, members in model.items() if members
    }


def test_who_left_a_long_ring_and_comes_again_is_last():
    members = [consumer(f"{number}") for number in range(SEARCHED_MAX + 1)]
    consumers = ring(*members)
    consumers.remove(members[0])
    consumers.add(members[0])
    assert consumers.ready(100) == [*members[1:], members[0]]


def test_the_only_one_left_of_a_long_ring_is_known():
    members = [consumer(f"{number}") for number in range(SEARCHED_MAX + 1)]
    consumers = ring(*members)
    for each in members[:-1]:
        consumers.remove(each)
    assert consumers.sole is members[-1]
    consumers.remove(members[-1])
    assert (consumers.sole, consumers.ready(1), consumers.rings) == (None, [], [])


def test_capacity_is_that_of_consumers_who_can_take():
    clock = FakeScheduler()
    consumers = Consumers(clock)
    assert consumers.capacity == 0.0
    one = consumer("a", prefetch_count=1)
    consumers.add(one)
    assert consumers.capacity == 1.0
    one.unacked_count = 1
    assert consumers.ready(10) == []
    clock.advance(1000)
    assert consumers.capacity == 0.0
    one.unacked_count = 0
    assert consumers.unblock(one)
    clock.advance(1000)
    assert consumers.capacity == 1.0
    consumers.remove(one)
    assert consumers.capacity == 0.0


def test_a_priority_is_forgotten_with_its_last_consumer():
    consumers = ring(consumer("stays"))
    for priority in range(1, 100):  # each newcomer before all that are there
        passing = consumer("passes", priority=priority, limit=priority % 2)
        consumers.add(passing)
        consumers.ready(1)  # half of them are blocked by it
        consumers.remove(passing)
    assert [priority for priority, _ in consumers.rings] == [0]
    assert tags(consumers.ready(10)) == ["stays"]


def test_a_priority_whose_consumers_are_blocked_comes_back_with_them():
    gone, back = consumer("gone", priority=1, limit=0), consumer("back", priority=1, limit=0)
    consumers = ring(consumer("low"), gone, back)
    assert tags(consumers.ready(10)) == ["low"]
    consumers.remove(gone)
    back.channel.limit = 1
    assert consumers.unblock(back)
    assert tags(consumers.ready(10)) == ["back"]
    consumers.served(1, 1)
    consumers.remove(back)
    consumers.served(1, 1)  # it left while it was sent something
    assert tags(consumers.ready(10)) == ["low"]
