"""/api/vhosts: list, create, delete, and the permissions in one.

Owns no state. Source: rabbit_mgmt_wm_vhosts, rabbit_mgmt_wm_vhost (3.13).
"""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

from burrowmq.broker import inspect
from burrowmq.broker.rules.parameter_rules import default_queue_type
from burrowmq.broker.vhost.vhost import Vhost
from burrowmq.management import commands
from burrowmq.management.aio import web
from burrowmq.management.answers import access, sums
from burrowmq.management.answers.listing import project, reply_list
from burrowmq.management.answers.ranges import NO_RANGES, Ranges, finish_of, ranges_of, with_past
from burrowmq.management.answers.rates import vhost_key
from burrowmq.management.answers.reply import (
    ApiError,
    Call,
    Route,
    created,
    flag_of,
    no_content,
    not_found,
    reply,
)
from burrowmq.management.answers.turns import pieces
from burrowmq.management.history.history import VHOST

VHOSTS_PER_TURN = 100


async def vhosts(call: Call) -> web.Response:
    """Those that are open to the caller."""
    ranges = ranges_of(call, error="invalid_range_parameters")
    seen = access.open_vhosts(call.caller, call.node)
    rows = []
    async for piece in pieces(seen, VHOSTS_PER_TURN):
        sessions = inspect.sessions_by_vhost(call.node)
        counted = [inspect.vhost_counters(owner, sessions.get(owner, ())) for owner in piece]
        rows += [await _row(call, owner, row) for owner, row in zip(piece, counted, strict=True)]
    finish = finish_of(
        lambda row: with_past(call, VHOST, vhost_key(row["name"]), row, ranges), ranges
    )
    return await reply_list(call, rows, ("name",), finish)


async def _row(
    call: Call, owner: Vhost, counted: dict[str, Any], ranges: Ranges = NO_RANGES
) -> dict[str, Any]:
    row = await sums.vhost_row(call, owner) | counted
    return with_past(call, VHOST, vhost_key(owner.name), row, ranges)


async def vhost(call: Call) -> web.Response:
    """One vhost."""
    owner = call.node.vhosts[call.vhost()]
    counted = inspect.vhost_counters(owner, inspect.sessions_by_vhost(call.node).get(owner, ()))
    row = await _row(call, owner, counted, ranges_of(call))
    columns = call.query("columns")
    return reply(project(row, columns) if columns else row)


async def add(call: Call) -> web.Response:
    """PUT: idempotent; its creator gets full permissions in it.

    As in RabbitMQ, metadata that the body does not name are emptied, so that the vhost is as the body says.
    Tracing alone goes on, because it is a state and no setting.
    """
    name = call.path("vhost")
    said = _said(call, await call.body())
    is_new = name not in call.node.vhosts
    if is_new:
        commands.vhosts.add_vhost(
            call.node, name, None if call.caller.is_trusted else call.caller.name
        )
    commands.vhosts.describe_vhost(
        call.node,
        name,
        said.description or "",
        said.tags or [],
        said.default_queue_type or commands.vhosts.usual_queue_type(call.node, name),
    )
    if said.tracing is not None:
        commands.vhosts.set_tracing(call.node, name, said.tracing)
    return created() if is_new else no_content()


async def change(call: Call) -> web.Response:
    """POST of burrowctl's: what is named changes, the rest stays."""
    name, said = call.target_vhost(), _said(call, await call.body())
    commands.vhosts.describe_vhost(
        call.node, name, said.description, said.tags, said.default_queue_type
    )
    if said.tracing is not None:
        commands.vhosts.set_tracing(call.node, name, said.tracing)
    return no_content()


class _Said(NamedTuple):
    """What a body says of a vhost; None for a field that it does not name."""

    description: str | None
    tags: list[str] | None
    default_queue_type: str | None
    tracing: bool | None


def _said(call: Call, body: dict[str, Any]) -> _Said:
    """Read the whole body before anything is made. Raises: ApiError, RefusedValue."""
    kind = None
    for key in ("default_queue_type", "defaultqueuetype"):  # RabbitMQ 3.13's word, and 3.10's
        if key in body:
            kind = default_queue_type(body[key], has_cluster=call.node.has_cluster)
    tracing = flag_of(body, "tracing", default=False) if "tracing" in body else None
    return _Said(body.get("description"), _tags(body.get("tags")), kind, tracing)


def _tags(value: Any) -> list[str] | None:
    if isinstance(value, str):
        return [tag.strip() for tag in value.split(",") if tag.strip()]
    return [str(tag) for tag in value] if isinstance(value, list) else None


async def delete(call: Call) -> web.Response:
    """DELETE: with everything in it."""
    name = call.path("vhost")
    if name not in call.node.vhosts:
        raise not_found()
    if call.node.vhosts[name].is_protected:
        text = f"Refusing to delete virtual host '{name}' because it is protected from deletion"
        raise ApiError(412, "precondition_failed", text)
    node = call.node
    commands.commit.require_cluster(node)
    for _ in commands.vhosts.delete_vhost(node, name):
        await asyncio.sleep(0)
        if call.node is not node:
            raise not_found()
    return no_content()


async def protect(call: Call) -> web.Response:
    """POST: it cannot be deleted until DELETE takes that back (as in RabbitMQ 4)."""
    is_protected = call.request.method == "POST"
    commands.vhosts.protect_vhost(call.node, call.target_vhost(), is_protected)
    return no_content()


async def permissions(call: Call) -> web.Response:
    """Who may do what in it."""
    return await reply_list(call, inspect.each_permission(call.node, call.vhost()), sort=("user",))


async def start(call: Call) -> web.Response:
    """Every vhost of a running node runs."""
    call.target_vhost()
    call.check_node()
    return no_content()


ROUTES = (
    Route("GET", "/api/vhosts", vhosts),
    Route("GET", "/api/vhosts/{vhost}", vhost),
    Route("PUT", "/api/vhosts/{vhost}", add, "administrator"),
    Route("DELETE", "/api/vhosts/{vhost}", delete, "administrator"),
    Route("POST", "/api/burrowmq/vhosts/{vhost}", change, "administrator"),
    Route("POST", "/api/vhosts/{vhost}/start/{node}", start, "administrator"),
    Route("POST", "/api/vhosts/{vhost}/deletion/protection", protect, "administrator"),
    Route("DELETE", "/api/vhosts/{vhost}/deletion/protection", protect, "administrator"),
    Route("GET", "/api/vhosts/{vhost}/permissions", permissions, "administrator"),
)
