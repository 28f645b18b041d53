"""The table of Prometheus metrics: names, types, families, and where each value comes from.

Owns no state; read by `management.prometheus.exposition`. Names are RabbitMQ's without the `rabbitmq_` prefix (and
counters without `_total`), so that its dashboards work. Values come from columns of `broker.inspect` (per object,
summed for the aggregated page) or from the node. Source: prometheus_rabbitmq_core_metrics_collector and
prometheus_rabbitmq_global_metrics_collector (3.13).
"""

from __future__ import annotations

from typing import NamedTuple


class Metric(NamedTuple):
    """One metric of a kind of object; `column` of its row holds the value."""

    name: str
    kind: str
    family: str
    column: str
    text: str


def _gauge(name: str, family: str, column: str, text: str) -> Metric:
    return Metric(name, "gauge", family, column, text)


def _counter(name: str, family: str, column: str, text: str) -> Metric:
    return Metric(name, "counter", family, column, text)


COARSE, QUEUE = "queue_coarse_metrics", "queue_metrics"
CONSUMER_COUNT = "queue_consumer_count"
QUEUES = (
    _gauge(
        "queue_messages_ready",
        COARSE,
        "messages_ready",
        "Messages ready to be delivered to consumers",
    ),
    _gauge(
        "queue_messages_unacked",
        COARSE,
        "messages_unacknowledged",
        "Messages delivered and not yet acknowledged",
    ),
    _gauge("queue_messages", COARSE, "messages", "Ready and unacknowledged messages"),
    _gauge("queue_consumers", CONSUMER_COUNT, "consumers", "Consumers on a queue"),
    _gauge(
        "queue_consumer_capacity",
        QUEUE,
        "consumer_capacity",
        "Share of the time in which consumers could take messages at once",
    ),
    _gauge("queue_consumer_utilisation", QUEUE, "consumer_capacity", "The same by its older name"),
    _gauge(
        "queue_process_memory_bytes", QUEUE, "memory", "Memory that the queue's own objects take"
    ),
    _gauge(
        "queue_messages_ram", QUEUE, "messages_ram", "Ready and unacknowledged messages in memory"
    ),
    _gauge(
        "queue_messages_ram_bytes", QUEUE, "message_bytes_ram", "Size of the messages in memory"
    ),
    _gauge("queue_messages_ready_ram", QUEUE, "messages_ready_ram", "Ready messages in memory"),
    _gauge(
        "queue_messages_unacked_ram",
        QUEUE,
        "messages_unacknowledged_ram",
        "Unacknowledged messages in memory",
    ),
    _gauge("queue_messages_persistent", QUEUE, "messages_persistent", "Persistent messages"),
    _gauge(
        "queue_messages_persistent_bytes",
        QUEUE,
        "message_bytes_persistent",
        "Size of the persistent messages",
    ),
    _gauge(
        "queue_messages_bytes", QUEUE, "message_bytes", "Size of ready and unacknowledged messages"
    ),
    _gauge("queue_messages_ready_bytes", QUEUE, "message_bytes_ready", "Size of ready messages"),
    _gauge(
        "queue_messages_unacked_bytes",
        QUEUE,
        "message_bytes_unacknowledged",
        "Size of unacknowledged messages",
    ),
    _gauge(
        "queue_messages_paged_out",
        QUEUE,
        "messages_paged_out",
        "Transient messages that are on disk only",
    ),
    _gauge(
        "queue_messages_paged_out_bytes",
        QUEUE,
        "message_bytes_paged_out",
        "Size of messages paged out",
    ),
    _gauge(
        "queue_head_message_timestamp",
        QUEUE,
        "head_message_timestamp",
        "Timestamp of the first message",
    ),
    _counter("queue_disk_reads", QUEUE, "disk_reads", "Messages read from disk"),
    _counter("queue_disk_writes", QUEUE, "disk_writes", "Messages written to disk"),
)

CONNECTION, CONNECTION_COARSE = "connection_metrics", "connection_coarse_metrics"
CONNECTIONS = (
    _counter(
        "connection_incoming_bytes", CONNECTION_COARSE, "recv_oct", "Bytes received on a connection"
    ),
    _counter(
        "connection_outgoing_bytes", CONNECTION_COARSE, "send_oct", "Bytes sent on a connection"
    ),
    _counter(
        "connection_incoming_packets", CONNECTION, "recv_cnt", "Reads from a connection's socket"
    ),
    _counter(
        "connection_outgoing_packets", CONNECTION, "send_cnt", "Writes to a connection's socket"
    ),
    _gauge("connection_pending_packets", CONNECTION, "send_pend", "Writes waiting on a connection"),
    _gauge("connection_channels", CONNECTION, "channels", "Channels on a connection"),
)

