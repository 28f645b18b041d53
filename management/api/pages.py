"""/api/burrowmq/pages: what one page of the UI shows, in one answer.

Owns no state. The parts are those of the other resources, with their rights; what is here alone are the lists of an
overview (deepest, growing, unconsumed, redelivered: one pass over the queues, a few at a time) the reasons of a queue's
settings, and what a policy would do.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any

from burrowmq.broker import inspect
from burrowmq.broker.inspect import reasons
from burrowmq.broker.queue.queue import Queue
from burrowmq.broker.queue.rules.settings import compute
from burrowmq.broker.rules.policy import Policy, merge
from burrowmq.broker.vhost.vhost import Vhost
from burrowmq.management import commands, process
from burrowmq.management.aio import web
from burrowmq.management.answers.reply import Call, Route, number_of, reply
from burrowmq.management.answers.turns import KEYS_PER_TURN, ROWS_PER_TURN, pieces
from burrowmq.management.api import overview
from burrowmq.management.api.queues import with_rates

TOP = 10
BINDINGS_MAX = 500
CONSUMERS_MAX = 200
MATCHES_MAX = 20

Row = dict[str, Any]
Ranked = tuple[float, str, str]


async def overview_page(call: Call) -> web.Response:
    """The node, its alarms, and the queues that stand out."""
    tops = await _tops(call)
    return reply(
        {
            "overview": overview.document(call),
            "alarms": list(_alarms(call)),
            "resources": _resources(call),
            "top": {name: [_top_row(call, each) for each in found] for name, found in tops.items()},
        }
    )


def _resources(call: Call) -> Row:
    figures, limits = process.figures(call.node.config.data_dir), inspect.limits(call.node)
    return {
        "mem_used": figures.resident_bytes,
        "mem_limit": limits["memory_bytes"],
        "disk_free": figures.disk_free_bytes,
        "disk_free_limit": limits["disk_free_bytes"],
    }


def _alarms(call: Call) -> Iterator[Row]:
    """Each alarm with its cause in figures; what to do about it is the page's business."""
    figures = _resources(call)
    for row in inspect.alarms(call.node):
        name = row["resource"]
        used, limit = (
            ("mem_used", "mem_limit") if name == "memory" else ("disk_free", "disk_free_limit")
        )
        yield {"resource": name, "value": figures[used], "limit": figures[limit]}


async def _tops(call: Call) -> dict[str, list[Ranked]]:
    """The ten of each kind, the first first: the figure, the virtual host, the name."""
    found: dict[str, list[Ranked]] = {
        "deepest": [],
        "growing": [],
        "unconsumed": [],
        "redelivered": [],
    }
    wanted = call.query("vhost") or None
    async for piece in pieces(inspect.each_queue(call.node, wanted), KEYS_PER_TURN):
        for vhost, queue in piece:
            if not queue.is_dormant and call.caller.may_see(call.node, vhost.name):
                _rank(call, vhost, queue, found)
    return {name: sorted(rows, key=lambda row: (-row[0], row[1:])) for name, rows in found.items()}


def _rank(call: Call, vhost: Vhost, queue: Queue, found: dict[str, list[Ranked]]) -> None:
    key = (vhost.name, queue.name)
    depth = queue.ready_count + queue.unacked_count
    for name, figure in (
        ("deepest", depth),
        ("growing", call.rates.rate(key, "messages")),
        ("unconsumed", 0 if queue.consumer_count else queue.ready_count),
        ("redelivered", call.rates.rate(key, "redeliver")),
    ):
        if figure <= 0:
            continue
        rows = found[name]
        if len(rows) < TOP:
            heapq.heappush(rows, (figure, *key))
        elif figure > rows[0][0]:
            heapq.heapreplace(rows, (figure, *key))


def _top_row(call: Call, ranked: Ranked) -> Row:
    figure, vhost, name = ranked
    return {"vhost": vhost, "name": name, "value": figure}


async def queue_page(call: Call) -> web.Response:
    """One queue: its row, why it is as it is, who consumes it, what leads to it."""
    vhost_name, name = call.vhost(), call.path("name")
    queue = commands.topology.queue_of(call.node, vhost_name, name)
    vhost = call.node.vhosts[vhost_name]
    row = inspect.queue(call.node, vhost_name, name)
    assert row is not None  # queue_of has found it in this turn
    row["consumer_details"] = row["consumer_details"][:CONSUMERS_MAX]
    bindings = list(inspect.bindings_to(vhost, "queue", name))
    return reply(
        {
            "queue": with_rates(call, row),
            "settings": reasons.settings(vhost, queue),
            "warnings": reasons.warnings(vhost, queue),
            "bindings": bindings[:BINDINGS_MAX],
            "binding_count": len(bindings),
        }
    )


async def policy_preview(call: Call) -> web.Response:
    """What a policy would do if it were saved as the body says; nothing is changed."""
    vhost, body = call.node.vhosts[call.vhost()], await call.body()
    definition = body.get("definition")
    policy = Policy(
        name=str(body.get("name", "")),
        pattern=str(body.get("pattern", "")),
        definition=definition if isinstance(definition, dict) else {},
        apply_to=body.get("apply-to", "all"),
        priority=number_of(body, "priority") if "priority" in body else 0,
    )
    others = [each for each in vhost.policies.policies.values() if each.name != policy.name]
    matches: list[Row] = []
    found = {"matched": 0, "in_force": 0, "dropped": 0}
    async for piece in pieces(list(vhost.queues.values()), ROWS_PER_TURN):
        for queue in piece:
            if policy.matches("queue", queue.name):
                row = _previewed(vhost, queue, policy, others)
                found["matched"] += 1
                found["in_force"] += row["overruled_by"] is None
                found["dropped"] += row["dropped"]
                matches.append(row)
    matches.sort(key=lambda row: (-row["dropped"], row["name"]))
    return reply({**found, "matches": matches[:MATCHES_MAX]})


def _previewed(vhost: Vhost, queue: Queue, policy: Policy, others: list[Policy]) -> Row:
    """One queue: the policy that would hold in its place, else the ready messages that its limit would drop."""
    stronger = [
        each
        for each in others
        if each.priority > policy.priority and each.matches("queue", queue.name)
    ]
    row: Row = {"name": queue.name, "overruled_by": None, "dropped": 0}
    if stronger:
        row["overruled_by"] = max(stronger, key=lambda each: each.priority).name
        return row
    operator = vhost.policies.operator_policies.get(
        vhost.effective_policy(queue.name).operator_policy or ""
    )
    merged = merge(policy.definition, operator.definition if operator else {})
    limit = compute(queue.arguments, merged).max_length
    if limit is not None:
        row["dropped"] = max(0, queue.ready_count - limit)
    return row


ROUTES = (
    Route("POST", "/api/burrowmq/pages/policy-preview/{vhost}", policy_preview, "policymaker"),
    Route("GET", "/api/burrowmq/pages/overview", overview_page),
    Route("GET", "/api/burrowmq/pages/queue/{vhost}/{name}", queue_page),
)
