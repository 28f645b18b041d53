"""Servers and front-ends killed in turn under a publisher and a consumer: `python -m tests.cluster.kills [--cycles 20] [--seed 1] [--kinds kill,...]`.

Two front-ends on three servers. The publisher numbers its messages and waits for each confirm; when its connection
breaks, what became of the message is not known, and it goes on with the next at the other front-end. The consumer
acknowledges what it has seen, and goes to the other front-end when its own dies. At the end the queue is emptied.
Lost: confirmed and never seen. Invented: seen and never published. Reordered: seen for the first time, not marked as
redelivered, behind a later one. Again: seen again more than 1 s after its acknowledgement was sent.

Kinds: kill (a server or a front-end, -9), suspend (one server stops for up to 10 s, as if it were cut off, and comes back
with what it knew), minority (two of the three do: no confirm may come meanwhile).
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pika
from pika.exceptions import AMQPError

from bench.nats_servers import NatsCluster, NatsServer
from tests.support.broker_process import BrokerProcess

QUEUE = "kills"
ARGUMENTS = {"x-queue-type": "quorum"}
IDLE_S = 15.0
"""After so long without a message the queue counts as empty: longer than servers wait for an acknowledgement."""
BROKEN = (AMQPError, OSError)
KINDS = ("kill", "suspend", "minority")


@dataclass
class Tally:
    """What publisher and consumer know."""

    confirmed: set[int] = field(default_factory=set)
    tried: int = 0
    seen: dict[int, float] = field(default_factory=dict)  # and when it was acknowledged last
    newest: int = -1
    again: int = 0
    minority: int = 0
    """Confirms that have come while two of the three servers were suspended."""
    reordered: int = 0
    kills: dict[str, int] = field(default_factory=dict)

    def see(self, number: int, *, is_redelivered: bool) -> None:
        now = time.monotonic()
        if number in self.seen:
            self.again += now - self.seen[number] > 1.0
        elif not is_redelivered:
            self.reordered += number < self.newest
            self.newest = max(self.newest, number)
        self.seen[number] = now

    @property
    def lost(self) -> int:
        return len(self.confirmed - self.seen.keys())

    @property
    def invented(self) -> int:
        return sum(number >= self.tried for number in self.seen)

    def __str__(self) -> str:
        return (
            f"{len(self.confirmed)} confirmed, {len(self.seen)} seen: {self.lost} lost, {self.invented} invented,"
            f" {self.reordered} reordered, {self.again} again, {self.minority} from a minority; {self.kills}"
        )


class Scene:
    """The processes, and the two clients."""

    def __init__(self, directory: Path, kinds: Sequence[str]) -> None:
        self._kinds = kinds
        self.tally = Tally()
        self.cluster = NatsCluster(directory / "nats")
        urls = ",".join(each.url for each in self.cluster.servers)
        self.nodes = [
            BrokerProcess(directory / name, settings={"cluster.urls": urls}) for name in "ab"
        ]
        self._is_over = threading.Event()  # for the publisher
        self._is_empty = threading.Event()

    def start(self) -> None:
        self.cluster.start()
        for node in self.nodes:
            node.start()
        for node in self.nodes:
            self._declare(node)

    def _declare(self, node: BrokerProcess) -> None:
        deadline = time.monotonic() + 60.0
        while True:
            try:
                with pika.BlockingConnection(pika.URLParameters(node.url)) as connection:
                    connection.channel().queue_declare(QUEUE, durable=True, arguments=ARGUMENTS)
            except BROKEN:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
            else:
                return

    def stop(self) -> None:
        for node in self.nodes:
            node.kill()
        self.cluster.stop()

    def publish(self) -> None:
        turn = 0
        while not self._is_over.is_set():
            turn += 1
            with contextlib.suppress(*BROKEN):
                with pika.BlockingConnection(pika.URLParameters(self.nodes[turn % 2].url)) as own:
                    channel = own.channel()
                    channel.confirm_delivery()
                    while not self._is_over.is_set():
                        number = self.tally.tried
                        self.tally.tried += 1
                        channel.basic_publish(
                            "", QUEUE, b"%d" % number, pika.BasicProperties(delivery_mode=2)
                        )
                        self.tally.confirmed.add(number)
            time.sleep(0.1)

    def consume(self) -> None:
        turn = 1
        while not self._is_empty.is_set():
            turn += 1
            with contextlib.suppress(*BROKEN):
                with pika.BlockingConnection(pika.URLParameters(self.nodes[turn % 2].url)) as own:
                    channel = own.channel()
                    channel.basic_qos(prefetch_count=50)
                    for method, _, body in channel.consume(QUEUE, inactivity_timeout=IDLE_S):
                        if method is None:
                            if self._is_over.is_set():
                                self._is_empty.set()
                                return
                            continue
                        self.tally.see(int(body), is_redelivered=method.redelivered)
                        channel.basic_ack(method.delivery_tag)
            time.sleep(0.1)

    def run(self, cycles: int, chance: random.Random) -> Tally:
        clients = [threading.Thread(target=each) for each in (self.publish, self.consume)]
        for each in clients:
            each.start()
        try:
            for _ in range(cycles):
                time.sleep(chance.uniform(1.0, 4.0))
                self._disturb(chance)
                print(self.tally, file=sys.stderr, flush=True)
            time.sleep(3.0)
        finally:
            self._is_over.set()
            for each in clients:
                each.join()
        return self.tally

    def _disturb(self, chance: random.Random) -> None:
        kind = self._kinds[0] if len(self._kinds) == 1 else chance.choice(self._kinds)
        if kind == "suspend":
            self._pause(chance.sample(self.cluster.servers, 1), chance.uniform(1.0, 10.0))
            self._count("server suspended")
        elif kind == "minority":
            two = chance.sample(self.cluster.servers, 2)
            self.tally.minority += self._pause(two, chance.uniform(3.0, 10.0))
            self._count("two servers suspended")
        else:
            self._kill(chance)

    def _pause(self, servers: list[NatsServer], seconds: float) -> int:
        """Suspend them; gives how many confirms have come from a second after that on, until they are resumed."""
        for server in servers:
            server.pause()
        time.sleep(min(1.0, seconds))
        before = len(self.tally.confirmed)
        time.sleep(max(0.0, seconds - 1.0))
        found = len(self.tally.confirmed) - before
        for server in servers:
            server.resume()
        time.sleep(4.0)  # they have to catch up before others go
        return found

    def _kill(self, chance: random.Random) -> None:
        if chance.random() < 0.5:
            node = chance.choice(self.nodes)
            node.kill()
            time.sleep(chance.uniform(0.0, 1.0))
            node.start()
            self._count("front-end")
        else:
            server = chance.choice(self.cluster.servers)
            server.kill()
            time.sleep(chance.uniform(0.0, 6.0))
            server.start()
            time.sleep(4.0)  # it has to catch up before another one goes
            self._count("server")

    def _count(self, kind: str) -> None:
        self.tally.kills[kind] = self.tally.kills.get(kind, 0) + 1


def run(directory: Path, cycles: int, seed: int, kinds: Sequence[str] = KINDS[:1]) -> Tally:
    """That many disturbances."""
    scene = Scene(directory, kinds)
    try:
        scene.start()
        return scene.run(cycles, random.Random(seed))
    finally:
        scene.stop()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.kills", description=__doc__)
    parser.add_argument("--cycles", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", default="kill", help=f"of {', '.join(KINDS)}")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="burrowmq-kills-") as directory:
        found = run(Path(directory), options.cycles, options.seed, options.kinds.split(","))
    print(found)
    return 1 if found.lost or found.invented or found.minority else 0


if __name__ == "__main__":
    sys.exit(main())
