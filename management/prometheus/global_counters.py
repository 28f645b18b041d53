"""The `rabbitmq_global_*` families: counters of all connections together, by protocol and by the type of the queue.

Owns no state. The node counts what all its queues do. What is of quorum queues and of streams is taken from these when
somebody asks, and the rest is of classic queues, so that no message costs anything for being told apart. A node without
a cluster has classic queues only; it says 0 of the others, as RabbitMQ does. Source: rabbit_global_counters (3.13).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from burrowmq.broker import inspect
from burrowmq.broker.node.running import RunningNode
from burrowmq.management.prometheus import metrics

Family = Any
CLASSIC, QUORUM = "rabbit_classic_queue", "rabbit_quorum_queue"
TYPES = {"quorum": QUORUM, "stream": "rabbit_stream_queue"}


def global_families(node: RunningNode) -> Iterator[Family]:
    """Yield them; all figures are of one moment."""
    counters, replicated = inspect.counters(node), inspect.replicated_counters(node)
    for name, text in metrics.GLOBAL_BY_PROTOCOL.items():
        family = _counter(name, text, "protocol")
        family.add_metric(["amqp091"], counters[name])
        yield family
    for name, (counter, text) in metrics.GLOBAL_BY_QUEUE_TYPE.items():
        family = _counter(name, text, "protocol", "queue_type")
        others = {kind: each[counter] for kind, each in replicated.items()}
        family.add_metric(["amqp091", CLASSIC], counters[counter] - sum(others.values()))
        for kind, queue_type in TYPES.items():
            family.add_metric(["amqp091", queue_type], others.get(kind, 0))
        yield family
    yield from _dead_lettered(counters)
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


def _dead_lettered(counters: dict[str, int]) -> Iterator[Family]:
    """By why messages died, and what their queue does with such."""
    labels = ("queue_type", "dead_letter_strategy")
    for reason, text in metrics.GLOBAL_DEAD_LETTERED.items():
        family = _counter(f"messages_dead_lettered_{reason}", text, *labels)
        taken, dropped, sent, stored, lost = (
            counters[f"{what}_{reason}"]
            for what in (
                "dead_lettered",
                "dropped",
                "quorum_dead_lettered",
                "quorum_stored",
                "quorum_dropped",
            )
        )
        if reason not in metrics.OF_QUORUM_QUEUES_ONLY:
            family.add_metric([CLASSIC, "at_most_once"], taken - sent - stored)
            family.add_metric([CLASSIC, "disabled"], dropped - lost)
        family.add_metric([QUORUM, "at_most_once"], sent)
        if reason not in metrics.NEVER_AT_LEAST_ONCE:
            family.add_metric([QUORUM, "at_least_once"], stored)
        family.add_metric([QUORUM, "disabled"], lost)
        yield family
    text = "Dead letters of the strategy at-least-once that all their queues have"
    family = _counter("messages_dead_lettered_confirmed", text, *labels)
    stored = sum(counters[f"quorum_stored_{each}"] for each in metrics.GLOBAL_DEAD_LETTERED)
    family.add_metric([QUORUM, "at_least_once"], stored)
    yield family


def _counter(name: str, text: str, *labels: str) -> Family:
    return CounterMetricFamily(f"rabbitmq_global_{name}", text, labels=labels)
