"""/api/burrowmq/pages/users, vhosts and permissions: what the UI's pages for administrators show, one answer each.

Owns no state. What is changed there goes through /api/users, /api/vhosts, /api/permissions and their like.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from burrowmq.broker import inspect
from burrowmq.management.aio import web
from burrowmq.management.answers import sums
from burrowmq.management.answers.listing import reply_list
from burrowmq.management.answers.reply import Call, Route, not_found, reply

Row = dict[str, Any]


async def users(call: Call) -> web.Response:
    """A list of users: how each logs in, where it may do something, how many connections it has. Never a hash."""
    entered = Counter(user for _, user in call.node.auth.permissions)
    connected = Counter(inspect.user_name(session) for session in call.node.sessions)
    rows = (
        {
            **{key: row[key] for key in ("name", "tags", "limits")},
            "has_password": bool(row["password_hash"]),
            "vhosts": entered[row["name"]],
            "connections": connected[row["name"]],
        }
        for row in inspect.users(call.node)
    )
    return await reply_list(call, rows, sort=("name",))


async def vhosts(call: Call) -> web.Response:
    """A list of virtual hosts with their limits and how much is in them."""
    entered = Counter(vhost for vhost, _ in call.node.auth.permissions)
    connected = Counter(inspect.vhost_name(session) for session in call.node.sessions)

    rows = [
        {
            **await sums.vhost_row(call, owner),
            "limits": dict(owner.limits),
            "queues": len(owner.queues),
            "exchanges": len(owner.exchanges),
            "connections": connected[name],
            "users": entered[name],
        }
        for name, owner in sorted(call.node.vhosts.items())
    ]
    return await reply_list(call, rows, sort=("name",))


async def permissions(call: Call) -> web.Response:
    """A list of who may do what where, with how many topic permissions; its name is both, so that a filter finds it."""
    narrowed = call.node.auth.topic_permissions
    rows = (
        {
            **row,
            "name": f"{row['user']} {row['vhost']}",
            "topics": len(narrowed.get((row["vhost"], row["user"]), ())),
        }
        for row in inspect.each_permission(call.node)
    )
    return await reply_list(call, rows, sort=("vhost", "user"))


async def user_rights(call: Call) -> web.Response:
    """One user: where it may configure, write and read, and which routing keys."""
    name = call.path("user")
    found = call.node.auth.users.get(name)
    if found is None:
        raise not_found()
    return reply(
        {
            "user": {
                "name": name,
                "tags": [str(tag) for tag in found.tags],
                "limits": dict(found.limits),
                "has_password": bool(found.password_hash),
                "algorithm": found.hashing_algorithm,
            },
            "permissions": inspect.permissions(call.node, user=name),
            "topic_permissions": inspect.topic_permissions(call.node, user=name),
            "vhosts": sorted(call.node.vhosts),
        }
    )


async def vhost_rights(call: Call) -> web.Response:
    """One virtual host: who may do what in it, its limits and metadata."""
    name = call.vhost()
    owner = call.node.vhosts[name]
    return reply(
        {
            "vhost": {**await sums.vhost_row(call, owner), "limits": dict(owner.limits)},
            "queues": len(owner.queues),
            "permissions": inspect.permissions(call.node, name),
            "topic_permissions": inspect.topic_permissions(call.node, name),
            "users": sorted(call.node.auth.users),
        }
    )


ROUTES = (
    Route("GET", "/api/burrowmq/pages/users", users, "administrator"),
    Route("GET", "/api/burrowmq/pages/vhosts", vhosts, "administrator"),
    Route("GET", "/api/burrowmq/pages/permissions", permissions, "administrator"),
    Route("GET", "/api/burrowmq/pages/users/{user}", user_rights, "administrator"),
    Route("GET", "/api/burrowmq/pages/vhosts/{vhost}", vhost_rights, "administrator"),
)
