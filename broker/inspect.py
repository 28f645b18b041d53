"""Read-only rows about everything in the node, with RabbitMQ's field names.

Owns no state. The HTTP API, Prometheus and (through the API) burrowctl ask it for lists of dicts; it is the only
module outside the broker's core that touches the attributes of queues, channels, sessions and exchanges, so that a
rename there is one edit here. Rows are plain Python values: strings, numbers, booleans, None, lists, dicts.

Invariants: nothing here changes the broker, nothing here waits, and a row costs O(columns asked for). A value that
RabbitMQ has and this broker has not (mirrors, Erlang processes) is the value that RabbitMQ shows on a single node.

Source: the info keys of rabbit_amqqueue, rabbit_exchange, rabbit_channel, rabbit_reader and rabbit_binding (3.13).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote_plus

from protocol import table as table_types

Row = dict[str, Any]
Column = Callable[[Any, Any, Any], object]
Table = Callable[[dict[str, Any]], Any]

DISK = ("disk_reads", "disk_writes")
DELIVERED = ("deliver", "deliver_no_ack", "get", "get_no_ack")


# -- values ------------------------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """An AMQP table value as JSON can say it; tables keep their order."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, table_types.DecimalValue):
        return value.value / 10**value.scale
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode("utf-8", "replace")
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    return str(value)


def typed(value: dict[str, Any]) -> Row:
    """An AMQP table as `{"table": [[key, type, value], ...]}`: order and types kept, as Erlang terms show them."""
    return {"table": _triples(value)}


def _triples(value: dict[str, Any]) -> list[Any]:
    return [[str(key), table_types.type_name(item), _typed_value(item)] for key, item in value.items()]


def _typed_value(value: Any) -> Any:
    if isinstance(value, dict):
        return _triples(value)
    if isinstance(value, list):
        return [[table_types.type_name(item), _typed_value(item)] for item in value]
    return plain(value)


def pid(node: Any, thing: Any) -> str:
    """A name in the shape of an Erlang process id; unique among the objects that are alive."""
    return f"<{node.name}.{int(node.started_at)}.{(id(thing) >> 4) & 0xFFFFFFF}.0>"


def message_stats(metrics: Any) -> Row:
    """The counters of a queue or channel; empty until there was traffic, as RabbitMQ omits them."""
    stats = {name: int(getattr(metrics, name)) for name in metrics.__slots__ if name not in DISK}
    if not any(stats.values()):
        return {}
    stats["deliver_get"] = sum(stats[name] for name in DELIVERED)
    return stats


# -- queues ------------------------------------------------------------------------------------------------------


def _exclusive_consumer(queue: Any) -> Any:
    return next((c for c in queue.consumers if c.exclusive), None)


def _single_active_consumer(queue: Any) -> Any:
    if not queue.settings.single_active_consumer:
        return None
    return next((c for c in queue.consumers if c.is_active), None)


def _tag(consumer: Any) -> str:
    tag = consumer.tag
    return tag.decode("utf-8", "replace") if isinstance(tag, bytes) else str(tag)


def _tag_or_none(consumer: Any) -> str | None:
    return None if consumer is None else _tag(consumer)


def _pid_or_none(node: Any, consumer: Any) -> str | None:
    return None if consumer is None else pid(node, consumer.outlet)


def _capacity(queue: Any) -> float:
    """The share of time that consumers could take messages: all of it while nothing waits for them."""
    if not queue.consumers:
        return 0
    known = getattr(queue, "consumer_capacity", None)
    if known is not None:
        return float(known)
    return 1.0 if queue.ready_count == 0 else 0.0


def _paged_out(queue: Any, size: bool) -> int:
    """Transient messages that are on disk only."""
    if size:
        transient = queue.ready_bytes + queue.unacked_bytes - queue.persistent_bytes
        in_ram = queue.ram_ready_bytes + queue.unacked_bytes
    else:
        transient = queue.ready_count + queue.unacked_count - queue.persistent_count
        in_ram = queue.ram_ready_count + queue.unacked_count
    return int(max(0, transient - in_ram))


