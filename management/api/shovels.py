"""/api/shovels: the shovels with their state; restart and deletion.

Owns no state. A shovel is made and changed as a parameter of the component `shovel`. Reading is for monitoring;
what changes anything is for who may set parameters. Source: rabbit_shovel_mgmt (3.13).
"""

from __future__ import annotations

from burrowmq.broker import inspect
from burrowmq.broker.definitions.parameters import SHOVEL
from burrowmq.management import commands
from burrowmq.management.aio import web
from burrowmq.management.answers.listing import reply_list
from burrowmq.management.answers.reply import Call, Route, no_content, not_found


async def listing(call: Call) -> web.Response:
    """All, or those of a virtual host."""
    return await reply_list(call, inspect.shovels(call.node, call.vhost_or_all()))


async def one(call: Call) -> web.Response:
    """A list with one, as RabbitMQ has it."""
    rows = inspect.shovels(call.node, call.vhost())
    found = [row for row in rows if row["name"] == call.path("name")]
    if not found:
        raise not_found()
    return await reply_list(call, found)


async def delete(call: Call) -> web.Response:
    """DELETE: the shovel and its parameter."""
    commands.parameters.delete_parameter(call.node, call.vhost(), SHOVEL, call.path("name"))
    return no_content()


async def restart(call: Call) -> web.Response:
    """Begin its next run now."""
    found = call.node.shovels.found
    if found is None or not found.restart(call.vhost(), call.path("name")):
        raise not_found()
    return no_content()


ONE = "/api/shovels/vhost/{vhost}/{name}"
ROUTES = (
    Route("GET", "/api/shovels", listing, "monitoring"),
    Route("GET", "/api/shovels/vhost/{vhost}", listing, "monitoring"),
    Route("GET", ONE, one, "monitoring"),
    Route("DELETE", ONE, delete, "policymaker"),
    Route("DELETE", f"{ONE}/restart", restart, "policymaker"),
)
