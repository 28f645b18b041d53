"""Who leads queues that the cluster keeps, shared out among its servers, as `rabbitmq-queues rebalance` does.

Owns no state. A stream's leader hands over to the server that is to lead; messages, and who consumes, stay where they
are, and publishes wait for the moment that it takes.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.queue.leaders import moves
from burrowmq.broker.queue.placement import Placement
from burrowmq.broker.rules.pattern import compile_pattern
from burrowmq.management.answers import quorum
from burrowmq.management.answers.reply import ApiError

Row = dict[str, Any]
AT_ONCE = 4
"""Elections under way: the other queues of a server are served meanwhile."""
PATIENCE_S = 10.0
"""A queue that does not move is left where it is, as in RabbitMQ."""


async def rebalance(
    node: RunningNode, kind: str = "all", vhost_pattern: str = "", queue_pattern: str = ""
) -> list[Row]:
    """Share out the leaders of these queues; gives how many each server leads then.

    A queue of which nothing is known now stays out of it. Raises: BadPattern, ApiError 503 where that is each of them.
    """
    vhosts, names = compile_pattern(vhost_pattern), compile_pattern(queue_pattern)

    def is_meant(each: quorum.Standing) -> bool:
        is_kind = kind in ("all", each.kind)
        return is_kind and vhosts.is_in(each.vhost) and names.is_in(each.name)

    found = [each for each in await quorum.standings(node) if is_meant(each)]
    if found and not any(each.is_up for each in found):
        raise ApiError(503, "unavailable", found[0].reason or "no queue has a quorum")
    placements: dict[tuple[str, str], Placement] = {
        (each.vhost, each.name): each.placement
        for each in found
        if each.is_up and each.placement is not None
    }
    turns = asyncio.Semaphore(AT_ONCE)
    await asyncio.gather(
        *(_move(node, turns, key, server) for key, server in moves(placements).items())
    )
    return _led([each for each in await quorum.standings(node) if is_meant(each)])


async def _move(
    node: RunningNode, turns: asyncio.Semaphore, key: tuple[str, str], server: str
) -> None:
    vhost, name = key
    async with turns:
        owner = node.vhosts.get(vhost)
        queue = None if owner is None else owner.queues.get(name)
        if queue is not None:  # else it was deleted since
            await quorum.have_lead(queue, server, PATIENCE_S)


def _led(found: list[quorum.Standing]) -> list[Row]:
    """As RabbitMQ's command says it; streams are ours."""
    placed = [(each.kind, each.placement) for each in found if each.placement is not None]
    counts = Counter((kind, placement.leader) for kind, placement in placed)
    servers = {server for _, placement in placed for server in placement.members}
    return [
        {
            "Node name": server,
            "Number of quorum queues": counts["quorum", server],
            "Number of replicated classic queues": 0,
            "Number of streams": counts["stream", server],
        }
        for server in sorted(servers)
    ]
