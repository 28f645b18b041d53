"""/api/bindings: list, make and remove; a binding's address ends in its opaque `properties_key`.

Owns no state. Source: rabbit_mgmt_wm_bindings, rabbit_mgmt_wm_binding (3.13).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote, unquote_plus

from burrowmq.broker import inspect
from burrowmq.broker.words.resource import ResourceKind
from burrowmq.management import commands
from burrowmq.management.aio import web
from burrowmq.management.answers.listing import Listed, rank, reply_list, reply_listed
from burrowmq.management.answers.reply import (
    ApiError,
    Call,
    Route,
    arguments_of,
    no_content,
    not_found,
    reply,
    routing_key_of,
    unauthorised,
)
from burrowmq.management.answers.turns import ROWS_PER_TURN

KINDS: dict[str, ResourceKind] = {"q": "queue", "e": "exchange"}


async def bindings(call: Call) -> web.StreamResponse:
    """The list."""
    node = call.node
    owners = [
        owner
        for owner in inspect.each_vhost(node, call.vhost_or_all())
        if call.caller.may_see(node, owner.name)
    ]
    sources = ((owner, name) for owner in owners for name in sorted(owner.exchanges))
    return await reply_bindings(call, inspect.Bounds(sources))


async def reply_bindings(call: Call, found: Sequence[inspect.Bound]) -> web.StreamResponse:
    """A list of bindings, in their order or sorted by a column."""
    return await reply_listed(call, Listed(found, inspect.bound_row, _no_name, _key, ROWS_PER_TURN))


def _no_name(bound: inspect.Bound) -> str:
    return ""


def _key(column: str) -> Callable[[inspect.Bound], Any] | None:
    if column in ("", "vhost"):
        return None
    return lambda bound: rank(inspect.bound_row(bound).get(column))


def _source(call: Call) -> str:
    name = call.path("source")
    return "" if name == "amq.default" else name


def _between(call: Call) -> list[dict[str, Any]]:
    """An empty list where source or destination do not exist, as in RabbitMQ."""
    owner, source = call.node.vhosts[call.vhost()], _source(call)
    kind, destination = KINDS[call.path("kind")], call.path("destination")
    if destination not in (owner.queues if kind == "queue" else owner.exchanges):
        return []
    rows = inspect.bindings_to(owner, kind, destination)
    return [row for row in rows if row["source"] == source]


async def between(call: Call) -> web.StreamResponse:
    """All bindings from an exchange to a queue or exchange."""
    return await reply_list(call, _between(call), sort=("properties_key",))


async def add(call: Call) -> web.Response:
    """POST: 201 with the new binding's relative address."""
    vhost, kind, body = call.vhost(), KINDS[call.path("kind")], await call.body()
    source, destination = _source(call), call.path("destination")
    if not source:
        raise unauthorised("Access refused.")
    arguments = arguments_of(body)
    owner = call.node.vhosts[vhost]
    if destination not in (owner.queues if kind == "queue" else owner.exchanges):
        raise ApiError(404, "not_found", f"no {kind} '{destination}' in vhost '{vhost}'")
    if source not in owner.exchanges:
        raise ApiError(404, "not_found", f"no exchange '{source}' in vhost '{vhost}'")
    commands.users.require(call, vhost, "write", kind, destination)
    commands.users.require(call, vhost, "read", "exchange", source)
    key = routing_key_of(body)
    commands.users.require_topic(call, vhost, "read", source, key)
    commands.topology.bind(call.node, vhost, source, (kind, destination), key, arguments)
    address = inspect.properties_key(key, arguments)
    location = f"{quote(destination, safe='')}/{quote(address, safe='')}"
    return web.Response(status=201, headers={"Location": location})


def _one(call: Call) -> dict[str, Any]:
    asked, rows = call.path("properties"), _between(call)
    for row in rows:
        if row["properties_key"] == asked:
            return row
    # The key is percent-encoded already. A client that puts it into an address as it is has it decoded on the way,
    # another has encoded the routing key itself, and writes a space as %20.
    for row in rows:
        if unquote_plus(row["properties_key"]) in (asked, unquote_plus(asked)) and asked != "~":
            return row
    raise not_found()


async def binding(call: Call) -> web.Response:
    """One binding."""
    return reply(_one(call))


async def delete(call: Call) -> web.Response:
    """DELETE one binding."""
    row = _one(call)
    found = inspect.find_binding(call.node, row)
    if found is None:
        raise unauthorised("Access refused.")
    commands.users.require(call, row["vhost"], "write", row["destination_type"], row["destination"])
    commands.users.require(call, row["vhost"], "read", "exchange", row["source"])
    commands.users.require_topic(call, row["vhost"], "read", row["source"], row["routing_key"])
    commands.topology.unbind(call.node, row["vhost"], found)
    return no_content()


PAIR = "/api/bindings/{vhost}/e/{source}/{kind:q|e}/{destination}"
ROUTES = (
    Route("GET", "/api/bindings", bindings),
    Route("GET", "/api/bindings/{vhost}", bindings),
    Route("GET", PAIR, between),
    Route("POST", PAIR, add),
    Route("GET", PAIR + "/{properties}", binding),
    Route("DELETE", PAIR + "/{properties}", delete),
)
