"""/api/queues/quorum and what stands behind `burrowctl add_member` and its like: which servers keep a queue.

Owns no state. Source: rabbit_mgmt_wm_quorum_queue_replicas_{add_member,delete_member,grow,shrink},
rabbit_mgmt_wm_quorum_queue_status (3.13), with its status codes: 204, 202 for what is removed, 503 with the reason.
"""

from __future__ import annotations

from burrowmq.management import commands
from burrowmq.management.aio import web
from burrowmq.management.answers.reply import (
    ApiError,
    Call,
    Route,
    bad_request,
    no_content,
    not_found,
    reply,
    require_keys,
)
from burrowmq.management.commands.members import STRATEGIES, MemberRefused, Strategy

CHANGES = {"add": True, "delete": False}


def _unavailable(refused: MemberRefused) -> ApiError:
    return ApiError(503, "service_unavailable", refused.word)


async def _change(call: Call, *, is_kept: bool) -> None:
    found = commands.topology.queue_of(call.node, call.vhost(), call.path("name"))
    body = await call.body()
    require_keys(body, "node")
    server = str(body["node"])
    try:
        await commands.members.change(call.node, found, server, kind="quorum", is_kept=is_kept)
    except MemberRefused as refused:
        raise _unavailable(refused) from refused


async def add(call: Call) -> web.Response:
    """POST: the queue has a member at this node."""
    await _change(call, is_kept=True)
    return no_content()


async def delete(call: Call) -> web.Response:
    """DELETE: it has none there."""
    await _change(call, is_kept=False)
    return web.Response(status=202)


def _strategy(body: dict[str, object]) -> Strategy:
    strategy = Strategy(
        *(str(body.get(key, "")) for key in ("strategy", "vhost_pattern", "queue_pattern"))
    )
    if strategy.name not in STRATEGIES:
        raise bad_request(f"strategy '{strategy.name}' is not recognised.")
    return strategy


async def grow(call: Call) -> web.Response:
    """POST: all quorum queues that fit have a member at this node."""
    body = await call.body()
    require_keys(body, "vhost_pattern", "queue_pattern", "strategy")
    try:
        await commands.members.grow(call.node, call.path("node"), _strategy(body))
    except MemberRefused as refused:
        if refused.word == "node_not_running":
            raise not_found() from refused
        raise _unavailable(refused) from refused
    return no_content()


async def shrink(call: Call) -> web.Response:
    """DELETE: no quorum queue has a member at this node."""
    try:
        await commands.members.shrink(call.node, call.path("node"))
    except MemberRefused as refused:
        raise _unavailable(refused) from refused
    return web.Response(status=202)


async def status(call: Call) -> web.Response:
    """Each member, and what it is. A refusal has the body of a health check here, as RabbitMQ's has."""
    found = commands.topology.queue_of(call.node, call.vhost(), call.path("name"))
    try:
        return reply(await commands.members.status(found, "quorum"))
    except MemberRefused as refused:
        return reply({"status": "failed", "reason": refused.word}, 503)


async def command(call: Call) -> web.Response:
    """What burrowctl asks for: an `action` on a `node`, on one queue or on those that fit; with a table, or nothing."""
    body = await call.body()
    require_keys(body, "action")
    action, server, kind, vhost, name = (
        str(body.get(key, default))
        for key, default in (("action", ""), ("node", ""), ("kind", "quorum"), ("vhost", "/"), ("name", ""))
    )  # fmt: skip
    node = call.node
    try:
        if action == "grow":
            return reply(await commands.members.grow(node, server, _strategy(body)))
        if action == "shrink":
            return reply(await commands.members.shrink(node, server))
        if kind not in ("quorum", "stream") or action not in (*CHANGES, "restart", "status"):
            raise bad_request(["unknown", action if kind in ("quorum", "stream") else kind])
        if vhost not in node.vhosts:
            raise ApiError(404, "not_found", f"Virtual host '{vhost}' does not exist")
        queue = commands.members.find(node, vhost, name)
        if queue is None:
            text = f"queue '{name}' was not found in virtual host '{vhost}'"
            raise ApiError(404, "not_found", text)
        if action == "status":
            return reply(await commands.members.status(queue, kind))
        if action == "restart":
            return reply(await commands.members.restart(queue, server))
        is_kept = CHANGES[action]
        await commands.members.change(node, queue, server, kind=kind, is_kept=is_kept)
    except MemberRefused as refused:
        if refused.word == "node_not_running":  # that one is not known at all
            raise bad_request(str(refused)) from refused
        raise ApiError(503, "service_unavailable", str(refused)) from refused
    return no_content()


REPLICAS = "/api/queues/quorum/{vhost}/{name}/replicas"
ROUTES = (
    Route("POST", f"{REPLICAS}/add", add, "administrator"),
    Route("DELETE", f"{REPLICAS}/delete", delete, "administrator"),
    Route("POST", "/api/queues/quorum/replicas/on/{node}/grow", grow, "administrator"),
    Route("DELETE", "/api/queues/quorum/replicas/on/{node}/shrink", shrink, "administrator"),
    Route("GET", "/api/queues/quorum/{vhost}/{name}/status", status, "management"),
    Route("POST", "/api/burrowmq/members", command, "administrator"),
)
