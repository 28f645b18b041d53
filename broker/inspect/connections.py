"""Connections and channels as rows, and the alarms that block them.

Owns no state. Source: rabbit_reader's and rabbit_channel's info keys (3.13).
"""

from __future__ import annotations

from collections.abc import Iterator

from burrowmq.broker.channel.channel import Channel, ChannelSession
from burrowmq.broker.inspect.cluster import cluster_alarm
from burrowmq.broker.inspect.values import Row, Table, message_stats, pid, plain
from burrowmq.broker.machine.alarms import NAMES
from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.peer.tls import TlsPeer
from burrowmq.broker.peer.wire import Wire
from burrowmq.broker.session.session import Session

FLOW = frozenset(("backlog", "cluster"))
"""Why publishers are not read: what they send is to go somewhere that is behind."""


def alarms(node: RunningNode) -> list[Row]:
    """Alarms in effect: memory, disk, queue (one whose files fail), cluster (out of reach); and the cause in words."""
    causes: dict[str, list[str]] = {}
    for name in sorted(node.alarms.active):
        # A store that is full or broken is a disk alarm.
        causes.setdefault(NAMES[name], []).append(node.alarms.causes.get(name, ""))
    if node.queue_faults:
        causes["queue"] = [node.queue_faults.cause]
    unreachable = cluster_alarm(node)
    if unreachable is not None:
        causes["cluster"] = [unreachable["cause"]]
    return [
        {"node": node.name, "resource": name, "cause": "; ".join(filter(None, found))}
        for name, found in sorted(causes.items())
    ]


def alarm_causes(node: RunningNode) -> list[Row]:
    """Each alarm by the broker's own name (memory, disk, store): its cause, and since when (seconds; None: unknown).

    A cluster out of reach blocks nobody but who uses quorum queues. Damage is one of these, though it blocks nobody and
    fails no check of alarms.
    """
    alarms = node.alarms
    rows = [
        {"resource": name, "since": alarms.since_s.get(name), "cause": alarms.causes.get(name, "")}
        for name in sorted(alarms.active)
    ]
    if node.queue_faults:
        rows.append({"resource": "queue", "since": None, "cause": node.queue_faults.cause})
    unreachable = cluster_alarm(node)
    if unreachable is not None:
        since, reason = unreachable["since"], unreachable["reason"]
        rows.append({"resource": "cluster", "since": since, "cause": reason})
    cause = damage(node)["cause"]
    if cause:
        rows.append({"resource": "damage", "since": None, "cause": cause})
    return rows


def damage(node: RunningNode) -> Row:
    """Damaged messages in quarantine and damaged files, and in words what there is; no cause: nothing."""
    quarantined = int(node.engine.stats().get("quarantined", 0))
    files = [f"{path}: {what}" for path, what in node.engine.scrub.damaged_files]
    causes = [f"{quarantined} damaged messages are in quarantine"] if quarantined else []
    causes += [f"{len(files)} files are damaged, {files[0]}"] if files else []
    return {"quarantined": quarantined, "files": files, "cause": "; ".join(causes)}


def channel_details(node: RunningNode, channel: Channel) -> Row:
    """Which channel a consumer is on, and whose."""
    session = channel.session
    return {
        "connection_name": session.name,
        "name": f"{session.name} ({channel.number})",
        "node": node.name,
        "number": channel.number,
        "peer_host": session.peer.host,
        "peer_port": session.peer.port,
        "user": user_name(session),
    }


def user_name(session: ChannelSession) -> str:
    """The name that a session logged in with, empty before it did."""
    return session.user.name


def vhost_name(session: ChannelSession) -> str:
    """The vhost that a session opened, empty before it did."""
    return session.vhost_name


def session_state(node: RunningNode, session: Session) -> str:
    """RabbitMQ's word for what a connection is doing."""
    if session.is_blocked:
        return "blocked"
    if session.wire is not None and not session.wire.pauses.keys().isdisjoint(FLOW):
        return "flow"
    state = str(session.connection.state)
    return "blocking" if state == "running" and node.alarms.active else state


def _tls_row(tls: TlsPeer | None) -> Row:
    """What the handshake settled; without TLS there is nothing to say."""
    certificate = None if tls is None else tls.certificate
    return {
        "ssl": tls is not None,
        "ssl_protocol": None if tls is None else tls.protocol,
        "ssl_key_exchange": None if tls is None else tls.key_exchange,
        "ssl_cipher": None if tls is None else tls.cipher,
        "ssl_hash": None if tls is None else tls.hash,
        "peer_cert_subject": None if certificate is None else certificate.subject,
        "peer_cert_issuer": None if certificate is None else certificate.issuer,
        "peer_cert_validity": None if certificate is None else certificate.validity,
    }


