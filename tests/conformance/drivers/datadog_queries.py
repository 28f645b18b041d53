"""What Datadog's RabbitMQ integration asks: its HTTP queries and the fields it reads, and /metrics by its own reader.

The integration is in no package index, its base (`datadog-checks-base`, with the reader of metrics) is.
Prints `ok NAME` or `FAILED NAME: why`. BROKER_URL, BROKER_API and BROKER_METRICS say where the broker is.
"""

import json
import os
import threading
import time
import urllib.request
from base64 import b64encode
from contextlib import suppress
from urllib.parse import quote_plus

import pika
from datadog_checks.base import OpenMetricsBaseCheckV2
from datadog_checks.base.stubs import aggregator

API = os.environ["BROKER_API"]
METRICS = os.environ["BROKER_METRICS"]
# RabbitMQ's counts and rates are up to five seconds old.
DEADLINE_S = 30.0
COUNTS = "ack confirm deliver_get publish return_unroutable redeliver"
TOTALS = "messages messages_ready messages_unacknowledged"


def message_stats(names: str) -> list[str]:
    counts = [f"message_stats/{name}" for name in names.split()]
    return [path for count in counts for path in (count, f"{count}_details/rate")]


FIELDS = {
    "overview": [
        "rabbitmq_version",
        "cluster_name",
        *(f"object_totals/{name}" for name in ("connections", "channels", "queues", "consumers")),
        *(f"queue_totals/{name}{end}" for name in TOTALS.split() for end in ("", "_details/rate")),
        *message_stats(COUNTS),
    ],
    "exchanges": ["name", "vhost", *message_stats("publish_in publish_out")],
    "queues": [
        *("name", "vhost", "node", "policy", "consumers", "consumer_utilisation", "memory"),
        *("head_message_timestamp",),
        *(f"{name}{end}" for name in TOTALS.split() for end in ("", "_details/rate")),
        *message_stats("ack deliver deliver_get publish redeliver"),
    ],
    "nodes": [
        *("name", "fd_used", "disk_free", "mem_used", "mem_limit", "run_queue", "sockets_used"),
        *("partitions", "running", "mem_alarm", "disk_free_alarm"),
    ],
    "connections": ["vhost", "state"],
}
# Of the names that its table gives to /metrics those that RabbitMQ 3.10.8 answers, less Erlang's own.
SERIES = [
    "auth_attempts_failed_total",
    "auth_attempts_succeeded_total",
    "auth_attempts_total",
    "channel_acks_uncommitted",
    "channel_consumers",
    "channel_get_ack_total",
    "channel_get_empty_total",
    "channel_get_total",
    "channel_messages_acked_total",
    "channel_messages_confirmed_total",
    "channel_messages_delivered_ack_total",
    "channel_messages_delivered_total",
    "channel_messages_published_total",
    "channel_messages_redelivered_total",
    "channel_messages_unacked",
    "channel_messages_uncommitted",
    "channel_messages_unconfirmed",
    "channel_messages_unroutable_dropped_total",
    "channel_messages_unroutable_returned_total",
    "channel_prefetch",
    "channel_process_reductions_total",
    "channels",
    "channels_closed_total",
    "channels_opened_total",
    "connection_channels",
    "connection_incoming_bytes_total",
    "connection_incoming_packets_total",
    "connection_outgoing_bytes_total",
    "connection_outgoing_packets_total",
    "connection_pending_packets",
    "connection_process_reductions_total",
    "connections",
    "connections_closed_total",
    "connections_opened_total",
    "consumer_prefetch",
    "consumers",
    "disk_space_available_bytes",
    "disk_space_available_limit_bytes",
    "global_consumers",
    "global_messages_acknowledged_total",
    "global_messages_confirmed_total",
    "global_messages_dead_lettered_expired_total",
    "global_messages_dead_lettered_maxlen_total",
    "global_messages_dead_lettered_rejected_total",
    "global_messages_delivered_consume_auto_ack_total",
    "global_messages_delivered_consume_manual_ack_total",
    "global_messages_delivered_get_auto_ack_total",
    "global_messages_delivered_get_manual_ack_total",
    "global_messages_delivered_total",
    "global_messages_get_empty_total",
    "global_messages_received_confirm_total",
    "global_messages_received_total",
    "global_messages_redelivered_total",
    "global_messages_routed_total",
    "global_messages_unroutable_dropped_total",
    "global_messages_unroutable_returned_total",
    "global_publishers",
    "io_read_bytes_total",
    "io_read_ops_total",
    "io_read_time_seconds_total",
    "io_reopen_ops_total",
    "io_seek_ops_total",
    "io_seek_time_seconds_total",
    "io_sync_ops_total",
    "io_sync_time_seconds_total",
    "io_write_bytes_total",
    "io_write_ops_total",
    "io_write_time_seconds_total",
    "msg_store_read_total",
    "msg_store_write_total",
    "process_max_fds",
    "process_max_tcp_sockets",
    "process_open_fds",
    "process_open_tcp_sockets",
    "process_resident_memory_bytes",
    "queue_consumer_capacity",
    "queue_consumer_utilisation",
    "queue_consumers",
    "queue_disk_reads_total",
    "queue_disk_writes_total",
    "queue_head_message_timestamp",
    "queue_index_read_ops_total",
    "queue_index_write_ops_total",
    "queue_messages",
    "queue_messages_bytes",
    "queue_messages_paged_out",
    "queue_messages_paged_out_bytes",
    "queue_messages_persistent",
    "queue_messages_persistent_bytes",
    "queue_messages_published_total",
    "queue_messages_ram",
    "queue_messages_ram_bytes",
    "queue_messages_ready",
    "queue_messages_ready_bytes",
    "queue_messages_ready_ram",
    "queue_messages_unacked",
    "queue_messages_unacked_bytes",
    "queue_messages_unacked_ram",
    "queue_process_memory_bytes",
    "queue_process_reductions_total",
    "queues",
    "queues_created_total",
    "queues_declared_total",
    "queues_deleted_total",
    "resident_memory_limit_bytes",
    "schema_db_disk_tx_total",
    "schema_db_ram_tx_total",
]