CHANNEL, EXCHANGED, TAKEN = "channel_metrics", "channel_exchange_metrics", "channel_queue_metrics"
CHANNELS = (
    _gauge("channel_consumers", CHANNEL, "consumer_count", "Consumers on a channel"),
    _gauge(
        "channel_messages_unacked",
        CHANNEL,
        "messages_unacknowledged",
        "Delivered, not yet acknowledged",
    ),
    _gauge(
        "channel_messages_unconfirmed",
        CHANNEL,
        "messages_unconfirmed",
        "Published, not yet confirmed",
    ),
    _gauge(
        "channel_messages_uncommitted",
        CHANNEL,
        "messages_uncommitted",
        "Published in an open transaction",
    ),
    _gauge(
        "channel_acks_uncommitted",
        CHANNEL,
        "acks_uncommitted",
        "Acknowledged in an open transaction",
    ),
    _gauge(
        "consumer_prefetch",
        CHANNEL,
        "prefetch_count",
        "Limit of unacknowledged messages of each new consumer",
    ),
    _gauge(
        "channel_prefetch",
        CHANNEL,
        "global_prefetch_count",
        "Limit of unacknowledged messages of a channel",
    ),
    _counter("channel_messages_published", EXCHANGED, "publish", "Messages published on a channel"),
    _counter("channel_messages_confirmed", EXCHANGED, "confirm", "Messages confirmed on a channel"),
    _counter(
        "channel_messages_unroutable_returned",
        EXCHANGED,
        "return_unroutable",
        "Unroutable, returned",
    ),
    _counter(
        "channel_messages_unroutable_dropped", EXCHANGED, "drop_unroutable", "Unroutable, dropped"
    ),
    _counter("channel_get_ack", TAKEN, "get", "Got by basic.get with manual acknowledgement"),
    _counter("channel_get", TAKEN, "get_no_ack", "Got by basic.get with automatic acknowledgement"),
    _counter(
        "channel_messages_delivered_ack", TAKEN, "deliver", "Delivered with manual acknowledgement"
    ),
    _counter(
        "channel_messages_delivered",
        TAKEN,
        "deliver_no_ack",
        "Delivered with automatic acknowledgement",
    ),
    _counter("channel_messages_redelivered", TAKEN, "redeliver", "Redelivered on a channel"),
    _counter("channel_messages_acked", TAKEN, "ack", "Acknowledged on a channel"),
    _counter("channel_get_empty", TAKEN, "get_empty", "basic.get on an empty queue"),
)
# On the aggregated page a channel's counters are the node's: they outlive the channel.
CHANNEL_TOTALS = {
    "publish": "messages_published",
    "confirm": "messages_confirmed",
    "return_unroutable": "messages_unroutable_returned",
    "drop_unroutable": "messages_unroutable_dropped",
    "get": "messages_get_manual_ack",
    "get_no_ack": "messages_get_auto_ack",
    "deliver": "messages_delivered_manual_ack",
    "deliver_no_ack": "messages_delivered_auto_ack",
    "redeliver": "messages_redelivered",
    "ack": "messages_acknowledged",
    "get_empty": "messages_get_empty",
}

# Per queue without the channel, as RabbitMQ 4 offers them: channel ids make the others useless for alerting.
DELIVERY = "queue_delivery_metrics"
QUEUE_DELIVERIES = (
    _counter("queue_messages_published", DELIVERY, "publish", "Messages published into a queue"),
    _counter(
        "queue_messages_delivered_ack", DELIVERY, "deliver", "Delivered with manual acknowledgement"
    ),
    _counter(
        "queue_messages_delivered",
        DELIVERY,
        "deliver_no_ack",
        "Delivered with automatic acknowledgement",
    ),
    _counter("queue_get_ack", DELIVERY, "get", "Got by basic.get with manual acknowledgement"),
    _counter(
        "queue_get", DELIVERY, "get_no_ack", "Got by basic.get with automatic acknowledgement"
    ),
    _counter("queue_get_empty", DELIVERY, "get_empty", "basic.get while the queue was empty"),
    _counter("queue_messages_redelivered", DELIVERY, "redeliver", "Redelivered"),
    _counter("queue_messages_acked", DELIVERY, "ack", "Acknowledged"),
)

