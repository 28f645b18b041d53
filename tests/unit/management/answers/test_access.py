"""Rights by tag."""

from __future__ import annotations

from burrowmq.management.answers.access import TRUSTED, Caller
from tests.support.bench.node import NodeBench


def test_administrator_reaches_everything() -> None:
    caller = Caller("a", ("administrator",))
    assert all(
        caller.may(level) for level in ("management", "policymaker", "monitoring", "administrator")
    )
    assert TRUSTED.may("administrator")


def test_other_tags_reach_their_own() -> None:
    assert not Caller("a", ("monitoring",)).may("policymaker")
    assert not Caller("a", ("unknown",)).may("management")
    assert not Caller("a", ()).may("management")


def test_sight_of_vhosts(bench: NodeBench) -> None:
    node = bench.node
    assert Caller("guest", ("management",)).may_see(node, "/")
    assert not Caller("bob", ("management",)).may_see(node, "/")
    assert Caller("bob", ("monitoring",)).may_see(node, "/")
