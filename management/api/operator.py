"""What an operator does to a running node, and looks up on it: alarms' limits, listeners, the log, certificates.

Owns no state. The paths are burrowctl's; RabbitMQ has these only in rabbitmqctl. Nothing here is kept over a restart,
as in RabbitMQ: a lasting setting belongs into the configuration file.
"""

from __future__ import annotations

import os
from typing import Any

from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.peer import pem
from burrowmq.management import commands
from burrowmq.management.aio import web
from burrowmq.management.answers import status
from burrowmq.management.answers.disk_threads import ask_disk
from burrowmq.management.answers.reply import Call, Route, bad_request, is_number, no_content, reply

PREFIXES = ("RABBITMQ_", "BURROWMQ_")
LOG_TAIL_BYTES = 1 << 20
LOG_TAIL_LINES = 10_000


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
    commands.node.set_memory_watermark(call.node, relative, int(absolute or 0))
    return no_content()


async def disk_free_limit(call: Call) -> web.Response:
    """`{"absolute": bytes}`, or `{"mem_relative": 1.5}` times the memory there is."""
    body = await call.body()
    relative, absolute = _number(body, "mem_relative"), _number(body, "absolute")
    if (relative is None) == (absolute is None):
        raise bad_request("give absolute or mem_relative")
    commands.node.set_disk_free_limit(call.node, relative, int(absolute or 0))
    return no_content()


async def log_level(call: Call) -> web.Response:
    """`{"level": "debug"}`: the least severe level that is logged from now on."""
    level = str((await call.body()).get("level", ""))
    if not commands.node.set_log_level(call.node, level):
        known = ", ".join(commands.node.LOG_LEVELS)
        raise bad_request(f"level {level} is not supported. Try one of {known}")
    return no_content()


async def listeners(call: Call) -> web.Response:
    """`{"accept": false}` refuses new AMQP connections, `{"accept": true}` takes them again."""
    accept = (await call.body()).get("accept")
    if not isinstance(accept, bool):
        raise bad_request(["not_boolean", accept])
    await commands.node.accept_connections(call.node, accept)
    return no_content()


async def maintenance(call: Call) -> web.Response:
    """`{"enabled": true}` closes listeners and connections, `{"enabled": false}` takes clients again."""
    await commands.node.maintain(call.node, _switch(await call.body()))
    return no_content()


async def disk_watch(call: Call) -> web.Response:
    """`{"enabled": false}` looks at free disk space no more, and ends its alarm."""
    commands.node.watch_disk(call.node, _switch(await call.body()))
    return no_content()


def _switch(body: dict[str, Any]) -> bool:
    enabled = body.get("enabled")
    if not isinstance(enabled, bool):
        raise bad_request(["not_boolean", enabled])
    return enabled


async def collect_garbage(call: Call) -> web.Response:
    """Have Python look for cycles in everything, and return what is free to the system."""
    call.host.process.machine.collector.collect()
    if call.host.running is not None:
        call.host.running.monitor.give_back_memory()
    return no_content()


async def os_environment(call: Call) -> web.Response:
    """The process's variables with RabbitMQ's and our names; the value of a secret is left out."""
    found = {name: value for name, value in os.environ.items() if name.startswith(PREFIXES)}
    return reply({name: "(hidden)" if _is_secret(name) else found[name] for name in found})


def _is_secret(name: str) -> bool:
    return any(word in name for word in ("PASS", "COOKIE", "SECRET"))


async def certificates(call: Call) -> web.Response:
    """The listeners with TLS, the names of their files replaced by the certificates in them; never a key."""
    return reply(await ask_disk(_certificates, call.node))


def _certificates(node: RunningNode) -> list[dict[str, Any]]:
    rows = []
    for row in status.certificates(node):
        for name in ("certfile", "cacertfile"):
            if name in row:
                row[name] = pem.blocks(row[name])
        rows.append(row)
    return rows


async def log(call: Call) -> web.Response:
    """The end of the log file; 400 when the log goes to standard error only."""
    text = call.query("lines", "50")
    if not is_number(text):
        raise bad_request(["not_int", "lines"])
    path = call.host.process.config.log.file_path
    if path is None:
        raise bad_request("the log goes to standard error, where this node cannot read it again")
    lines = await ask_disk(_log_tail, path, min(int(text), LOG_TAIL_LINES))
    return reply({"lines": lines})


def _log_tail(path: str, count: int) -> list[str]:
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - LOG_TAIL_BYTES))
            lines = file.read(LOG_TAIL_BYTES).decode("utf-8", "replace").splitlines()
    except OSError as error:
        raise bad_request(f"{path} cannot be read: {error.strerror}") from error
    return lines[-count:] if count else []


ROUTES = (
    Route(
        "POST", "/api/burrowmq/memory-watermark", memory_watermark, "administrator", is_kept=False
    ),
    Route("POST", "/api/burrowmq/disk-free-limit", disk_free_limit, "administrator", is_kept=False),
    Route("POST", "/api/burrowmq/log-level", log_level, "administrator", is_kept=False),
    Route("POST", "/api/burrowmq/listeners", listeners, "administrator", is_kept=False),
    Route("POST", "/api/burrowmq/maintenance", maintenance, "administrator", is_kept=False),
    Route("POST", "/api/burrowmq/disk-watch", disk_watch, "administrator", is_kept=False),
    Route("POST", "/api/burrowmq/collect-garbage", collect_garbage, "administrator", True),
    Route("GET", "/api/burrowmq/os-environment", os_environment, "administrator"),
    Route("GET", "/api/burrowmq/certificates", certificates, "administrator"),
    Route("GET", "/api/burrowmq/log", log, "administrator", True),
)
