"""Changed policies go through the queues in turns."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, cast

import pytest

from burrowmq.broker.definitions import parameters
from burrowmq.broker.queue.queue import Queue
from burrowmq.broker.queue.rules.settings import QueueDeclaration
from burrowmq.broker.rules.policy import Policy
from burrowmq.broker.vhost.policy_pass import QUEUES_PER_TURN, PolicyPass
from tests.support.bench.broker import BrokerBench


class Turns:
    """A pass over queues that only write down that it came by."""

    def __init__(self, count: int) -> None:
        self.later: list[Callable[[], None]] = []
        self.applied: list[int] = []
        self.buggy: set[int] = set()  # what is done to these fails
        self.queues = [cast("Any", Numbered(number)) for number in range(count)]
        self.policy_pass = PolicyPass(self._apply, self.later.append)

    def _apply(self, queue: Queue) -> None:
        number = cast("Numbered", queue).number
        if number in self.buggy:
            raise ZeroDivisionError
        self.applied.append(number)

    def turn(self) -> int:
        """How many queues the next turn looks at."""
        self.applied.clear()
        self.later.pop(0)()
        return len(self.applied)


class Numbered:
    """What a pass knows of a queue."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.is_deleted = False


def test_a_turn_goes_through_so_many_queues_and_who_waits_is_told_at_the_end() -> None:
    turns, told = Turns(2 * QUEUES_PER_TURN + 1), list[str]()
    turns.policy_pass.when_done(lambda: told.append("before"))
    turns.policy_pass.begin(turns.queues)
    turns.policy_pass.when_done(lambda: told.append("after"))
    assert (len(turns.applied), told) == (QUEUES_PER_TURN, ["before"])
    turns.queues[-1].is_deleted = True
    assert (turns.turn(), turns.turn()) == (QUEUES_PER_TURN, 0)
    assert (turns.later, told) == ([], ["before", "after"])


def test_a_change_that_comes_meanwhile_begins_anew() -> None:
    turns = Turns(2 * QUEUES_PER_TURN)
    turns.policy_pass.begin(turns.queues)
    turns.applied.clear()
    turns.policy_pass.begin(turns.queues[1:])
    assert turns.applied[0] == 1
    assert len(turns.later) == 1
    assert turns.turn() == QUEUES_PER_TURN - 1
    assert turns.later == []


def test_queues_of_which_there_are_few_have_it_at_once_and_stay_dormant() -> None:
    bench = BrokerBench()
    for number in range(3):
        bench.vhost.declare_queue(QueueDeclaration(name=f"q{number}"))
    policy = Policy(name="p", pattern="^q", definition={"max-length": 7})
    parameters.set_policy(bench.vhost, policy)
    queues = bench.vhost.queues.values()
    assert [queue.settings.max_length for queue in queues] == [7, 7, 7]
    assert all(queue.is_dormant for queue in queues)
    assert len({id(queue.settings) for queue in queues}) == 1, "equal settings are one object"


def test_what_is_left_follows_by_itself() -> None:
    bench = BrokerBench()
    for number in range(QUEUES_PER_TURN + 1):
        bench.vhost.declare_queue(QueueDeclaration(name=f"q{number}"))
    policy = Policy(name="p", pattern="^q", definition={"max-length": 7})
    parameters.set_policy(bench.vhost, policy)
    assert bench.vhost.policy_pass.is_under_way
    bench.loop.advance(0.001)
    assert not bench.vhost.policy_pass.is_under_way


def test_a_bug_in_one_queue_keeps_the_change_from_no_other() -> None:
    turns = Turns(2 * QUEUES_PER_TURN + 1)
    turns.buggy = {0, QUEUES_PER_TURN + 1}
    with pytest.raises(ZeroDivisionError):
        turns.policy_pass.begin(turns.queues)
    seen, told = list(turns.applied), list[str]()
    turns.policy_pass.when_done(lambda: told.append("done"))
    while turns.later:
        with contextlib.suppress(ZeroDivisionError):
            turns.turn()
        seen += turns.applied
    assert (len(seen), told) == (len(turns.queues) - len(turns.buggy), ["done"])
    turns.policy_pass.begin(turns.queues[1:3])
    assert not turns.policy_pass.is_under_way
