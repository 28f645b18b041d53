"""Memberships are read from whatever the servers say, and requests are what they understand."""

from __future__ import annotations

import json

from burrowmq.cluster.api import Refusal
from burrowmq.cluster.members import Membership, is_for_now, membership_of, move_away, resize


def test_a_state_that_says_nothing_is_not_settled() -> None:
    nothing = Membership("", (), (), 0, is_changing=False, is_current=True)
    for found in ({}, {"cluster": None, "config": {"num_replicas": "3"}}):
        assert membership_of(found) == nothing
        assert not membership_of(found).is_settled


def test_settled_is_who_has_all_and_is_to_have_it() -> None:
    replica = {"name": "b", "current": True, "active": 1}
    state = {"cluster": {"leader": "a", "replicas": [replica]}, "config": {"num_replicas": 2}}
    assert membership_of(state) == Membership(
        "a", ("a", "b"), ("a", "b"), 2, is_changing=False, is_current=True
    )
    assert membership_of(state).is_settled
    replica["current"] = False
    assert not membership_of(state).is_settled
    replica["current"] = True
    assert not membership_of(state | {"config": {"num_replicas": 3}}).is_settled
    state["cluster"]["desired"] = {"created": "2026"}
    assert not membership_of(state).is_settled


def test_a_resize_leaves_all_else_as_it_is() -> None:
    config = {"name": "S", "num_replicas": 3, "max_age": 7}
    request = resize({"config": config}, 2)
    assert request.subject == b"$JS.API.STREAM.UPDATE.S"
    assert json.loads(request.payload) == config | {"num_replicas": 2}
    assert move_away("S", "n1") == (b"$JS.API.STREAM.PEER.EVACUATE.S", b'{"peer": "n1"}', b"")


def test_what_may_be_changed_in_a_moment() -> None:
    assert is_for_now(Refusal(503, 10075, "peer remap failed"))
    assert is_for_now(Refusal(503, 10008, "unavailable"))
    assert not is_for_now(Refusal(400, 10005, "no peers"))
