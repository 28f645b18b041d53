"""/api/users and /api/permissions.

Owns no state. Source: rabbit_mgmt_wm_users, rabbit_mgmt_wm_user, rabbit_mgmt_wm_permission (3.13).
"""

from __future__ import annotations

from itertools import takewhile
from typing import Any

from burrowmq.broker import inspect
from burrowmq.broker.rules.parameter_rules import user_limits
from burrowmq.broker.rules.password_rules import WeakPassword
from burrowmq.broker.rules.tags import NotBoolean, with_tags
from burrowmq.management import commands
from burrowmq.management.aio import web
from burrowmq.management.answers.listing import reply_list, reply_one
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

OTHERS = {"bulk-delete": ("POST",), "without-permissions": ("GET", "HEAD")}
"""What stands beside users in their place, with its methods."""


async def users(call: Call) -> web.Response:
    """The list."""
    return await reply_list(call, inspect.users(call.node), sort=("name",))


async def without_permissions(call: Call) -> web.Response:
    """Users who may not enter any vhost."""
    auth = call.node.auth
    with_some = {user for _, user in auth.permissions}
    names = sorted(name for name in auth.users if name not in with_some)
    rows = [inspect.user_row(auth.users[name]) for name in names]
    return await reply_list(call, rows, sort=("name",))


def _name(call: Call) -> str:
    """Whom a path names. Raises HTTPMethodNotAllowed: the two other resources beside users have few methods."""
    name = call.path("user")
    if name in OTHERS:
        raise web.HTTPMethodNotAllowed(call.request.method, OTHERS[name])
    return name


def _user(call: Call) -> dict[str, Any]:
    found = call.node.auth.users.get(_name(call))
    if found is None:
        raise not_found()
    return inspect.user_row(found)


async def user(call: Call) -> web.Response:
    """One user."""
    return reply_one(call, _user(call))


def _tags(value: Any) -> list[str]:
    if isinstance(value, str):
        return [tag.strip() for tag in value.split(",") if tag.strip()]
    if isinstance(value, list):
        return [str(tag) for tag in value]
    raise bad_request(["tags_invalid", value])


async def put(call: Call) -> web.Response:
    """PUT: make a user or change password and tags, and limits that are named; others stay."""
    name = _name(call)
    try:
        body: dict[str, Any] = dict(with_tags(await call.body()))
    except NotBoolean as error:
        raise bad_request(["not_boolean", error.value]) from error
    if "tags" not in body:
        raise bad_request("tags_not_present")
    password, hashed = body.get("password"), body.get("password_hash")
    if password is not None and hashed is not None:
        raise bad_request("both_password_and_password_hash_are_provided")
    limits = user_limits(body["limits"]) if "limits" in body else {}
    try:
        is_new = commands.users.put_user(
            call.node,
            name,
            None if password is None else text_of(body, "password"),
            None if hashed is None else text_of(body, "password_hash"),
            _tags(body["tags"]),
            body.get("hashing_algorithm"),
        )
    except WeakPassword as error:
        # As in RabbitMQ: its API says no more, its commands say why.
        text = str(error) if call.caller.is_trusted else "credential_validation_failed"
        raise bad_request(text) from error
    if limits:
        commands.users.add_user_limits(call.node, name, limits)
    return created() if is_new else no_content()


async def delete(call: Call) -> web.Response:
    """DELETE with all permissions."""
    name = _user(call)["name"]
    commands.commit.require_cluster(call.node)
    await commands.users.delete_users(call.node, [name])
    return no_content()


async def bulk_delete(call: Call) -> web.Response:
    """POST {"users": [...]}: one after the other, up to the first that is not there."""
    body = await call.body()
    require_keys(body, "users")
    if not isinstance(body["users"], list):
        raise bad_request("users must be a list")
    commands.commit.require_cluster(call.node)
    names = body["users"]
    texts = list(takewhile(lambda name: isinstance(name, str), names))
    missing = await commands.users.delete_users(call.node, texts)
    if missing is not None or len(texts) < len(names):
        raise bad_request(["no_such_user", names[len(texts)] if missing is None else missing])
    return no_content()


async def user_permissions(call: Call) -> web.Response:
    """The permissions of one user in each vhost."""
    return await reply_list(call, inspect.permissions(call.node, user=_user(call)["name"]))


async def permissions(call: Call) -> web.Response:
    """The list."""
    return await reply_list(call, inspect.each_permission(call.node), sort=("vhost", "user"))


async def permission(call: Call) -> web.Response:
    """The permission of one user in one vhost."""
    found = inspect.permissions(call.node, call.vhost(), call.path("user"))
    if not found:
        raise not_found()
    return reply_one(call, found[0])


async def put_permission(call: Call) -> web.Response:
    """PUT configure, write and read; all three are required."""
    body, name = await call.body(), call.path("user")
    if call.path("vhost") not in call.node.vhosts or name not in call.node.auth.users:
        raise bad_request("vhost_or_user_not_found")
    vhost = call.vhost()
    require_keys(body, "configure", "write", "read")
    is_new = not inspect.permissions(call.node, vhost, name)
    commands.users.put_permission(
        call.node, vhost, name, [text_of(body, key) for key in ("configure", "write", "read")]
    )
    return created() if is_new else no_content()


async def delete_permission(call: Call) -> web.Response:
    """DELETE: the user may no longer enter the vhost."""
    vhost, name = call.vhost(), call.path("user")
    if not inspect.permissions(call.node, vhost, name):
        raise not_found()
    commands.users.delete_permission(call.node, vhost, name)
    return no_content()


ROUTES = (
    Route("GET", "/api/users", users, "administrator"),
    Route("GET", "/api/users/without-permissions", without_permissions, "administrator"),
    Route("POST", "/api/users/bulk-delete", bulk_delete, "administrator"),
    Route("GET", "/api/users/{user}", user, "administrator"),
    Route("PUT", "/api/users/{user}", put, "administrator"),
    Route("DELETE", "/api/users/{user}", delete, "administrator"),
    Route("GET", "/api/users/{user}/permissions", user_permissions, "administrator"),
    Route("GET", "/api/permissions", permissions, "administrator"),
    Route("GET", "/api/permissions/{vhost}/{user}", permission, "administrator"),
    Route("PUT", "/api/permissions/{vhost}/{user}", put_permission, "administrator"),
    Route("DELETE", "/api/permissions/{vhost}/{user}", delete_permission, "administrator"),
)
