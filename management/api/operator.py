"""What an operator changes while the node runs: watermarks, the log's level; and hashes of passwords.

Owns no state. The paths below /api/burrowmq are burrowctl's; `auth/hash_password` is RabbitMQ's. Nothing here is kept
over a restart, as in RabbitMQ: the configuration file is where it stays.
"""

from __future__ import annotations

from typing import Any

from management import commands
from management.aio import web
from management.reply import Call, Route, bad_request, no_content, reply


def _number(body: dict[str, Any], name: str) -> float | None:
    """A number of the body that is not negative; None when it is not there. Raises: ApiError."""
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e18:
        raise bad_request(f"{name} is no usable number: {value}")
    return float(value)


async def memory_watermark(call: Call) -> web.Response:
    """`{"relative": 0.4}` of the memory there is, or `{"absolute": bytes}`."""
    body = await call.body()
    relative, absolute = _number(body, "relative"), _number(body, "absolute")
    if (relative is None) == (absolute is None):
        raise bad_request("give relative or absolute")
    if relative is not None and relative > 1:
        raise bad_request("The threshold should be a fraction between 0.0 and 1.0")
    commands.set_memory_watermark(call.node, relative, int(absolute or 0))
    return no_content()


async def disk_free_limit(call: Call) -> web.Response:
    """`{"absolute": bytes}`, or `{"mem_relative": 1.5}` times the memory there is."""
    body = await call.body()
    relative, absolute = _number(body, "mem_relative"), _number(body, "absolute")
    if (relative is None) == (absolute is None):
        raise bad_request("give absolute or mem_relative")
    commands.set_disk_free_limit(call.node, relative, int(absolute or 0))
    return no_content()


async def log_level(call: Call) -> web.Response:
    """`{"level": "debug"}`: the least severe level that is logged from now on."""
    level = str((await call.body()).get("level", ""))
    if not commands.set_log_level(call.node, level):
        known = ", ".join(commands.LOG_LEVELS)
        raise bad_request(f"level {level} is not supported. Try one of {known}")
    return no_content()


async def hash_password(call: Call) -> web.Response:
    """The hash that a definitions file would hold, with a salt of its own."""
    return reply({"ok": commands.hash_of(call.node, call.path("password"))})


async def post_hash_password(call: Call) -> web.Response:
    """The same for burrowctl: a password does not belong into a path."""
    password = str((await call.body()).get("password", ""))
    return reply({"ok": commands.hash_of(call.node, password)})


ROUTES = (
    Route("POST", "/api/burrowmq/memory-watermark", memory_watermark, "administrator"),
    Route("POST", "/api/burrowmq/disk-free-limit", disk_free_limit, "administrator"),
    Route("POST", "/api/burrowmq/log-level", log_level, "administrator"),
    Route("POST", "/api/burrowmq/hash-password", post_hash_password, "administrator"),
    Route("GET", "/api/auth/hash_password/{password}", hash_password, "administrator"),
)
