"""Changed policies go through the queues in turns."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from burrowmq.broker.definitions import parameters
from burrowmq.broker.queue.queue import Queue
from burrowmq.broker.queue.rules.settings import QueueDeclaration
from burrowmq.broker.rules.policy import Policy, PolicySet
from burrowmq.broker.vhost.policy_pass import (
    CHANGES_MAX,
    LOOKS_PER_TURN,
    QUEUES_PER_TURN,
    PolicyPass,
)
from tests.support.bench.broker import BrokerBench


class Turns:
    """A pass over queues that only write down that it came by."""

    def __init__(self, count: int) -> None:
        self.later: list[Callable[[], None]] = []
        self.applied: list[int] = []
        self.buggy: set[int] = set()  # what is done to these fails
        self.queues = [cast("Any", Numbered(number)) for number in range(count)]
        self.policy_pass = PolicyPass(self._apply, self.later.append, lambda: self.queues)

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
        self.name = f"q-{number}"


def test_a_turn_goes_through_so_many_queues_and_who_waits_is_told_at_the_end() -> None:
    turns, told = Turns(2 * QUEUES_PER_TURN + 1), list[str]()
    turns.policy_pass.when_done(lambda: told.append("before"))
    turns.policy_pass.begin()
    turns.policy_pass.when_done(lambda: told.append("after"))
    assert (len(turns.applied), told) == (QUEUES_PER_TURN, ["before"])
    assert (turns.turn(), turns.turn()) == (QUEUES_PER_TURN, 1)
    assert (turns.later, told) == ([], ["before", "after"])


def matching(pattern: str, **more: Any) -> Policy:
    return Policy(name="p", pattern=pattern, definition={"max-length": 7}, **more)


def test_changes_that_come_meanwhile_are_one_pass_behind_it() -> None:
    turns, told = Turns(QUEUES_PER_TURN + 1), list[str]()
    turns.policy_pass.begin()
    turns.policy_pass.when_done(lambda: told.append("first"))
    turns.applied.clear()
    for at in range(3):
        turns.policy_pass.begin(matching(f"^q-{at}$"))
        turns.policy_pass.when_done(partial(told.append, f"of {at}"))
    assert (turns.applied, len(turns.later)) == ([], 1)
    assert (turns.turn(), told) == (1, ["first"])
    turns.turn()
    assert turns.applied == [0, 1, 2]
    assert told == ["first", "of 0", "of 1", "of 2"]
    assert turns.later == []


def test_who_was_told_may_begin_another_one() -> None:
    turns = Turns(QUEUES_PER_TURN + 1)
    turns.policy_pass.begin()
    turns.policy_pass.when_done(turns.policy_pass.begin)
    turns.turn()
    assert len(turns.applied) == 1 + QUEUES_PER_TURN
    assert (len(turns.later), turns.turn(), turns.later) == (1, 1, [])


def test_what_no_changed_policy_matches_is_passed_by() -> None:
    turns = Turns(LOOKS_PER_TURN + 10)
    turns.policy_pass.begin(matching("^q-7$"), matching(f"-{LOOKS_PER_TURN + 5}$"))
    assert turns.applied == [7]
    assert (turns.turn(), turns.turn()) == (0, 1), (
        "a turn looks at half as many names for two policies"
    )
    assert not turns.policy_pass.is_under_way


@pytest.mark.parametrize("count", [CHANGES_MAX, CHANGES_MAX + 1])
def test_of_very_many_changes_each_queue_is_taken_for_changed(count: int) -> None:
    turns = Turns(QUEUES_PER_TURN)
    turns.policy_pass.begin(*[matching("^x") for _ in range(count)])
    assert len(turns.applied) == (QUEUES_PER_TURN if count > CHANGES_MAX else 0)


def test_who_waits_is_told_when_the_application_ends() -> None:
    turns, told = Turns(QUEUES_PER_TURN + 1), list[int]()
    turns.policy_pass.begin()
    turns.policy_pass.when_done(lambda: told.append(1))
    turns.policy_pass.begin()
    turns.policy_pass.when_done(lambda: told.append(2))
    turns.policy_pass.end()
    assert told == [1, 2]
    assert turns.turn() == 0


NAMES = [f"{letter}{number}" for letter in "ab" for number in range(80)]
CHANGE = st.tuples(
    st.sampled_from(["p", "q", "r"]),
    st.booleans(),
    st.none() | st.tuples(st.sampled_from(["^a", "^b", "1$", "", "^x"]), st.integers(-1, 2)),
    st.integers(0, 3),
)


@pytest.mark.slow
@given(st.lists(CHANGE, max_size=12))
@settings(deadline=None, max_examples=60)
def test_in_the_end_each_queue_has_what_its_policies_say(changes: list[Any]) -> None:
    bench = BrokerBench()
    for name in NAMES:
        bench.vhost.declare_queue(QueueDeclaration(name=name))
    for at, (name, is_operator, says, turns) in enumerate(changes):
        if says is None:
            parameters.clear_policy(bench.vhost, name, is_operator=is_operator)
        else:
            policy = Policy(
                name=name, pattern=says[0], definition={"max-length": at + 1}, priority=says[1]
            )
            parameters.set_policy(bench.vhost, policy, is_operator=is_operator)
        for _ in range(turns):
            bench.loop.advance(0.001)
        bench.vhost.effective_policy(bench.vhost.queues[NAMES[at]])
    while bench.vhost.policy_pass.is_under_way:
        bench.loop.advance(0.001)
    anew = PolicySet()
    anew.policies = bench.vhost.policies.policies
    anew.operator_policies = bench.vhost.policies.operator_policies
    for name, queue in bench.vhost.queues.items():
        says = anew.effective("queue", name)
        assert bench.vhost.effective_policy(queue) == says
        assert queue.settings.max_length == says.definition.get("max-length")


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
        turns.policy_pass.begin()
    seen, told = list(turns.applied), list[str]()
    turns.policy_pass.when_done(lambda: told.append("done"))
    while turns.later:
        with contextlib.suppress(ZeroDivisionError):
            turns.turn()
        seen += turns.applied
    assert (len(seen), told) == (len(turns.queues) - len(turns.buggy), ["done"])
    turns.queues = turns.queues[1:3]
    turns.policy_pass.begin()
    assert not turns.policy_pass.is_under_way
