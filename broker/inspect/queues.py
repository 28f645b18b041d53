"""Queues and consumers as rows; one function a column, so that a row costs what is asked for.

Owns no state. Source: rabbit_amqqueue's and rabbit_amqqueue_process' info keys (3.13).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import cast

from burrowmq.broker.channel.channel import Channel
from burrowmq.broker.inspect.connections import channel_details, vhost_name
from burrowmq.broker.inspect.values import Row, Table, message_stats, pid, plain
from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.queue.port import QueuePort
from burrowmq.broker.queue.queue import Queue
from burrowmq.broker.queue.serve.consumer import Consumer
from burrowmq.broker.report.metrics import QueueMetrics
from burrowmq.broker.session.session import Session
from burrowmq.broker.vhost.vhost import Vhost
from burrowmq.protocol.properties import decode

Column = Callable[[RunningNode, Vhost, QueuePort], object]


def _exclusive_consumer(queue: QueuePort) -> Consumer | None:
    return next((c for c in queue.consumers if c.exclusive), None)


def _single_active_consumer(queue: QueuePort) -> Consumer | None:
    if not queue.settings.single_active_consumer:
        return None
    return next((c for c in queue.consumers if c.is_active), None)


def _tag(consumer: Consumer) -> str:
    return consumer.tag


def _tag_or_none(consumer: Consumer | None) -> str | None:
    return None if consumer is None else _tag(consumer)


def _pid_or_none(node: RunningNode, consumer: Consumer | None) -> str | None:
    return None if consumer is None else pid(node, consumer.channel)


def _paged_out(queue: QueuePort, size: bool) -> int:
    """Transient messages that are on disk only."""
    if size:
        transient = queue.ready_bytes + queue.unacked_bytes - queue.persistent_bytes
        in_ram = queue.ram_ready_bytes + queue.unacked_bytes
    else:
        transient = queue.ready_count + queue.unacked_count - queue.persistent_count
        in_ram = queue.ram_ready_count + queue.unacked_count
    return int(max(0, transient - in_ram))


def _owner(queue: QueuePort) -> Row | None:
    owner = cast("Session | None", queue.exclusive_owner)  # any object to the queue
    if owner is None:
        return None
    return {"name": owner.name, "peer_host": owner.peer.host, "peer_port": owner.peer.port}


def _awake(queue: QueuePort) -> Queue | None:
    """The queue if it is a classic one, with levels that are worth a look."""
    return queue if isinstance(queue, Queue) and not queue.is_asleep else None


def _head_timestamp(queue: QueuePort) -> int | None:
    """The timestamp property of the message that is delivered next; None when its body is on disk only."""
    awake = _awake(queue)
    for level in reversed(awake.levels) if awake is not None else ():
        if level.count:
            head = level.head()
            return None if head is None else decode(head[0].raw).timestamp
    return None


def _backing_queue(queue: QueuePort) -> Row | None:
    if queue.kind != "classic":
        return None  # as in RabbitMQ
    in_ram = queue.ram_ready_count
    on_disk = queue.ready_count - in_ram
    first = 0
    if isinstance(queue, Queue) and not queue.is_dormant:
        first = sum(level.next_seq for level in queue.levels)
    begin, end = (first - on_disk, first) if on_disk else ("undefined", "undefined")
    return {
        "mode": queue.settings.mode,
        "version": queue.settings.version,
        "q1": 0, "q2": 0, "q3": in_ram, "q4": 0,
        "delta": ["delta", begin, on_disk, _paged_out(queue, size=False), end],
        "len": queue.ready_count,
        "target_ram_count": "infinity",
        "next_seq_id": first,
        "num_pending_acks": queue.unacked_count,
    }  # fmt: skip


QUEUE_COLUMNS: dict[str, Column] = {
    "name": lambda n, v, q: q.name,
    "vhost": lambda n, v, q: v.name,
    "durable": lambda n, v, q: q.durable,
    "auto_delete": lambda n, v, q: q.auto_delete,
    "arguments": lambda n, v, q: plain(q.arguments),
    "policy": lambda n, v, q: v.effective_policy(q).policy,
    "operator_policy": lambda n, v, q: v.effective_policy(q).operator_policy,
    "effective_policy_definition": lambda n, v, q: plain(dict(v.effective_policy(q).definition)),
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
    "head_message_timestamp": lambda n, v, q: _head_timestamp(q),
    "disk_reads": lambda n, v, q: awake.levels.loaded_count if (awake := _awake(q)) else 0,
    "disk_writes": lambda n, v, q: awake.levels.written_count if (awake := _awake(q)) else 0,
    "consumers": lambda n, v, q: len(q.consumers),
    "consumer_utilisation": lambda n, v, q: q.consumers.capacity,
    "consumer_capacity": lambda n, v, q: q.consumers.capacity,
    "memory": lambda n, v, q: q.memory_bytes,
    "slave_pids": lambda n, v, q: None,
    "synchronised_slave_pids": lambda n, v, q: None,
    "mirror_pids": lambda n, v, q: None,
    "synchronised_mirror_pids": lambda n, v, q: None,
    "state": lambda n, v, q: "blocked" if n.queue_faults.of(v.name, q.name) else "running",
    "fault": lambda n, v, q: [asdict(each) for each in n.queue_faults.of(v.name, q.name)],
    "type": lambda n, v, q: q.kind,
    # RabbitMQ gives none for classic queues; of others, its nodes, where ours are the servers of the cluster.
    "leader": lambda n, v, q: None if q.placement is None else q.placement.leader,
    "members": lambda n, v, q: None if q.placement is None else list(q.placement.members),
    "online": lambda n, v, q: None if q.placement is None else list(q.placement.online),
    "node": lambda n, v, q: n.name,
    "message_stats": lambda n, v, q: message_stats(q.metrics),
    "storage_version": lambda n, v, q: q.settings.version,
    "backing_queue_status": lambda n, v, q: _backing_queue(q),
}

# Whose value is a number, for an empty queue 0 (but for `memory`); what is None, or absent, is less than all.
NUMBERS_OF_QUEUES = frozenset(
    name for name in QUEUE_COLUMNS
    if name.startswith("message") and name != "message_stats"
) | {"memory", "consumers", "consumer_utilisation", "consumer_capacity", "disk_reads", "disk_writes"}  # fmt: skip

# What rabbitmqctl takes; the other columns above are the HTTP API's own.
CTL_QUEUE_COLUMNS = frozenset(QUEUE_COLUMNS) - {
    "vhost", "owner_pid_details", "messages_paged_out", "message_bytes_paged_out", "node", "message_stats",
    "storage_version", "backing_queue_status", "fault",
}  # fmt: skip

# The HTTP API's list without `columns`: RabbitMQ 3.13's reduced set, so that a page of queues stays cheap.
REDUCED_QUEUE_COLUMNS = tuple(
    name for name in QUEUE_COLUMNS
    if name not in {
        "pid", "owner_pid", "exclusive_consumer_pid", "single_active_consumer_pid", "disk_reads", "disk_writes",
        "slave_pids", "synchronised_slave_pids", "mirror_pids", "synchronised_mirror_pids", "leader", "members",
        "online",
        "backing_queue_status", "fault",
    }
)  # fmt: skip
PLACEMENT_COLUMNS = ("leader", "members", "online")
"""What the HTTP API shows, of queues that are kept elsewhere, without being asked."""
DETAILED_QUEUE_COLUMNS = (
    *REDUCED_QUEUE_COLUMNS,
    "disk_reads",
    "disk_writes",
    "backing_queue_status",
    "fault",
)


def each_queue(node: RunningNode, vhost: str | None = None) -> Iterator[tuple[Vhost, QueuePort]]:
    """(vhost, queue) pairs in RabbitMQ's order: by vhost, then by name."""
    for owner in each_vhost(node, vhost):
        for queue in owner.queues_in_order():
            if not queue.is_deleted:
                yield owner, queue