def _owner(queue: Any) -> Row | None:
    owner = queue.exclusive_owner
    if owner is None:
        return None
    return {"name": owner.name, "peer_host": owner.peer.host, "peer_port": owner.peer.port}


def _backing_queue(queue: Any) -> Row:
    in_ram = queue.ram_ready_count
    on_disk = queue.ready_count - in_ram
    first = getattr(queue, "next_seq", 0)
    return {
        "mode": queue.settings.mode,
        "version": queue.settings.version,
        "q1": 0, "q2": 0, "q3": in_ram, "q4": 0,
        "delta": ["delta", first - on_disk if on_disk else "undefined", on_disk, 0, first if on_disk else "undefined"],
        "len": queue.ready_count,
        "target_ram_count": "infinity",
        "next_seq_id": first,
        "num_pending_acks": queue.unacked_count,
        "num_unconfirmed": 0,
        "avg_ingress_rate": 0.0, "avg_egress_rate": 0.0, "avg_ack_ingress_rate": 0.0, "avg_ack_egress_rate": 0.0,
    }  # fmt: skip


QUEUE_COLUMNS: dict[str, Column] = {
    "name": lambda n, v, q: q.name,
    "vhost": lambda n, v, q: v.name,
    "durable": lambda n, v, q: q.durable,
    "auto_delete": lambda n, v, q: q.auto_delete,
    "arguments": lambda n, v, q: plain(q.arguments),
    "policy": lambda n, v, q: v.effective_policy(q.name).policy,
    "operator_policy": lambda n, v, q: v.effective_policy(q.name).operator_policy,
    "effective_policy_definition": lambda n, v, q: plain(dict(v.effective_policy(q.name).definition)),
    "pid": lambda n, v, q: pid(n, q),
    "owner_pid": lambda n, v, q: None if q.exclusive_owner is None else pid(n, q.exclusive_owner),
    "owner_pid_details": lambda n, v, q: _owner(q),
    "exclusive": lambda n, v, q: q.exclusive_owner is not None,
    "exclusive_consumer_pid": lambda n, v, q: _pid_or_none(n, _exclusive_consumer(q)),
    "exclusive_consumer_tag": lambda n, v, q: _tag_or_none(_exclusive_consumer(q)),
    "single_active_consumer_pid": lambda n, v, q: _pid_or_none(n, _single_active_consumer(q)),
    "single_active_consumer_tag": lambda n, v, q: _tag_or_none(_single_active_consumer(q)),
    "messages": lambda n, v, q: q.ready_count + q.unacked_count,
    "messages_ready": lambda n, v, q: q.ready_count,
    "messages_unacknowledged": lambda n, v, q: q.unacked_count,
    "messages_ready_ram": lambda n, v, q: q.ram_ready_count,
    "messages_unacknowledged_ram": lambda n, v, q: q.unacked_count,
    "messages_ram": lambda n, v, q: q.ram_ready_count + q.unacked_count,
    "messages_persistent": lambda n, v, q: q.persistent_count,
    "messages_paged_out": lambda n, v, q: _paged_out(q, size=False),
    "message_bytes": lambda n, v, q: q.ready_bytes + q.unacked_bytes,
    "message_bytes_ready": lambda n, v, q: q.ready_bytes,
    "message_bytes_unacknowledged": lambda n, v, q: q.unacked_bytes,
    "message_bytes_ram": lambda n, v, q: q.ram_ready_bytes + q.unacked_bytes,
    "message_bytes_persistent": lambda n, v, q: q.persistent_bytes,
    "message_bytes_paged_out": lambda n, v, q: _paged_out(q, size=True),
    "head_message_timestamp": lambda n, v, q: getattr(q, "head_timestamp", None),
    "disk_reads": lambda n, v, q: q.metrics.disk_reads,
    "disk_writes": lambda n, v, q: q.metrics.disk_writes,
    "consumers": lambda n, v, q: len(q.consumers),
    "consumer_utilisation": lambda n, v, q: _capacity(q),
    "consumer_capacity": lambda n, v, q: _capacity(q),
    "memory": lambda n, v, q: q.memory_bytes,
    "slave_pids": lambda n, v, q: None,
    "synchronised_slave_pids": lambda n, v, q: None,
    "mirror_pids": lambda n, v, q: None,
    "synchronised_mirror_pids": lambda n, v, q: None,
    "state": lambda n, v, q: str(getattr(q, "state", "running")),
    "type": lambda n, v, q: "classic",
    "leader": lambda n, v, q: n.name,
    "members": lambda n, v, q: [n.name],
    "online": lambda n, v, q: [n.name],
    "node": lambda n, v, q: n.name,
    "message_stats": lambda n, v, q: message_stats(q.metrics),
    "storage_version": lambda n, v, q: q.settings.version,
    "backing_queue_status": lambda n, v, q: _backing_queue(q),
}