def _socket_row(wire: Wire | None) -> Row:
    """What went over the socket; nothing when it is gone. RabbitMQ counts reads and writes as packets too."""
    return {
        "recv_oct": 0 if wire is None else wire.bytes_received,
        "recv_cnt": 0 if wire is None else wire.reads,
        "send_oct": 0 if wire is None else wire.bytes_sent,
        "send_cnt": 0 if wire is None else wire.writes,
        "send_pend": 0 if wire is None else wire.bytes_unsent,
    }


def connection_row(node: RunningNode, session: Session, table: Table = plain) -> Row:
    """One connection."""
    connection, peer = session.connection, session.peer
    properties = connection.client_properties or {}
    return {
        "pid": pid(node, session),
        "name": session.name,
        "vhost": vhost_name(session),
        "user": user_name(session),
        "user_who_performed_action": user_name(session),
        "user_provided_name": plain(properties.get("connection_name")),
        "node": node.name,
        "type": "direct" if peer.is_node else "network",
        "protocol": "Direct 0-9-1" if peer.is_node else "AMQP 0-9-1",
        "auth_mechanism": session.auth_mechanism,
        "state": session_state(node, session),
        "channels": len(session.channels),
        "channel_max": connection.channel_max,
        "frame_max": connection.frame_max,
        "timeout": connection.heartbeat_s,
        "host": peer.local_host,
        "port": peer.local_port,
        "peer_host": peer.host,
        "peer_port": peer.port,
        **_tls_row(peer.tls),
        "connected_at": int(session.connected_at_ms),
        "client_properties": table(properties),
        **_socket_row(session.wire),
    }  # fmt: skip


def each_session(node: RunningNode, vhost: str | None = None) -> list[Session]:
    """Sessions by name; a session that has not opened a vhost yet belongs to none."""
    found = [s for s in list(node.sessions) if vhost is None or vhost_name(s) == vhost]
    return sorted(found, key=lambda session: session.name)


def connections(node: RunningNode, vhost: str | None = None, table: Table = plain) -> Iterator[Row]:
    """Every connection; its row is made when it is asked for, if the connection is still there."""
    return connection_rows(node, each_session(node, vhost), table)


def connection_rows(
    node: RunningNode, sessions: list[Session], table: Table = plain
) -> Iterator[Row]:
    """Those of some connections, as `connections` gives them."""
    for session in sessions:
        if session in node.sessions:
            yield connection_row(node, session, table)


def _uncommitted(channel: Channel) -> tuple[int, int]:
    """(messages, acknowledged messages) waiting for tx.commit; what is rejected is no ack."""
    transaction = channel.transaction
    if transaction is None:
        return 0, 0
    return (
        transaction.publish_count,
        sum(
            len(piece.messages)
            for act, pieces in transaction.settlements
            if act == channel.settle
            for piece in pieces
        ),
    )


def channel_row(node: RunningNode, channel: Channel) -> Row:
    """One channel."""
    session = channel.session
    return {
        "pid": pid(node, channel),
        "connection": pid(node, session),
        "name": f"{session.name} ({channel.number})",
        "number": channel.number,
        "vhost": vhost_name(session),
        "user": user_name(session),
        "user_who_performed_action": user_name(session),
        "node": node.name,
        "state": "running",
        "connection_details": {
            "name": session.name, "peer_host": session.peer.host, "peer_port": session.peer.port,
        },
        "transactional": channel.transaction is not None,
        "confirm": channel.confirms is not None,
        "consumer_count": len(channel.consumers),
        "messages_unacknowledged": channel.unacked.count,
        "messages_uncommitted": _uncommitted(channel)[0],
        "acks_uncommitted": _uncommitted(channel)[1],
        "messages_unconfirmed": 0 if channel.confirms is None else channel.confirms.unconfirmed_count,
        "prefetch_count": channel.prefetch.for_each,
        "global_prefetch_count": channel.prefetch.shared,
        "pending_raft_commands": 0,
        "message_stats": message_stats(channel.metrics),
    }  # fmt: skip


def find_channel(node: RunningNode, name: str) -> Channel | None:
    """The channel of that name, as rows have it; of several the one that `channels` has first."""
    for session in each_session(node):
        if name.startswith(f"{session.name} ("):
            for channel in session.channels.values():
                if name == f"{session.name} ({channel.number})":
                    return channel
    return None


def channels(node: RunningNode, vhost: str | None = None) -> Iterator[Row]:
    """Every channel, by connection and number; its row is made when it is asked for, if the channel is still there."""
    for session in each_session(node, vhost):
        for number in sorted(session.channels):
            channel = session.channels.get(number)
            if channel is not None:
                yield channel_row(node, channel)
