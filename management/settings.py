"""Which addresses the management server listens on, from the node's configuration.

Owns no state. Elsewhere in management only single values are read from the configuration, never addresses.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Any

from burrowmq.broker.node.server_process import ServerProcess
from burrowmq.config.compose import COMPOSED
from burrowmq.config.effective import DEFAULT, HIDDEN, Effective, is_secret
from burrowmq.config.option import Option
from burrowmq.config.plugins import BUILT_IN
from burrowmq.config.schema import ManagementConfig, NodeConfig, PrometheusConfig, plain_options
from burrowmq.config.units import Endpoint

Address = tuple[str, int]
Part = NodeConfig | ManagementConfig | PrometheusConfig

# The longest path that fits a socket address on Linux.
SOCKET_PATH_LIMIT = 107

PLUGINS = tuple(sorted(BUILT_IN))
"""RabbitMQ's plugins whose work the node does."""
_CHOSEN = re.compile(r"\\\$[a-z]+")


def management_addresses(config: NodeConfig) -> list[Address]:
    """Where the HTTP API and UI listen; empty when switched off."""
    return _addresses(config.management.listeners)


def prometheus_addresses(config: NodeConfig) -> list[Address]:
    """Where the metrics page listens; empty when switched off."""
    return _addresses(config.prometheus.listeners)


def amqp_addresses(config: NodeConfig) -> list[Address]:
    """Where AMQP listens."""
    return _addresses(config.listeners)


def tls_addresses(part: Part) -> list[Address]:
    """Where a part of the configuration (the node, management, prometheus) listens with TLS."""
    return _addresses(part.tls_listeners)


def _addresses(endpoints: Iterable[Endpoint]) -> list[Address]:
    return [(each.host, each.port) for each in endpoints]


def control_socket(config: NodeConfig) -> str:
    """The absolute path of burrowctl's socket; empty for a node without a data directory."""
    return os.path.abspath(os.path.join(config.data_dir, "control.sock")) if config.data_dir else ""


def bindable(path: str, directory: int) -> str:
    """The path, or one through its open directory when it is too long for a socket address."""
    if len(os.fsencode(path)) <= SOCKET_PATH_LIMIT:
        return path
    return f"/proc/self/fd/{directory}/{os.path.basename(path)}"


def effective(process: ServerProcess) -> list[dict[str, Any]]:
    """Every key: its value, where that comes from ("" for a default), what it means; secrets are hidden."""
    options = {
        option.name: option for option in (*COMPOSED, *(each for *_, each in plain_options()))
    }
    wild = [
        (re.compile(_CHOSEN.sub("[^.]+", re.escape(name))), option)
        for name, option in options.items()
        if "$" in name
    ]
    found = {row.key: row for row in process.effective}
    unset = (
        Effective(key, None, DEFAULT) for key in options if "$" not in key and key not in found
    )
    rows = []
    for row in sorted((*found.values(), *unset), key=lambda each: each.key):
        option = options.get(row.key) or next(
            (each for form, each in wild if form.fullmatch(row.key)), None
        )
        rows.append(
            {
                **row._asdict(),
                "source": "" if row.source == DEFAULT else row.source,
                **_meant(option),
            }
        )
    return rows


def _meant(option: Option | None) -> dict[str, Any]:
    if option is None:
        return {"default": None, "doc": "", "ours": False}
    default = HIDDEN if is_secret(option.name) and option.default else option.default
    return {"default": default, "doc": option.doc, "ours": option.ours}


def log_files(config: NodeConfig) -> list[str]:
    """Where the log goes."""
    log = config.log
    return [
        *([log.file_path] if log.file_path else []),
        *([f"<{log.console_stream}>"] if log.console else []),
    ]


def metrics_path(config: NodeConfig) -> str:
    """The URL path of the metrics."""
    return config.prometheus.path.rstrip("/") or "/metrics"


def metrics_per_object(config: NodeConfig) -> bool:
    """Whether the plain path serves one series an object."""
    return config.prometheus.per_object
