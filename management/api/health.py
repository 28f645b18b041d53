"""/api/health/checks/*, /api/healthchecks/node and /api/aliveness-test: 200 when well, 503 with a reason when not.

Owns no state. Once the store has failed every check says so, until the process is gone. Source:
rabbit_mgmt_wm_health_check_* (3.13).
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from burrowmq.broker import inspect
from burrowmq.management import commands, messages
from burrowmq.management.aio import web
from burrowmq.management.answers import quorum, status
from burrowmq.management.answers.disk_threads import ask_disk
from burrowmq.management.answers.reply import (
    Call,
    Route,
    bad_request,
    is_number,
    reply,
    running_of,
    unauthorised,
)
from burrowmq.protocol.errors import AccessRefused

STORE_FAILED = "the store has failed"
MINIMUM_QUORUM = (
    "There are quorum queues that would lose their quorum if one of their servers stopped"
)
UNITS = {"days": 1, "weeks": 7, "months": 30, "years": 365}
DAYS_MAX = 365 * 1000

Handler = Callable[[Call], Awaitable[web.Response]]


def _failed(**details: Any) -> web.Response:
    return reply({"status": "failed", **details}, 503)


def _ok(**details: Any) -> web.Response:
    return reply({"status": "ok", **details})


def _check(path: str, handler: Handler) -> Route:
    """A row of the table whose handler is not asked when the store has failed."""

    @functools.wraps(handler)
    async def check(call: Call) -> web.Response:
        failure = call.host.failure
        if failure is not None:
            return _failed(reason=f"{STORE_FAILED}: {failure}")
        running_of(call.host)
        return await handler(call)

    return Route("GET", path, check, is_about_process=True)


async def alarms(call: Call) -> web.Response:
    """Resource alarms of the whole cluster, which is this node."""
    found = inspect.alarms(call.node)
    if found:
        return _failed(reason="There are alarms in effect in the cluster", alarms=found)
    return _ok()


async def local_alarms(call: Call) -> web.Response:
    """Resource alarms of this node."""
    found = inspect.alarms(call.node)
    if found:
        return _failed(reason="There are alarms in effect on the node", alarms=found)
    return _ok()


async def damage(call: Call) -> web.Response:
    """No damaged message waits in quarantine, no file is damaged. Not RabbitMQ's."""
    found = inspect.damage(call.node)
    if found["cause"]:
        return _failed(reason=found.pop("cause"), **found)
    return _ok()


async def virtual_hosts(call: Call) -> web.Response:
    """Every vhost runs once the node does."""
    return _ok()


async def port_listener(call: Call) -> web.Response:
    """Whether a port is open."""
    text = call.path("port")
    if not is_number(text.removeprefix("-")):
        raise bad_request("Invalid port")
    ports = [row["port"] for row in status.listeners(call.node)]
    if int(text) in ports:
        return _ok(port=int(text))
    return _failed(reason="No active listener", missing=int(text), ports=ports)


async def protocol_listener(call: Call) -> web.Response:
    """Whether a protocol is served."""
    asked = call.path("protocol").lower()
    wanted = {"amqp091": "amqp", "amqp0-9-1": "amqp"}.get(asked, asked)
    protocols = sorted({row["protocol"] for row in status.listeners(call.node)})
    if wanted in protocols:
        return _ok(protocol=asked)
    return _failed(reason="No active listener", missing=asked, protocols=protocols)


async def certificates(call: Call) -> web.Response:
    """Whether a listener's certificate, or its authority's, ends within a time."""
    within, unit = call.path("within"), call.path("unit")
    if unit not in UNITS:
        raise bad_request("Time unit not recognised. Supported units: days, weeks, months, years.")
    if not is_number(within.removeprefix("-")) or abs(int(within)) * UNITS[unit] > DAYS_MAX:
        raise bad_request("Invalid expiration period.")
    limit = datetime.now(UTC) + timedelta(days=int(within) * UNITS[unit])
    found = await ask_disk(status.expiring, call.node, limit)
    if found:
        rows = [{key: row[key] for key in row if key != "purpose"} for row in found]
        return _failed(reason="Certificates expiring", expired=rows)
    return _ok()


async def quorum_critical(call: Call) -> web.Response:
    """No quorum queue would be without its quorum if one of the servers that keep it stopped.

    RabbitMQ asks whether this node may be stopped. A front-end keeps no queue, and always may; its servers answer no
    health checks.
    """
    if inspect.cluster_link(call.node) is None:
        return _ok(reason="single node cluster")
    found = [each.row() for each in await quorum.standings(call.node) if each.is_critical]
    if found:
        return _failed(reason=MINIMUM_QUORUM, queues=found)
    return _ok()


async def mirror_critical(call: Call) -> web.Response:
    """There are no mirrors."""
    return _ok(reason="single node cluster")


async def node_health(call: Call) -> web.Response:
    """The deprecated check."""
    if "node" in call.request.match_info:
        call.check_node()
    found = inspect.alarms(call.node)
    if found:
        names = ",".join(row["resource"] for row in found)
        return _failed(reason=f"resource alarm(s) in effect:[{names}]")
    return _ok()


async def aliveness(call: Call) -> web.Response:
    """Declare, publish and get in one vhost, by the caller's own rights."""
    vhost, name = call.vhost(), messages.PROBE
    try:
        commands.users.require(call, vhost, "configure", "queue", name)
        commands.users.require(call, vhost, "write", "exchange", "")
        commands.users.require(call, vhost, "read", "queue", name)
    except AccessRefused as refusal:
        # RabbitMQ does it over a channel and tells what closed it.
        raise unauthorised(f"ACCESS_REFUSED - {refusal}") from refusal
    await messages.probe(call.node, vhost)
    return _ok()


CHECKS = "/api/health/checks"
ROUTES = (
    _check(f"{CHECKS}/alarms", alarms),
    _check(f"{CHECKS}/local-alarms", local_alarms),
    _check(f"{CHECKS}/virtual-hosts", virtual_hosts),
    _check(f"{CHECKS}/damage", damage),
    _check(f"{CHECKS}/port-listener/{{port}}", port_listener),
    _check(f"{CHECKS}/protocol-listener/{{protocol}}", protocol_listener),
    _check(f"{CHECKS}/certificate-expiration/{{within}}/{{unit}}", certificates),
    _check(f"{CHECKS}/node-is-quorum-critical", quorum_critical),
    _check(f"{CHECKS}/node-is-mirror-sync-critical", mirror_critical),
    _check("/api/healthchecks/node", node_health),
    _check("/api/healthchecks/node/{node}", node_health),
    _check("/api/aliveness-test/{vhost}", aliveness),
)
