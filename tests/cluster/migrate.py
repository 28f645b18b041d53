"""A classic queue that becomes a quorum queue while its node is killed: `python -m tests.cluster.migrate [--messages 100000] [--kills 10] [--servers]`.

The queue is filled, a migration begins, and the node is killed (-9) again and again, each time after a random part of a
second; each start goes on by itself. With `--servers` one of the three servers is killed with it each time, and comes
back with it. At the end the queue is emptied. Lost: confirmed and not there. Doubled: there
twice. Reordered: seen first behind a later one.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pika

from bench.nats_servers import NatsCluster
from tests.support.broker_process import BrokerProcess
from tests.support.front_ends import PERSISTENT, Nodes
from tests.support.node_client import NodeClient
from tests.support.patience import patient

QUEUE = "orders"
IDLE_S = 12.0
BODY = 1_000


@dataclass
class Outcome:
    """What came of it."""

    kills: int
    """Those after which the migration was not over yet."""
    lost: int
    doubled: int
    reordered: int
    seconds: float
    """From the first start of the migration to its end, with all restarts."""


def fill(node: BrokerProcess, count: int) -> None:
    """Publish numbered messages; all are on disk when this returns."""
    connection = pika.BlockingConnection(pika.URLParameters(node.url))
    with connection:
        channel = connection.channel()
        channel.queue_declare(QUEUE, durable=True)
        for number in range(count - 1):
            channel.basic_publish("", QUEUE, b"%d" % number + bytes(BODY), PERSISTENT)
        channel.confirm_delivery()
        channel.basic_publish("", QUEUE, b"%d" % (count - 1) + bytes(BODY), PERSISTENT)


def empty(node: BrokerProcess, count: int) -> tuple[int, int, int]:
    """(lost, doubled, reordered) of what the queue gives."""
    connection = pika.BlockingConnection(pika.URLParameters(node.url))
    seen: dict[int, int] = {}
    newest, reordered = -1, 0
    with connection:
        channel = connection.channel()
        channel.queue_declare(QUEUE, durable=True)  # as it was
        channel.basic_qos(prefetch_count=2_000)
        deliveries = channel.consume(QUEUE, inactivity_timeout=patient(IDLE_S))
        for taken, (method, _, body) in enumerate(deliveries, 1):
            if method is None:
                break
            number = int(body.partition(b"\0")[0])
            if number not in seen:
                reordered += number < newest
                newest = max(newest, number)
            seen[number] = seen.get(number, 0) + 1
            if taken % 500 == 0:
                channel.basic_ack(method.delivery_tag, multiple=True)
        channel.basic_ack(0, multiple=True)
        channel.cancel()
    lost = count - len(seen)
    return lost, sum(times - 1 for times in seen.values()), reordered


def is_over(node: BrokerProcess) -> bool:
    row = NodeClient(node).get(f"/api/queues/%2F/{QUEUE}?columns=type")
    under_way = NodeClient(node).get("/api/burrowmq/migrations")
    return row["type"] == "quorum" and not under_way


def begin(node: BrokerProcess) -> None:
    """As soon as the servers can make a stream."""
    deadline = time.monotonic() + patient(60)
    while NodeClient(node).api("POST", f"/api/burrowmq/migrations/%2F/{QUEUE}", {}).status != 202:
        assert time.monotonic() < deadline
        time.sleep(0.5)


def run(
    directory: Path,
    cluster: NatsCluster,
    messages: int,
    kills: int,
    seed: int,
    *,
    kills_servers: bool = False,
) -> Outcome:
    chance = random.Random(seed)
    nodes = Nodes(directory, cluster)
    try:
        node = nodes.start()
        fill(node, messages)
        begin(node)
        began, killed = time.monotonic(), 0
        while killed < kills:
            time.sleep(chance.uniform(0.05, 0.4))
            if is_over(node):
                break
            node.kill()
            killed += 1
            if kills_servers:
                server = chance.choice(cluster.servers)
                server.kill()
                server.start()
            node.start()
        deadline = time.monotonic() + patient(120)
        while not is_over(node):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        seconds = time.monotonic() - began
        node.stop()
        node.start()
        return Outcome(killed, *empty(node, messages), seconds)
    finally:
        nodes.close()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--servers", action="store_true")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        cluster = NatsCluster(Path(folder) / "servers")
        try:
            cluster.start()
            found = run(
                Path(folder) / "nodes",
                cluster,
                asked.messages,
                asked.kills,
                asked.seed,
                kills_servers=asked.servers,
            )
        finally:
            cluster.stop()
    print(
        f"{asked.messages} messages, killed {found.kills} times within {found.seconds:.1f} s:"
        f" {found.lost} lost, {found.doubled} doubled, {found.reordered} out of order"
    )
    return 1 if found.lost else 0


if __name__ == "__main__":
    sys.exit(main())