def each_replicated_queue(node: RunningNode) -> Iterator[tuple[Vhost, QueuePort]]:
    """Those of them that the cluster keeps: quorum queues and streams."""
    return (found for found in each_queue(node) if found[1].kind != "classic")


def quorum_figures(node: RunningNode) -> Row:
    """How many of them there are, and how they stand, as of the last look at each."""
    found = [queue for _, queue in each_replicated_queue(node)]
    known = [queue.placement for queue in found if queue.placement is not None]
    return {
        "quorum_queues": sum(queue.kind == "quorum" for queue in found),
        "streams": sum(queue.kind == "stream" for queue in found),
        "without_quorum": sum(not each.has_quorum for each in known),
        "with_minimum_quorum": sum(each.has_quorum and each.is_critical for each in known),
    }


def replicated_counters(node: RunningNode) -> dict[str, dict[str, int]]:
    """What of the node's `counters` is of quorum queues and of streams, by kind; nothing without a cluster."""
    front_end = node.replication.front_end
    if front_end is None:
        return {}
    found = {kind: QueueMetrics() for kind in front_end.gone}
    for kind, gone in front_end.gone.items():
        found[kind].add(gone)
    for _, queue in each_replicated_queue(node):
        found[queue.kind].add(queue.metrics)
    return {kind: _as_totals(each) for kind, each in found.items()}