# What rabbitmqctl takes; the other columns above are the HTTP API's own.
CTL_QUEUE_COLUMNS = frozenset(QUEUE_COLUMNS) - {
    "vhost", "owner_pid_details", "messages_paged_out", "message_bytes_paged_out", "node", "message_stats",
    "storage_version", "backing_queue_status",
}  # fmt: skip

# The HTTP API's list without `columns`: RabbitMQ 3.13's reduced set, so that a page of queues stays cheap.
REDUCED_QUEUE_COLUMNS = tuple(
    name for name in QUEUE_COLUMNS
    if name not in {
        "pid", "owner_pid", "exclusive_consumer_pid", "single_active_consumer_pid", "disk_reads", "disk_writes",
        "slave_pids", "synchronised_slave_pids", "mirror_pids", "synchronised_mirror_pids", "leader", "members", "online",
        "backing_queue_status",
    }
)  # fmt: skip
DETAILED_QUEUE_COLUMNS = (*REDUCED_QUEUE_COLUMNS, "disk_reads", "disk_writes", "backing_queue_status")


def each_queue(node: Any, vhost: str | None = None) -> Iterator[tuple[Any, Any]]:
    """(vhost, queue) pairs in RabbitMQ's order: by vhost, then by name."""
    for owner in _vhosts(node, vhost):
        for name in sorted(owner.queues):
            found = owner.queues.get(name)
            if found is not None:
                yield owner, found


def iter_queues(
    node: Any, vhost: str | None = None, columns: Sequence[str] | None = None, table: Table = plain
) -> Iterator[Row]:
    """One row a queue, with the columns asked for (or the HTTP API's reduced set).

    `table` renders arguments. The iterator may be left half-way and resumed after the broker has done other work:
    a queue that was deleted meanwhile is left out.
    """
    getters = [(name, QUEUE_COLUMNS[name]) for name in columns or REDUCED_QUEUE_COLUMNS]
    for owner, each in each_queue(node, vhost):
        row = {name: get(node, owner, each) for name, get in getters}
        if "arguments" in row and table is not plain:
            row["arguments"] = table(each.arguments)
        yield row


def queues(node: Any, vhost: str | None = None, columns: Sequence[str] | None = None) -> list[Row]:
    """The rows of `iter_queues` at once."""
    return list(iter_queues(node, vhost, columns))


def queue(node: Any, vhost: str, name: str) -> Row | None:
    """Everything about one queue, its consumers included."""
    owner = node.vhosts.get(vhost)
    found = None if owner is None else owner.queues.get(name)
    if owner is None or found is None:
        return None
    row: Row = {column: QUEUE_COLUMNS[column](node, owner, found) for column in DETAILED_QUEUE_COLUMNS}
    row["consumer_details"] = [consumer_row(node, owner, found, c) for c in found.consumers]
    row["deliveries"], row["incoming"] = [], []
    return row


