"""The metric families of the cluster that keeps quorum queues and streams: only of a node that has one.

Owns no state. All names are ours: RabbitMQ's `rabbitmq_raft_*` are of its own Raft, and here that is the servers'
business, whose exporter tells of it. What is on its way is of now, how queues stand as of the last look at each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, SummaryMetricFamily

from burrowmq.broker import inspect
from burrowmq.broker.node.running import RunningNode

Family = Any

GAUGES = {
    "is_up": ("cluster_up", "1 while there is a connection to the cluster"),
    "bursts_in_flight": ("cluster_bursts_in_flight", "Bursts of messages that the cluster has not answered"),
    "unconfirmed_count": ("cluster_unconfirmed_messages", "Messages that wait for a burst or for its answer"),
    "stalled_count": ("cluster_stalled_queues", "Queues that publish and have had no answer for two seconds"),
    "asked_count": ("cluster_asked_messages", "Messages that were asked for and have not come"),
    "pulled_count": ("cluster_pulled_messages", "Messages that have come and wait for a consumer"),
    "unsent_ack_count": ("cluster_unsent_acks", "Acknowledgements that are to be sent to the cluster"),
    "definitions": ("cluster_definitions", "Definitions that all front-ends share"),
    "definitions_are_current": (
        "cluster_definitions_current",
        "1 while all shared definitions are known here, and changes of them are heard of",
    ),
    "definitions_waiting": (
        "cluster_definitions_waiting", "Changes of definitions that the cluster has not agreed to yet",
    ),
    "front_ends": ("cluster_front_ends", "Front-ends that are heard of, this one included"),
    "homes_here": ("cluster_homes_here", "Classic queues and reply consumers that live at this front-end"),
    "homes_elsewhere": ("cluster_homes_elsewhere", "Those that are known to live at other front-ends"),
    "quorum_queues": ("quorum_queues", "Quorum queues"),
    "streams": ("streams", "Streams"),
    "with_minimum_quorum": (
        "quorum_queues_with_minimum_quorum",
        "Quorum queues and streams that have a quorum, and would have none with one server less",
    ),
    "without_quorum": ("quorum_queues_without_quorum", "Quorum queues and streams that have no quorum"),
}  # fmt: skip
COUNTERS = {
    "connections": ("cluster_connections", "Connections to the cluster that were made"),
    "resent_count": ("cluster_bursts_resent", "Bursts that were sent again"),
    "stored_count": ("cluster_messages_stored", "Messages that the cluster has stored"),
    "refused_count": (
        "cluster_messages_refused",
        "Messages that it has not, or not in time: nacks",
    ),
    "changes_agreed": (
        "cluster_definition_changes_agreed",
        "Changes of definitions, made here, that the cluster has agreed to",
    ),
    "changes_refused": (
        "cluster_definition_changes_refused",
        "Those that it has not, or not in time: refused, or taken back",
    ),
    "forwarded": (
        "cluster_messages_forwarded",
        "Messages that went to the home of their queue at another front-end",
    ),
    "forwarded_refused": (
        "cluster_messages_forwarded_refused",
        "Those that were refused there, or not answered for: nacks",
    ),
    "taken": ("cluster_messages_taken", "Messages that other front-ends sent to queues here"),
    "taken_refused": ("cluster_messages_taken_refused", "Those that their queue here has refused"),
}


def cluster_families(node: RunningNode) -> Iterator[Family]:
    """Yield them; none without a cluster."""
    found = inspect.cluster_figures(node)
    if found is None:
        return
    found |= inspect.quorum_figures(node)
    for key, (name, text) in GAUGES.items():
        yield GaugeMetricFamily(f"burrowmq_{name}", text, found[key])
    for key, (name, text) in COUNTERS.items():
        yield CounterMetricFamily(f"burrowmq_{name}", text, found[key])
    yield SummaryMetricFamily(
        "burrowmq_cluster_burst_seconds",
        "How long the cluster took to store a burst of messages",
        count_value=found["burst_count"],
        sum_value=found["burst_s"],
    )
