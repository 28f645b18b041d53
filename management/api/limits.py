"""/api/vhost-limits and /api/user-limits.

Owns no state. Limits are set one at a time here; refusals have RabbitMQ's texts.
Source: rabbit_mgmt_wm_limit, rabbit_mgmt_wm_limits, rabbit_mgmt_wm_user_limit (3.13).
"""

from __future__ import annotations

from typing import Any

from burrowmq.broker import inspect
from burrowmq.management import commands
from burrowmq.management.aio import web
from burrowmq.management.answers.listing import reply_list
from burrowmq.management.answers.reply import (
    Call,
    Route,
    bad_request,
    no_content,
    not_found,
    require_keys,
)


async def vhost_limits(call: Call) -> web.Response:
    """Of all vhosts, or of one."""
    rows = inspect.vhost_limits(call.node, call.vhost_or_all())
    return await reply_list(call, rows, sort=("vhost",))


async def _value(call: Call) -> Any:
    body = await call.body()
    require_keys(body, "value")
    return body["value"]


async def put_vhost_limit(call: Call) -> web.Response:
    """PUT {"value": number}."""
    vhost, value = call.target_vhost(), await _value(call)
    before = dict(call.node.vhosts[vhost].limits)
    commands.parameters.set_vhost_limits(call.node, vhost, {**before, call.path("name"): value})
    return no_content()


async def delete_vhost_limit(call: Call) -> web.Response:
    """DELETE; one that is not set is no error."""
    vhost, name = call.vhost(), call.path("name")
    before = call.node.vhosts[vhost].limits
    left = {key: value for key, value in before.items() if key != name}
    commands.parameters.set_vhost_limits(call.node, vhost, left)
    return no_content()


async def user_limits(call: Call) -> web.Response:
    """Of all users, or of one."""
    user = call.request.match_info.get("user")
    if user is not None and user not in call.node.auth.users:
        raise not_found()
    return await reply_list(call, inspect.user_limits(call.node, user), sort=("user",))


async def put_user_limit(call: Call) -> web.Response:
    """PUT {"value": number}."""
    user, value = call.path("user"), await _value(call)
    if user not in call.node.auth.users:
        raise bad_request(["no_such_user", user])
    before = dict(call.node.auth.users[user].limits)
    commands.users.set_user_limits(call.node, user, {**before, call.path("name"): value})
    return no_content()


async def delete_user_limit(call: Call) -> web.Response:
    """DELETE; one that is not set is no error."""
    user, name = call.path("user"), call.path("name")
    if user not in call.node.auth.users:
        raise not_found()
    before = call.node.auth.users[user].limits
    left = {key: value for key, value in before.items() if key != name}
    commands.users.set_user_limits(call.node, user, left)
    return no_content()


ROUTES = (
    Route("GET", "/api/vhost-limits", vhost_limits),
    Route("GET", "/api/vhost-limits/{vhost}", vhost_limits),
    Route("PUT", "/api/vhost-limits/{vhost}/{name}", put_vhost_limit, "administrator"),
    Route("DELETE", "/api/vhost-limits/{vhost}/{name}", delete_vhost_limit, "administrator"),
    Route("GET", "/api/user-limits", user_limits),
    Route("GET", "/api/user-limits/{user}", user_limits),
    Route("PUT", "/api/user-limits/{user}/{name}", put_user_limit, "administrator"),
    Route("DELETE", "/api/user-limits/{user}/{name}", delete_user_limit, "administrator"),
)
