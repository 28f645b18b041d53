"""What there is to say of this node's connection to the cluster that keeps quorum queues.

Owns no state. Without `cluster.urls` there is nothing to say.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from burrowmq.broker.inspect.values import Row
from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.report.cluster_state import LinkState

ALARM_S: Final = 5.0
"""For so long a connection may be away: another server is found within that, and clients wait for as long."""


SHOWN_MOST: Final = 3
"""Refusals that an alarm names."""


def cluster_link(node: RunningNode) -> Row | None:
    """The connection to the cluster; None for a node without one."""
    link = node.replication.link
    if link is None:
        return None
    return {
        "state": "connected" if link.is_open else "unreachable",
        "address": link.address,
        "server": link.server_name,
        "since": _shown(link.since_ms),
        "reason": link.reason,
        "refused": list(link.refusals),
        "connections": link.opened_count,
        "definitions": _shared(node),
        "classic_queues": _homes(node),
    }


def _shared(node: RunningNode) -> Row | None:
    share = node.replication.share
    if share is None:
        return None
    rows = share.rows
    return {
        "shared": rows.count,
        "waiting": rows.pending_count,
        "state": "agreed" if rows.is_ready else "last known",
        "here_alone": [
            {"kind": kind, "key": key, "reason": reason} for kind, key, reason in rows.own
        ],
    }


def _homes(node: RunningNode) -> Row | None:
    homes = node.replication.homes
    if homes is None:
        return None
    return {"here": homes.here_count, "elsewhere": homes.elsewhere_count}


def cluster_alarm(node: RunningNode) -> Row | None:
    """The alarm of a cluster that cannot be reached, or refuses what it is asked for.

    Since when (seconds of the epoch), and why; `cause` says both.
    """
    link = node.replication.link
    if link is not None and link.refusals:
        return _refusing(link)
    if link is None or link.is_open or link.down_s < ALARM_S:
        return None
    return {
        "resource": "cluster",
        "since": link.since_ms / 1000,
        "reason": link.reason,
        "cause": _cause(link),
    }


def _refusing(link: LinkState) -> Row:
    more_count = len(link.refusals) - SHOWN_MOST
    more = f"; and {more_count} more" if more_count > 0 else ""
    reason = "; ".join(link.refusals[:SHOWN_MOST]) + more
    since = _shown(link.refused_ms)
    return {
        "resource": "cluster",
        "since": link.refused_ms / 1000,
        "reason": reason,
        "cause": f"the cluster that keeps quorum queues refuses since {since}: {reason}",
    }


def _cause(link: LinkState) -> str:
    why = f": {link.reason}" if link.reason else ""
    return (
        f"the cluster that keeps quorum queues cannot be reached since {_shown(link.since_ms)}{why}"
    )


def _shown(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def cluster_figures(node: RunningNode) -> Row | None:
    """What Prometheus is told, the names as there; None for a node without a cluster."""
    replication = node.replication
    link, flow, share, homes = (
        replication.link,
        replication.flow,
        replication.share,
        replication.homes,
    )
    if link is None or flow is None or share is None or homes is None:
        return None
    rows, sums = share.rows, homes.sums
    return {
        "is_up": int(link.is_open),
        "connections": link.opened_count,
        **dict(zip(flow._fields, flow, strict=True)),
        "definitions": rows.count,
        "definitions_are_current": int(rows.is_ready),
        "definitions_waiting": rows.pending_count,
        "changes_agreed": rows.agreed_count,
        "changes_refused": rows.refused_count,
        "front_ends": homes.peer_count + 1,
        "homes_here": homes.here_count,
        "homes_elsewhere": homes.elsewhere_count,
        "forwarded": sums.forwarded_count,
        "forwarded_refused": sums.forwarded_refused_count,
        "taken": sums.taken_count,
        "taken_refused": sums.taken_refused_count,
    }
