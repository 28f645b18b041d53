"""The table of metrics fits the rows."""

from __future__ import annotations

from burrowmq.broker import inspect
from burrowmq.management.prometheus import exposition, metrics
from tests.support.bench.node import NodeBench


def test_every_column_exists(bench: NodeBench) -> None:
    node = bench.node
    assert all(metric.column in inspect.QUEUE_COLUMNS for metric in metrics.QUEUES)
    (connection,) = inspect.connections(node)
    assert all(metric.column in connection for metric in metrics.CONNECTIONS)
    values = exposition._node_values(node)
    assert all(metric.column in values for metric in metrics.NODES)


def test_names_are_unique() -> None:
    names = [
        each.name
        for table in (metrics.QUEUES, metrics.CONNECTIONS, metrics.CHANNELS, metrics.NODES)
        for each in table
    ]
    assert len(names) == len(set(names))


def test_counters_are_the_nodes(bench: NodeBench) -> None:
    counters = inspect.counters(bench.node)
    named = [*metrics.CHANNEL_TOTALS.values(), *metrics.GLOBAL_BY_PROTOCOL,
             *(counter for counter, _ in metrics.GLOBAL_BY_QUEUE_TYPE.values()),
             *(f"{what}_{reason}" for what in ("dead_lettered", "dropped") for reason in metrics.GLOBAL_DEAD_LETTERED)
            ]  # fmt: skip
    assert set(named) <= set(counters)
