"""A stream while servers and front-ends are killed (-9): `python -m tests.cluster.stream_kills --cycles 10 --seed 1`.

Two publishers send bursts with confirms, one at each front-end; two readers read from the first message on and acknowledge, one
at each front-end. A reader whose connection breaks begins anew behind the offset that it has seen last, a publisher with the
next number. In the end each reader has seen each confirmed message once, none twice, and both the same ones in the same order.

State: the processes, the clients and what they know.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Self

import pika
from pika import spec

from bench.nats_servers import NatsCluster
from pyspark_amqp.wire.stream_queue import offset_of
from tests.cluster.ledger import Book
from tests.cluster.load import IDENTITY, TAG_AND_BIT, Client, Frames, Pace, Publisher
from tests.cluster.scene import end_with_sigterm
from tests.support.broker_process import BrokerProcess
from tests.support.front_ends import STREAM, declare
from tests.support.patience import patient
from tests.support.wire_client import BODY, WireClient

NAMES = ("a", "b")
PREFETCH = 500
DRAIN_S = 60.0


class Reader(Client):
    """Reads the stream from its first message on, at one front-end."""

    def __init__(self, ports: Sequence[int], first: int) -> None:
        super().__init__(ports, first, stays=True)
        self.found: list[tuple[int, int, int]] = []
        """(offset, publisher, number)"""

    def serve(self, client: WireClient) -> None:
        client.send_method(1, spec.Basic.Qos(prefetch_count=PREFETCH))
        client.expect(spec.Basic.QosOk)
        begin = self.found[-1][0] + 1 if self.found else "first"
        arguments = {"x-stream-offset": begin}
        client.send_method(1, spec.Basic.Consume(queue="s", consumer_tag="c", arguments=arguments))
        client.expect(spec.Basic.ConsumeOk)
        frames = Frames(client)
        tag = held = 0
        offset: int | None = None
        while not self.over.is_set():
            found = frames.read(0.2)
            for kind, payload in found:
                if kind == 1:
                    tag = TAG_AND_BIT.unpack_from(payload, 5 + payload[4])[0]
                elif kind == BODY:
                    assert offset is not None, "a message of a stream has one"
                    self.found.append((offset, *IDENTITY.unpack_from(payload)))
                    held += 1
                else:
                    offset = offset_of(payload)
            if held and (not found or held * 2 >= PREFETCH):
                client.send_method(1, spec.Basic.Ack(tag, multiple=True))
                held = 0


class Scene:
    """Three servers, two front-ends, their clients. Use as a context."""

    def __init__(self, directory: Path, cluster: NatsCluster, rate: float) -> None:
        self.cluster = cluster
        urls = ",".join(each.url for each in cluster.servers)
        self.nodes = [
            BrokerProcess(directory / name, settings={"cluster.urls": urls}) for name in NAMES
        ]
        self.book = Book()
        ports = [node.amqp_port for node in self.nodes]
        pace = Pace(burst=200, window=1_000, rate=rate / 2)
        self.publishers = [
            Publisher(number, "s", self.book, ports, pace, first=number, stays=True)
            for number in range(2)
        ]
        self.readers = [Reader(ports, first) for first in range(2)]

    def __enter__(self) -> Self:
        self.cluster.start()
        for node in self.nodes:
            node.start()
            with pika.BlockingConnection(pika.URLParameters(node.url)) as connection:
                declare(connection.channel(), "s", **STREAM)
        for client in (*self.publishers, *self.readers):
            client.start()
        return self

    def __exit__(self, *_: object) -> None:
        for client in (*self.publishers, *self.readers):
            client.over.set()
        for node in self.nodes:
            node.kill()
        self.cluster.stop()
        for client in (*self.publishers, *self.readers):
            client.join(5.0)

    def confirmed(self) -> int:
        return self.book.verdict().confirmed

    def kill_one(self, chance: random.Random, kinds: Sequence[str]) -> str:
        """Kill a server or a front-end, and start it again two seconds later; which it was."""
        kind = chance.choice(list(kinds))
        victim = chance.choice(self.cluster.servers if kind == "server" else self.nodes)
        victim.kill()
        time.sleep(chance.uniform(0.5, 3.0))
        victim.start()
        return kind

    def await_progress(self, count: int) -> None:
        """So many more are confirmed. Raises: AssertionError."""
        before, until = self.confirmed(), time.monotonic() + patient(60)
        while self.confirmed() < before + count:
            assert time.monotonic() < until, f"{self.confirmed() - before} of {count} are confirmed"
            time.sleep(0.1)

    def finish(self) -> dict[str, int]:
        """Let publishers end and readers read all; what is wrong."""
        for publisher in self.publishers:
            publisher.over.set()
        for publisher in self.publishers:
            publisher.join(patient(60))
        until = time.monotonic() + patient(DRAIN_S)
        while time.monotonic() < until:
            found = self._wrong()
            if not any(found.values()):
                break
            time.sleep(0.5)
        return self._wrong()

    def _wrong(self) -> dict[str, int]:
        seen = [list(reader.found) for reader in self.readers]
        wanted = {
            (publisher, number)
            for publisher, ledger in self.book.ledgers.items()
            for number in range(ledger.published)
            if ledger.confirmed[number]
        }
        messages = [[found[1:] for found in mine] for mine in seen]
        published = {number: ledger.published for number, ledger in self.book.ledgers.items()}
        return {
            "lost": sum(len(wanted.difference(mine)) for mine in messages),
            "doubled": sum(len(mine) - len(set(mine)) for mine in messages),
            "invented": sum(
                number >= published.get(publisher, 0)
                for mine in messages
                for publisher, number in mine
            ),
            "falling offsets": sum(
                later[0] <= earlier[0] for mine in seen for earlier, later in pairwise(mine)
            ),
            "different": int(seen[0] != seen[1]),
        }


def run(directory: Path, cycles: int, seed: int, kinds: Sequence[str], rate: float) -> bool:
    """Whether nothing was wrong."""
    chance = random.Random(seed)
    with Scene(directory / "nodes", NatsCluster(directory), rate) as scene:
        scene.await_progress(200)
        for cycle in range(cycles):
            kind = scene.kill_one(chance, kinds)
            scene.await_progress(200)
            print(f"cycle {cycle + 1}: {kind}, {scene.confirmed():,} confirmed", file=sys.stderr)
            time.sleep(chance.uniform(0.5, 3.0))
        wrong = scene.finish()
        counts = [f"{count:,} {what}" for what, count in wrong.items()]
        sessions = sum(reader.sessions for reader in scene.readers)
        print(f"{cycles} kills, {scene.confirmed():,} confirmed, {', '.join(counts)};"
              f" readers connected {sessions} times")  # fmt: skip
    return not any(wrong.values())


def main() -> int:
    end_with_sigterm()
    parser = argparse.ArgumentParser(
        prog="python -m tests.cluster.stream_kills", description=__doc__
    )
    parser.add_argument("--cycles", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", default="server,node", help="what is killed")
    parser.add_argument("--rate", type=float, default=2_000.0, help="messages a second")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="burrowmq-streams-") as directory:
        is_clean = run(
            Path(directory), options.cycles, options.seed, options.kinds.split(","), options.rate
        )
    return 0 if is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
