"""Bits flipped in the files of one of three servers: `python -m tests.cluster.flips [--flips 100] [--queues 50]`.

A round: new queues with some hundred confirmed messages each, some of them acknowledged. For each queue one bit is flipped in one file of one server,
which is the same for all: of the stream or its consumer, or of their Raft groups. The server is killed (-9) before and started after, more is
published meanwhile; in each second round it runs on. Then it is made the leader of what was damaged, and the queues are emptied.
A message that does not come is looked for once more with another leader: hidden is what comes then, lost what does not.

Printed: a row for each kind of file: flips, queues with lost, hidden, changed messages.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import pika

from bench.nats_servers import NatsCluster, NatsServer
from burrowmq.broker.replicated.stream import CONSUMER, stream_name
from burrowmq.cluster import api
from burrowmq.cluster.api import Document, Request
from tests.cluster.ledger import Book
from tests.cluster.load import Consumer, Pace, Publisher
from tests.cluster.scene import QUIET_S, QUORUM, are_current, ask, end_with_sigterm
from tests.support.broker_process import BrokerProcess
from tests.support.patience import patient
from tests.support.wire_client import WireClient

SIZE = 200
MESSAGES, MORE, ACKNOWLEDGED = 150, 20, 40
CURRENT_S = 30.0
STEP_S = 3.0


@dataclass
class Row:
    """What came of the flips in one kind of file."""

    flips: int = 0
    lost: int = 0
    hidden: int = 0
    changed: int = 0
    details: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Group:
    """A queue's files at the servers: its stream's directory, and those of its Raft groups."""

    stream: str
    stream_group: str
    consumer_group: str

    def files(self, store: Path) -> dict[str, list[Path]]:
        """By kind."""
        found: dict[str, list[Path]] = defaultdict(list)
        root = store / "jetstream"
        for path in (root / "$G" / "streams" / self.stream).rglob("*"):
            is_consumer = "obs" in path.parts
            self._add(found, "consumer" if is_consumer else "stream", path)
        for owner, group in (("stream", self.stream_group), ("consumer", self.consumer_group)):
            for path in (root / "$SYS" / "_js_" / group).rglob("*"):
                self._add(found, f"{owner}'s Raft group", path)
        return found

    def _add(self, found: dict[str, list[Path]], owner: str, path: Path) -> None:
        with contextlib.suppress(FileNotFoundError):
            if not path.is_file() or not path.stat().st_size:
                return
            name = "*.blk" if path.suffix == ".blk" else path.name
            name = "snapshot" if "snapshots" in path.parts else name
            found[f"{owner}: {name}"].append(path)


class Round:
    """New queues, damaged and emptied."""

    def __init__(self, number: int, count: int, scene: Flips) -> None:
        self._scene = scene
        self._names = [f"flip{number}.{each}" for each in range(count)]
        self._book = Book()
        pace = Pace(size=SIZE)
        ports = [scene.node.amqp_port]
        self._publishers = [
            Publisher(place, name, self._book, ports, pace)
            for place, name in enumerate(self._names)
        ]
        self._ports = ports

    def fill(self) -> None:
        """Declared, filled, some acknowledged."""
        with pika.BlockingConnection(pika.URLParameters(self._scene.node.url)) as connection:
            for name in self._names:
                connection.channel().queue_declare(name, durable=True, arguments=QUORUM)
        self.publish(MESSAGES)
        self._consume(lambda one: one.taken >= ACKNOWLEDGED, range(len(self._names)), prefetch=20)

    def publish(self, count: int) -> None:
        for publisher in self._publishers:
            with WireClient("127.0.0.1", self._ports[0]) as client:
                client.open().channel(1)
                publisher.publish(client, count)

    def _consume(self, is_enough: object, places: Sequence[int], prefetch: int) -> None:
        assert callable(is_enough)
        consumers = [
            Consumer(
                self._names[place],
                self._book,
                self._ports,
                {place: SIZE},
                prefetch=prefetch,
                seed=place,
            )
            for place in places
        ]
        for each in consumers:
            each.start()
        moved_s, moved = time.monotonic(), -1
        while time.monotonic() < moved_s + patient(QUIET_S):
            open_ones = [each for each in consumers if not is_enough(each)]
            if not open_ones:
                break
            if moved != (moved := sum(each.taken for each in consumers)):
                moved_s = time.monotonic()
            time.sleep(0.1)
        for each in consumers:
            each.over.set()
        for each in consumers:
            each.join()

    def groups(self) -> list[Group]:
        """Where their files are."""
        names = [stream_name("/", name) for name in self._names]
        streams = self._scene.ask([api.stream_state(name) for name in names])
        consumers = self._scene.ask([api.consumer_state(name, CONSUMER) for name in names])
        return [
            Group(name, stream["cluster"]["raft_group"], consumer["cluster"]["raft_group"])
            for name, stream, consumer in zip(names, streams, consumers, strict=True)
        ]

    def lead(self, server: str, places: Sequence[int]) -> int:
        """Have this server lead their streams and consumers; how many streams it does lead."""
        names = [stream_name("/", self._names[place]) for place in places]
        body = json.dumps({"placement": {"preferred": server}}).encode()
        wishes = [
            Request(f"$JS.API.STREAM.LEADER.STEPDOWN.{name}".encode(), body) for name in names
        ]
        wishes += [
            Request(f"$JS.API.CONSUMER.LEADER.STEPDOWN.{name}.{CONSUMER}".encode(), body)
            for name in names
        ]
        self._scene.ask(wishes)
        time.sleep(STEP_S)
        states = self._scene.ask([api.stream_state(name) for name in names])
        return sum(state.get("cluster", {}).get("leader") == server for state in states)

    def missing(self) -> list[int]:
        """Empty the queues: which of them have not given all."""
        ledgers = self._book.ledgers
        places = [place for place in ledgers if ledgers[place].missing()]
        self._consume(
            lambda one: not any(ledger.missing() for ledger in self._book.of(one.queue).values()),
            places,
            prefetch=500,
        )
        return [place for place in places if ledgers[place].missing()]

    @property
    def changed(self) -> int:
        """Messages that nobody has published like that."""
        return self._book.invented

    def detail(self, place: int) -> str:
        ledger = self._book.ledgers[place]
        numbers = [
            number
            for number in range(ledger.published)
            if ledger.confirmed[number] and not ledger.seen[number]
        ]
        # A new stream, filled in this order.
        subject = f"$JS.API.STREAM.MSG.GET.{stream_name('/', self._names[place])}".encode()
        kept = self._scene.ask(
            [Request(subject, json.dumps({"seq": number + 1}).encode()) for number in numbers]
        )
        there = sum(map(bool, kept))
        span = f"{numbers[0]} to {numbers[-1]}"
        return f"{len(numbers)} of {ledger.published} ({span}), {there} in the stream"

    def delete(self) -> None:
        with pika.BlockingConnection(pika.URLParameters(self._scene.node.url)) as connection:
            for name in self._names:
                connection.channel().queue_delete(name)


class Flips:
    """Use as a context."""

    def __init__(self, directory: Path, seed: int) -> None:
        self._chance = random.Random(seed)
        self._directory = directory / "nats"
        self.cluster = NatsCluster(self._directory)
        urls = ",".join(each.url for each in self.cluster.servers)
        self.node = BrokerProcess(directory / "node", settings={"cluster.urls": urls})
        self.rows: dict[str, Row] = defaultdict(Row)

    def __enter__(self) -> Self:
        try:
            self.cluster.start()
            self.node.start()
            self.ask([Request(b"$JS.API.INFO", b"")])
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.node.kill()
        self.cluster.stop()

    def ask(self, requests: Sequence[Request]) -> list[Document]:
        """Of whichever server answers."""
        return ask(self.cluster, requests)

    def round(self, number: int, queues: int) -> None:
        """One bit in a file of each of so many queues."""
        found = Round(number, queues, self)
        found.fill()
        server = self._chance.choice(self.cluster.servers)
        groups = found.groups()
        is_running = number % 2 == 1
        if not is_running:
            server.kill()
            found.publish(MORE)
        kinds = [self._flip(group, self._directory / server.name) for group in groups]
        if is_running:
            found.publish(MORE)
            server.kill()  # what it has in memory is not what is damaged
        server.start()
        self._wait_for(groups)
        led = found.lead(server.name, range(queues))
        short = found.missing()
        self._note(found, kinds, short, server)
        print(f"round {number}: {server.name}, leads {led} of {queues} streams", file=sys.stderr)
        found.delete()

    def _flip(self, group: Group, store: Path) -> str:
        while True:
            with contextlib.suppress(
                FileNotFoundError, ValueError
            ):  # a server that runs removes some
                return self._flip_one(group.files(store))

    def _flip_one(self, files: dict[str, list[Path]]) -> str:
        kinds = sorted(files)
        # Most of what is on disk is in those, and of most of their octets something depends.
        weights = [4 if kind.endswith(".blk") else 1 for kind in kinds]
        kind = self._chance.choices(kinds, weights)[0]
        path = self._chance.choice(sorted(files[kind]))
        with path.open("r+b") as file:
            place = self._chance.randrange(path.stat().st_size)
            file.seek(place)
            octet = file.read(1)[0] ^ 1 << self._chance.randrange(8)
            file.seek(place)
            file.write(bytes([octet]))
        return kind

    def _wait_for(self, groups: Sequence[Group]) -> None:
        """Until all servers are current in all streams, or for so long."""
        end_s = time.monotonic() + patient(CURRENT_S)
        streams = [group.stream for group in groups]
        while time.monotonic() < end_s and not are_current(self.cluster, streams):
            time.sleep(0.5)

    def _note(self, found: Round, kinds: list[str], short: list[int], server: NatsServer) -> None:
        for kind in kinds:
            self.rows[kind].flips += 1
        lost = short
        if short:
            other = next(each for each in self.cluster.servers if each is not server)
            found.lead(other.name, short)
            lost = found.missing()
        for place in lost:
            self.rows[kinds[place]].details.append(found.detail(place))
        for place in short:
            self.rows[kinds[place]].lost += place in lost
            self.rows[kinds[place]].hidden += place not in lost
        self.rows["(any)"].changed += found.changed

    def table(self) -> str:
        lines = ["| file | flips | lost | hidden | changed |", "|---|---|---|---|---|"]
        lines += [
            f"| {kind} | {row.flips} | {row.lost} | {row.hidden} | {row.changed} |"
            for kind, row in sorted(self.rows.items())
        ]
        lines += [f"{kind}: {detail}" for kind, row in self.rows.items() for detail in row.details]
        return "\n".join(lines)


def run(directory: Path, *, flips: int, queues: int, seed: int) -> dict[str, Row]:
    """So many flips; the rows by kind of file."""
    with Flips(directory, seed) as scene:
        for number in range(-(-flips // queues)):
            scene.round(number, queues)
            print(scene.table(), file=sys.stderr, flush=True)
        return dict(scene.rows)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.flips", description=__doc__)
    parser.add_argument("--flips", type=int, default=100)
    parser.add_argument("--queues", type=int, default=50, help="flips at once, one in a queue")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    end_with_sigterm()
    with tempfile.TemporaryDirectory(prefix="burrowmq-flips-") as directory:
        found = run(Path(directory), flips=asked.flips, queues=asked.queues, seed=asked.seed)
    lost, changed = (
        sum(row.lost for row in found.values()),
        sum(row.changed for row in found.values()),
    )
    print(
        f"{sum(row.flips for row in found.values())} flips, {lost} queues with lost messages, {changed} changed"
    )
    return 1 if lost or changed else 0


if __name__ == "__main__":
    sys.exit(main())
