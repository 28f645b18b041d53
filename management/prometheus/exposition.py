"""The metric families of a scrape, and their text.

Owns no state; imported by `management.prometheus.endpoint` at the first scrape. Figures are taken, and long families
written (`series`), on the event loop a little in each turn, so that a page of many queues does not hold up messages.
Exactly one identity_info series a node: dashboards join on it. Counters start at zero so that rate() works from the
first scrape.
Source: the rabbitmq_prometheus plugin (3.13); the text is written by prometheus_client.
"""

from __future__ import annotations

import math
import platform
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from functools import cache
from importlib import metadata
from typing import Any, cast

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
from burrowmq.broker.product import RABBITMQ_VERSION, VERSION
from burrowmq.broker.queue.dormant import DORMANT_BYTES
from burrowmq.broker.queue.port import QueuePort
from burrowmq.broker.vhost.vhost import Vhost
from burrowmq.management import process
from burrowmq.management.answers import status
from burrowmq.management.answers.reply import collect
from burrowmq.management.answers.turns import KEYS_PER_TURN, ROWS_PER_TURN, pieces
from burrowmq.management.prometheus import metrics
from burrowmq.management.prometheus.cluster import cluster_families
from burrowmq.management.prometheus.global_counters import global_families
from burrowmq.management.prometheus.metrics import Metric
from burrowmq.management.prometheus.series import Series, labels_text

Family = Any
Row = dict[str, Any]
Found = tuple[Vhost, QueuePort]
OF_EMPTY = frozenset({"memory", "consumers", "consumer_capacity", "disk_reads", "disk_writes"})
"""What a queue without messages may have that is not 0."""
FAMILIES = {"counter": CounterMetricFamily, "gauge": GaugeMetricFamily}


class _Snapshot(Collector):
    """Families that were collected before."""

    def __init__(self, families: list[Family]) -> None:
        self._families = families

    def collect(self) -> Iterator[Family]:
        """What was collected."""
        yield from self._families

    def describe(self) -> Iterable[Family]:
        """Nothing: each snapshot has a registry of its own, names cannot clash."""
        return ()