def _vhosts(node: Any, vhost: str | None) -> Iterable[Any]:
    if vhost is None:
        return [node.vhosts[name] for name in sorted(node.vhosts)]
    found = node.vhosts.get(vhost)
    return [] if found is None else [found]


# -- consumers ---------------------------------------------------------------------------------------------------


def consumer_row(node: Any, vhost: Any, queue: Any, consumer: Any, table: Table = plain) -> Row:
    """One consumer as `GET /api/consumers` shows it."""
    channel = consumer.outlet
    is_active = bool(consumer.is_active)
    is_single = bool(queue.settings.single_active_consumer)
    return {
        "arguments": table(consumer.arguments or {}),
        "ack_required": not consumer.no_ack,
        "active": is_active,
        "activity_status": ("single_active" if is_active else "waiting") if is_single else "up",
        "consumer_tag": _tag(consumer),
        "exclusive": consumer.exclusive,
        "prefetch_count": consumer.prefetch_count,
        "queue": {"name": queue.name, "vhost": vhost.name},
        "channel_details": channel_details(node, channel),
        "channel_pid": pid(node, channel),
        "queue_name": queue.name,
    }


def consumers(node: Any, vhost: str | None = None, table: Table = plain) -> list[Row]:
    """Every consumer, by queue."""
    return [
        consumer_row(node, owner, queue, consumer, table)
        for owner, queue in each_queue(node, vhost)
        for consumer in queue.consumers
    ]


def channel_details(node: Any, channel: Any) -> Row:
    """Where a consumer sits."""
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


# -- exchanges and bindings --------------------------------------------------------------------------------------


def exchange_row(vhost: Any, exchange: Any, table: Table = plain) -> Row:
    """One exchange; the default one has the empty name."""
    stats: Row = {}
    published, routed = int(getattr(exchange, "publish_in", 0)), int(getattr(exchange, "publish_out", 0))
    if published or routed:
        stats = {"publish_in": published, "publish_out": routed}
    name = str(exchange.name)
    is_built_in = name == "" or name.startswith("amq.")
    return {
        "name": name,
        "vhost": vhost.name,
        "type": str(exchange.type),
        "durable": bool(exchange.durable),
        "auto_delete": bool(exchange.auto_delete),
        "internal": bool(exchange.internal),
        "arguments": table(exchange.arguments or {}),
        "policy": getattr(exchange, "policy_name", None),
        "user_who_performed_action": "rmq-internal" if is_built_in else getattr(exchange, "declared_by", "none"),
        "message_stats": stats,
    }


def exchanges(node: Any, vhost: str | None = None, table: Table = plain) -> list[Row]:
    """Every exchange, by vhost and name."""
    return [
        exchange_row(owner, owner.exchanges[name], table)
        for owner in _vhosts(node, vhost)
        for name in sorted(owner.exchanges)
    ]


def properties_key(routing_key: str, arguments: Row) -> str:
    """The opaque last segment of a binding's address: equal bindings have equal keys, different ones different."""
    key = quote_plus(routing_key, safe="") or "~"
    if not arguments:
        return key
    digest = zlib.crc32(repr(sorted(arguments.items())).encode("utf-8", "replace"))
    return f"{quote_plus(routing_key, safe='')}~{digest:08x}"


def _routing_key(binding: Any) -> str:
    key = binding.routing_key
    return key.decode("utf-8", "replace") if isinstance(key, bytes) else str(key)


def _binding_row(vhost: Any, source: str, binding: Any, table: Table) -> Row:
    key, arguments = _routing_key(binding), binding.arguments or {}
    return {
        "source": source,
        "vhost": vhost.name,
        "destination": str(binding.destination.name),
        "destination_type": str(binding.destination_kind),
        "routing_key": key,
        "arguments": table(arguments),
        "properties_key": properties_key(key, plain(arguments)),
    }


