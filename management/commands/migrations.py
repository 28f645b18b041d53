"""Classic queues that are to be quorum queues: which can, one that begins, how far those under way are.

Owns no state: the node has them. What a migration is made of is loaded with the first one.
"""

from __future__ import annotations

import asyncio
from typing import Any

from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.queue.queue import Queue
from burrowmq.broker.rules.pattern import compile_pattern
from burrowmq.management.answers.reply import ApiError, bad_request
from burrowmq.management.commands.commit import staged

Row = dict[str, Any]
PATIENCE_S = 30.0
"""For the cluster to make a stream, and for the disk to have a note of it."""


def candidates(node: RunningNode, vhost: str, pattern: str) -> list[Row]:
    """Each classic queue whose name the pattern is in, what prevents it, what would change. Raises: BadPattern."""
    from burrowmq.broker.migration.migration import changes, obstacle  # noqa: PLC0415 - see above

    owner, wanted = node.vhosts[vhost], compile_pattern(pattern)
    return [
        {
            "name": queue.name,
            "vhost": vhost,
            "messages": queue.ready_count + queue.unacked_count,
            "is_under_way": node.migrations.is_under_way(vhost, queue.name),
            "obstacle": obstacle(owner, queue),
            "changes": changes(owner, queue),
        }
        for queue in owner.queues_in_order()
        if isinstance(queue, Queue) and wanted.is_in(queue.name)
    ]


def progress(node: RunningNode) -> list[Row]:
    """How far those under way are."""
    found = node.migrations.progress()
    return [dict(zip(each._fields, each, strict=True)) for each in found]


async def begin(node: RunningNode, vhost: str, queue: Queue) -> None:
    """Begin with one, unless it is under way. Raises: ApiError 400 for what prevents it, 503 without the cluster."""
    from burrowmq.broker.migration.migration import obstacle  # noqa: PLC0415 - see above

    if node.replication.link is None:
        raise bad_request("quorum queues need cluster.urls")
    if node.migrations.is_under_way(vhost, queue.name):
        return
    reason = obstacle(node.vhosts[vhost], queue)
    if reason:
        raise bad_request(reason)
    told: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def on_begun(reason: str) -> None:
        if not told.done():
            told.set_result(reason)

    node.migrations.begin(node.vhosts[vhost], queue, on_begun)
    staged(node)
    await asyncio.wait((told,), timeout=PATIENCE_S)
    if not told.done():
        raise ApiError(503, "unavailable", "neither the cluster nor the disk answers")
    if told.result():
        raise ApiError(503, "unavailable", told.result())
