"""Vhosts, users, permissions, and the node's own totals.

Owns no state. Sums over queues are O(queues) with a few attribute reads each.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import accumulate

from burrowmq.broker.inspect.queues import each_vhost
from burrowmq.broker.inspect.values import Row, message_stats_of
from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.queue.port import QueuePort
from burrowmq.broker.report.metrics import ChannelMetrics
from burrowmq.broker.rules.auth import Permission, User
from burrowmq.broker.session.session import Session
from burrowmq.broker.turn.loop_scheduler import LAG_BUCKETS_S
from burrowmq.broker.vhost.vhost import Vhost

TOTALS = ("messages", "messages_ready", "messages_unacknowledged")


def depths(queues: Iterable[QueuePort]) -> tuple[int, int]:
    """How many messages are ready, and how many unacknowledged, in some queues: about 2 µs each, unless dormant."""
    ready = unacked = 0
    for each in queues:
        if not each.is_dormant:
            ready += each.ready_count
            unacked += each.unacked_count
    return ready, unacked


def sums(found: tuple[int, int]) -> Row:
    """Depths as the rows of overview and vhosts have them."""
    ready, unacked = found
    return {
        "messages": ready + unacked,
        "messages_ready": ready,
        "messages_unacknowledged": unacked,
    }


def object_totals(node: RunningNode) -> Row:
    """How many of each thing there are."""
    return {
        "channels": sum(len(session.channels) for session in node.sessions),
        "connections": len(node.sessions),
        "consumers": sum(
            len(channel.consumers)
            for session in node.sessions
            for channel in session.channels.values()
        ),
        "exchanges": sum(len(owner.exchanges) for owner in node.vhosts.values()),
        "queues": sum(len(owner.queues) for owner in node.vhosts.values()),
    }


def vhost_row(node: RunningNode, vhost: Vhost) -> Row:
    """One vhost, without the sums of its queues."""
    metadata = {"description": vhost.description, "tags": list(vhost.tags)}
    kind: Row = {"default_queue_type": vhost.default_queue_type} if vhost.default_queue_type else {}
    if vhost.is_protected:
        kind["protected_from_deletion"] = True
    return {
        "name": vhost.name,
        **metadata,
        "default_queue_type": vhost.default_queue_type or "undefined",
        "metadata": metadata | kind,
        "tracing": vhost.tracer is not None,
        "cluster_state": {node.name: "running"},
    }


def vhost_counters(vhost: Vhost, sessions: Iterable[Session]) -> Row:
    """What was counted on a vhost's connections (these) and channels, those that are closed included."""
    past = vhost.past
    counted: list[ChannelMetrics] = [past]
    received, sent = past.recv_oct, past.send_oct
    for session in sessions:
        counted.extend(channel.metrics for channel in session.channels.values())
        if session.wire is not None:
            received += session.wire.bytes_received
            sent += session.wire.bytes_sent
    row: Row = {"message_stats": message_stats_of(counted)}
    return row | {"recv_oct": received, "send_oct": sent} if received else row


def sessions_by_vhost(node: RunningNode) -> dict[Vhost, list[Session]]:
    """The connections that have entered a vhost."""
    found: dict[Vhost, list[Session]] = {}
    for session in node.sessions:
        if session.entered is not None:
            found.setdefault(session.entered.vhost, []).append(session)
    return found


def vhosts(node: RunningNode) -> Iterator[Row]:
    """Every vhost, by name, without the sums of its queues; a row is made when it is asked for."""
    return (vhost_row(node, owner) for owner in each_vhost(node, None))


def users(node: RunningNode) -> Iterator[Row]:
    """Every user, by name; a row is made when it is asked for, if the user is still there."""
    known = node.auth.users
    return (user_row(known[name]) for name in sorted(known) if name in known)


def user_row(user: User) -> Row:
    """One user with its password hash, as definitions carry it."""
    return {
        "name": user.name,
        "password_hash": user.password_hash,
        "hashing_algorithm": user.hashing_algorithm,
        "tags": list(user.tags),
        "limits": dict(user.limits),
    }


def each_permission(
    node: RunningNode, vhost: str | None = None, user: str | None = None
) -> Iterator[Row]:
    """Who may configure, write and read what, by vhost and user; a row is made when it is asked for."""
    known = node.auth.permissions
    pairs = node.auth.granted.in_order(vhost, user)
    return (permission_row(*pair, known[pair]) for pair in pairs if pair in known)


def permissions(node: RunningNode, vhost: str | None = None, user: str | None = None) -> list[Row]:
    """The same, of a user or of a virtual host, who have few."""
    return list(each_permission(node, vhost, user))


def permission_row(vhost: str, user: str, granted: Permission) -> Row:
    """What one user may do in one vhost."""
    return {
        "user": user,
        "vhost": vhost,
        "configure": granted.configure,
        "write": granted.write,
        "read": granted.read,
    }


def limits(node: RunningNode) -> Row:
    """The limits at which resource alarms go on; `memory_setting` is what the operator wrote."""
    found = node.monitor.limits
    if found.memory_relative is None:
        setting: dict[str, float] = {"absolute": found.memory_bytes}
    else:
        setting = {"relative": found.memory_relative}
    return {
        "memory_bytes": found.memory_bytes,
        "memory_setting": setting,
        "disk_free_bytes": found.disk_free_bytes,
    }


def counters(node: RunningNode) -> dict[str, int]:
    """The node's totals since start, by the attribute names of `broker.report.metrics.NodeMetrics`."""
    return {**asdict(node.metrics), "messages_published": node.metrics.messages_published}


def store_stats(node: RunningNode) -> Row:
    """What the storage engine counts about itself."""
    return dict(node.engine.stats())


def loop_stalls(node: RunningNode) -> list[tuple[float, int]]:
    """How late the event loop ran its timers: (upper edge in seconds, count up to it), infinity last."""
    return list(zip((*LAG_BUCKETS_S, math.inf), accumulate(node.scheduler.lag_counts), strict=True))


def store_spreads(node: RunningNode) -> Row:
    """How long syncs took (seconds) and how large commits were (bytes): `Spread`s by name."""
    return dict(node.engine.spreads())


def publisher_count(node: RunningNode) -> int:
    """Connections that have published."""
    return sum(bool(session.is_publisher) for session in node.sessions)
