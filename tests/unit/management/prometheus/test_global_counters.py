"""Counters by the type of the queue: each message counts for one type, and the sum is what the node has counted."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pika import spec
from prometheus_client.parser import text_string_to_metric_families

from burrowmq.broker import inspect
from burrowmq.management.prometheus.metrics import GLOBAL_BY_QUEUE_TYPE
from tests.support.bench.client import Client
from tests.support.bench.node import NodeBench
from tests.support.patience import patient
from tests.support.served import Served, request, serving
from tests.support.served_cluster import ServedCluster, serving_with_cluster
from tests.support.wire_client import publish_bytes

TYPES = ("rabbit_classic_queue", "rabbit_quorum_queue", "rabbit_stream_queue")
Labels = tuple[str, ...]


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedCluster]:
    with serving_with_cluster(tmp_path / "data", monkeypatch) as found:
        yield found


def scraped(served: Served) -> dict[str, dict[Labels, float]]:
    """Samples by name, and by the type of the queue and its strategy, where they have such."""
    page = request(served.metrics_port, "GET", "/metrics").body
    found: dict[str, dict[Labels, float]] = {}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            name = sample.name.removeprefix("rabbitmq_global_").removesuffix("_total")
            wanted = ("queue_type", "dead_letter_strategy")
            labels = tuple(sample.labels[key] for key in wanted if key in sample.labels)
            found.setdefault(name, {})[labels] = sample.value
    return found


def by_type(served: Served, name: str) -> list[float]:
    """Of classic queues, of quorum queues, of streams."""
    found = scraped(served)[name]
    assert found.keys() == {(each,) for each in TYPES}
    return [found[each,] for each in TYPES]


def await_by_type(served: Served, name: str, expected: list[float]) -> None:
    deadline = time.monotonic() + patient(20)
    while (found := by_type(served, name)) != expected:
        assert time.monotonic() < deadline, found
        time.sleep(0.02)


def await_messages(served: Served, queue: str, count: int) -> None:
    deadline = time.monotonic() + patient(20)
    while served.get(f"/api/queues/%2F/{queue}")["messages"] != count:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def client_of(cluster: ServedCluster) -> Client:
    """Its channel has some prefetch, and one queue of each type is there."""
    cluster.declare("q")
    cluster.declare("s", **{"x-queue-type": "stream"})
    cluster.served.api("PUT", "/api/queues/%2F/c", {"durable": True})
    client = cluster.served.bench.connect(1)
    client.call(1, spec.Basic.Qos(prefetch_count=100))
    return client


def publish(client: Client, queue: str, count: int) -> None:
    client.send(*[publish_bytes(1, "", queue, b"m")] * count)


def test_deliveries_and_acks_count_for_the_type_of_their_queue(cluster: ServedCluster) -> None:
    served, client = cluster.served, client_of(cluster)
    first = {"x-stream-offset": "first"}
    for queue, count, arguments in (("c", 2, {}), ("q", 3, {}), ("s", 4, first)):
        publish(client, queue, count)
        client.call(1, spec.Basic.Consume(queue=queue, consumer_tag=queue, arguments=arguments))
    await_by_type(served, "messages_delivered_consume_manual_ack", [2, 3, 4])
    client.read()
    assert by_type(served, "messages_delivered") == [2, 3, 4]
    client.call(1, spec.Basic.Ack(delivery_tag=9, multiple=True))
    await_by_type(served, "messages_acknowledged", [2, 3, 4])
    for queue in "cqs":
        client.call(1, spec.Basic.Cancel(consumer_tag=queue))
    for queue, count in (("c", 1), ("q", 2)):
        publish(client, queue, count)
        client.call(1, spec.Basic.Consume(queue=queue, consumer_tag=queue, no_ack=True))
    await_by_type(served, "messages_delivered_consume_auto_ack", [1, 2, 0])
    whole = inspect.counters(served.node)
    for name, (counter, _) in GLOBAL_BY_QUEUE_TYPE.items():
        assert sum(by_type(served, name)) == whole[counter]


def test_a_node_without_a_cluster_says_nought_of_the_other_types(tmp_path: Path) -> None:
    """As RabbitMQ does before there is any: a panel shows 0, and not that it has no data."""
    of_quorum = TYPES[1]
    with serving(tmp_path / "data") as served:
        found = scraped(served)
        for name in GLOBAL_BY_QUEUE_TYPE:
            assert by_type(served, name) == [0, 0, 0]
    strategies = {"at_most_once", "at_least_once", "disabled"}
    for reason, labels in (
        ("rejected", strategies),
        ("expired", strategies),
        ("maxlen", strategies - {"at_least_once"}),
        ("delivery_limit", strategies),
        ("confirmed", {"at_least_once"}),
    ):
        its = {kind: value for kind, value in found[f"messages_dead_lettered_{reason}"].items()}
        assert {kind[1] for kind in its if kind[0] == of_quorum} == labels
        assert set(its.values()) == {0}


def test_gets_and_redeliveries_do_as_well(cluster: ServedCluster) -> None:
    served, client = cluster.served, client_of(cluster)
    client.call(1, spec.Basic.Get(queue="c"))
    client.call(1, spec.Basic.Get(queue="q"))
    await_by_type(served, "messages_get_empty", [1, 1, 0])
    for queue in "cq":
        publish(client, queue, 2)
        await_messages(served, queue, 2)
        client.call(1, spec.Basic.Get(queue=queue))
        client.call(1, spec.Basic.Get(queue=queue, no_ack=True))
    await_by_type(served, "messages_delivered_get_manual_ack", [1, 1, 0])
    await_by_type(served, "messages_delivered_get_auto_ack", [1, 1, 0])
    client.call(1, spec.Basic.Recover(requeue=True))
    for queue in "cq":
        client.call(1, spec.Basic.Get(queue=queue))
    await_by_type(served, "messages_redelivered", [1, 1, 0])


def test_what_a_deleted_queue_has_counted_stays_with_its_type(cluster: ServedCluster) -> None:
    served, client = cluster.served, client_of(cluster)
    publish(client, "q", 3)
    client.call(1, spec.Basic.Consume(queue="q", no_ack=True))
    await_by_type(served, "messages_delivered", [0, 3, 0])
    assert served.api("DELETE", "/api/queues/%2F/q").status == 204
    assert by_type(served, "messages_delivered") == [0, 3, 0]
    cluster.declare("q")
    publish(client, "q", 1)
    client.call(1, spec.Basic.Consume(queue="q", no_ack=True))
    await_by_type(served, "messages_delivered", [0, 4, 0])


def test_what_dies_counts_for_the_type_that_it_dies_in(cluster: ServedCluster) -> None:
    served = cluster.served
    client = client_of(cluster)
    name = "messages_dead_lettered_rejected"
    of_classic, of_quorum = TYPES[:2]

    def die(queue: str, **arguments: object) -> None:
        if arguments:
            cluster.declare(queue, **arguments)
        publish(client, queue, 1)
        came = client.call(1, spec.Basic.Consume(queue=queue, consumer_tag=queue))
        deadline = time.monotonic() + patient(20)
        while not (tags := [m.delivery_tag for _, m in came if m.NAME == "Basic.Deliver"]):
            assert time.monotonic() < deadline
            time.sleep(0.01)
            came = client.read()
        client.call(1, spec.Basic.Reject(delivery_tag=tags[0], requeue=False))

    expected = {
        (of_classic, "at_most_once"): 0.0,
        (of_classic, "disabled"): 0.0,
        (of_quorum, "at_most_once"): 0.0,
        (of_quorum, "at_least_once"): 0.0,
        (of_quorum, "disabled"): 0.0,
    }
    letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "c"}
    surely = {"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"}
    for labels, queue, arguments in (
        ((of_classic, "disabled"), "c", {}),
        ((of_quorum, "disabled"), "q", {}),
        ((of_quorum, "at_most_once"), "once", letters),
        ((of_quorum, "at_least_once"), "sure", letters | surely),
    ):
        if queue != "c":
            client.call(1, spec.Basic.Cancel(consumer_tag="c"))
        die(queue, **arguments)
        expected[labels] += 1
        deadline = time.monotonic() + patient(20)
        while scraped(served)[name] != expected:
            assert time.monotonic() < deadline, (scraped(served)[name], expected)
            time.sleep(0.02)
    found = scraped(served)
    assert found["messages_dead_lettered_confirmed"] == {(of_quorum, "at_least_once"): 1}
    assert found["messages_dead_lettered_maxlen"].keys() == expected.keys() - {
        (of_quorum, "at_least_once")
    }
    assert all(kind == of_quorum for kind, _ in found["messages_dead_lettered_delivery_limit"])


def test_what_is_nacked_is_not_confirmed(tmp_path: Path) -> None:
    """RabbitMQ counts the acks alone, which is one of these three."""
    arguments = {"x-max-length": 1, "x-overflow": "reject-publish"}
    with NodeBench(tmp_path / "data") as bench:
        client = bench.connect(1)
        client.call(1, spec.Queue.Declare(queue="full", arguments=arguments))
        client.call(1, spec.Confirm.Select())
        answers = []
        for _ in range(3):
            client.send(publish_bytes(1, "", "full", b"m"))
            answers += client.names()
        assert inspect.counters(bench.node)["messages_received"] == 3
        assert inspect.counters(bench.node)["messages_confirmed"] == 1, answers
        assert bench.node.metrics.messages_refused == 2, "pacing has to know of these, too"