def _implicit_binding_row(vhost: Any, queue_name: str, table: Table) -> Row:
    return {
        "source": "",
        "vhost": vhost.name,
        "destination": queue_name,
        "destination_type": "queue",
        "routing_key": queue_name,
        "arguments": table({}),
        "properties_key": properties_key(queue_name, {}),
    }


def bindings(node: Any, vhost: str | None = None, table: Table = plain) -> list[Row]:
    """Every binding; the default exchange's implicit ones come first, as RabbitMQ lists them."""
    rows = []
    for owner in _vhosts(node, vhost):
        rows.extend(_implicit_binding_row(owner, name, table) for name in sorted(owner.queues))
        for name in sorted(owner.exchanges):
            if name:
                rows.extend(_binding_row(owner, name, each, table) for each in owner.exchanges[name].bindings)
    return rows


def find_binding(node: Any, row: Row) -> Any:
    """The binding object that a row of `bindings` was made from; None for an implicit one."""
    owner = node.vhosts.get(row["vhost"])
    exchange = None if owner is None else owner.exchanges.get(row["source"])
    if exchange is None or row["source"] == "":
        return None
    wanted = ("destination", "destination_type", "properties_key")
    for binding in exchange.bindings:
        found = _binding_row(owner, row["source"], binding, plain)
        if all(found[name] == row[name] for name in wanted):
            return binding
    return None


# -- connections and channels ------------------------------------------------------------------------------------


def user_name(session: Any) -> str:
    """The name that a session logged in with, empty before it did."""
    return str(session.user.name)


def vhost_name(session: Any) -> str:
    """The vhost that a session opened, empty before it did."""
    return "" if session.vhost is None else str(session.vhost.name)


def session_state(node: Any, session: Any) -> str:
    """RabbitMQ's word for what a connection is doing."""
    if session.is_blocked:
        return "blocked"
    state = str(session.connection.state)
    return "blocking" if state == "running" and _alarm_names(node) else state


def connection_row(node: Any, session: Any, table: Table = plain) -> Row:
    """One connection."""
    connection, peer, wire = session.connection, session.peer, session.wire
    properties = connection.client_properties or {}
    return {
        "pid": pid(node, session),
        "name": session.name,
        "vhost": vhost_name(session),
        "user": user_name(session),
        "user_who_performed_action": user_name(session),
        "user_provided_name": plain(properties.get("connection_name")),
        "node": node.name,
        "type": "network",
        "protocol": "AMQP 0-9-1",
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
        "ssl": False, "ssl_protocol": None, "ssl_cipher": None, "ssl_hash": None, "ssl_key_exchange": None,
        "peer_cert_subject": None, "peer_cert_issuer": None, "peer_cert_validity": None,
        "connected_at": int(session.connected_at_ms),
        "client_properties": table(properties),
        "recv_oct": int(getattr(wire, "bytes_received", 0)),
        "send_oct": int(getattr(wire, "bytes_sent", 0)),
        # Reads and writes of the socket: RabbitMQ counts packets the same way.
        "recv_cnt": int(getattr(wire, "reads", 0)),
        "send_cnt": int(getattr(wire, "writes", 0)),
        "send_pend": 0,
    }  # fmt: skip


def each_session(node: Any, vhost: str | None = None) -> list[Any]:
    """Sessions by name; a session that has not opened a vhost yet belongs to none."""
    found = [s for s in list(node.sessions) if vhost is None or vhost_name(s) == vhost]
    return sorted(found, key=lambda session: str(session.name))


def connections(node: Any, vhost: str | None = None, table: Table = plain) -> list[Row]:
    """Every connection."""
    return [connection_row(node, session, table) for session in each_session(node, vhost)]


def _uncommitted(channel: Any) -> tuple[int, int]:
    """(messages, settlements) waiting for tx.commit."""
    transaction = channel.transaction
    if transaction is None:
        return 0, 0
    return (
        sum(len(messages) for _, messages, *_ in transaction.publishes),
        sum(len(pieces) for _, pieces in transaction.settlements),
    )


