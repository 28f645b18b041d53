"""The metric families of a scrape, and their text.

Owns no state; imported by `management.prometheus.endpoint` at the first scrape. Figures are taken on the event loop in
small slices; `text` runs in a thread, so that a page of ten thousand queues does not hold up messages. Exactly one
identity_info series a node: dashboards join on it. Counters start at zero so that rate() works from the first scrape.
Source: the rabbitmq_prometheus plugin (3.13); the text is written by prometheus_client.
"""

from __future__ import annotations

import asyncio
import gc
import math
import platform
from collections.abc import Iterable, Iterator
from importlib import metadata
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    UnknownMetricFamily,
)
from prometheus_client.registry import Collector

from burrowmq.broker import inspect
from burrowmq.broker.node.running import RunningNode
from burrowmq.management import process
from burrowmq.management.answers import status
from burrowmq.management.answers.reply import collect
from burrowmq.management.prometheus import metrics
from burrowmq.management.prometheus.metrics import Metric

Family = Any
Row = dict[str, Any]
FAMILIES = {"counter": CounterMetricFamily, "gauge": GaugeMetricFamily}


class _Snapshot(Collector):
    """Families that were collected before."""

    def __init__(self, families: list[Family]) -> None:
        self._families = families

    def collect(self) -> Iterator[Family]:
        """What was collected; long families are made only now, in the thread that writes the text."""
        for family in self._families:
            if isinstance(family, Iterator):
                yield from family
            else:
                yield family

    def describe(self) -> Iterable[Family]:
        """Nothing: each snapshot has a registry of its own, names cannot clash."""
        return ()