def text(families: list[Family]) -> bytes:
    """Short families as text."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Snapshot(families))
    return generate_latest(registry)


async def written(families: Iterable[Family]) -> AsyncIterator[bytes]:
    """A page, piece by piece; long families (`series`) give way to other work."""
    short: list[Family] = []
    for family in families:
        if isinstance(family, Series):
            yield text(short)
            short = []
            async for lines in family.lines():
                yield lines
        else:
            short.append(family)
    yield text(short)


async def per_object(node: RunningNode) -> list[Family]:
    """One series an object."""
    families = [*_identity("rabbitmq_", node), *_node_families(node), *global_families(node)]
    families += _totals(node)
    wanted = {
        metric.family for metric in (*metrics.QUEUES, *metrics.CONNECTIONS, *metrics.CHANNELS)
    }
    return families + await _objects("rabbitmq_", node, wanted | {metrics.DELIVERY}, None)


async def detailed(node: RunningNode, wanted: set[str], vhosts: set[str] | None) -> list[Family]:
    """The families asked for, of the vhosts asked for; an unknown family is ignored."""
    prefix = "rabbitmq_detailed_"
    families = list(_identity("rabbitmq_", node))
    values = _node_values(node)
    if metrics.QUEUE in wanted:
        wanted = wanted | {metrics.CONSUMER_COUNT}  # which is a part of it that is had alone, too
    if "auth_attempt_metrics" in wanted:
        families += _auth_families(prefix, node)
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
    counters = inspect.counters(node)
    families = [*_identity("rabbitmq_", node), *_node_families(node), *global_families(node)]
    families += _totals(node)
    sums = await _queue_sums(node)
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


async def _queue_sums(node: RunningNode) -> dict[str, float]:
    """Over all queues; of one that is empty, only what it may have all the same is looked at."""
    sums: dict[str, float] = dict.fromkeys(_columns(metrics.QUEUES), 0)
    columns = [(name, inspect.QUEUE_COLUMNS[name]) for name in sums]
    of_empty = [(name, get) for name, get in columns if name in OF_EMPTY]
    async for piece in pieces(inspect.each_queue(node), KEYS_PER_TURN // 4):
        for vhost, queue in piece:
            if queue.is_dormant:
                sums["memory"] += DORMANT_BYTES
                continue
            is_filled = queue.ready_count or queue.unacked_count
            for name, get in columns if is_filled else of_empty:
                sums[name] += cast("float | None", get(node, vhost, queue)) or 0
    return sums


async def _sums(rows: Iterable[Row], table: tuple[Metric, ...]) -> dict[str, float]:
    sums: dict[str, float] = dict.fromkeys(_columns(table), 0)
    async for piece in pieces(rows, ROWS_PER_TURN):
        for row in piece:
            for name in sums:
                sums[name] += row.get(name) or 0
    return sums


def _single(prefix: str, metric: Metric, value: float) -> Family:
    return FAMILIES[metric.kind](prefix + metric.name, metric.text, value)


# -- the node ----------------------------------------------------------------------------------------------------


@cache
def _client_version() -> str:
    """Of the library that a running node has loaded."""
    return metadata.version("prometheus_client")


def _identity(prefix: str, node: RunningNode) -> Iterator[Family]:
    build = UnknownMetricFamily(
        f"{prefix}build_info", "Versions",
        labels=["rabbitmq_version", "prometheus_plugin_version", "prometheus_client_version", "erlang_version",
                "product_version", "product_name"],
    )  # fmt: skip
    client = _client_version()
    build.add_metric(
        [RABBITMQ_VERSION, RABBITMQ_VERSION, client, f"CPython {platform.python_version()}",
         VERSION, "BurrowMQ"], 1,
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
    yield from _auth_families("rabbitmq_", node)
    yield from _store_families(node)
    yield from _spread_families(node)
    yield from cluster_families(node)
    stalls = inspect.loop_stalls(node)
    if stalls:
        buckets = [("+Inf" if math.isinf(edge) else str(edge), count) for edge, count in stalls]
        yield HistogramMetricFamily(
            "burrowmq_loop_stall_seconds", "How late the event loop ran its timers", buckets, None
        )


def _auth_families(prefix: str, node: RunningNode) -> Iterator[Family]:
    counters = inspect.counters(node)
    attempts, failures = counters["auth_attempts"], counters["auth_failures"]
    for name, value in (("", attempts), ("_succeeded", attempts - failures), ("_failed", failures)):
        family = CounterMetricFamily(f"{prefix}auth_attempts{name}", "Logins", labels=["protocol"])
        family.add_metric(["amqp091"], value)
        yield family


def _totals(node: RunningNode) -> Iterator[Family]:
    totals = inspect.object_totals(node)
    for name in ("connections", "channels", "consumers", "queues"):
        yield GaugeMetricFamily(f"rabbitmq_{name}", f"Number of {name}", totals[name])


def _spread_families(node: RunningNode) -> Iterator[Family]:
    names = {
        "sync_s": ("burrowmq_sync_seconds", "How long it took to make a commit durable"),
        "commit_bytes": ("burrowmq_commit_bytes", "How much was written with one commit"),
    }
    for key, spread in inspect.store_spreads(node).items():
        buckets = [*((str(edge), count) for edge, count in spread.buckets), ("+Inf", spread.values)]
        yield HistogramMetricFamily(*names[key], buckets, spread.total)


def _store_families(node: RunningNode) -> Iterator[Family]:
    yield GaugeMetricFamily(
        "burrowmq_queues_blocked", "Queues whose files the disk refuses", len(node.queue_faults)
    )
    for name, value in sorted(inspect.store_stats(node).items()):
        family = GaugeMetricFamily(f"burrowmq_store_{name}", f"Store: {name.replace('_', ' ')}")
        family.add_metric([], value)
        yield family


# -- per object --------------------------------------------------------------------------------------------------


async def _objects(
    prefix: str, node: RunningNode, wanted: set[str], vhosts: set[str] | None
) -> list[Family]:
    """The families asked for, one series an object; of the vhosts given, or of all."""
    families = await _queue_series(prefix, node, wanted, vhosts)
    chosen = _chosen(metrics.CONNECTIONS, wanted)
    if chosen:
        found = await collect(_within(inspect.connections(node), vhosts))
        families += _series(prefix, chosen, found)
    chosen = _chosen(metrics.CHANNELS, wanted)
    if chosen:
        found = await collect(_within(_flat(inspect.channels(node)), vhosts))
        families += _series(prefix, chosen, found)
    return families


async def _queue_series(
    prefix: str, node: RunningNode, wanted: set[str], vhosts: set[str] | None
) -> list[Family]:
    deliveries = _chosen(metrics.QUEUE_DELIVERIES, wanted)
    chosen = _chosen(metrics.QUEUES, wanted)
    if not (chosen or deliveries):
        return []
    found: list[Found] = []
    labels: list[str] = []
    async for piece in pieces(inspect.each_queue(node), KEYS_PER_TURN):
        kept = piece if vhosts is None else [each for each in piece if each[0].name in vhosts]
        found += kept
        labels += [labels_text(("vhost", "queue"), (v.name, q.name)) for v, q in kept]
    series: list[Family] = [
        Series(*_head(prefix, metric), found, labels, _column_of(node, metric.column))
        for metric in chosen
    ]
    return series + [
        Series(*_head(prefix, metric), found, labels, _counter_of(metric.column))
        for metric in deliveries
    ]


def _head(prefix: str, metric: Metric) -> tuple[bytes, str]:
    """The first lines of a family, and the name that its samples have."""
    family = FAMILIES[metric.kind](prefix + metric.name, metric.text, labels=["x"])
    family.add_metric(["x"], 0)
    *head, sample = text([family]).splitlines(keepends=True)
    return b"".join(head), sample.partition(b"{")[0].decode()


def _column_of(node: RunningNode, column: str) -> Callable[[Found], Any]:
    get = inspect.QUEUE_COLUMNS[column]
    asleep = {"memory": DORMANT_BYTES, "head_message_timestamp": None}.get(column, 0)
    return lambda found: asleep if found[1].is_dormant else get(node, *found)


def _counter_of(name: str) -> Callable[[Found], Any]:
    return lambda found: inspect.message_stats(found[1].metrics).get(name, 0)


def _chosen(table: tuple[Metric, ...], wanted: set[str]) -> tuple[Metric, ...]:
    return tuple(metric for metric in table if metric.family in wanted)


def _within(rows: Iterable[Row], vhosts: set[str] | None) -> Iterator[Row]:
    return (row for row in rows if vhosts is None or row["vhost"] in vhosts)


def _flat(rows: Iterable[Row]) -> Iterator[Row]:
    """Rows whose message_stats stand beside the rest, as zeros where there was no traffic yet."""
    zeros = dict.fromkeys(metrics.CHANNEL_TOTALS, 0)
    for row in rows:
        yield {**row, **zeros, **row.get("message_stats", {})}


def _series(prefix: str, chosen: tuple[Metric, ...], rows: list[Row]) -> list[Family]:
    labels = [labels_text(("channel",), (row["pid"],)) for row in rows]
    return [
        Series(*_head(prefix, metric), rows, labels, _of_row(metric.column)) for metric in chosen
    ]


def _of_row(column: str) -> Callable[[Row], Any]:
    return lambda row: row.get(column)


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
        labels = ["vhost", "exchange", "type"]
        names = GaugeMetricFamily(f"{prefix}exchange_name", "Exchanges", labels=labels)
        bound = GaugeMetricFamily(
            f"{prefix}exchange_bindings", "Bindings of an exchange", labels=labels
        )
        for row in inspect.exchanges(node):
            if not row["name"] or row["internal"]:
                continue  # as in RabbitMQ
            values = [row["vhost"], row["name"], row["type"]]
            names.add_metric(values, 1)
            bound.add_metric(values, _binding_count(node, row))
        yield from (
            family
            for family, name in ((names, "exchange_names"), (bound, "exchange_bindings"))
            if name in wanted
        )


def _binding_count(node: RunningNode, row: Row) -> int:
    vhost = node.vhosts[row["vhost"]]
    return len(inspect.own_bindings(vhost, vhost.exchanges[row["name"]]))
