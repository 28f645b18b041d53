"""/api/overview, /api/nodes, /api/whoami, /api/cluster-name, /api/extensions, /api/auth.

Owns no state. Who may not monitor gets an overview of the virtual hosts that are open to him, and of his own
connections; churn alone is the node's, as in RabbitMQ. message_stats, queue_totals and object_totals are always there,
even on an empty broker: when one is missing, Telegraf believes that its login failed. Source: rabbit_mgmt_wm_overview
and rabbit_mgmt_wm_node (3.13).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import Any

from burrowmq.broker import inspect
from burrowmq.broker.product import RABBITMQ_VERSION, VERSION
from burrowmq.broker.vhost.vhost import Vhost
from burrowmq.management import commands, process, settings
from burrowmq.management.aio import web
from burrowmq.management.answers import access, status, sums
from burrowmq.management.answers.listing import project, reply_list
from burrowmq.management.answers.ranges import NO_RANGES, Past, Ranges, ranges_of
from burrowmq.management.answers.rates import NODE_KEY, vhost_key
from burrowmq.management.answers.reply import (
    Call,
    Route,
    no_content,
    reply,
    require_keys,
    text_of,
)
from burrowmq.management.history import history as kinds
from burrowmq.management.history import retention
from burrowmq.management.sampling import CHURN_COUNTERS, MESSAGE_COUNTERS

EXCHANGE_TYPES = (
    ("direct", "AMQP direct exchange, as per the AMQP specification"),
    ("fanout", "AMQP fanout exchange, as per the AMQP specification"),
    ("headers", "AMQP headers exchange, as per the AMQP specification"),
    ("topic", "AMQP topic exchange, as per the AMQP specification"),
    ("x-consistent-hash", "Consistent Hashing Exchange"),
    ("x-modulus-hash", "Modulus Hashing Exchange"),
    ("x-random", "Randomly picks a binding (queue) to route via (to)."),
    ("x-recent-history", "Recent History Exchange."),
)
AUTH_MECHANISMS = (
    ("PLAIN", "SASL PLAIN authentication mechanism"),
    ("AMQPLAIN", "QPid AMQPLAIN mechanism"),
    (
        "EXTERNAL",
        "TLS peer verification-based authentication plugin. Used in combination with the SASL EXTERNAL mechanism.",
    ),
)


def _counters(names: dict[str, str], counters: dict[str, int]) -> dict[str, Any]:
    return {name: counters.get(counter, 0) for name, counter in names.items()}


def _message_stats(call: Call, past: Past, counters: dict[str, int]) -> dict[str, Any]:
    row = _counters(MESSAGE_COUNTERS, counters)
    row["deliver_get"] = sum(row[name] for name in inspect.DELIVERED)
    row["disk_writes"] = int(inspect.store_stats(call.node).get("written", 0))
    return past.beside(row, "msg_rates")


def _contexts(call: Call) -> list[dict[str, Any]]:
    config = call.node.config
    secure = config.management.tls
    files = {
        "cacertfile": secure.cacertfile, "certfile": secure.certfile, "keyfile": secure.keyfile,
    }  # fmt: skip
    listeners: list[tuple[Any, settings.Address]] = [
        *(([], address) for address in settings.management_addresses(config)),
        *((files, address) for address in settings.tls_addresses(config.management)),
    ]
    return [
        {"ssl_opts": options, "node": call.node.name, "description": "RabbitMQ Management", "path": "/",
         "ip": host, "port": str(port)}
        for options, (host, port) in listeners
    ]  # fmt: skip


def _listeners(call: Call) -> list[dict[str, Any]]:
    return [
        {"node": row["node"], "protocol": row["protocol"], "ip_address": row["interface"].strip("[]"),
         "port": row["port"], "socket_opts": {}}
        for row in status.listeners(call.node)
    ]  # fmt: skip


async def overview(call: Call) -> web.Response:
    """The node in one object. A column inside an object brings the whole object, as RabbitMQ answers here."""
    row = await document(call, ranges_of(call))
    columns = call.query("columns")
    if columns:
        asked = [column.partition(".")[0] for column in columns.split(",")]
        row = project(row, columns) | {n: row[n] for n in asked if isinstance(row.get(n), dict)}
    return reply(row)


async def document(call: Call, ranges: Ranges = NO_RANGES, vhost: str = "") -> dict[str, Any]:
    """The same, for who shows more beside it; of one virtual host where it is named, but for churn."""
    node, history = call.node, call.rates.history
    whole, counters = Past(call, kinds.NODE, [NODE_KEY], ranges), inspect.counters(node)
    may_monitor = call.caller.may("monitoring")
    place = _where(call) if may_monitor else {}
    if may_monitor and not vhost:
        past, stats = whole, _message_stats(call, whole, counters)
        objects = inspect.object_totals(node)
        depths = await sums.depths(inspect.each_vhost(node, None))
    else:
        seen = shown_vhosts(call, vhost)
        past = Past(call, kinds.VHOST, [vhost_key(owner.name) for owner in seen], ranges)
        stats = past.beside(_stats_of(call, seen), "msg_rates")
        objects = _objects_of(call, seen, is_one=bool(vhost))
        depths = await sums.depths(seen)
    return {
        "management_version": RABBITMQ_VERSION,
        "rates_mode": "basic",
        "sample_retention_policies": retention.shown(history.policies),
        "exchange_types": [
            {"name": n, "description": d, "enabled": True} for n, d in EXCHANGE_TYPES
        ],
        "product_version": RABBITMQ_VERSION,
        "product_name": status.PRODUCT_NAME,
        "rabbitmq_version": RABBITMQ_VERSION,
        "burrowmq_version": VERSION,
        "cluster_name": node.cluster_name,
        "erlang_version": "0",
        "erlang_full_version": "none: BurrowMQ runs on Python",
        "release_series_support_status": "supported",
        "disable_stats": False,
        "enable_queue_totals": False,
        "message_stats": stats,
        # As RabbitMQ has it: here with the age of lengths, at the node with its own.
        "churn_rates": whole.beside(_counters(CHURN_COUNTERS, counters), "lengths"),
        "queue_totals": past.beside(depths, "lengths"),
        "object_totals": objects,
        "statistics_db_event_queue": 0,  # there is none; rabbitmqadmin fails without the field
        **place,
    }


def _where(call: Call) -> dict[str, Any]:
    """Which node it is and where it listens: not for everybody."""
    return {
        "node": call.node.name, "listeners": _listeners(call), "contexts": _contexts(call),
    }  # fmt: skip


def _stats_of(call: Call, seen: Sequence[Vhost]) -> dict[str, Any]:
    """What was counted in some virtual hosts together."""
    sessions = inspect.sessions_by_vhost(call.node)
    found: Counter[str] = Counter()
    for owner in seen:
        found.update(inspect.vhost_counters(owner, sessions.get(owner, ()))["message_stats"])
    return dict(found)


def shown_vhosts(call: Call, vhost: str) -> list[Vhost]:
    """Those that are open to the caller, or the one of them that is named."""
    seen = access.open_vhosts(call.caller, call.node)
    return [owner for owner in seen if vhost in ("", owner.name)]


def _objects_of(call: Call, seen: Sequence[Vhost], *, is_one: bool) -> dict[str, int]:
    """What there is in some virtual hosts; who may not monitor is told of his own connections and channels alone."""
    if is_one:
        entered = inspect.sessions_by_vhost(call.node)
        sessions = [session for owner in seen for session in entered.get(owner, ())]
    else:
        sessions = list(call.node.sessions)
    own = [
        each
        for each in sessions
        if call.caller.may("monitoring") or inspect.user_name(each) == call.caller.name
    ]
    return {
        "channels": sum(len(session.channels) for session in own),
        "connections": len(own),
        "exchanges": sum(len(owner.exchanges) for owner in seen),
        "queues": sum(len(owner.queues) for owner in seen),
    }


def _projected(call: Call, row: dict[str, Any]) -> dict[str, Any]:
    columns = call.query("columns")
    return project(row, columns) if columns else row


def node_row(call: Call, ranges: Ranges = NO_RANGES) -> dict[str, Any]:
    """The one node."""
    past = Past(call, kinds.NODE, [NODE_KEY], ranges)
    row = _node_figures(call)
    for name in (*kinds.GAUGES, *kinds.MACHINE):
        row[f"{name}_details"] = past.details(name, "node_stats")
    counters = inspect.counters(call.node)
    return row | past.beside(_counters(CHURN_COUNTERS, counters), "node_stats")


def _node_figures(call: Call) -> dict[str, Any]:
    node, figures = call.node, process.figures(call.node.config.data_dir)
    stats = inspect.store_stats(node)
    alarms = {row["resource"] for row in inspect.alarms(node)}
    limits = inspect.limits(node)
    return {
        "name": node.name,
        "type": "disc",
        "running": True,
        "os_pid": str(os.getpid()),
        "partitions": [],
        "fd_used": figures.open_fds,
        "fd_total": figures.fd_limit,
        "sockets_used": figures.open_sockets,
        "sockets_total": node.process.sockets_max,
        "proc_used": figures.threads,
        "proc_total": figures.thread_limit,
        "mem_used": figures.resident_bytes,
        "mem_limit": limits["memory_bytes"],
        "mem_alarm": "memory" in alarms,
        "disk_free": figures.disk_free_bytes,
        "disk_free_limit": limits["disk_free_bytes"],
        "disk_free_alarm": "disk" in alarms,
        "uptime": int(status.uptime_s(node) * 1000),
        "run_queue": figures.threads_waiting,
        "processors": os.cpu_count() or 1,
        "rates_mode": "basic",
        "being_drained": node.is_under_maintenance,
        "mem_calculation_strategy": "rss",
        "gc_num": figures.gc_runs,
        "context_switches": figures.context_switches,
        "io_read_count": figures.read_ops,
        "io_write_count": figures.write_ops,
        "io_read_bytes": figures.read_bytes,
        "io_write_bytes": figures.write_bytes,
        "io_reopen_count": int(stats.get("file_opens", 0)),
        "store_files_used": int(stats.get("open_files", 0)),
        "store_files_total": int(stats.get("open_files_limit", 0)),
        "io_sync_count": int(stats.get("file_syncs", 0)),
        "msg_store_write_count": int(stats.get("written", 0)),
        "exchange_types": [
            {"name": n, "description": d, "enabled": True} for n, d in EXCHANGE_TYPES
        ],
        "auth_mechanisms": [
            {"name": name, "description": text, "enabled": name in node.config.login.mechanisms}
            for name, text in AUTH_MECHANISMS
        ],
        "applications": [
            {"name": "rabbit", "description": "BurrowMQ", "version": RABBITMQ_VERSION}
        ],
        "contexts": _contexts(call),
        "log_files": settings.log_files(node.config),
        "db_dir": os.path.abspath(node.config.data_dir),
        "config_files": list(node.process.config_files),
        "enabled_plugins": list(status.PLUGINS),
        "cluster_links": [],
        "metrics_gc_queue_length": {},
        "ra_open_file_metrics": {},
    }


async def nodes(call: Call) -> web.Response:
    """A list of one."""
    return await reply_list(call, [node_row(call, ranges_of(call))], sort=("name",))


async def node(call: Call) -> web.Response:
    """The node by its name, with its memory when asked."""
    call.check_node()
    row = node_row(call, ranges_of(call, are_lengths_rounded_up=True))
    if call.flag("memory"):
        row["memory"] = status.memory(call.node)
    return reply(_projected(call, row))


async def node_memory(call: Call) -> web.Response:
    """Where the memory is."""
    call.check_node()
    return reply({"memory": status.memory(call.node)})


async def whoami(call: Call) -> web.Response:
    """The caller."""
    return reply(
        {"name": call.caller.name, "tags": list(call.caller.tags), "is_internal_user": True}
    )


async def cluster_name(call: Call) -> web.Response:
    """The name shown to operators."""
    return reply({"name": call.node.cluster_name})


async def put_cluster_name(call: Call) -> web.Response:
    """PUT {"name": ...}: kept, and told to clients that connect from now on."""
    body = await call.body()
    require_keys(body, "name")
    commands.node.set_cluster_name(call.node, text_of(body, "name"))
    return no_content()


async def extensions(call: Call) -> web.Response:
    """There are none."""
    return reply([])


async def auth(call: Call) -> web.Response:
    """How to log in, readable before logging in."""
    return reply({"oauth_enabled": False})


ROUTES = (
    Route("GET", "/api/overview", overview),
    Route("GET", "/api/nodes", nodes, "monitoring"),
    Route("GET", "/api/nodes/{node}", node, "monitoring"),
    Route("GET", "/api/nodes/{node}/memory", node_memory, "monitoring"),
    Route("GET", "/api/whoami", whoami),
    Route("GET", "/api/cluster-name", cluster_name),
    Route("PUT", "/api/cluster-name", put_cluster_name, "administrator"),
    Route("GET", "/api/extensions", extensions),
    Route("GET", "/api/auth", auth),
)
