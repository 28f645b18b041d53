"""The node's status: the document behind `burrowctl status`, /api/nodes and the memory breakdown.

Owns no state. Figures come from the operating system (`management.process`), the configuration (`settings`) and the
broker's rows (`broker.inspect`). Names are those of rabbit_diagnostics' JSON and /api/nodes; docs/monitoring.md lists
those that mean something else here.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from burrowmq.broker import inspect
from burrowmq.broker.node.node import Node
from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.peer import pem
from burrowmq.broker.product import RABBITMQ_VERSION, VERSION
from burrowmq.management import process, settings

PRODUCT_NAME = "RabbitMQ"
PLUGINS = settings.PLUGINS

Document = dict[str, Any]


def uptime_s(node: RunningNode) -> float:
    """Seconds since the node started."""
    return time.monotonic() - float(node.process.started_monotonic_s)


def memory(node: RunningNode, resident: int | None = None) -> Document:
    """Where the memory is; O(queues). What cannot be told apart is `other_system`, and 0 under its own name.

    The names have to be there, because rabbitmqadmin fails without one of them.
    """
    resident = process.resident_bytes() if resident is None else resident
    queues = sum(int(queue.memory_bytes) for _, queue in inspect.each_queue(node))
    parts = dict.fromkeys(
        ("connection_readers", "connection_writers", "connection_channels", "connection_other", "queue_procs",
         "queue_slave_procs", "quorum_queue_procs", "quorum_queue_dlx_procs", "stream_queue_procs",
         "stream_queue_replica_reader_procs", "stream_queue_coordinator_procs", "plugins", "other_proc", "metrics",
         "mgmt_db", "mnesia", "metadata_store", "quorum_ets", "metadata_store_ets", "other_ets", "binary",
         "msg_index", "code", "atom", "other_system", "allocated_unused", "reserved_unallocated"),
        0,
    )  # fmt: skip
    parts["queue_procs"] = queues
    parts["other_system"] = max(0, resident - queues)
    return {
        **parts,
        "strategy": "rss",
        "total": {"erlang": resident, "rss": resident, "allocated": resident},
    }


def listeners(node: RunningNode) -> list[Document]:
    """Every open port, with RabbitMQ's protocol names."""
    return [row for row, _ in _listeners(node)]


def _listeners(node: RunningNode) -> Iterator[tuple[Document, settings.Part | None]]:
    """Yield each open port with the part of the configuration that has its TLS options, None without TLS."""
    config = node.config
    amqp, api = "AMQP 0-9-1", "HTTP API"
    metrics = "Prometheus exporter API over HTTP"
    for addresses, protocol, purpose, part in (
        (settings.amqp_addresses(config), "amqp", amqp, None),
        (settings.tls_addresses(config), "amqp/ssl", f"{amqp} over TLS", config),
        (settings.management_addresses(config), "http", api, None),
        (settings.tls_addresses(config.management), "https", f"{api} over TLS", config.management),
        (settings.prometheus_addresses(config), "http/prometheus", metrics, None),
        (settings.tls_addresses(config.prometheus), "https/prometheus", f"{metrics} over TLS", config.prometheus),
    ):  # fmt: skip
        for host, port in addresses:
            row = {
                "interface": f"[{host or '::'}]" if ":" in host or not host else host,
                "node": node.name,
                "port": port,
                "protocol": protocol,
                "purpose": purpose,
            }
            yield row, part


def certificates(node: RunningNode) -> list[Document]:
    """The listeners with TLS and when the certificates in their files end; reads those files."""
    return [
        {
            **row,
            **_ends("cacertfile", part.tls.cacertfile),
            **_ends("certfile", part.tls.certfile),
        }
        for row, part in _listeners(node)
        if part is not None
    ]


def _ends(name: str, path: str | None) -> Document:
    if path is None:
        return {}
    ends = [each.not_after.strftime("%Y-%m-%d %H:%M:%S") for each in pem.read(path)]
    return {name: path, f"{name}_expires_on": ends}


def expiring(node: RunningNode, before: datetime) -> list[Document]:
    """Those of `certificates` that end before a moment, and those of which a file has none any more."""
    text = before.strftime("%Y-%m-%d %H:%M:%S")
    ends = ("certfile_expires_on", "cacertfile_expires_on")
    return [
        row
        for row in certificates(node)
        if any(end < text for key in ends for end in row.get(key, ()))
        or any(row.get(key) == [] for key in ends)
    ]


def process_document(host: Node) -> Document:
    """What there is to say about a node whose application may be stopped."""
    return {
        "node": host.process.name,
        "pid": os.getpid(),
        "state": host.state,
        "failure": host.failure,
        "version": RABBITMQ_VERSION,
        "erlang_version": _python(),
        "log_files": settings.log_files(host.process.config),
    }


def _python() -> str:
    """What stands in the place of Erlang's version."""
    return f"CPython {platform.python_version()}"


def document(node: RunningNode) -> Document:
    """What `burrowctl status --formatter json` prints, and a few keys of our own."""
    config, figures = node.config, process.figures(node.config.data_dir)
    totals, store = inspect.object_totals(node), inspect.store_stats(node)
    limits = inspect.limits(node)
    return {
        "active_plugins": list(PLUGINS),
        "alarms": inspect.alarms(node),
        "config_files": list(node.process.config_files),
        "crypto_lib_version": "",
        "data_directory": os.path.abspath(config.data_dir),
        "disk_free": figures.disk_free_bytes,
        "disk_free_limit": limits["disk_free_bytes"],
        "enabled_plugin_file": "",
        "erlang_version": _python(),
        "file_descriptors": {
            "sockets_limit": node.process.sockets_max,
            "sockets_used": figures.open_sockets,
            "total_limit": figures.fd_limit,
            "total_used": figures.open_fds,
            "store_limit": int(store.get("open_files_limit", 0)),
            "store_used": int(store.get("open_files", 0)),
        },
        "is_under_maintenance": node.is_under_maintenance,
        "listeners": listeners(node),
        "log_files": settings.log_files(config),
        "memory": memory(node, figures.resident_bytes),
        "node": node.name,
        "os": f"{platform.system()} {platform.release()}",
        "pid": os.getpid(),
        "processes": {
            "limit": figures.thread_limit,
            "used": figures.threads,
        },
        "product_name": "BurrowMQ",
        "product_version": VERSION,
        "rabbitmq_version": RABBITMQ_VERSION,
        "raft_data_directory": "",
        "release_series_support_status": "supported",
        "run_queue": figures.threads_waiting,
        "totals": {
            "virtual_host_count": len(node.vhosts),
            "connection_count": totals["connections"],
            "queue_count": totals["queues"],
        },
        "uptime": int(uptime_s(node)),
        "vm_memory_calculation_strategy": "rss",
        "vm_memory_high_watermark_limit": limits["memory_bytes"],
        "vm_memory_high_watermark_setting": limits["memory_setting"],
        "burrowmq": {
            "version": VERSION,
            "codec": str(node.process.codec_name),
            "confirm": str(config.store.confirm),
        },
    }
