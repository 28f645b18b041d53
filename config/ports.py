"""Parts of a configuration that would listen at the same address: the second of them could never open it.

Called by `reading` when all is read. Owns no state. Invariant: port 0, which the system chooses, is nobody's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

from burrowmq.config.schema import NodeConfig
from burrowmq.config.setting import Setting
from burrowmq.config.units import Endpoint

_EVERY = {"0.0.0.0": False, "::": True}  # noqa: S104 - what binds every interface; whether it is of IPv6


_NAMES = {
    "listeners.tcp": ("listeners.tcp.", "RABBITMQ_NODE_PORT"),
    "listeners.ssl": ("listeners.ssl.",),
    "management.tcp.port": ("management.tcp.port", "management.listener.port"),
    "management.ssl.port": ("management.ssl.port", "management.listener.port"),
    "prometheus.tcp.port": ("prometheus.tcp.port", "prometheus.tcp.listener"),
    "prometheus.ssl.port": ("prometheus.ssl.port",),
}
"""What a part's address may be written as: beginnings of keys, and a variable."""


def written(part: str, settings: Mapping[str, Setting], host: str = "") -> Setting | None:
    """The setting that gave a part its address, with that host in it; None where that is the default."""
    for key, setting in settings.items():
        if key.startswith(_NAMES[part]) and host in setting.value:
            return setting
    return None


def overlaps(config: NodeConfig) -> Iterator[tuple[str, Endpoint, Endpoint]]:
    """Yield the AMQP listeners' part, and two of its addresses of which the first has the second in it."""
    for part, endpoints in (
        ("listeners.tcp", config.listeners),
        ("listeners.ssl", config.tls_listeners),
    ):
        found = (pair for pair in combinations(endpoints, 2) if _are_one(*pair))
        for one, other in found:
            wide, narrow = (one, other) if one.host in _EVERY else (other, one)
            yield part, wide, narrow


def clashes(config: NodeConfig) -> Iterator[tuple[str, str, Endpoint]]:
    """Yield the keys of two parts, and the address of the second, where both would listen at one."""
    parts = (
        ("listeners.tcp", config.listeners),
        ("listeners.ssl", config.tls_listeners),
        ("management.tcp.port", config.management.listeners),
        ("management.ssl.port", config.management.tls_listeners),
        ("prometheus.tcp.port", config.prometheus.listeners),
        ("prometheus.ssl.port", config.prometheus.tls_listeners),
    )
    for (first, theirs), (second, ours) in combinations(parts, 2):
        found = (mine for mine in ours if any(_are_one(mine, other) for other in theirs))
        clash = next(found, None)
        if clash is not None:
            yield first, second, clash


def _are_one(one: Endpoint, other: Endpoint) -> bool:
    if one.port != other.port or not one.port:
        return False
    if one.host == other.host:
        return True
    is_ipv6 = ":" in one.host
    is_every = _EVERY.get(one.host) is is_ipv6 or _EVERY.get(other.host) is is_ipv6
    return is_every and is_ipv6 == (":" in other.host)
