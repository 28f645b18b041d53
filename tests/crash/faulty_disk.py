"""A node whose disk refuses what it is told to, and what errors in reads of one queue cost the others.

`python -m tests.crash.faulty_disk [--rounds 9] [--commit-log off]`: in each round 3,000 messages go to a queue, a
consumer takes them, and while reads of that queue fail, and while they do not, in random order, the same load goes
through another queue. Then the disk is well, and all 3,000 have to come, in order. The lines have the rates, and the
processor time of the node a message, in pairs of one round. Exit status 1 when messages are missing, or when the median
pair is slower by more than a tenth.

State: one node. Callers: test_faulty_disk, the command. It measures a node without its self-checks.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import statistics
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pika

from bench import native, procfs
from burrowmq.storage.names import QueueNames
from tests.support.broker_process import BrokerProcess

COUNT = 3000
PERSISTENT = pika.BasicProperties(delivery_mode=2)
LOAD: dict[str, native.Option] = {
    "durable": True,
    "persistent": True,
    "size": 1000,
    "confirm": 2000,
    "consumers": 1,
    "prefetch": 2000,
    "ack_every": 100,
    "timeout": 120,
    "name": "other",
}
SLOWER_AT_MOST = 0.1


class FaultyNode(BrokerProcess):
    """A node with a switch for what its disk refuses."""

    def refuse(self, *rules: dict[str, Any]) -> None:
        """Let this fail from now on, and nothing else."""
        path = Path(self.environment["FAULTS"])
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(rules))
        fresh.rename(path)
        time.sleep(0.05)  # it looks every 20 ms

    def queue_files(self, name: str) -> str:
        """The part of their paths that a queue's files have in common."""
        return f"/queues/{QueueNames('/', name, 0).directory}/"


@contextlib.contextmanager
def faulty_node(
    directory: Path, commit_log: str, *, is_verified: bool = True
) -> Iterator[FaultyNode]:
    """Give one that runs, whose disk is well."""
    (directory / "faults").write_text("[]")
    found = FaultyNode(
        directory / "data",
        {"store_commit_log": commit_log},
        environment={"FAULTS": str(directory / "faults")},
        program=(sys.executable, "-m", "tests.support.faulty_node"),
        is_verified=is_verified,
    )
    found.start()
    try:
        yield found
    finally:
        found.kill()


def wait_for(is_true: Callable[[], bool], seconds: float) -> bool:
    """Say whether it became true in that time."""
    until = time.monotonic() + seconds
    while not is_true() and time.monotonic() < until:
        time.sleep(0.01)
    return is_true()