def request(method: str, path: str, body: dict[str, object] | None = None) -> bytes:
    scheme, _, rest = API.partition("://")
    credentials, _, address = rest.rpartition("@")
    data = None if body is None else json.dumps(body).encode()
    sent = urllib.request.Request(f"{scheme}://{address}{path}", data, method=method)
    sent.add_header("Authorization", f"Basic {b64encode(credentials.encode()).decode()}")
    sent.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(sent, timeout=10) as answer:
        return answer.read()


def ask(path: str) -> object:
    return json.loads(request("GET", path))


def has(row: object, path: str) -> bool:
    for key in path.split("/"):
        if not isinstance(row, dict) or key not in row:
            return False
        row = row[key]
    return row is not None


def missing_fields(kind: str) -> list[str]:
    """Fields that no row of an answer has."""
    answer = ask(kind)
    rows = answer if isinstance(answer, list) else [answer]
    return [path for path in FIELDS[kind] if not any(has(row, path) for row in rows)]


def check_fields() -> None:
    deadline, missing = time.monotonic() + DEADLINE_S, {"nothing was asked": ["yet"]}
    while any(missing.values()) and time.monotonic() < deadline:
        missing = {kind: missing_fields(kind) for kind in FIELDS}
        time.sleep(0.5)
    for kind, paths in FIELDS.items():
        for path in paths:
            print(f"FAILED {kind}: {path}" if path in missing[kind] else f"ok {kind}: {path}")


def check(name: str, path: str, right: object) -> None:
    try:
        answer = ask(path)
    except OSError as error:
        answer = repr(error)
    is_right = right(answer) if callable(right) else answer == right
    print(f"ok {name}" if is_right else f"FAILED {name}: {str(answer)[:300]}")


