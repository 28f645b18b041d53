"""Where the servers of a cluster are that keeps replicated queues, and how a node goes about them. No state."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from burrowmq.config import units
from burrowmq.config.option import option
from burrowmq.records import dataclass

SCHEMES: Final = ("nats", "tls")
_FORM: Final = "each server is nats://host:port or tls://host:port"


def servers(value: str) -> tuple[str, ...]:
    """Return the URLs of a list; a name and a password in one would be shown to operators."""
    found = units.words(value)
    for each in found:
        _check(each)
    if not found:
        raise ValueError("there is no server in the list")
    return found


def _check(url: str) -> None:
    try:
        parts = urlsplit(url)
        is_known = parts.scheme in SCHEMES and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise ValueError(_FORM) from None
    if not is_known or parts.path not in {"", "/"} or parts.query or parts.fragment:
        raise ValueError(_FORM)
    if parts.username is not None:
        raise ValueError("the user and password go into cluster.user and cluster.password")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConfig:
    """Without servers there are no replicated queues, and nothing of this has an effect."""

    urls: tuple[str, ...] | None = option(
        "cluster.urls",
        units.optional(servers),
        None,
        "nats-servers with JetStream that keep quorum queues, as nats://host:port or tls://host:port and separated by"
        " commas; without them quorum queues are refused.",
        ours=True,
    )
    user: str | None = option(
        "cluster.user", units.optional(units.text), None, "The node's user there.", ours=True
    )
    password: str | None = option(
        "cluster.password", units.optional(units.text), None, "That user's password.", ours=True
    )
    replicas: int = option(
        "cluster.replicas",
        units.integer(1, 5),
        "3",
        "Servers that keep a quorum queue, unless x-quorum-initial-group-size says how many.",
        ours=True,
    )
    mirrored: str = option(
        "cluster.mirrored",
        units.choice("classic", "quorum"),
        "classic",
        "What a new durable queue is that a policy with `ha-mode` matches; `quorum` needs cluster.urls.",
        ours=True,
    )


ALONE = ClusterConfig()
