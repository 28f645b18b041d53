"""/api/burrowmq/pages: what one page of the UI shows, in one answer.

Owns no state. The parts are those of the other resources, with their rights; what is here alone are the lists of an
overview (deepest, growing, unconsumed, redelivered: one pass over the queues, a few at a time) the reasons of a queue's
settings, and what a policy would do.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from typing import Any, cast
from urllib.parse import unquote

from burrowmq.broker import inspect
from burrowmq.broker.inspect import reasons
from burrowmq.broker.queue.port import QueuePort
from burrowmq.broker.queue.rules.settings import Settings, compute
from burrowmq.broker.rules.policy import ApplyTo, Policy, merge
from burrowmq.broker.vhost.vhost import Vhost
from burrowmq.management import commands, process
from burrowmq.management.aio import web
from burrowmq.management.answers.ranges import history_of
from burrowmq.management.answers.rates import NODE_KEY, queue_key, vhost_key
from burrowmq.management.answers.reply import (
    Call,
    Route,
    collect,
    flag_of,
    number_of,
    reply,
)
from burrowmq.management.answers.turns import KEYS_PER_TURN, ROWS_PER_TURN, pieces
from burrowmq.management.api import overview
from burrowmq.management.api.client_pages import of_consumer
from burrowmq.management.api.exchange_pages import some
from burrowmq.management.api.queues import with_rates
from burrowmq.management.history import history as kinds

TOP = 10
CONSUMERS_MAX = 200
MATCHES_MAX = 20
QUEUE_COLUMNS = (
    "messages_ready", "messages_unacknowledged", "publish", "deliver_get", "ack", "redeliver",
)  # fmt: skip
OVERVIEW_COLUMNS = (*QUEUE_COLUMNS, "mem_used", "disk_free")
HOLDERS_MAX = 20
COMPARED_MAX = 4

Row = dict[str, Any]
Ranked = tuple[float, str, str]


async def overview_page(call: Call) -> web.Response:
    """The node, its alarms, the queues that stand out; messages and objects of one virtual host where it is named."""
    tops = await _tops(call)
    return reply(
        {
            "overview": await overview.document(call, vhost=call.query("vhost")),
            "alarms": list(_alarms(call)),
            "resources": _resources(call),
            "history": _history(call),
            "top": {name: [_top_row(call, each) for each in found] for name, found in tops.items()},
        }
    )


def _history(call: Call) -> Row | None:
    """Messages of what the caller may see or asks for, and the node's memory and disk."""
    found, vhost = history_of(call, kinds.NODE, [NODE_KEY], OVERVIEW_COLUMNS), call.query("vhost")
    if found is not None and (vhost or not call.caller.may("monitoring")):
        keys = [vhost_key(owner.name) for owner in overview.shown_vhosts(call, vhost)]
        seen = history_of(call, kinds.VHOST, keys, QUEUE_COLUMNS)
        found["columns"] |= seen["columns"] if seen is not None else {}
    return found


def _resources(call: Call) -> Row:
    limits = inspect.limits(call.node)
    return {
        "mem_used": process.resident_bytes(),
        "mem_limit": limits["memory_bytes"],
        "disk_free": process.disk_free_bytes(call.node.config.data_dir),
        "disk_free_limit": limits["disk_free_bytes"],
    }


def _alarms(call: Call) -> Iterator[Row]:
    """Each alarm with its cause in figures; what to do about it is the page's business."""
    figures = _resources(call)
    for row in inspect.alarm_causes(call.node):
        used, limit = (
            ("mem_used", "mem_limit")
            if row["resource"] == "memory"
            else ("disk_free", "disk_free_limit")
        )
        if row["resource"] == "queue":
            yield {**row, "value": len(call.node.queue_faults), "limit": 0}
            continue
        if row["resource"] == "cluster":
            yield {**row, "value": 0, "limit": 0}
            continue
        if row["resource"] == "damage":
            yield {**row, "value": inspect.damage(call.node)["quarantined"], "limit": 0}
            continue
        yield {**row, "value": figures[used], "limit": figures[limit]}


async def _tops(call: Call) -> dict[str, list[Ranked]]:
    """The ten of each kind, the first first: the figure, the virtual host, the name.

    Made once for a round of samples: rates do not change sooner, and many look at this page.
    """
    seen = None if call.caller.may("monitoring") else call.caller.name
    key = ("tops", call.query("vhost"), seen)
    found: dict[str, list[Ranked]] | None = call.rates.derived.get(key)
    if found is None:
        found = await _rank_all(call)
        call.rates.derive(key, found)
    return found


async def _rank_all(call: Call) -> dict[str, list[Ranked]]:
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


def _rank(call: Call, vhost: Vhost, queue: QueuePort, found: dict[str, list[Ranked]]) -> None:
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
    row["consumer_details"] = [
        inspect.consumer_row(call.node, vhost, queue, consumer) | of_consumer(consumer)
        for consumer in inspect.clients_of(queue)[:CONSUMERS_MAX]
    ]
    bindings, binding_count = await some(call, inspect.bindings_to(vhost, "queue", name))
    return reply(
        {
            "queue": with_rates(call, row),
            "history": history_of(
                call, kinds.QUEUE, [queue_key(vhost_name, name)], kinds.QUEUE.columns
            ),
            "settings": reasons.settings(vhost, queue),
            "defaults": reasons.defaults(vhost, queue, call.node.config.consumer_timeout_ms),
            "warnings": [
                *(f"The disk refuses {each['kind']}: {each['reason']}" for each in row["fault"]),
                *reasons.warnings(vhost, queue),
            ],
            "bindings": bindings,
            "binding_count": binding_count,
            "dead_letters": inspect.dead_letter_path(vhost, queue),
            "holders": await _holders(call, vhost, queue),
        }
    )