def check_paths() -> None:
    """The queries that are made for each vhost and queue, their names encoded as the integration does."""
    for vhost in ("/", "datadog/vhost"):
        name = quote_plus(vhost)
        check(f"aliveness of {vhost}", f"aliveness-test/{name}", {"status": "ok"})
        check(f"queues of {vhost}", f"queues/{name}", lambda rows: isinstance(rows, list))
        path = f"vhosts/{name}/connections"
        check(f"connections of {vhost}", path, lambda rows: isinstance(rows, list))
    names = lambda rows: {row["name"] for row in rows} >= {"/", "datadog/vhost"}
    check("vhosts", "vhosts", names)
    for queue in ("datadog", "datadog/1"):
        path = f"queues/%2F/{quote_plus(queue)}/bindings"
        check(f"bindings of {queue}", path, lambda rows: len(rows) >= 1)


def check_series(endpoint: str, wanted: list[str]) -> None:
    """Read an endpoint as the integration does, by Datadog's class."""
    aggregator.reset()
    instance = {"openmetrics_endpoint": METRICS + endpoint, "metrics": [".+"], "timeout": 20}
    reader = OpenMetricsBaseCheckV2("rabbitmq", {}, [{**instance, "namespace": "rabbitmq"}])
    problem = reader.run()
    print(f"FAILED {endpoint} is read: {problem[:300]}" if problem else f"ok {endpoint} is read")
    found = set(aggregator.metric_names)
    for name in wanted:
        sent = f"rabbitmq.rabbitmq_{name.removesuffix('_total')}"
        is_there = any(one in found for one in (sent, f"{sent}.count", f"{sent}_total.count"))
        print(f"ok {endpoint}: {name}" if is_there else f"FAILED {endpoint}: {name}")


def load(stop: threading.Event) -> None:
    """Traffic of every kind that the fields tell of, until told to stop."""
    connection = pika.BlockingConnection(pika.URLParameters(os.environ["BROKER_URL"]))
    channel = connection.channel()
    for queue in ("datadog", "datadog/1"):
        channel.queue_declare(queue, durable=True)
    channel.queue_bind("datadog", "amq.topic", "#")
    channel.confirm_delivery()
    channel.basic_consume("datadog/1", lambda *_: None)
    stamp = pika.BasicProperties(delivery_mode=2, timestamp=1_700_000_000)
    while not stop.is_set():
        for queue in ("datadog", "datadog/1"):
            channel.basic_publish("", queue, b"x", stamp)
        channel.basic_publish("amq.topic", "datadog", b"x", stamp)
        with suppress(pika.exceptions.UnroutableError):
            channel.basic_publish("", "nowhere", b"x", stamp, mandatory=True)
        for requeue in (True, False):
            method, _, _ = channel.basic_get("datadog")
            if requeue:
                channel.basic_nack(method.delivery_tag, requeue=True)
            else:
                channel.basic_ack(method.delivery_tag)
        connection.process_data_events(0.02)
    connection.close()


def main() -> None:
    rights = dict.fromkeys(("configure", "write", "read"), ".*")
    policy = {"pattern": "^datadog", "definition": {"max-length": 5000}}
    request("PUT", "vhosts/datadog%2Fvhost", {})
    request("PUT", "permissions/datadog%2Fvhost/guest", rights)
    request("PUT", "policies/%2F/datadog", policy)
    stop = threading.Event()
    traffic = threading.Thread(target=load, args=(stop,))
    traffic.start()
    try:
        check_fields()
        check_paths()
        whole, per_object = SERIES, [name for name in SERIES if name.startswith("queue_")]
        check_series("/metrics", whole)
        check_series("/metrics/per-object", per_object)
        families = "?family=queue_coarse_metrics&family=queue_consumer_count&vhost=%2F"
        check_series(f"/metrics/detailed{families}", [])
    finally:
        stop.set()
        traffic.join()


if __name__ == "__main__":
    main()
