"""Classic queues become quorum queues on real servers: with clients connected all the time, and over kills."""

from __future__ import annotations

import threading
import time

import pika
import pytest

from bench.nats_servers import NatsCluster
from tests.cluster.migrate import begin, is_over, run
from tests.support.front_ends import PERSISTENT, Nodes, until_agreed
from tests.support.patience import patient


@pytest.mark.timeout(240)
def test_nothing_is_lost_over_kills(cluster: NatsCluster, nodes: Nodes) -> None:
    found = run(nodes._directory / "killed", cluster, messages=60_000, kills=3, seed=5)
    assert found.kills == 3, "it was over before"
    assert (found.lost, found.reordered) == (0, 0)
    assert found.doubled <= 3 * 1_000, (
        "at most what was on its way, and the acks of what was before it"
    )


@pytest.mark.timeout(240)
def test_who_is_connected_stays_and_nothing_is_lost_or_doubled(nodes: Nodes) -> None:
    """A consumer that acknowledges late and a publisher, from before the migration to behind its end."""
    node = until_agreed(nodes.start())
    channel = nodes.channel(node)
    channel.queue_declare("orders", durable=True)
    channel.exchange_declare("x", "topic", durable=True)
    channel.queue_bind("orders", "x", "new.*")
    for number in range(3_000):
        channel.basic_publish("", "orders", b"%d" % number, PERSISTENT)
    confirmed: list[int] = list(range(3_000))
    stop = threading.Event()

    def publish() -> None:
        own = pika.BlockingConnection(pika.URLParameters(node.url))
        with own:
            publisher = own.channel()
            publisher.confirm_delivery()
            number = 3_000
            while not stop.is_set():
                publisher.basic_publish("x", "new.one", b"%d" % number, PERSISTENT)
                confirmed.append(number)
                number += 1

    seen: list[int] = []

    def consume() -> None:
        own = pika.BlockingConnection(pika.URLParameters(node.url))
        with own:
            consumer = own.channel()
            consumer.basic_qos(prefetch_count=20)
            held: list[int] = []
            for method, _, body in consumer.consume("orders", inactivity_timeout=1.0):
                if method is None:
                    if stop.is_set():
                        break
                    consumer.basic_ack(0, multiple=True)  # what it holds
                    continue
                assert not method.redelivered
                seen.append(int(body))
                held.append(method.delivery_tag)
                if len(held) == 15:
                    consumer.basic_ack(held.pop(0))
                    consumer.basic_ack(held[-1], multiple=True)
                    held.clear()
            consumer.basic_ack(0, multiple=True)

    threads = [threading.Thread(target=each) for each in (publish, consume)]
    for thread in threads:
        thread.start()
    try:
        time.sleep(0.5)
        begin(node)
        deadline = time.monotonic() + patient(60)
        while not is_over(node):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        before = len(confirmed)
        while len(confirmed) < before + 50:
            assert time.monotonic() < deadline
            time.sleep(0.1)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert seen == confirmed
    again = nodes.channel(node)
    again.queue_declare("orders", durable=True)  # as it was
    assert node.ctl("list_queues", "--quiet", "--no-table-headers", "name", "type").split() == [
        "orders",
        "quorum",
    ]
