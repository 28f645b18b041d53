"""What replicated messages cost: `python -m bench.cluster [--amqp] [--rabbitmq] [--perftest] [--streams] [--rounds 3] [--only NAME,...]`.

Three nats-servers on loopback, streams of three replicas that sync before they answer (`sync_interval: always`), and one
front-end without AMQP in this process (`bench.jetstream`). Messages are records of persistent AMQP messages, packed and
unpacked. `--amqp` puts a BurrowMQ node before the same servers, `--rabbitmq` runs three RabbitMQ nodes beside them: each with
a quorum queue, or with `--streams` a stream, loaded by the native generator; a stream is read by PerfTest only, which can say
from where.
Rows come in turn, `--rounds` times; the table has medians. CPU is that of all three servers, and of this process less what
the load itself takes.

publish: `--open` messages are unconfirmed at any time, in runs of 100. consume: `--credit` messages are unacknowledged at
most, acknowledged as they come, the queue is full when it begins.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pika
import uvloop

from bench import native, perftest
from bench.jetstream import FrontEnd
from bench.nats_servers import NatsCluster
from bench.peers import Node, Setting
from bench.peers.base import free_ports
from bench.peers.burrowmq import BurrowMQ
from bench.peers.rabbitmq import RabbitMQ, stop_epmd
from bench.procfs import cpu_use, rss_bytes
from burrowmq.cluster import api
from burrowmq.cluster.record import pack, unpack
from burrowmq.cluster.tickets import Ticket
from burrowmq.cluster.window import Window, WindowLimits
from burrowmq.cluster.wire import Delivered
from burrowmq.protocol.codec import Message, join_address
from burrowmq.protocol.properties import Properties, build
from tests.cluster.resend import EachWithId

RUN = 100
TRIM_S = 0.5


@dataclass(frozen=True)
class Load:
    """What the command line asks for."""

    messages: int
    size: int
    open_max: int
    credit: int
    kind: str = "quorum"


@dataclass(frozen=True)
class Row:
    """One measurement."""

    rate: float
    servers_us: float
    front_us: float
    rss_mb: float


def _bursts(count: int) -> WindowLimits:
    return WindowLimits(collect_count=min(count, 128), burst_count=count)


WINDOWS: dict[str, tuple[type[Window], WindowLimits]] = {
    "atomic batches of up to 512": (Window, _bursts(512)),
    "atomic batches of up to 128": (Window, _bursts(128)),
    "an id for each message, bursts of up to 512": (EachWithId, _bursts(512)),
    "an id for each message, bursts of up to 128": (EachWithId, _bursts(128)),
}


class Meter:
    """CPU of the servers and of this process between two moments."""

    def __init__(self, pids: list[int]) -> None:
        self._pids = pids
        self._servers_s = self._servers()
        self._front_s = time.process_time()
        self._began_s = time.monotonic()

    def _servers(self) -> float:
        return sum(cpu_use(pid).total_s for pid in self._pids)

    def row(self, count: int, *, load_s: float = 0.0) -> Row:
        seconds = time.monotonic() - self._began_s
        front_s = time.process_time() - self._front_s - load_s
        return Row(
            rate=count / seconds,
            servers_us=(self._servers() - self._servers_s) / count * 1e6,
            front_us=front_s / count * 1e6,
            rss_mb=max(map(rss_bytes, self._pids)) / 1e6,
        )


def _message(size: int) -> Message:
    return build(join_address(b"", b"bench"), Properties(delivery_mode=2), b"x" * size)


# -- JetStream --------------------------------------------------------------------------------------------------------


class JetStreamBench:
    """One cluster and one front-end for all rows; each row has a stream of its own."""

    def __init__(self, cluster: NatsCluster, load: Load) -> None:
        self._cluster = cluster
        self._load = load
        self._number = 0

    async def start(self) -> None:
        self._front = FrontEnd([each.url for each in self._cluster.servers])
        await self._front.start()

    async def close(self) -> None:
        await self._front.close()

    def _meter(self) -> Meter:
        return Meter([each.pid for each in self._cluster.servers])

    async def _stream(self) -> str:
        self._number += 1
        name = f"Q_bench{self._number}"
        await self._front.ask(
            api.create_stream(api.StreamSettings(name=name, subjects=(f"q.{name}",)))
        )
        return name

    async def _fill(self, name: str, kind: type[Window], limits: WindowLimits, count: int) -> None:
        """Publish `count` messages, and return when all are confirmed."""
        done = asyncio.Event()
        left = {"to_send": count, "open": 0}
        messages = [_message(self._load.size)] * RUN

        def more() -> None:
            while left["to_send"] and left["open"] + RUN <= self._load.open_max:
                left["to_send"] -= RUN
                left["open"] += RUN
                self._front.publish(window, [pack(each) for each in messages])

        def settled(ticket: Ticket) -> None:
            assert not ticket.refused, window.last_refusal
            left["open"] -= ticket.count
            more()
            if not left["open"]:
                done.set()

        window = self._front.open_window(f"q.{name}".encode(), settled, kind, limits)
        more()
        async with asyncio.timeout(300):
            await done.wait()
        assert not window.resent_count, "nothing was sent twice"

    async def publish(self, kind: type[Window], limits: WindowLimits) -> Row:
        name = await self._stream()
        await self._fill(name, kind, limits, RUN * 50)
        meter = self._meter()
        await self._fill(name, kind, limits, self._load.messages)
        row = meter.row(self._load.messages)
        await self._front.ask(api.delete_stream(name))
        return row

    async def consume(self) -> Row:
        name, count = await self._stream(), self._load.messages
        await self._fill(name, Window, _bursts(512), count)
        await self._front.ask(api.create_consumer(name, api.ConsumerSettings(name="all")))
        done = asyncio.Event()
        seen = 0

        def taken(deliveries: list[Delivered]) -> None:
            nonlocal seen
            for each in deliveries:
                unpack(each.payload)
                place = api.place_of(each.reply)
                assert place is not None
                assert place.delivery_count == 1
            seen += len(deliveries)
            self._front.ack([each.reply for each in deliveries])
            if seen >= count:
                done.set()

        meter = self._meter()
        self._front.open_pulls(name, "all", taken).allow(self._load.credit)
        async with asyncio.timeout(300):
            await done.wait()
        row = meter.row(count)
        assert seen == count
        await self._until_empty(name)
        await self._front.ask(api.delete_stream(name))
        return row

    async def _until_empty(self, name: str) -> None:
        for _ in range(200):
            state = await self._front.ask(api.stream_state(name))
            if not state["state"]["messages"]:
                return
            await asyncio.sleep(0.05)
        raise AssertionError("acknowledgements were lost")


# -- over AMQP ---------------------------------------------------------------------------------------------------------


class AmqpBench:
    """A quorum queue of three replicas, loaded by the native generator through `front`.

    CPU is that of the nodes `keepers`, and of the front-end where that is another process.
    """

    def __init__(self, load: Load) -> None:
        self._load = load
        self.keepers: list[int] = []
        self.front_pid: int | None = None
        self.port = 0

    def _declare(self, name: str) -> None:
        address = pika.ConnectionParameters("127.0.0.1", self.port)
        with pika.BlockingConnection(address) as connection:
            channel = connection.channel()
            channel.queue_delete(name)
            kind = self._load.kind
            size_key = (
                "x-initial-cluster-size" if kind == "stream" else "x-quorum-initial-group-size"
            )
            arguments = {"x-queue-type": kind, size_key: 3}
            channel.queue_declare(name, durable=True, arguments=arguments)

    def _let_trim(self, name: str) -> None:
        """Asked how many messages it has, a queue lets go of those that are acknowledged; that is part of its price."""
        address = pika.ConnectionParameters("127.0.0.1", self.port)
        with pika.BlockingConnection(address) as connection:
            connection.channel().queue_declare(name, passive=True)
        time.sleep(TRIM_S)

    def _load_queue(self, name: str, *, empties: bool = False, **options: native.Option) -> Row:
        meter = Meter(self.keepers)
        front_s = self._front_s()
        report = native.run(self.port, name=name, durable=True, append=True, **options)
        if empties:
            self._let_trim(name)
        row = meter.row(self._load.messages)
        front_us = (self._front_s() - front_s) / self._load.messages * 1e6
        return Row(report["rate"], row.servers_us, front_us, row.rss_mb)

    def _front_s(self) -> float:
        return 0.0 if self.front_pid is None else cpu_use(self.front_pid).total_s

    def publish(self) -> Row:
        load = self._load
        options = {"producers": 1, "persistent": True, "size": load.size, "confirm": load.open_max}
        self._declare("warm")
        self._load_queue("warm", **options, messages=RUN * 50)
        self._declare("bench")
        return self._load_queue("bench", **options, messages=load.messages)

    def consume(self) -> Row:
        """What `publish` has left."""
        load = self._load
        return self._load_queue(
            "bench",
            empties=True,
            producers=0,
            consumers=1,
            prefetch=load.credit,
            ack_every=1,
            messages=load.messages,
        )

    def _perftest(
        self,
        rate: Callable[[perftest.PerfTestResult], float],
        *options: str,
        empties: bool = False,
    ) -> Row:
        load = self._load
        common = ["-u", "perftest", "-p", "-f", "persistent", "-s", str(load.size)]
        meter, front_s = Meter(self.keepers), self._front_s()
        result = perftest.run(self.port, [*common, *options])
        if empties:
            self._let_trim("perftest")
        row = meter.row(load.messages)
        front_us = (self._front_s() - front_s) / load.messages * 1e6
        return Row(rate(result), row.servers_us, front_us, row.rss_mb)

    def perftest_publish(self) -> Row:
        self._declare("perftest")
        options = ("-x", "1", "-y", "0", "-c", "500", "-C", str(self._load.messages))
        return self._perftest(lambda result: result.sent_rate, *options)

    def perftest_consume(self) -> Row:
        """What `perftest_publish` has left."""
        options = ("-x", "0", "-y", "1", "-q", "500", "-D", str(self._load.messages))
        is_stream = self._load.kind == "stream"
        if is_stream:
            options = (*options, "-ca", "x-stream-offset=first")
        return self._perftest(lambda result: result.received_rate, *options, empties=not is_stream)


class BurrowBench(AmqpBench):
    """A front-end of its own process before the nats-servers."""

    def __init__(self, directory: Path, load: Load, cluster: NatsCluster) -> None:
        super().__init__(load)
        self._cluster = cluster
        self._node = BurrowMQ(is_interpreted=False, name="burrowmq").node(directory, Setting())
        urls = ",".join(each.url for each in cluster.servers)
        self._node.launch.command += ["--set", f"cluster.urls={urls}"]

    def start(self) -> None:
        self._node.start()
        self.port, self.front_pid = self._node.port, self._node.pid
        self.keepers = [each.pid for each in self._cluster.servers]
        deadline = time.monotonic() + 60.0
        while True:  # the servers elect who makes streams
            try:
                self._declare("warm")
            except pika.exceptions.ChannelClosedByBroker:
                if time.monotonic() > deadline:
                    raise
            else:
                return

    def stop(self) -> None:
        self._node.kill()


class RabbitMQBench(AmqpBench):
    """Three nodes in one cluster."""

    def __init__(self, directory: Path, load: Load) -> None:
        super().__init__(load)
        (directory / "home").mkdir(parents=True)
        (self._epmd,) = free_ports(1)
        self.nodes: list[Node] = []
        for number in range(3):
            node = RabbitMQ().node(directory / f"rabbitmq-{number + 1}", Setting())
            shared = {"HOME": str(directory / "home"), "ERL_EPMD_PORT": str(self._epmd)}
            node.launch.environment.update(shared)
            self.nodes.append(node)
        names = [node.launch.environment["RABBITMQ_NODENAME"] for node in self.nodes]
        members = [
            f"cluster_formation.classic_config.nodes.{number} = {name}"
            for number, name in enumerate(names, start=1)
        ]
        members.insert(0, "cluster_formation.peer_discovery_backend = classic_config")
        for node in self.nodes:
            with (node.launch.directory / "rabbitmq.conf").open("a") as settings:
                settings.write("\n".join([*members, ""]))

    def start(self) -> None:
        """The first begins the cluster, the others join it."""
        for each in self.nodes:
            each.start()
        self.port = self.nodes[0].port
        self.keepers = [each.pid for each in self.nodes]

    def stop(self) -> None:
        for each in self.nodes:
            each.kill()
        stop_epmd(self._epmd)


# -- the table --------------------------------------------------------------------------------------------------------


def _medians(rows: list[Row]) -> Row:
    def middle(of: Callable[[Row], float]) -> float:
        return statistics.median(map(of, rows))

    return Row(
        middle(lambda row: row.rate),
        middle(lambda row: row.servers_us),
        middle(lambda row: row.front_us),
        middle(lambda row: row.rss_mb),
    )


def markdown(found: dict[str, list[Row]]) -> str:
    lines = [
        "| what | messages/s | us CPU a message, three servers | front-end | largest server, MB |",
        "|---|---|---|---|---|",
    ]
    for title, rows in found.items():
        row = _medians(rows)
        rates = ", ".join(f"{each.rate:,.0f}" for each in rows)
        front = f"{row.front_us:.1f}" if row.front_us else ""
        lines.append(
            f"| {title} | {row.rate:,.0f} ({rates}) | {row.servers_us:.1f} | {front} | {row.rss_mb:.0f} |"
        )
    return "\n".join(lines)


async def measure(options: argparse.Namespace, directory: Path, load: Load) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}

    def add(title: str, row: Row) -> None:
        found.setdefault(title, []).append(row)
        print(f"{title}: {row}", file=sys.stderr, flush=True)

    def is_wanted(title: str) -> bool:
        return not options.only or any(each in title for each in options.only.split(","))

    what = "stream" if load.kind == "stream" else "quorum queue"
    cluster = NatsCluster(directory / "nats")
    amqp: dict[str, BurrowBench | RabbitMQBench] = {}
    if options.amqp:
        amqp["BurrowMQ's"] = BurrowBench(directory / "burrowmq", load, cluster)
    if options.rabbitmq:
        amqp["RabbitMQ's"] = RabbitMQBench(directory / "rabbitmq", load)
    jetstream = JetStreamBench(cluster, load)
    try:
        cluster.start()
        await jetstream.start()
        for each in amqp.values():
            await asyncio.to_thread(each.start)
        for _ in range(options.rounds):
            for name, (kind, limits) in WINDOWS.items():
                if is_wanted(f"publish, {name}"):
                    add(f"publish, {name}", await jetstream.publish(kind, limits))
            for whose, each in amqp.items():
                add(f"publish, {whose} {what}", await asyncio.to_thread(each.publish))
            if is_wanted("consume"):
                add("consume", await jetstream.consume())
            for whose, each in amqp.items() if load.kind == "quorum" else ():
                add(f"consume, {whose} {what}", await asyncio.to_thread(each.consume))
            for whose, each in amqp.items() if options.perftest else ():
                row = await asyncio.to_thread(each.perftest_publish)
                add(f"PerfTest -c 500, {whose} {what}", row)
                row = await asyncio.to_thread(each.perftest_consume)
                add(f"PerfTest -q 500, {whose} {what}", row)
    finally:
        await jetstream.close()
        cluster.stop()
        for each in amqp.values():
            each.stop()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.cluster", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--messages", type=int, default=60_000)
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--open", type=int, default=2_000, dest="open_max")
    parser.add_argument("--credit", type=int, default=500)
    parser.add_argument("--only", default="", help="words of the titles of JetStream's rows")
    parser.add_argument("--amqp", action="store_true", help="a BurrowMQ node before the servers")
    parser.add_argument("--perftest", action="store_true", help="PerfTest's rows of both, too")
    parser.add_argument("--rabbitmq", action="store_true", help="three RabbitMQ nodes beside them")
    parser.add_argument("--streams", action="store_true", help="streams in place of quorum queues")
    options = parser.parse_args()
    count = options.messages // RUN * RUN
    kind = "stream" if options.streams else "quorum"
    load = Load(count, options.size, options.open_max, options.credit, kind)
    with tempfile.TemporaryDirectory(prefix="burrowmq-cluster-") as directory:
        found = uvloop.run(measure(options, Path(directory), load))
    print(markdown(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
