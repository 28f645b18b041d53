"""/api/parameters and /api/global-parameters.

Owns no state. Components are RabbitMQ's own two, `operator_policy` and `vhost-limits`, and `shovel`; any other is
refused as not found, as on a RabbitMQ without that plugin. Source: rabbit_mgmt_wm_parameter,
rabbit_mgmt_wm_global_parameter (3.13).
"""

from __future__ import annotations

from typing import Any

from burrowmq.broker import inspect
from burrowmq.broker.definitions.parameters import SHOVEL
from burrowmq.broker.rules.parameter_rules import ValidationFailed
from burrowmq.management import commands
from burrowmq.management.aio import web
from burrowmq.management.answers.listing import reply_list
from burrowmq.management.answers.reply import (
    Call,
    Route,
    bad_request,
    created,
    escaped,
    no_content,
    not_found,
    reply,
    require_keys,
)


async def parameters(call: Call) -> web.Response:
    """All, or those of a component, or of a component in a vhost."""
    component = call.request.match_info.get("component")
    rows = inspect.parameters(call.node, call.vhost_or_all(), component)
    return await reply_list(call, rows)


async def parameter(call: Call) -> web.Response:
    """One."""
    for row in inspect.parameters(call.node, call.vhost(), call.path("component")):
        if row["name"] == call.path("name"):
            return reply(row)
    raise not_found()


async def put(call: Call) -> web.Response:
    """PUT {"value": ...}."""
    vhost, body = call.target_vhost(), await call.body()
    require_keys(body, "value")
    component, name = call.path("component"), call.path("name")
    try:
        is_new = commands.parameters.put_parameter(
            call.node, vhost, component, name, body["value"], call.caller.name
        )
    except ValidationFailed as error:
        if component != SHOVEL:
            raise
        raise bad_request(escaped(str(error))) from error
    return created() if is_new else no_content()


async def delete(call: Call) -> web.Response:
    """DELETE."""
    commands.parameters.delete_parameter(
        call.node, call.vhost(), call.path("component"), call.path("name")
    )
    return no_content()


async def global_parameters(call: Call) -> web.Response:
    """The list."""
    return await reply_list(call, inspect.global_parameters(call.node), sort=("name",))


def _global_row(call: Call) -> dict[str, Any]:
    name, values = call.path("name"), call.node.parameters.values
    if name not in values:
        raise not_found()
    return {"name": name, "value": values[name]}


async def global_parameter(call: Call) -> web.Response:
    """One."""
    return reply(_global_row(call))


async def put_global(call: Call) -> web.Response:
    """PUT {"value": ...}."""
    body = await call.body()
    require_keys(body, "value")
    is_new = commands.parameters.put_global_parameter(call.node, call.path("name"), body["value"])
    return created() if is_new else no_content()


async def delete_global(call: Call) -> web.Response:
    """DELETE."""
    commands.parameters.delete_global_parameter(call.node, call.path("name"))
    return no_content()


ONE = "/api/parameters/{component}/{vhost}/{name}"
ROUTES = (
    Route("GET", "/api/parameters", parameters, "policymaker"),
    Route("GET", "/api/parameters/{component}", parameters, "policymaker"),
    Route("GET", "/api/parameters/{component}/{vhost}", parameters, "policymaker"),
    Route("GET", ONE, parameter, "policymaker"),
    Route("PUT", ONE, put, "policymaker"),
    Route("DELETE", ONE, delete, "policymaker"),
    Route("GET", "/api/global-parameters", global_parameters, "policymaker"),
    Route("GET", "/api/global-parameters/{name}", global_parameter, "policymaker"),
    Route("PUT", "/api/global-parameters/{name}", put_global, "policymaker"),
    Route("DELETE", "/api/global-parameters/{name}", delete_global, "policymaker"),
)
