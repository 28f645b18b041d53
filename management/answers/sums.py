"""Sums over the queues of virtual hosts, made in turns: there may be a hundred thousand of them.

Owns no state. For the overview and the rows of virtual hosts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from burrowmq.broker import inspect
from burrowmq.broker.vhost.vhost import Vhost
from burrowmq.management.answers.reply import Call
from burrowmq.management.answers.turns import KEYS_PER_TURN, pieces


async def depths(owners: Iterable[Vhost]) -> dict[str, Any]:
    """How many messages are in all their queues, by RabbitMQ's names."""
    ready = unacked = 0
    queues = (queue for owner in owners for queue in owner.queues_in_order())
    async for piece in pieces(queues, KEYS_PER_TURN):
        found = inspect.depths(piece)
        ready, unacked = ready + found[0], unacked + found[1]
    return inspect.sums((ready, unacked))


async def vhost_row(call: Call, owner: Vhost) -> dict[str, Any]:
    """One virtual host with the sums of its queues."""
    return inspect.vhost_row(call.node, owner) | await depths([owner])
