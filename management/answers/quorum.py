"""Quorum queues and streams, and the servers that keep them, asked now: who leads, who is there, who is near its end.

Owns no state. A look at a queue is two requests to the cluster, so that they are asked a number at a time; what the
queues show elsewhere is as of their last look. Callers: health checks, and the answer behind `burrowctl
cluster_status`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from typing import Any, NamedTuple

from burrowmq.broker import inspect
from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.queue.placement import Placement
from burrowmq.broker.queue.port import QueuePort
from burrowmq.broker.report.cluster_state import ServerState
from burrowmq.broker.words.resource import describe
from burrowmq.management.answers.turns import pieces
from burrowmq.protocol.errors import AmqpError

ASKED_AT_ONCE = 500
PATIENCE_S = 10.0
"""A queue that is still to be made at the servers asks them several times, for five seconds each."""

Row = dict[str, Any]


class Standing(NamedTuple):
    """One queue, and what the cluster has said of it."""

    vhost: str
    name: str
    kind: str
    placement: Placement | None
    """None where nothing was ever said."""
    reason: str
    """Why nothing is said now; "" when something is."""

    @property
    def is_up(self) -> bool:
        """Whether it takes and gives messages."""
        return not self.reason and (self.placement is None or self.placement.has_quorum)

    @property
    def is_critical(self) -> bool:
        """Whether it is not up, or would not be with one server less."""
        return not self.is_up or (self.placement is not None and self.placement.is_critical)

    def row(self) -> Row:
        """As RabbitMQ names such queues."""
        placement = self.placement
        return {
            "name": self.name,
            "virtual_host": self.vhost,
            "readable_name": describe("queue", self.name, self.vhost),
            "type": self.kind,
            "members": [] if placement is None else list(placement.members),
            "online": [] if placement is None or self.reason else list(placement.online),
            "reason": self.reason,
        }


async def standings(node: RunningNode) -> list[Standing]:
    """Every queue of this node that the cluster keeps, as it answers now."""
    found: list[Standing] = []
    async for piece in pieces(inspect.each_replicated_queue(node), ASKED_AT_ONCE):
        reasons = await asyncio.gather(*(ask(queue) for _, queue in piece))
        found += [
            Standing(vhost.name, queue.name, queue.kind, queue.placement, reason)
            for (vhost, queue), reason in zip(piece, reasons, strict=True)
            if not queue.is_deleted
        ]
    return found


async def ask(queue: QueuePort) -> str:
    """Why nothing can be learnt; "" when it is learnt."""
    told: asyncio.Future[AmqpError | None] = asyncio.get_running_loop().create_future()

    def answered(error: AmqpError | None) -> None:
        if not told.done():  # who asked may be gone
            told.set_result(error)

    queue.ask(answered)
    try:
        error = await asyncio.wait_for(told, PATIENCE_S)
    except TimeoutError:
        return f"no answer for {PATIENCE_S:.0f} s"
    return "" if error is None else error.text


async def have_lead(queue: QueuePort, server: str, patience_s: float) -> None:
    """Have a server lead a queue, and wait for that, or for why it does not, no longer than this."""
    moved = asyncio.Event()

    def on_led(_: AmqpError | None) -> None:
        moved.set()

    queue.lead_by(server, on_led)
    with suppress(TimeoutError):
        async with asyncio.timeout(patience_s):
            await moved.wait()


async def cluster_document(node: RunningNode) -> Row | None:
    """The connection, each server and what it leads and keeps, how the queues stand; None without a cluster."""
    link = inspect.cluster_link(node)
    if link is None:
        return None
    servers, found = await asyncio.gather(node.replication.sight(), standings(node))
    return {
        "link": inspect.cluster_link(node),
        "servers": _servers(servers, found),
        "queues": _sums(found),
    }


def _servers(servers: list[ServerState], found: list[Standing]) -> list[Row]:
    """Those of the configuration in its order, then those that are only known from queues."""
    placements = [each.placement for each in found if each.placement is not None]
    leads = Counter(
        each.placement.leader for each in found if each.is_up and each.placement is not None
    )
    keeps = Counter(name for each in placements for name in each.members)
    heard = {
        name
        for each in found
        if each.is_up and each.placement is not None
        for name in each.placement.online
    }
    named = {each.name for each in servers}
    others = [
        ServerState("", name, "", "" if name in heard else "no leader of a queue hears it")
        for name in sorted(set(keeps) - named)
    ]
    return [
        {
            "address": each.address,
            "name": each.name,
            "version": each.version,
            "is_up": not each.reason,
            "reason": each.reason,
            "queues_led": leads[each.name] if each.name else 0,
            "queues_kept": keeps[each.name] if each.name else 0,
        }
        for each in (*servers, *others)
    ]


def _sums(found: list[Standing]) -> Row:
    return {
        "total": len(found),
        "streams": sum(each.kind == "stream" for each in found),
        "without_quorum": sum(not each.is_up for each in found),
        "with_minimum_quorum": sum(each.is_up and each.is_critical for each in found),
    }
