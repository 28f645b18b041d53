"""/api/burrowmq/scrub: how far the scrubber is, and a pass that begins now.

Owns no state: the engine has the pass. Times are milliseconds since 1970, as RabbitMQ's.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from burrowmq.broker import inspect
from burrowmq.broker.node.running import RunningNode
from burrowmq.management import commands
from burrowmq.management.aio import web
from burrowmq.management.answers.reply import Call, Route, reply


def document(node: RunningNode) -> dict[str, Any]:
    """What is said about the scrubber."""
    status = node.engine.scrub
    damage = inspect.damage(node)
    return {
        "running": status.is_running,
        "on_demand": status.is_on_demand,
        "period_s": status.period_s,
        "bytes_per_s": status.bytes_per_s,
        "began_at": status.began_ms or None,
        "next_at": status.next_ms or None,
        "position": status.position,
        "bytes_done": status.bytes_done,
        "bytes_total": status.bytes_total,
        "found": status.found,
        "unread_queues": status.unread,
        "damaged_files": [{"path": path, "what": what} for path, what in status.damaged_files],
        "quarantined": damage["quarantined"],
        "last": asdict(status.last) if status.last is not None else None,
        "last_complete": asdict(status.last_complete) if status.last_complete else None,
    }


async def look(call: Call) -> web.Response:
    """How far it is, the last pass, the last one that could read everything."""
    return reply(document(call.node))


async def start(call: Call) -> web.Response:
    """Begin a pass now; one that is under way goes on at the most that the limit allows."""
    commands.node.start_scrub(call.node)
    return reply(document(call.node), 202)


ROUTES = (
    Route("GET", "/api/burrowmq/scrub", look, "monitoring"),
    Route("POST", "/api/burrowmq/scrub", start, "administrator"),
)
