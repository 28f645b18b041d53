"""Limits that operators set for a vhost's and a user's connections, and for channels of a user and of the node.

Owns no state: the limits are the vhost's and the user's, the counts are taken over the node's sessions, and only when
there is a limit to compare them with. Asked by `broker.session.admission` before connection.open-ok and when a channel
opens; what asks does not count yet. 0 allows none, a negative limit is none.

Source: rabbit_reader, rabbit_channel, rabbit_vhost_limit, rabbit_auth_backend_internal (the limit checks of each).
"""

from __future__ import annotations

from collections.abc import Collection, Sized
from typing import TYPE_CHECKING, Protocol

from burrowmq.protocol.errors import NotAllowed
from burrowmq.records import dataclass

if TYPE_CHECKING:
    from burrowmq.broker.rules.auth import User
    from burrowmq.broker.vhost.vhost import Vhost


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLimits:
    """What all clients together may have; None for as much as they like."""

    node_name: str = ""
    connection_max: int | None = None
    channel_max: int | None = None


class CountedSession(Protocol):
    """What is counted of a connection."""

    is_open: bool
    user: User

    @property
    def vhost(self) -> Vhost | None:
        """What it has entered; None before connection.open."""
        ...

    @property
    def channels(self) -> Sized:
        """Its open channels."""
        ...


def check_open(user: User, vhost: Vhost, sessions: Collection[CountedSession]) -> None:
    """Refuse a connection above the vhost's or the user's limit.

    Raises: NotAllowed.
    """
    limit = vhost.limits.get("max-connections", -1)
    if limit >= 0 and sum(each.is_open and each.vhost is vhost for each in sessions) >= limit:
        raise NotAllowed(
            f"access to vhost '{vhost.name}' refused for user '{user.name}':"
            f" connection limit ({limit}) is reached"
        )
    limit = user.limits.get("max-connections", -1)
    if limit >= 0 and _count_of(user, sessions) >= limit:
        raise NotAllowed(
            f"connection refused for user '{user.name}': user connection limit ({limit}) is reached"
        )


def _count_of(user: User, sessions: Collection[CountedSession]) -> int:
    return sum(each.is_open and each.user.name == user.name for each in sessions)


def check_node_channels(limits: NodeLimits, sessions: Collection[CountedSession]) -> None:
    """Refuse a channel above the node's limit.

    Raises: NotAllowed.
    """
    limit = limits.channel_max
    if limit is not None and sum(len(each.channels) for each in sessions) >= limit:
        raise NotAllowed(
            f"number of channels opened on node '{limits.node_name}' has reached"
            f" the maximum allowed limit of ({limit})"
        )


def check_channel(user: User, sessions: Collection[CountedSession]) -> None:
    """Refuse a channel above the user's limit.

    Raises: NotAllowed.
    """
    limit = user.limits.get("max-channels", -1)
    if limit < 0:
        return
    if sum(len(each.channels) for each in sessions if each.user.name == user.name) >= limit:
        # RabbitMQ 3.13 prints the node's name where the user's is meant; 3.10 says the user.
        raise NotAllowed(
            f"number of channels opened for user '{user.name}' has reached"
            f" the maximum allowed user limit of ({limit})"
        )
