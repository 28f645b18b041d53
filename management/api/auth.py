"""/api/auth: logins since the start, and hashes of passwords.

Owns no state. `hash_password` with the password in the path is RabbitMQ's, the one below /api/burrowmq is burrowctl's.
"""

from __future__ import annotations

from burrowmq.broker import inspect
from burrowmq.management import commands
from burrowmq.management.aio import web
from burrowmq.management.answers.reply import Call, Route, no_content, reply


async def attempts(call: Call) -> web.Response:
    """Logins since the start, by protocol."""
    call.check_node()
    counters = inspect.counters(call.node)
    tried, failed = counters["auth_attempts"], counters["auth_failures"]
    row = {
        "protocol": "amqp091",
        "auth_attempts": tried,
        "auth_attempts_failed": failed,
        "auth_attempts_succeeded": tried - failed,
    }
    return reply([row])


async def attempts_by_source(call: Call) -> web.Response:
    """Sources are not tracked, which is RabbitMQ's default as well."""
    call.check_node()
    return reply([])


async def forget_attempts(call: Call) -> web.Response:
    """DELETE: count from zero again."""
    call.check_node()
    commands.node.forget_logins(call.node)
    return no_content()


async def hash_password(call: Call) -> web.Response:
    """The hash that a definitions file would hold, with a salt of its own."""
    return reply({"ok": commands.users.hash_of(call.node, call.path("password"))})


async def post_hash_password(call: Call) -> web.Response:
    """The same for burrowctl, in the body: a path with a password could be logged."""
    password = str((await call.body()).get("password", ""))
    return reply({"ok": commands.users.hash_of(call.node, password)})


ROUTES = (
    Route("GET", "/api/auth/attempts/{node}", attempts, "monitoring"),
    Route("DELETE", "/api/auth/attempts/{node}", forget_attempts, "administrator", is_kept=False),
    Route("GET", "/api/auth/attempts/{node}/source", attempts_by_source, "monitoring"),
    Route(
        "DELETE",
        "/api/auth/attempts/{node}/source",
        forget_attempts,
        "administrator",
        is_kept=False,
    ),
    Route("GET", "/api/auth/hash_password/{password}", hash_password, "administrator"),
    Route(
        "POST", "/api/burrowmq/hash-password", post_hash_password, "administrator", is_kept=False
    ),
)