def _as_totals(metrics: QueueMetrics) -> dict[str, int]:
    got, delivered = metrics.get + metrics.get_no_ack, metrics.deliver + metrics.deliver_no_ack
    return {
        "messages_delivered": got + delivered,
        "messages_delivered_auto_ack": metrics.deliver_no_ack,
        "messages_delivered_manual_ack": metrics.deliver,
        "messages_get_auto_ack": metrics.get_no_ack,
        "messages_get_manual_ack": metrics.get,
        "messages_get_empty": metrics.get_empty,
        "messages_redelivered": metrics.redeliver,
        "messages_acknowledged": metrics.ack,
    }


def iter_queues(
    node: RunningNode,
    vhost: str | None = None,
    columns: Sequence[str] | None = None,
    table: Table = plain,
) -> Iterator[Row]:
    """One row a queue, with the columns asked for (or the HTTP API's reduced set).

    `table` renders arguments. The iterator may be left half-way and resumed after the broker has done other work:
    a queue that was deleted meanwhile is left out.
    """
    for owner, each in each_queue(node, vhost):
        yield queue_row(node, owner, each, columns, table)


def queue_row(
    node: RunningNode,
    owner: Vhost,
    queue: QueuePort,
    columns: Sequence[str] | None = None,
    table: Table = plain,
) -> Row:
    """The row of one queue, with the columns asked for (or the HTTP API's reduced set)."""
    names = columns or _shown(REDUCED_QUEUE_COLUMNS, queue)
    row = {name: QUEUE_COLUMNS[name](node, owner, queue) for name in names}
    if "arguments" in row and table is not plain:
        row["arguments"] = table(queue.arguments)
    return row


def _shown(columns: tuple[str, ...], queue: QueuePort) -> tuple[str, ...]:
    return columns if queue.placement is None else (*columns, *PLACEMENT_COLUMNS)


def queues(
    node: RunningNode, vhost: str | None = None, columns: Sequence[str] | None = None
) -> list[Row]:
    """The rows of `iter_queues` at once."""
    return list(iter_queues(node, vhost, columns))


def queue(node: RunningNode, vhost: str, name: str) -> Row | None:
    """Everything about one queue but `consumers_of` it."""
    owner = node.vhosts.get(vhost)
    found = None if owner is None else owner.queues.get(name)
    if owner is None or found is None:
        return None
    shown = _shown(DETAILED_QUEUE_COLUMNS, found)
    row: Row = {column: QUEUE_COLUMNS[column](node, owner, found) for column in shown}
    row["deliveries"], row["incoming"] = [], []
    return row


def each_vhost(node: RunningNode, vhost: str | None) -> Iterable[Vhost]:
    """The vhost of that name if there is one, or all of them by name."""
    if vhost is None:
        return [node.vhosts[name] for name in sorted(node.vhosts)]
    found = node.vhosts.get(vhost)
    return [] if found is None else [found]


def consumer_row(
    node: RunningNode, vhost: Vhost, queue: QueuePort, consumer: Consumer, table: Table = plain
) -> Row:
    """One consumer as `GET /api/consumers` shows it."""
    channel = cast("Channel", consumer.channel)  # one of `clients_of`
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


def clients_of(queue: QueuePort) -> list[Consumer]:
    """The consumers that are clients': a queue that is moved has one of the node's own."""
    return [each for each in queue.consumers if isinstance(each.channel, Channel)]


def consumers_of(
    node: RunningNode, vhost: Vhost, queue: QueuePort, table: Table = plain
) -> Iterator[Row]:
    """The consumers of one queue; a row is made when it is asked for, if the consumer is still there."""
    for consumer in clients_of(queue):
        channel = consumer.channel
        if isinstance(channel, Channel) and consumer.tag in channel.consumers:
            yield consumer_row(node, vhost, queue, consumer, table)


def consumers_on(node: RunningNode, channel: Channel) -> Iterator[Row]:
    """The consumers on one channel, by queue; a row is made when it is asked for, if the consumer is still there."""
    owner = node.vhosts.get(vhost_name(channel.session))
    for consumer, queue in sorted(channel.consumers.values(), key=lambda each: each.queue.name):
        if owner is not None and consumer.tag in channel.consumers:
            yield consumer_row(node, owner, queue, consumer)


def each_consumed(node: RunningNode, vhost: str | None = None) -> list[tuple[Vhost, QueuePort]]:
    """Each queue that has consumers, by name; O(consumers), however many queues there are."""
    consumed = {
        subscription.queue: session.entered.vhost
        for session in node.sessions
        if session.entered is not None and vhost in (None, session.entered.vhost.name)
        for channel in session.channels.values()
        for subscription in channel.consumers.values()
    }
    found = ((owner, queue) for queue, owner in consumed.items())
    return sorted(found, key=lambda each: (each[0].name, each[1].name))


def consumers(node: RunningNode, vhost: str | None = None, table: Table = plain) -> Iterator[Row]:
    """Every consumer, by queue; its row is made when it is asked for, if the consumer is still there."""
    for owner, queue in each_consumed(node, vhost):
        yield from consumers_of(node, owner, queue, table)
