"""A change reaches the end of the turn, and a refused one does not."""

from __future__ import annotations

import pytest

from burrowmq.management.answers.reply import ApiError
from burrowmq.management.commands import parameters, topology, users
from tests.support.bench.node import NodeBench


def test_a_change_reaches_the_end_of_the_turn(bench: NodeBench) -> None:
    node, lazy = bench.node, bench.node.vhosts["/"].queues["lazy"]
    bench.perform(lambda: topology.purge(node, "/", "lazy"))
    assert lazy.ready_count == 0
    turns = node.scheduler.turns
    bench.perform(lambda: users.put_user(node, "bob", "x", None, ["management"]))
    assert node.scheduler.turns > turns
    assert ("user", '["bob"]') in [row[:2] for row in bench.store.load()]


def test_a_change_that_is_refused_does_not(bench: NodeBench) -> None:
    node = bench.node
    turns = node.scheduler.turns

    def refused() -> None:
        with pytest.raises(ApiError, match="404"):
            parameters.delete_policy(node, "/", "nope", is_operator=False)
        with pytest.raises(ApiError, match="404"):
            topology.delete_queue(node, "/", "nope")

    bench.perform(refused)
    assert node.scheduler.turns == turns
