"""Three servers, two front-ends before them, and clients that publish and consume while somebody breaks something.

State: the processes, the clients and what they know. Callers: `kills`, `partitions`, `power_cuts` and their tests.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pika
from pika.exceptions import AMQPError

from bench.jetstream import FrontEnd, Refused
from bench.nats_servers import NatsCluster
from burrowmq.broker.replicated.stream import stream_name
from burrowmq.cluster import api
from burrowmq.cluster.api import Document, Request
from tests.cluster.ledger import Book, Verdict
from tests.cluster.load import Consumer, Pace, Publisher
from tests.support.broker_process import BrokerProcess
from tests.support.patience import patient

QUORUM = {"x-queue-type": "quorum"}
NAMES = ("a", "b")
QUIET_S = 13.0
"""Servers wait for an acknowledgement for ten seconds: what has not come after that does not come."""
DRAIN_S = 40.0
PROGRESS_S = 10.0
LOG_LINES = 60


def end_with_sigterm() -> None:
    """Have SIGTERM end a program as an exception does: with all that it has started."""

    def end(*_: object) -> None:
        raise SystemExit(1)

    signal.signal(signal.SIGTERM, end)


def ask(cluster: NatsCluster, requests: Sequence[Request]) -> list[Document]:
    """Of whichever server answers; {} where that is a refusal."""

    async def one(front: FrontEnd, request: Request) -> Document:
        try:
            return await front.ask(request)
        except Refused:
            return {}

    async def whole() -> list[Document]:
        front = FrontEnd([each.url for each in cluster.servers])
        await front.start()
        try:
            return await asyncio.gather(*[one(front, request) for request in requests])
        finally:
            await front.close()

    return asyncio.run(whole())


def are_current(cluster: NatsCluster, streams: Sequence[str]) -> bool:
    """Whether each has a leader, and all servers have what it has."""
    states = ask(cluster, [api.stream_state(stream) for stream in streams])
    groups = [state.get("cluster", {}) for state in states]
    return all(
        group.get("leader") and all(each.get("current") for each in group.get("replicas") or ())
        for group in groups
    )


@dataclass(frozen=True)
class Load:
    """What clients do; each queue has two publishers, one begins at each front-end."""

    sizes: Sequence[int] = (64,)
    """One queue for each: octets of its messages."""
    rate: float = 500.0
    """Messages a second, of all publishers together."""
    burst: int = 250
    window: int = 1_000
    prefetch: int = 1_000
    pause_s: float = 0.0
    """Consumers take nothing for up to so long, half of the times that they acknowledge: so that there is something to be lost."""
    stays: bool = False
    """Whether clients go back to the front-end that they were at; then each queue has two consumers, else one."""


class Scene:
    """Use as a context; `cluster` is not started yet when it is given."""

    def __init__(
        self, directory: Path, cluster: NatsCluster, load: Load, urls: Sequence[str] = ()
    ) -> None:
        """`urls` are those of each front-end, if they differ."""
        self.cluster = cluster
        self.load = load
        self.book = Book()
        usual = ",".join(each.url for each in cluster.servers)
        self.nodes = [
            BrokerProcess(directory / name, settings={"cluster.urls": urls[i] if urls else usual})
            for i, name in enumerate(NAMES)
        ]
        self._ports = [node.amqp_port for node in self.nodes]
        self.queues = [f"q{number}" for number in range(len(load.sizes))]
        self.publishers: list[Publisher] = []
        self.consumers: list[Consumer] = []
        self.events: dict[str, int] = {}
        self._began_s = self._said_s = time.monotonic()

    def __enter__(self) -> Self:
        try:
            self.cluster.start()
            for node in self.nodes:
                node.start()
                self._declare(node)
            self._make_clients()
        except BaseException:
            self._end()
            raise
        for client in (*self.publishers, *self.consumers):
            client.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self._say_what_servers_say()
        self._end()

    def _say_what_servers_say(self) -> None:
        """For who looks for what went wrong: the directories go with the run."""
        self.progress(is_due=True)
        for server in self.cluster.servers:
            print(f"-- {server.name}", *server.log_lines(LOG_LINES), sep="\n", file=sys.stderr)
        for node in self.nodes:
            lines = node.log_of_this_start().splitlines()[-LOG_LINES:]
            print(f"-- {node.data_dir.name}", *lines, sep="\n", file=sys.stderr)

    def _end(self) -> None:
        clients = [each for each in (*self.publishers, *self.consumers) if each.is_alive()]
        for client in clients:
            client.over.set()
        for node in self.nodes:
            node.kill()
        self.cluster.stop()
        for client in clients:
            client.join(30)

    def _declare(self, node: BrokerProcess) -> None:
        deadline = time.monotonic() + patient(60)
        for queue in self.queues:
            while True:
                try:
                    with pika.BlockingConnection(pika.URLParameters(node.url)) as own:
                        own.channel().queue_declare(queue, durable=True, arguments=QUORUM)
                    break
                except (AMQPError, OSError):
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.2)

    def _make_clients(self) -> None:
        load, count = self.load, 2 * len(self.queues)
        for number in range(count):
            pace = Pace(load.burst, load.window, load.rate / count, load.sizes[number // 2])
            self.publishers.append(
                Publisher(
                    number,
                    self.queues[number // 2],
                    self.book,
                    self._ports,
                    pace,
                    first=number % 2,
                    stays=load.stays,
                )
            )
        for number, queue in enumerate(self.queues):
            sizes = dict.fromkeys((2 * number, 2 * number + 1), load.sizes[number])
            for first in (0, 1) if load.stays else (number % 2,):
                self.consumers.append(
                    Consumer(
                        queue,
                        self.book,
                        self._ports,
                        sizes,
                        prefetch=load.prefetch,
                        first=first,
                        stays=load.stays,
                        seed=10 * number + first,
                        pause_s=load.pause_s,
                    )
                )

    # -- while it goes on -----------------------------------------------------------------------------------------

    @property
    def confirmed(self) -> int:
        return sum(ledger.confirmed.count(1) for ledger in self.book.ledgers.values())

    def count(self, what: str) -> None:
        self.events[what] = self.events.get(what, 0) + 1

    def progress(self, *, is_due: bool = False) -> None:
        """A line now and then."""
        now_s = time.monotonic()
        if is_due or now_s >= self._said_s + PROGRESS_S:
            self._said_s = now_s
            line = f"{now_s - self._began_s:.0f} s: {self.book.verdict()}; {self.events}"
            print(line, file=sys.stderr, flush=True)

    def wait(self, seconds: float) -> None:
        end_s = time.monotonic() + seconds
        while (left_s := end_s - time.monotonic()) > 0:
            self.progress()
            time.sleep(min(left_s, 1.0))

    def until(self, is_so: Callable[[], bool], seconds: float) -> bool:
        """Whether it was so within this time."""
        end_s = time.monotonic() + seconds
        while not is_so():
            if time.monotonic() > end_s:
                return False
            self.progress()
            time.sleep(0.05)
        return True

    def are_current(self) -> bool:
        """Whether all servers have what the streams' leaders have."""
        return are_current(self.cluster, [stream_name("/", queue) for queue in self.queues])

    def confirms_of_all(self, seconds: float = 60.0) -> bool:
        """Whether each publisher is confirmed something new within this time."""
        marks = [(each.ledger, each.ledger.published) for each in self.publishers]
        return self.until(
            lambda: all(ledger.confirmed_from(mark) for ledger, mark in marks), patient(seconds)
        )

    def settle(self) -> Verdict:
        """Publishers end, queues are emptied; what is to come again has come."""
        for publisher in self.publishers:
            publisher.over.set()
        for publisher in self.publishers:
            publisher.join()
        for consumer in self.consumers:
            consumer.pause_s = 0.0
        self.until(lambda: self.book.is_all_seen, patient(DRAIN_S))
        taken = -1
        while taken != (now := sum(each.taken for each in self.consumers)):
            taken = now
            self.wait(QUIET_S)
        for consumer in self.consumers:
            consumer.over.set()
        for consumer in self.consumers:
            consumer.join()
        self.progress(is_due=True)
        return self.book.verdict()