CHURN, NODE_COARSE, NODE, PERSISTER = (
    "connection_churn_metrics", "node_coarse_metrics", "node_metrics", "node_persister_metrics",
)  # fmt: skip
# `column` names a value of the dictionary that management.prometheus.exposition makes of the node.
NODES = (
    _counter("connections_opened", CHURN, "connections_opened", "Connections opened"),
    _counter("connections_closed", CHURN, "connections_closed", "Connections closed"),
    _counter("channels_opened", CHURN, "channels_opened", "Channels opened"),
    _counter("channels_closed", CHURN, "channels_closed", "Channels closed"),
    _counter("queues_declared", CHURN, "queues_declared", "Queues declared"),
    _counter("queues_created", CHURN, "queues_created", "Queues created"),
    _counter("queues_deleted", CHURN, "queues_deleted", "Queues deleted"),
    _gauge("process_open_fds", NODE_COARSE, "open_fds", "Open file descriptors"),
    _gauge("process_open_tcp_sockets", NODE_COARSE, "open_sockets", "Open sockets"),
    _gauge(
        "process_resident_memory_bytes",
        NODE_COARSE,
        "resident_bytes",
        "Memory of the broker's process",
    ),
    _gauge(
        "disk_space_available_bytes",
        NODE_COARSE,
        "disk_free_bytes",
        "Free space on the data directory's disk",
    ),
    _gauge("erlang_processes_used", NODE_COARSE, "threads", "Threads of the broker's process"),
    _counter("erlang_gc_runs", NODE_COARSE, "gc_runs", "Runs of the garbage collector"),
    _counter(
        "erlang_scheduler_context_switches", NODE_COARSE, "context_switches", "Context switches"
    ),
    _gauge("store_open_files", NODE, "store_files", "Files that the store has open"),
    _gauge("store_max_open_files", NODE, "store_files_max", "Files that the store may have open"),
    _gauge("process_max_fds", NODE, "fd_limit", "Limit of open file descriptors"),
    _gauge("process_max_tcp_sockets", NODE, "sockets_max", "Limit of open sockets"),
    _gauge("resident_memory_limit_bytes", NODE, "memory_limit_bytes", "Memory high watermark"),
    _gauge(
        "disk_space_available_limit_bytes",
        NODE,
        "disk_limit_bytes",
        "Low watermark of free disk space",
    ),
    _gauge("erlang_processes_limit", NODE, "thread_limit", "Limit of threads"),
    _gauge("erlang_uptime_seconds", NODE, "uptime_s", "Seconds since the node started"),
    _counter("io_read_ops", PERSISTER, "read_ops", "Read calls of the process"),
    _counter("io_write_ops", PERSISTER, "write_ops", "Write calls of the process"),
    _counter("io_read_bytes", PERSISTER, "read_bytes", "Bytes read from disk"),
    _counter("io_write_bytes", PERSISTER, "write_bytes", "Bytes written to disk"),
    _counter("io_sync_ops", PERSISTER, "syncs", "Files synced to disk"),
    _counter("io_reopen_ops", PERSISTER, "file_opens", "Store files opened"),
    _counter("msg_store_write", PERSISTER, "store_writes", "Messages written to the store"),
)

# Counters of all connections together; labels protocol="amqp091" or also queue_type.
GLOBAL_BY_PROTOCOL = {
    "messages_received": "Messages received from publishers",
    "messages_received_confirm": "Messages received from publishers that use confirms",
    "messages_routed": "Messages routed to a queue, once a queue",
    "messages_confirmed": "Messages confirmed to publishers",
    "messages_unroutable_dropped": "Unroutable messages dropped",
    "messages_unroutable_returned": "Unroutable messages returned to publishers",
}
GLOBAL_BY_QUEUE_TYPE = {
    "messages_delivered": ("messages_delivered", "Messages delivered to consumers"),
    "messages_delivered_consume_auto_ack": (
        "messages_delivered_auto_ack",
        "Delivered, automatic acknowledgement",
    ),
    "messages_delivered_consume_manual_ack": (
        "messages_delivered_manual_ack",
        "Delivered, manual acknowledgement",
    ),
    "messages_delivered_get_auto_ack": (
        "messages_get_auto_ack",
        "Got by basic.get, automatic acknowledgement",
    ),
    "messages_delivered_get_manual_ack": (
        "messages_get_manual_ack",
        "Got by basic.get, manual acknowledgement",
    ),
    "messages_get_empty": ("messages_get_empty", "basic.get on an empty queue"),
    "messages_redelivered": ("messages_redelivered", "Messages redelivered"),
    "messages_acknowledged": ("messages_acknowledged", "Messages acknowledged by consumers"),
}
# By the reason that messages died for; `broker.report.metrics.NodeMetrics` has its counters.
GLOBAL_DEAD_LETTERED = {
    "maxlen": "Dead-lettered because a queue was full",
    "expired": "Dead-lettered because they expired",
    "rejected": "Dead-lettered because they were rejected",
    "delivery_limit": "Dead-lettered because they were delivered too often",
}
OF_QUORUM_QUEUES_ONLY = frozenset({"delivery_limit"})
NEVER_AT_LEAST_ONCE = frozenset({"maxlen"})
"""That strategy has full queues refuse what is published."""
