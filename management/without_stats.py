"""What `disable_stats=true` asks for: the same lists without statistics, and what they cost.

Owns no state. `short` gives a route's handler a second way, taken when the query says so; the rows of queues are made
of nine columns then, or of twelve with `enable_queue_totals=true`, in lists with the policy where one applies. What
consists of statistics only is refused, as RabbitMQ does. Source: rabbit_mgmt_util:disable_stats and its callers (3.13),
compared with 3.10.8.
"""

from __future__ import annotations

from typing import Any

from burrowmq.broker import inspect
from burrowmq.management.aio import web
from burrowmq.management.answers.listing import project, reply_list
from burrowmq.management.answers.reply import Call, Handler, Route, bad_request, not_found, reply
from burrowmq.management.api import overview

PARAMETER = "disable_stats"
QUEUE = (
    "name",
    "vhost",
    "durable",
    "auto_delete",
    "exclusive",
    "arguments",
    "node",
    "state",
    "type",
)
TOTALS = ("messages", "messages_ready", "messages_unacknowledged")
OVERVIEW = (
    "management_version", "rates_mode", "sample_retention_policies", "exchange_types", "product_version",
    "product_name", "rabbitmq_version", "burrowmq_version", "cluster_name", "erlang_version", "erlang_full_version",
    "release_series_support_status", "node",
)  # fmt: skip
OBJECTS = ("connections", "exchanges", "queues")
NODE = ("name", "type", "running")
CONNECTION = ("name", "vhost", "user", "node")
VHOST = (
    "name",
    "description",
    "tags",
    "default_queue_type",
    "metadata",
    "tracing",
    "cluster_state",
)


def _of(row: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: row[name] for name in names if name in row}


def _projected(call: Call, row: dict[str, Any]) -> web.Response:
    columns = call.query("columns")
    return reply(project(row, columns) if columns else row)


async def _queues(call: Call) -> web.Response:
    columns = QUEUE + TOTALS if call.flag("enable_queue_totals") else QUEUE
    rows = inspect.iter_queues(call.node, call.vhost_or_all(), (*columns, "policy"))
    return await reply_list(call, map(_without_nothing, rows))


def _without_nothing(row: dict[str, Any]) -> dict[str, Any]:
    """The row of a queue, which has no policy if none applies."""
    if row["policy"] is None:
        del row["policy"]
    return row


async def _queue(call: Call) -> web.Response:
    row = inspect.queue(call.node, call.vhost(), call.path("name"))
    if row is None:
        raise not_found()
    return _projected(call, _of(row, QUEUE))


async def _overview(call: Call) -> web.Response:
    found = await overview.document(call)
    row = _of(found, OVERVIEW)
    row["disable_stats"] = True
    row["enable_queue_totals"] = call.flag("enable_queue_totals")
    # As RabbitMQ has it: connections are counted for who may monitor, and the node is named to everybody.
    objects = OBJECTS if call.caller.may("monitoring") else OBJECTS[1:]
    row |= {"object_totals": _of(found["object_totals"], objects), "node": call.node.name}
    return _projected(call, row)


async def _nodes(call: Call) -> web.Response:
    return await reply_list(call, [_of(overview.node_row(call), NODE)], sort=("name",))


async def _node(call: Call) -> web.Response:
    call.check_node()
    return _projected(call, _of(overview.node_row(call), NODE))


async def _connections(call: Call) -> web.Response:
    rows = [
        _of(row, CONNECTION)
        for row in inspect.connections(call.node, call.vhost_or_all())
        if call.caller.may("monitoring") or row["user"] == call.caller.name
    ]
    return await reply_list(call, rows, sort=("name",))


async def _exchanges(call: Call) -> web.Response:
    rows = inspect.exchanges(call.node, call.vhost_or_all())
    shown = ({name: row[name] for name in row if name != "message_stats"} for row in rows)
    return await reply_list(call, shown)


async def _vhosts(call: Call) -> web.Response:
    rows = [
        _of(row, VHOST)
        for row in inspect.vhosts(call.node)
        if call.caller.may_see(call.node, row["name"])
    ]
    return await reply_list(call, rows, sort=("name",))


async def _vhost(call: Call) -> web.Response:
    row = inspect.vhost_row(call.node, call.node.vhosts[call.vhost()])
    return _projected(call, _of(row, VHOST))


async def _refused(call: Call) -> web.Response:
    raise bad_request("Stats in management UI are disabled on this node")


SHORT: dict[str, Handler] = {
    "/api/overview": _overview,
    "/api/nodes": _nodes,
    "/api/nodes/{node}": _node,
    "/api/queues": _queues,
    "/api/queues/{vhost}": _queues,
    "/api/queues/{vhost}/{name}": _queue,
    "/api/exchanges": _exchanges,
    "/api/exchanges/{vhost}": _exchanges,
    "/api/connections": _connections,
    "/api/vhosts/{vhost}/connections": _connections,
    "/api/channels": _refused,
    "/api/channels/{name}": _refused,
    "/api/vhosts/{vhost}/channels": _refused,
    "/api/consumers": _refused,
    "/api/consumers/{vhost}": _refused,
    "/api/vhosts": _vhosts,
    "/api/vhosts/{vhost}": _vhost,
}


def with_short_ways(routes: tuple[Route, ...]) -> tuple[Route, ...]:
    """The same routes; those above look at the query first."""
    return tuple(
        route._replace(handler=_either(route.handler, SHORT[route.path]))
        if route.method == "GET" and route.path in SHORT
        else route
        for route in routes
    )


def _either(full: Handler, short: Handler) -> Handler:
    async def handler(call: Call) -> web.StreamResponse:
        return await (short if call.flag(PARAMETER) else full)(call)

    handler.__doc__ = full.__doc__
    handler.__module__ = full.__module__
    return handler
