"""burrowmq.broker.rules.policy: which policy applies and what two kinds of them say together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from burrowmq.broker.rules.policy import (
    NO_POLICY,
    ApplyTo,
    Policy,
    PolicySet,
    merge,
)


def policies(*found: Policy, operator: tuple[Policy, ...] = ()) -> PolicySet:
    result = PolicySet()
    result.policies = {policy.name: policy for policy in found}
    result.operator_policies = {policy.name: policy for policy in operator}
    return result


def policy(name: str, pattern: str = ".*", **more: Any) -> Policy:
    return Policy(
        name=name, pattern=pattern, definition=more.pop("definition", {"max-length": 1}), **more
    )


def test_the_highest_priority_that_matches_applies() -> None:
    found = policies(
        policy("low", priority=1), policy("high", priority=5), policy("other", "^x", priority=9)
    )
    assert found.effective("queue", "q").policy == "high"
    assert found.effective("queue", "x").policy == "other"


@pytest.mark.parametrize(
    ("apply_to", "kind", "applies"),
    [
        ("all", "queue", True),
        ("all", "exchange", True),
        ("queues", "exchange", False),
        ("classic_queues", "queue", True),
        ("quorum_queues", "queue", False),
        ("streams", "queue", False),
        ("all", "quorum", True),
        ("queues", "quorum", True),
        ("classic_queues", "quorum", False),
        ("quorum_queues", "quorum", True),
        ("exchanges", "quorum", False),
        ("all", "stream", True),
        ("queues", "stream", True),
        ("streams", "stream", True),
        ("quorum_queues", "stream", False),
        ("classic_queues", "stream", False),
        ("exchanges", "exchange", True),
        ("exchanges", "queue", False),
    ],
)
def test_apply_to(apply_to: Any, kind: Any, applies: bool) -> None:
    given = policy("p", apply_to=apply_to, definition={"max-length-bytes": 1})
    found = policies(given).effective(kind, "n")
    assert (found is not NO_POLICY) is applies


def test_a_key_of_another_queue_type_keeps_the_policy_from_queues() -> None:
    found = policies(
        policy("p", priority=9, definition={"max-age": "1h", "max-length": 1}), policy("plain")
    )
    assert found.effective("queue", "q").policy == "plain"


@pytest.mark.parametrize(
    ("key", "kinds"),
    [
        ("delivery-limit", ["quorum"]),
        ("dead-letter-strategy", ["quorum"]),
        ("queue-mode", ["queue"]),
        ("ha-mode", ["queue"]),
        ("max-age", ["stream"]),
        ("overflow", ["queue", "quorum"]),
        ("max-length", ["queue", "quorum"]),
        ("queue-leader-locator", ["quorum", "stream"]),
        ("consumer-timeout", ["queue", "quorum", "stream"]),
    ],
)
def test_a_policy_holds_for_the_types_that_know_all_of_it(key: str, kinds: list[str]) -> None:
    found = policies(policy("p", definition={key: 1, "max-length-bytes": 1}))
    types: tuple[Any, ...] = ("queue", "quorum", "stream")
    assert [kind for kind in types if found.effective(kind, "q") is not NO_POLICY] == kinds


@pytest.mark.parametrize(
    ("key", "is_for_it"),
    [("ha-mode", True), ("queue-mode", True), ("delivery-limit", True), ("max-age", False)],
)
@pytest.mark.parametrize("apply_to", ["all", "classic_queues", "quorum_queues"])
def test_a_quorum_queue_that_was_a_classic_one_has_policies_of_both(
    key: str, is_for_it: bool, apply_to: ApplyTo
) -> None:
    found = Policy(name="p", pattern="q", definition={key: 1}, apply_to=apply_to)
    assert found.matches("was_classic", "q") is is_for_it
    assert not replace(found, apply_to="streams").matches("was_classic", "q")


def test_operator_policies_are_merged_in() -> None:
    found = policies(
        policy("p", definition={"max-length": 10, "overflow": "drop-head", "queue-mode": "lazy"}),
        operator=(policy("o", definition={"max-length": 5, "overflow": "reject-publish"}),),
    ).effective("queue", "q")
    assert (found.policy, found.operator_policy) == ("p", "o")
    assert found.definition == {
        "max-length": 5,
        "overflow": "reject-publish",
        "queue-mode": "lazy",
    }


def test_the_lower_limit_holds_whoever_set_it() -> None:
    assert merge({"message-ttl": 1}, {"message-ttl": 2}) == {"message-ttl": 1}
    assert merge({"message-ttl": 2}, {"message-ttl": 1}) == {"message-ttl": 1}
    assert merge({}, {"expires": 2}) == {"expires": 2}


def test_no_policies_cost_nothing() -> None:
    assert PolicySet().effective("queue", "q") is NO_POLICY


def test_of_two_with_one_priority_the_first_by_name_applies_whichever_was_set_first() -> None:
    pair = policy("z"), policy("a")
    found = policies(*pair, operator=pair).effective("queue", "q")
    assert (found.policy, found.operator_policy) == ("a", "a")
    assert policies(*reversed(pair)).effective("queue", "q").policy == "a"


def test_nothing_is_remembered_of_a_deleted_queue_nor_of_an_exchange() -> None:
    found = policies(policy("a", "^a"))
    for name in ("a1", "b1"):
        found.effective("queue", name)
        found.effective("exchange", name)
    assert len(found.remembered) == 2
    found.forget("queue", "a1")
    found.forget("queue", "nosuch")
    assert list(found.remembered) == [("queue", "b1")]
    found.changed()
    assert not found.remembered
