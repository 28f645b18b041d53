"""Sums over queues: of some virtual hosts, in turns."""

from __future__ import annotations

import asyncio

import pytest

from burrowmq.broker.queue.rules.settings import QueueDeclaration
from burrowmq.management.answers import sums
from burrowmq.management.answers.turns import KEYS_PER_TURN
from burrowmq.management.commands import vhosts
from tests.support.bench.node import NodeBench
from tests.support.bench.world import publish


def test_only_what_is_asked_for_is_summed_up(bench: NodeBench) -> None:
    bench.perform(lambda: vhosts.add_vhost(bench.node, "v", "guest"))
    bench.queue("q", vhost="v")
    publish(bench.connect(1, vhost="v"), "q", 5)
    found = bench.node.vhosts
    for owners, messages in (([], 0), ([found["v"]], 5), ([found["v"], found["/"]], 12)):
        row = bench.loop.run_until_complete(sums.depths(owners))
        assert row["messages"] == row["messages_ready"] + row["messages_unacknowledged"] == messages


@pytest.mark.slow
def test_others_have_their_turn_while_many_queues_are_summed_up(bench: NodeBench) -> None:
    owner = bench.node.vhosts["/"]
    for number in range(2 * KEYS_PER_TURN):
        owner.declare_queue(QueueDeclaration(name=f"q{number}"))

    async def counted() -> int:
        asking, turns = asyncio.ensure_future(sums.depths([owner])), 0
        while not asking.done():
            await asyncio.sleep(0)
            turns += 1
        assert (await asking)["messages"] == 7
        return turns

    assert bench.loop.run_until_complete(counted()) > 2