def text(families: list[Family]) -> bytes:
    """The page; called in a thread.

    A page of a hundred thousand series makes as many objects, which would start full collections of the garbage
    collector again and again, and those stop the event loop too. Nothing here makes cycles: it is paused.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Snapshot(families))
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return generate_latest(registry)
    finally:
        if was_enabled:
            gc.enable()


async def per_object(node: RunningNode) -> list[Family]:
    """One series an object."""
    families = [*_identity("rabbitmq_", node), *_node_families(node), *_global_families(node)]
    wanted = {
        metric.family for metric in (*metrics.QUEUES, *metrics.CONNECTIONS, *metrics.CHANNELS)
    }
    return families + await _objects("rabbitmq_", node, wanted | {metrics.DELIVERY}, None)


async def detailed(node: RunningNode, wanted: set[str], vhosts: set[str] | None) -> list[Family]:
    """The families asked for, of the vhosts asked for; an unknown family is ignored."""
    prefix = "rabbitmq_detailed_"
    families = list(_identity("rabbitmq_", node))
    values = _node_values(node)
    families += [
        _single(prefix, each, values[each.column])
        for each in metrics.NODES
        if each.family in wanted
    ]
    families += await _objects(prefix, node, wanted, vhosts)
    families += _cluster_families(node, wanted)
    return families


async def aggregated(node: RunningNode) -> list[Family]:
    """Sums: a page whose size does not depend on the number of queues."""
    totals, counters = inspect.object_totals(node), inspect.counters(node)
    families = [*_identity("rabbitmq_", node), *_node_families(node), *_global_families(node)]
    families += [
        GaugeMetricFamily(f"rabbitmq_{name}", f"Number of {name}", totals[name])
        for name in ("connections", "channels", "consumers", "queues")
    ]
    sums = await _sums(inspect.iter_queues(node, None, _columns(metrics.QUEUES)), metrics.QUEUES)
    families += [_single("rabbitmq_", metric, sums[metric.column]) for metric in metrics.QUEUES]
    families.append(
        CounterMetricFamily("rabbitmq_queue_messages_published", "Messages published into queues",
                            counters["messages_routed"])
    )  # fmt: skip
    sums = await _sums(inspect.connections(node), metrics.CONNECTIONS)
    families += [
        _single("rabbitmq_", metric, sums[metric.column]) for metric in metrics.CONNECTIONS
    ]
    sums = await _sums(inspect.channels(node), metrics.CHANNELS)
    for metric in metrics.CHANNELS:
        total = metrics.CHANNEL_TOTALS.get(metric.column)
        families.append(
            _single("rabbitmq_", metric, counters[total] if total else sums[metric.column])
        )
    return families


def _columns(table: tuple[Metric, ...]) -> list[str]:
    return [metric.column for metric in table]


async def _sums(rows: Iterable[Row], table: tuple[Metric, ...]) -> dict[str, float]:
    sums: dict[str, float] = dict.fromkeys(_columns(table), 0)
    for number, row in enumerate(rows):
        for name in sums:
            sums[name] += row.get(name) or 0
        if number % 200 == 199:
            await asyncio.sleep(0)
    return sums


def _single(prefix: str, metric: Metric, value: float) -> Family:
    return FAMILIES[metric.kind](prefix + metric.name, metric.text, value)


# -- the node ----------------------------------------------------------------------------------------------------


def _identity(prefix: str, node: RunningNode) -> Iterator[Family]:
    build = UnknownMetricFamily(
        f"{prefix}build_info", "Versions",
        labels=["rabbitmq_version", "prometheus_plugin_version", "prometheus_client_version", "erlang_version",
                "product_version", "product_name"],
    )  # fmt: skip
    client = metadata.version("prometheus_client")
    build.add_metric(
        [status.RABBITMQ_VERSION, status.RABBITMQ_VERSION, client, f"CPython {platform.python_version()}",
         status.burrowmq_version(), "BurrowMQ"], 1,
    )  # fmt: skip
    yield build
    cluster = node.cluster_name
    identity = UnknownMetricFamily(
        f"{prefix}identity_info", "Which node this is",
        labels=["rabbitmq_node", "rabbitmq_cluster", "rabbitmq_cluster_permanent_id"],
    )  # fmt: skip
    identity.add_metric([node.name, cluster, node.parameters.cluster_id], 1)
    yield identity
    alarms = {row["resource"] for row in inspect.alarms(node)}
    for name, is_on in (
        ("file_descriptor_limit", len(node.sessions) >= node.process.sockets_max),
        ("free_disk_space_watermark", "disk" in alarms),
        ("memory_used_watermark", "memory" in alarms),
    ):
        yield UnknownMetricFamily(
            f"{prefix}alarms_{name}", f"1 while the {name} alarm is on", int(is_on)
        )


def _node_values(node: RunningNode) -> dict[str, float]:
    figures, limits = process.figures(node.config.data_dir), inspect.limits(node)
    stats = inspect.store_stats(node)
    return {
        **inspect.counters(node),
        **figures._asdict(),
        "memory_limit_bytes": limits["memory_bytes"],
        "disk_limit_bytes": limits["disk_free_bytes"],
        "uptime_s": status.uptime_s(node),
        "syncs": stats.get("file_syncs", 0),
        "sockets_max": node.process.sockets_max,
        "file_opens": stats.get("file_opens", 0),
        "store_files": stats.get("open_files", 0),
        "store_files_max": stats.get("open_files_limit", 0),
        "store_writes": stats.get("written", 0),
    }


def _node_families(node: RunningNode) -> Iterator[Family]:
    values = _node_values(node)
    for metric in metrics.NODES:
        yield _single("rabbitmq_", metric, values[metric.column])
    counters = inspect.counters(node)
    attempts, failures = counters["auth_attempts"], counters["auth_failures"]
    for name, value in (("", attempts), ("_succeeded", attempts - failures), ("_failed", failures)):
        family = CounterMetricFamily(f"rabbitmq_auth_attempts{name}", "Logins", labels=["protocol"])
        family.add_metric(["amqp091"], value)
        yield family
    yield from _store_families(node)
    yield from _spread_families(node)
    stalls = inspect.loop_stalls(node)
    if stalls:
        buckets = [("+Inf" if math.isinf(edge) else str(edge), count) for edge, count in stalls]
        yield HistogramMetricFamily(
            "burrowmq_loop_stall_seconds", "How late the event loop ran its timers", buckets, None
        )


def _spread_families(node: RunningNode) -> Iterator[Family]:
    names = {
        "sync_s": ("burrowmq_sync_seconds", "How long it took to make a commit durable"),
        "commit_bytes": ("burrowmq_commit_bytes", "How much was written with one commit"),
    }
    for key, spread in inspect.store_spreads(node).items():
        buckets = [*((str(edge), count) for edge, count in spread.buckets), ("+Inf", spread.values)]
        yield HistogramMetricFamily(*names[key], buckets, spread.total)


def _store_families(node: RunningNode) -> Iterator[Family]:
    for name, value in sorted(inspect.store_stats(node).items()):
        family = GaugeMetricFamily(f"burrowmq_store_{name}", f"Store: {name.replace('_', ' ')}")
        family.add_metric([], value)
        yield family


def _global_families(node: RunningNode) -> Iterator[Family]:
    counters = inspect.counters(node)
    for name, text in metrics.GLOBAL_BY_PROTOCOL.items():
        family = CounterMetricFamily(f"rabbitmq_global_{name}", text, labels=["protocol"])
        family.add_metric(["amqp091"], counters[name])
        yield family
    for name, (counter, text) in metrics.GLOBAL_BY_QUEUE_TYPE.items():
        family = CounterMetricFamily(
            f"rabbitmq_global_{name}", text, labels=["protocol", "queue_type"]
        )
        family.add_metric(["amqp091", "rabbit_classic_queue"], counters[counter])
        yield family
    for name, ((taken, dropped), text) in metrics.GLOBAL_DEAD_LETTERED.items():
        labels = ["queue_type", "dead_letter_strategy"]
        family = CounterMetricFamily(f"rabbitmq_global_{name}", text, labels=labels)
        family.add_metric(["rabbit_classic_queue", "at_most_once"], counters[taken])
        family.add_metric(["rabbit_classic_queue", "disabled"], counters[dropped])
        yield family
    totals = inspect.object_totals(node)
    for name, value in (
        ("publishers", inspect.publisher_count(node)),
        ("consumers", totals["consumers"]),
    ):
        gauge = GaugeMetricFamily(
            f"rabbitmq_global_{name}", f"Number of {name}", labels=["protocol"]
        )
        gauge.add_metric(["amqp091"], value)
        yield gauge


# -- per object --------------------------------------------------------------------------------------------------


async def _objects(
    prefix: str, node: RunningNode, wanted: set[str], vhosts: set[str] | None
) -> list[Family]:
    """The families asked for, one series an object; of the vhosts given, or of all."""
    families: list[Family] = []
    chosen = _chosen(metrics.QUEUES, wanted)
    if chosen:
        rows = inspect.iter_queues(node, None, ["vhost", "name", *_columns(chosen)])
        found = await collect(_within(rows, vhosts))
        families.append(_series(prefix, chosen, ["vhost", "queue"], found))
    chosen = _chosen(metrics.QUEUE_DELIVERIES, wanted)
    if chosen:
        rows = inspect.iter_queues(node, None, ["vhost", "name", "message_stats"])
        found = await collect(_within(_flat(rows), vhosts))
        families.append(_series(prefix, chosen, ["vhost", "queue"], found))
    chosen = _chosen(metrics.CONNECTIONS, wanted)
    if chosen:
        found = await collect(_within(inspect.connections(node), vhosts))
        families.append(_series(prefix, chosen, ["channel"], found))
    chosen = _chosen(metrics.CHANNELS, wanted)
    if chosen:
        found = await collect(_within(_flat(inspect.channels(node)), vhosts))
        families.append(_series(prefix, chosen, ["channel"], found))
    return families


def _chosen(table: tuple[Metric, ...], wanted: set[str]) -> tuple[Metric, ...]:
    return tuple(metric for metric in table if metric.family in wanted)


def _within(rows: Iterable[Row], vhosts: set[str] | None) -> Iterator[Row]:
    return (row for row in rows if vhosts is None or row["vhost"] in vhosts)


def _flat(rows: Iterable[Row]) -> Iterator[Row]:
    """Rows whose message_stats stand beside the rest, as zeros where there was no traffic yet."""
    zeros = dict.fromkeys(metrics.CHANNEL_TOTALS, 0)
    for row in rows:
        yield {**row, **zeros, **row.get("message_stats", {})}


LABELS = {"vhost": "vhost", "queue": "name", "channel": "pid"}


def _series(
    prefix: str, chosen: tuple[Metric, ...], labels: list[str], rows: list[Row]
) -> Iterator[Family]:
    keys = [LABELS[label] for label in labels]
    for metric in chosen:
        family = FAMILIES[metric.kind](prefix + metric.name, metric.text, labels=labels)
        for row in rows:
            value = row.get(metric.column)
            if value is not None:
                family.add_metric([str(row[key]) for key in keys], value)
        yield family


def _cluster_families(node: RunningNode, wanted: set[str]) -> Iterator[Family]:
    prefix = "rabbitmq_cluster_"
    if "vhost_status" in wanted:
        family = GaugeMetricFamily(
            f"{prefix}vhost_status", "1 while a vhost runs", labels=["vhost"]
        )
        for row in inspect.vhosts(node):
            family.add_metric([row["name"]], 1)
        yield family
    if "exchange_names" in wanted or "exchange_bindings" in wanted:
        counts: dict[tuple[str, str], int] = {}
        for row in inspect.bindings(node):
            key = (row["vhost"], row["source"])
            counts[key] = counts.get(key, 0) + 1
        labels = ["vhost", "exchange", "type"]
        names = GaugeMetricFamily(f"{prefix}exchange_name", "Exchanges", labels=labels)
        bound = GaugeMetricFamily(
            f"{prefix}exchange_bindings", "Bindings of an exchange", labels=labels
        )
        for row in inspect.exchanges(node):
            values = [row["vhost"], row["name"], row["type"]]
            names.add_metric(values, 1)
            bound.add_metric(values, counts.get((row["vhost"], row["name"]), 0))
        yield from (
            family
            for family, name in ((names, "exchange_names"), (bound, "exchange_bindings"))
            if name in wanted
        )
