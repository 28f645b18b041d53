"""The families of a scrape."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from burrowmq.management.prometheus import exposition
from tests.support.bench.node import NodeBench

# What RabbitMQ's overview dashboard asks for.
DASHBOARD = [
    "queue_messages_ready",
    "queue_messages_unacked",
    "global_messages_received_total",
    "global_messages_redelivered_total",
    "global_messages_delivered_consume_auto_ack_total",
    "global_messages_delivered_consume_manual_ack_total",
    "global_messages_delivered_get_auto_ack_total",
    "global_messages_delivered_get_manual_ack_total",
    "global_publishers",
    "consumers",
    "connections",
    "queues",
    "channels",
    "build_info",
    "resident_memory_limit_bytes",
    "process_resident_memory_bytes",
    "disk_space_available_bytes",
    "process_max_fds",
    "process_open_fds",
    "process_max_tcp_sockets",
    "process_open_tcp_sockets",
    "global_messages_confirmed_total",
    "global_messages_routed_total",
    "global_messages_received_confirm_total",
    "global_messages_unroutable_dropped_total",
    "global_messages_unroutable_returned_total",
    "global_messages_acknowledged_total",
    "global_messages_get_empty_total",
    "queues_declared_total",
    "queues_created_total",
    "queues_deleted_total",
    "channels_opened_total",
    "channels_closed_total",
    "connections_opened_total",
    "connections_closed_total",
    "identity_info",
]


def made(families: list[Any]) -> list[Any]:
    async def page() -> bytes:
        return b"".join([piece async for piece in exposition.written(families)])

    return list(text_string_to_metric_families(asyncio.run(page()).decode()))


def samples(bench: NodeBench) -> dict[str, float]:
    families = made(asyncio.run(exposition.aggregated(bench.node)))
    return {each.name: each.value for family in families for each in family.samples}


def test_the_dashboard_finds_everything(tmp_path: Path) -> None:
    with NodeBench(tmp_path / "data") as empty:
        found = samples(empty)
    assert not [name for name in DASHBOARD if f"rabbitmq_{name}" not in found]


def test_only_counters_end_in_total_and_all_of_them_do(bench: NodeBench) -> None:
    parts = (exposition.aggregated(bench.node), exposition.per_object(bench.node))
    for family in (each for part in parts for each in made(asyncio.run(part))):
        names = {sample.name for sample in family.samples}
        is_total = {name.endswith("_total") for name in names}
        assert is_total <= {family.type == "counter"}, family.name


def test_the_numbers_of_objects_stand_on_the_page_with_a_series_for_each(bench: NodeBench) -> None:
    """The dashboards ask for them whichever page a node is scraped by."""
    found = {each.name: each for each in made(asyncio.run(exposition.per_object(bench.node)))}
    for name in ("connections", "channels", "consumers", "queues"):
        (sample,) = found[f"rabbitmq_{name}"].samples
        assert sample.value == samples(bench)[f"rabbitmq_{name}"]
        assert sample.labels == {}


def test_sums(bench: NodeBench) -> None:
    found = samples(bench)
    assert found["rabbitmq_queue_messages_ready"] == 6
    queues = bench.node.vhosts["/"].queues.values()
    in_ram = sum(queue.ram_ready_count for queue in queues)
    assert found["rabbitmq_queue_messages_ram"] == in_ram + 1, "and the one that is unacked"
    assert found["rabbitmq_queue_process_memory_bytes"] == sum(
        queue.memory_bytes for queue in bench.node.vhosts["/"].queues.values()
    )
    assert found["rabbitmq_connections"] == found["rabbitmq_channels"] == 1


def test_syncs_and_commits_are_spread(bench: NodeBench) -> None:
    found = samples(bench)
    assert found["burrowmq_commit_bytes_count"] == found["burrowmq_store_commits"]
    assert found["burrowmq_commit_bytes_sum"] > 0
    assert "burrowmq_sync_seconds_count" in found


def test_one_identity(bench: NodeBench) -> None:
    families = made(asyncio.run(exposition.per_object(bench.node)))
    assert [len(each.samples) for each in families if each.name == "rabbitmq_identity_info"] == [1]


def test_detailed_has_only_what_was_asked_for(bench: NodeBench) -> None:
    node = bench.node
    families = made(
        asyncio.run(exposition.detailed(node, {"queue_coarse_metrics", "nosuch"}, {"/"}))
    )
    names = {each.name for each in families}
    assert "rabbitmq_detailed_queue_messages_ready" in names
    assert not [name for name in names if "channel" in name or "memory_bytes" in name]
    nowhere = made(asyncio.run(exposition.detailed(node, {"queue_coarse_metrics"}, {"other"})))
    assert not [
        each for each in nowhere if each.name.startswith("rabbitmq_detailed") and each.samples
    ]


def test_consumers_are_a_part_of_the_metrics_of_queues(bench: NodeBench) -> None:
    for wanted in ({"queue_metrics"}, {"queue_metrics", "queue_consumer_count"}):
        families = made(asyncio.run(exposition.detailed(bench.node, wanted, None)))
        names = [each.name for each in families]
        assert names.count("rabbitmq_detailed_queue_consumers") == 1


def test_logins_are_a_family_that_can_be_asked_for(bench: NodeBench) -> None:
    families = made(asyncio.run(exposition.detailed(bench.node, {"auth_attempt_metrics"}, None)))
    (found,) = [each for each in families if each.name == "rabbitmq_detailed_auth_attempts"]
    assert found.samples[0].labels == {"protocol": "amqp091"}


def test_exchanges_that_nobody_binds_by_name_have_no_series(bench: NodeBench) -> None:
    """RabbitMQ leaves out the default exchange and those that are internal."""
    wanted = {"exchange_names", "exchange_bindings"}
    families = made(asyncio.run(exposition.detailed(bench.node, wanted, None)))
    for family in [each for each in families if each.name.startswith("rabbitmq_cluster_exchange")]:
        names = {each.labels["exchange"] for each in family.samples}
        assert "amq.topic" in names
        assert not names & {"", "amq.rabbitmq.trace"}


def test_cluster_families(bench: NodeBench) -> None:
    families = made(
        asyncio.run(exposition.detailed(bench.node, {"vhost_status", "exchange_bindings"}, None))
    )
    found = {each.name: each for each in families}
    assert found["rabbitmq_cluster_vhost_status"].samples[0].labels == {"vhost": "/"}
    bound = {
        each.labels["exchange"]: each.value
        for each in found["rabbitmq_cluster_exchange_bindings"].samples
    }
    assert bound["amq.topic"] == 1


def test_no_series_for_what_is_not_measured(bench: NodeBench) -> None:
    found = samples(bench)
    gone = ("erlang_net_ticktime", "io_seek", "schema_db", "queue_index", "msg_store_read")
    assert not [name for name in found if name.removeprefix("rabbitmq_").startswith(gone)]
    used, limit = found["rabbitmq_erlang_processes_used"], found["rabbitmq_erlang_processes_limit"]
    assert 0 < used <= limit


def test_the_alarm_of_descriptors_is_on_while_no_socket_is_left(bench: NodeBench) -> None:
    assert samples(bench)["rabbitmq_alarms_file_descriptor_limit"] == 0
    bench.node.process = replace(bench.node.process, sockets_max=len(bench.node.sessions))
    assert samples(bench)["rabbitmq_alarms_file_descriptor_limit"] == 1