def channel_row(node: Any, channel: Any) -> Row:
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
        "prefetch_count": channel.prefetch_count,
        "global_prefetch_count": channel.global_prefetch_count,
        "pending_raft_commands": 0,
        "message_stats": message_stats(channel.metrics),
    }  # fmt: skip


def channels(node: Any, vhost: str | None = None) -> list[Row]:
    """Every channel, by connection and number."""
    return [
        channel_row(node, session.channels[number])
        for session in each_session(node, vhost)
        for number in sorted(session.channels)
    ]


# -- vhosts, users, totals ---------------------------------------------------------------------------------------

TOTALS = ("messages", "messages_ready", "messages_unacknowledged")


def totals(node: Any, vhost: str | None = None) -> Row:
    """Sums over queues, for overview and vhosts; O(queues)."""
    ready = unacked = 0
    for owner in _vhosts(node, vhost):
        for each in owner.queues.values():
            ready += each.ready_count
            unacked += each.unacked_count
    return {"messages": ready + unacked, "messages_ready": ready, "messages_unacknowledged": unacked}


def object_totals(node: Any) -> Row:
    """How many of each thing there are."""
    return {
        "channels": sum(len(session.channels) for session in node.sessions),
        "connections": len(node.sessions),
        "consumers": sum(len(each.consumers) for owner in node.vhosts.values() for each in owner.queues.values()),
        "exchanges": sum(len(owner.exchanges) for owner in node.vhosts.values()),
        "queues": sum(len(owner.queues) for owner in node.vhosts.values()),
    }


def vhost_row(node: Any, vhost: Any) -> Row:
    """One vhost with the sums of its queues."""
    metadata = {
        "description": vhost.description,
        "tags": list(vhost.tags),
    }
    return {
        "name": vhost.name,
        **metadata,
        "default_queue_type": "undefined",
        "metadata": dict(metadata),
        "tracing": False,
        "cluster_state": {node.name: "running"},
        **totals(node, vhost.name),
    }


def vhosts(node: Any) -> list[Row]:
    """Every vhost, by name."""
    return [vhost_row(node, owner) for owner in _vhosts(node, None)]


def users(node: Any) -> list[Row]:
    """Every user with its password hash, as definitions carry it."""
    rows = [
        {
            "name": user.name,
            "password_hash": user.password_hash,
            "hashing_algorithm": user.hashing_algorithm,
            "tags": list(user.tags),
            "limits": {},
        }
        for user in node.auth.users.values()
    ]
    return sorted(rows, key=lambda row: str(row["name"]))


def permissions(node: Any, vhost: str | None = None, user: str | None = None) -> list[Row]:
    """Who may configure, write and read what, by vhost and user."""
    rows = []
    for (owner, name), granted in node.auth.permissions.items():
        if vhost in (None, owner) and user in (None, name):
            rows.append(
                {
                    "user": name,
                    "vhost": owner,
                    "configure": granted.configure,
                    "write": granted.write,
                    "read": granted.read,
                }
            )
    return sorted(rows, key=lambda row: (row["vhost"], row["user"]))


def alarms(node: Any) -> list[Row]:
    """Resource alarms in effect: `{"node", "resource"}` with resource memory or disk."""
    return [{"node": node.name, "resource": name} for name in sorted(_alarm_names(node))]


def _alarm_names(node: Any) -> set[str]:
    """memory and disk; a store that is full or broken is a disk alarm."""
    return {"disk" if name == "store" else str(name) for name in node.alarms.active}


def counters(node: Any) -> dict[str, int]:
    """The node's totals since start, by the attribute names of `broker.metrics.NodeMetrics`."""
    names = getattr(type(node.metrics), "__slots__", None) or vars(node.metrics)
    return {name: int(getattr(node.metrics, name)) for name in names}


def store_stats(node: Any) -> Row:
    """What the storage engine counts about itself."""
    return dict(node.engine.stats())


def publisher_count(node: Any) -> int:
    """Connections that have published."""
    return sum(bool(session.is_publisher) for session in node.sessions)
