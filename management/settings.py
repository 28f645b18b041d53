"""Which addresses the management server listens on, from the node's configuration.

Owns no state. Elsewhere in management only single values are read from the configuration, never addresses.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from burrowmq.config.schema import ManagementConfig, NodeConfig, PrometheusConfig
from burrowmq.config.units import Endpoint

Address = tuple[str, int]
Part = NodeConfig | ManagementConfig | PrometheusConfig

# The longest path that fits a socket address on Linux.
SOCKET_PATH_LIMIT = 107


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


def log_files(config: NodeConfig) -> list[str]:
    """Where the log goes."""
    log = config.log
    return [*([log.file_path] if log.file_path else []), *(["<stderr>"] if log.console else [])]


def metrics_path(config: NodeConfig) -> str:
    """The URL path of the metrics."""
    return config.prometheus.path.rstrip("/") or "/metrics"


def metrics_per_object(config: NodeConfig) -> bool:
    """Whether the plain path serves one series an object."""
    return config.prometheus.per_object
