"""Rows over AMQP: a node of BurrowMQ before the nats-servers, and three nodes of RabbitMQ, by the same load."""

import time
from collections.abc import Callable
from pathlib import Path

import pika

from bench import native, perftest
from bench.cluster.measures import RUN, Load, Meter, Row
from bench.nats_servers import NatsCluster
from bench.peers import Node, Setting
from bench.peers.base import free_ports
from bench.peers.burrowmq import BurrowMQ
from bench.peers.rabbitmq import RabbitMQ, stop_epmd
from bench.procfs import cpu_use

TRIM_S = 0.5


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
