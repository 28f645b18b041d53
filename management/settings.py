"""Which addresses the management server listens on, from the node's configuration.

Owns no state. Elsewhere in management only single values are read from the configuration, never addresses.
"""

from __future__ import annotations

import os
from typing import Any

Address = tuple[str, int]

# The longest path that fits a socket address on Linux.
SOCKET_PATH_LIMIT = 107


def management_addresses(config: Any) -> list[Address]:
    """Where the HTTP API and UI listen; empty when switched off."""
    return _addresses(config.management.listeners)


def prometheus_addresses(config: Any) -> list[Address]:
    """Where the metrics page listens; empty when switched off."""
    return _addresses(config.prometheus.listeners)


def amqp_addresses(config: Any) -> list[Address]:
    """Where AMQP listens."""
    return _addresses(config.listeners)


def tls_addresses(part: Any) -> list[Address]:
    """Where a part of the configuration (the node, management, prometheus) listens with TLS."""
    return _addresses(part.tls_listeners)


def _addresses(endpoints: Any) -> list[Address]:
    return [(str(each.host), int(each.port)) for each in endpoints]


def control_socket(config: Any) -> str:
    """The absolute path of burrowctl's socket; empty for a node without a data directory."""
    return os.path.abspath(os.path.join(config.data_dir, "control.sock")) if config.data_dir else ""


def bindable(path: str, directory: int) -> str:
    """The path, or one through its open directory when it is too long for a socket address."""
    if len(os.fsencode(path)) <= SOCKET_PATH_LIMIT:
        return path
    return f"/proc/self/fd/{directory}/{os.path.basename(path)}"


def log_files(config: Any) -> list[str]:
    """Where the log goes."""
    log = config.log
    return [*([log.file_path] if log.file_path else []), *(["<stderr>"] if log.console else [])]


def metrics_path(config: Any) -> str:
    """The URL path of the metrics."""
    return str(config.prometheus.path).rstrip("/") or "/metrics"


def metrics_per_object(config: Any) -> bool:
    """Whether the plain path serves one series an object."""
    return bool(config.prometheus.per_object)