def get(node: BrokerProcess, path: str) -> tuple[int, Any]:
    """Ask the HTTP API; gives the status and what the answer says."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{node.management_port}{path}",
        headers={"Authorization": "Basic Z3Vlc3Q6Z3Vlc3Q="},
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, json.load(answer)
    except HTTPError as error:
        with error:
            return error.code, json.load(error)


def fill(connection: Any, queue: str, count: int = COUNT, size: int = 1000) -> None:
    """Numbered messages, all of them in the store."""
    channel = connection.channel()
    channel.queue_declare(queue, durable=True, arguments={"x-queue-mode": "lazy"})
    channel.tx_select()
    for number in range(count):
        channel.basic_publish("", queue, b"%08d" % number + bytes(size), PERSISTENT)
    channel.tx_commit()
    channel.close()


class Taker:
    """A consumer that acknowledges as many as it was asked to take: at most its prefetch comes beyond that."""

    def __init__(self, connection: Any, queue: str) -> None:
        self.numbers: list[int] = []
        self._most = 0
        self._held: list[int] = []
        self._connection = connection
        self._channel = connection.channel()
        self._channel.basic_qos(prefetch_count=100)
        self._channel.basic_consume(queue, self._on_message)

    def take(self, count: int, seconds: float) -> list[int]:
        """What it has when it has so many, or after that time."""
        self._most = count
        while self._held and len(self.numbers) - len(self._held) < count:
            self._channel.basic_ack(self._held.pop(0))
        until = time.monotonic() + seconds
        while len(self.numbers) < count and time.monotonic() < until:
            self._connection.process_data_events(0.05)
        return self.numbers

    def close(self) -> None:
        """What it has got is acknowledged."""
        self.take(len(self.numbers), 0)
        self._channel.close()

    def _on_message(self, channel: Any, method: Any, _: Any, body: bytes) -> None:
        self.numbers.append(int(body[:8]))
        if len(self.numbers) > self._most:
            self._held.append(method.delivery_tag)
        else:
            channel.basic_ack(method.delivery_tag)


class Round:
    """The same load through another queue, with a queue whose reads fail and without."""

    def __init__(self, node: FaultyNode, messages: int) -> None:
        self.node = node
        self.messages = messages
        self.taken = 0
        self.rates: dict[str, float] = {}
        self.costs: dict[str, float] = {}

    def run(self) -> None:
        """Both, in random order; then all that was kept has to come."""
        connection = pika.BlockingConnection(pika.URLParameters(self.node.url + "?heartbeat=0"))
        try:
            fill(connection, "q")
            taker = Taker(connection, "q")
            for kind in random.sample(("well", "failing"), 2):
                taker.take(len(taker.numbers) + 100, 30)
                if kind == "failing":
                    self._break(taker)
                self._measure(kind)
                self.node.refuse()
            found = taker.take(COUNT, 60)
            assert found == sorted(set(found)), "not in order, or twice"
            self.taken = len(found)
            taker.close()
            connection.channel().queue_delete("q")
        finally:
            connection.close()

    def _break(self, taker: Taker) -> None:
        part = self.node.queue_files("q")
        self.node.refuse({"operation": "pread", "part": part, "error": "EIO"})
        taker.take(COUNT, 1)

        def is_blocked() -> bool:
            return bool(get(self.node, "/api/queues/%2F/q")[1]["state"] == "blocked")

        assert wait_for(is_blocked, 5), "it was all in memory"

    def _measure(self, kind: str) -> None:
        pid = self.node.running().pid
        procfs.wait_idle(pid)
        before = procfs.cpu_use(pid).total_s
        port = self.node.amqp_port
        self.rates[kind] = native.run(port, **LOAD, messages=self.messages)["rate"]
        procfs.wait_idle(pid)
        self.costs[kind] = (procfs.cpu_use(pid).total_s - before) * 1e6 / self.messages
        native.run(port, mode="delete", name="other")


def main() -> int:
    """Measure, and print a line for each round."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--messages", type=int, default=100_000, help="through the other queue")
    parser.add_argument("--commit-log", choices=("off", "on"), default="on")
    options = parser.parse_args()
    ratios: dict[str, list[float]] = {"rate": [], "processor": []}
    missing = 0
    with (
        tempfile.TemporaryDirectory() as place,
        faulty_node(Path(place), options.commit_log, is_verified=False) as node,
    ):
        native.run(node.amqp_port, **{**LOAD, "name": "warm"}, messages=options.messages)
        for _ in range(options.rounds):
            one = Round(node, options.messages)
            one.run()
            missing += COUNT - one.taken
            ratios["rate"].append(one.rates["failing"] / one.rates["well"])
            ratios["processor"].append(one.costs["failing"] / one.costs["well"])
            sys.stdout.write(
                f"{one.taken} of {COUNT}; others: {one.rates['well']:,.0f}/s, while reads fail"
                f" {one.rates['failing']:,.0f}/s ({ratios['rate'][-1]:.2f}); processor"
                f" {one.costs['well']:.1f} us, {one.costs['failing']:.1f} us\n"
            )
            sys.stdout.flush()
        assert node.stop() == 0
    middle = {name: statistics.median(found) for name, found in ratios.items()}
    sys.stdout.write(
        f"{missing} missing; others have {middle['rate']:.2f} of their rate"
        f" ({min(ratios['rate']):.2f} to {max(ratios['rate']):.2f}) at {middle['processor']:.2f} of the"
        f" processor time ({min(ratios['processor']):.2f} to {max(ratios['processor']):.2f})\n"
    )
    return 1 if missing or middle["rate"] < 1 - SLOWER_AT_MOST else 0


if __name__ == "__main__":
    sys.exit(main())
