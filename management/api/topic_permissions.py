"""/api/topic-permissions, and those of one vhost or user.

Owns no state. Source: rabbit_mgmt_wm_topic_permission, rabbit_mgmt_wm_topic_permissions (3.13).
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
    created,
    no_content,
    not_found,
    require_keys,
    text_of,
)


async def topic_permissions(call: Call) -> web.Response:
    """All, of one vhost, or of one user."""
    user = call.request.match_info.get("user")
    if user is not None and user not in call.node.auth.users:
        raise not_found()
    rows = inspect.each_topic_permission(call.node, call.vhost_or_all(), user)
    return await reply_list(call, rows, sort=("vhost", "user", "exchange"))


def _rows(call: Call) -> list[dict[str, Any]]:
    exchange = call.request.match_info.get("exchange")
    found = inspect.topic_permissions(call.node, call.vhost(), call.path("user"), exchange)
    if not found:
        raise not_found()
    return found


async def of_user(call: Call) -> web.Response:
    """Those of a user in a vhost; a list even if there is only one."""
    return await reply_list(call, _rows(call), sort=("exchange",))


async def put(call: Call) -> web.Response:
    """PUT exchange, write and read; the exchange of the body counts, as in RabbitMQ."""
    vhost, user, body = call.path("vhost"), call.path("user"), await call.body()
    require_keys(body, "exchange", "write", "read")
    if vhost not in call.node.vhosts or user not in call.node.auth.users:
        raise bad_request("vhost_or_user_not_found")
    exchange = text_of(body, "exchange")
    # As in RabbitMQ, 201 is for the first permission of this user in this virtual host, whatever the exchange.
    is_new = not inspect.topic_permissions(call.node, vhost, user)
    keys = [text_of(body, "write"), text_of(body, "read")]
    commands.users.put_topic_permission(call.node, vhost, user, exchange, keys)
    return created() if is_new else no_content()


async def delete(call: Call) -> web.Response:
    """DELETE all of a user in a vhost, or those of one exchange."""
    _rows(call)
    exchange = call.request.match_info.get("exchange")
    commands.users.delete_topic_permission(call.node, call.vhost(), call.path("user"), exchange)
    return no_content()


ONE = "/api/topic-permissions/{vhost}/{user}"
ROUTES = (
    Route("GET", "/api/topic-permissions", topic_permissions, "administrator"),
    Route("GET", "/api/vhosts/{vhost}/topic-permissions", topic_permissions, "administrator"),
    Route("GET", "/api/users/{user}/topic-permissions", topic_permissions, "administrator"),
    Route("GET", ONE, of_user, "administrator"),
    Route("PUT", ONE, put, "administrator"),
    Route("DELETE", ONE, delete, "administrator"),
    Route("GET", ONE + "/{exchange}", of_user, "administrator"),
    Route("PUT", ONE + "/{exchange}", put, "administrator"),
    Route("DELETE", ONE + "/{exchange}", delete, "administrator"),
)