async def compare_page(call: Call) -> web.Response:
    """Several queues side by side: `queue` of the query is a virtual host and a name, each quoted once more.

    One that is not there, or not for the caller, has its two names and nothing else.
    """
    found: list[Row] = []
    for text in call.request.query.getall("queue", [])[:COMPARED_MAX]:
        vhost_name, name = (unquote(part) for part in text.partition("/")[::2])
        vhost = call.node.vhosts.get(vhost_name)
        queue = None if vhost is None else vhost.queues.get(name)
        row: Row = {"vhost": vhost_name, "name": name}
        if vhost and queue and call.caller.may_see(call.node, vhost_name):
            row["queue"] = with_rates(call, inspect.queue(call.node, vhost_name, name) or {})
            row["settings"] = reasons.settings(vhost, queue)
            row["history"] = history_of(
                call, kinds.QUEUE, [queue_key(vhost_name, name)], kinds.QUEUE.columns
            )
        found.append(row)
    return reply({"queues": found})


async def _holders(call: Call, vhost: Vhost, queue: QueuePort) -> list[Row]:
    """Whose channels hold unacked messages of the queue, the oldest first; of other users only to monitoring."""
    if not queue.unacked_count:
        return []
    found = await collect(inspect.holders(call.node, vhost.name, queue))
    sees_all = call.caller.may("monitoring")
    rows = [row for row in found if row and (sees_all or row["user"] == call.caller.name)]
    return sorted(rows, key=lambda row: -row["at_least_s"])[:HOLDERS_MAX]


async def policy_preview(call: Call) -> web.Response:
    """What a policy would do if it were saved as the body says; nothing is changed."""
    vhost, body = call.node.vhosts[call.vhost(is_question=True)], await call.body()
    definition = body.get("definition")
    policy = Policy(
        name=str(body.get("name", "")),
        pattern=str(body.get("pattern", "")),
        definition=definition if isinstance(definition, dict) else {},
        apply_to=cast(
            "ApplyTo", str(body.get("apply-to", "all"))
        ),  # an unknown one matches nothing
        priority=number_of(body, "priority") if "priority" in body else 0,
    )
    is_operator = flag_of(body, "is_operator", default=False)
    rivals = vhost.policies.of_kind(is_operator=is_operator).values()
    others = [each for each in rivals if each.name != policy.name]
    matches: list[Row] = []
    found: Row = {"matched": 0, "in_force": 0, "dropped": 0, "is_about": False}
    async for piece in pieces(list(vhost.queues.values()), ROWS_PER_TURN):
        for queue in piece:
            if policy.matches(vhost.settings.kind(queue.name, queue.arguments), queue.name):
                row = _previewed(vhost, queue, policy, others, is_operator=is_operator)
                found["matched"] += 1
                found["in_force"] += row["overruled_by"] is None
                found["dropped"] += row["dropped"]
                found["is_about"] |= row["is_about"]
                matches.append(row)
    matches.sort(key=lambda row: (-row["dropped"], row["name"]))
    exchanges = sum(policy.matches("exchange", name) for name in list(vhost.exchanges))
    return reply({**found, "exchanges": exchanges, "matches": matches[:MATCHES_MAX]})


def _previewed(
    vhost: Vhost, queue: QueuePort, policy: Policy, others: list[Policy], *, is_operator: bool
) -> Row:
    """One queue: the policy that would hold in its place, else the ready messages that its limits would drop."""
    stronger = [
        each
        for each in others
        if each.priority > policy.priority
        and each.matches(vhost.settings.kind(queue.name, queue.arguments), queue.name)
    ]
    row: Row = {"name": queue.name, "ready": queue.ready_count, "overruled_by": None}
    row |= {"dropped": 0, "is_about": False, "dead_letters_to": None}
    if stronger:
        row["overruled_by"] = max(stronger, key=lambda each: each.priority).name
        return row
    now, policies = vhost.effective_policy(queue), vhost.policies
    if is_operator:
        holds = policies.policies.get(now.policy or "")
        merged = merge(holds.definition if holds else {}, policy.definition)
    else:
        holds = policies.operator_policies.get(now.operator_policy or "")
        merged = merge(policy.definition, holds.definition if holds else {})
    dropped, is_about = _beyond(queue, compute(queue.arguments, merged))
    if dropped:
        target = compute(queue.arguments, merged).dead_letter_exchange
        row |= {"dropped": dropped, "is_about": is_about, "dead_letters_to": target}
    return row


def _beyond(queue: QueuePort, settings: Settings) -> tuple[int, bool]:
    """How many of the oldest ready messages limits would drop; about so many where it is bytes that are limited."""
    if settings.overflow != "drop-head":
        return 0, False
    ready, size = queue.ready_count, queue.ready_bytes
    most, most_bytes = settings.max_length, settings.max_length_bytes
    by_count = max(0, ready - most) if most is not None else 0
    by_size = 0
    if most_bytes is not None and size > most_bytes:
        by_size = min(ready, math.ceil(ready * (size - most_bytes) / size))
    return max(by_count, by_size), by_size > by_count


ROUTES = (
    Route(
        "POST",
        "/api/burrowmq/pages/policy-preview/{vhost}",
        policy_preview,
        "policymaker",
        is_kept=False,
    ),
    Route("GET", "/api/burrowmq/pages/overview", overview_page),
    Route("GET", "/api/burrowmq/pages/queue/{vhost}/{name}", queue_page),
    Route("GET", "/api/burrowmq/pages/compare", compare_page),
)
