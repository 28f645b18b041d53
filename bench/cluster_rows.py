"""What a cluster's faults cost: `python -m bench.cluster_rows [--only gap,late,many,held,forward] [--runs 20] [--natsd]`.

Three nats-servers that sync always and BurrowMQ nodes before them, all on this machine. Prints a table of figures and
limits; exit status 1 when one is missed.

gap: a publisher that waits for each confirm; the leader of its queue's stream is killed (-9), `--runs` times. The longest
time from one confirm to the next, of each run; with `--natsd` also on servers that `make natsd` has built, or another
program of theirs. late: a second queue on the same channel has lost its only server; how
late the confirms of the first are meanwhile. many: 1,000 queues of three replicas are declared one by one; then nobody
does anything. held: a front-end is killed whose client has acknowledged 500 messages and holds 1,000; how long the other
front-end's client waits for its first message, and until it has seen all. forward: a reply of 1 KB for a reply queue, 500
published at the front-end where that is and 500 at another one, in turns; how much later these are there, in the median.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Any, Self

import pika
from pika.adapters.blocking_connection import BlockingChannel

from bench.jetstream import FrontEnd
from bench.many_queues import Table
from bench.nats_servers import NatsCluster, NatsServer
from bench.peers import Setting
from bench.peers.base import Node
from bench.peers.burrowmq import BurrowMQ
from bench.procfs import cpu_use
from burrowmq.broker.replicated.stream import stream_name
from burrowmq.cluster import api

PERSISTENT = pika.BasicProperties(delivery_mode=2)
MANY = 1_000
REPLIES = 1_000
IDLE_S = 20.0
SETTLE_S = 3.0
ELECTION_S = 60.0
GAP_S, NATSD_GAP_S = 9.0, 2.0
LATE_MS, DECLARE_MS, IDLE_PERCENT, FIRST_S, HELD_S = 50.0, 250.0, 100.0, 1.0, 12.0
FORWARD_MS = 2.0
NATSD = Path("build/natsd")


class Scene:
    """The servers, and the nodes that were started before them."""

    def __init__(self, directory: Path, binary: Path | None = None) -> None:
        self._directory = directory
        self.has_stock_servers = binary is None
        self.cluster = NatsCluster(directory / "nats", binary=binary)
        self._nodes: list[Node] = []
        self._connections: list[pika.BlockingConnection] = []

    def __enter__(self) -> Self:
        self.cluster.start()
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self._connections:
            with contextlib.suppress(pika.exceptions.AMQPError):  # its node was killed
                connection.close()
        for node in self._nodes:
            node.kill()
        self.cluster.stop()

    def node(self, *, first: int = 0) -> Node:
        """One more, which goes to the server of this number first."""
        servers = self.cluster.servers[first:] + self.cluster.servers[:first]
        name = f"node{len(self._nodes)}"
        node = BurrowMQ(is_interpreted=False, name=name).node(self._directory / name, Setting())
        node.launch.command += ["--set", f"cluster.urls={','.join(each.url for each in servers)}"]
        self._nodes.append(node)
        node.start()
        return node

    def channel(self, node: Node) -> BlockingChannel:
        """On a connection of its own, which waits for nobody."""
        address = pika.ConnectionParameters("127.0.0.1", node.port, heartbeat=0)
        connection = pika.BlockingConnection(address)
        self._connections.append(connection)
        return connection.channel()

    def declare(self, node: Node, name: str, replicas: int = 3) -> BlockingChannel:
        """Gives the channel on which that has succeeded: the servers may have to elect somebody first."""
        arguments = {"x-queue-type": "quorum", "x-quorum-initial-group-size": replicas}
        deadline = time.monotonic() + ELECTION_S
        while True:
            channel = self.channel(node)
            try:
                channel.queue_declare(name, durable=True, arguments=arguments)
            except pika.exceptions.ChannelClosedByBroker:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)
            else:
                return channel

    def ask(self, request: api.Request) -> api.Document:
        """Of whichever server answers."""

        async def whole() -> api.Document:
            front = FrontEnd([each.url for each in self.cluster.servers])
            await front.start()
            try:
                async with asyncio.timeout(ELECTION_S):
                    return await front.ask(request)
            finally:
                await front.close()

        return asyncio.run(whole())

    def leader(self, queue: str) -> NatsServer:
        """Who leads the stream of a queue."""
        found = self.ask(api.stream_state(stream_name("/", queue)))
        return self.cluster.by_name(found["cluster"]["leader"])


class Confirmed:
    """A channel whose confirms are timed: `late_ms` has how long after its publish each came, by queue."""

    def __init__(self, channel: BlockingChannel) -> None:
        self._channel = channel
        self._sent: dict[int, tuple[str, float]] = {}
        self._number = 0
        self.late_ms: dict[str, list[float]] = {}
        self.open: dict[str, int] = {}
        # BlockingChannel's own confirms wait for each: what is under it tells of them as they come.
        channel._impl.confirm_delivery(self._answered, lambda _: None)
        self.wait(0.5)

    def publish(self, queue: str) -> None:
        self._number += 1
        self._sent[self._number] = queue, time.monotonic()
        self.open[queue] = self.open.get(queue, 0) + 1
        self._channel.basic_publish("", queue, b"x" * 1024, PERSISTENT)

    def _answered(self, frame: Any) -> None:
        now, method = time.monotonic(), frame.method
        numbers = [method.delivery_tag]
        if method.multiple:
            numbers = [each for each in self._sent if each <= method.delivery_tag]
        for number in numbers:
            queue, sent_s = self._sent.pop(number)
            self.open[queue] -= 1
            self.late_ms.setdefault(queue, []).append((now - sent_s) * 1000)

    def wait(self, seconds: float) -> None:
        self._channel.connection.process_data_events(seconds)


def gap(scene: Scene, runs: int, table: Table) -> None:
    """Longest time without a confirm when the stream's leader is killed."""
    longest: list[float] = []
    channel = scene.declare(scene.node(), "gap")
    channel.confirm_delivery()
    for number in range(runs):
        leader = scene.leader("gap")
        worst_s = 0.0
        confirmed_s = time.monotonic()
        kill_s, over_s = confirmed_s + 1.0, inf
        while confirmed_s < over_s:
            if confirmed_s >= kill_s:
                leader.kill()
                kill_s, over_s = inf, time.monotonic() + SETTLE_S
            channel.basic_publish("", "gap", b"x" * 1024, PERSISTENT)
            now = time.monotonic()
            worst_s, confirmed_s = max(worst_s, now - confirmed_s), now
        longest.append(worst_s)
        print(f"gap {number}: {worst_s:.2f} s", file=sys.stderr, flush=True)
        leader.start()
        time.sleep(2 * SETTLE_S)  # it has to catch up before another one goes
    server, limit_s = ("nats-server", GAP_S) if scene.has_stock_servers else ("natsd", NATSD_GAP_S)
    what = f"longest gap of confirms, leader killed, {server}, {runs} runs"
    table.add(what, max(longest), limit_s, "s")
    table.add("the same, median", statistics.median(longest), None, "s")


def late(scene: Scene, _: int, table: Table) -> None:
    """Confirms of one queue while another on the channel has none of its servers."""
    node = scene.node(first=0)
    scene.declare(node, "lost", replicas=1)
    gone = scene.leader("lost")
    if gone is scene.cluster.servers[0]:
        node.kill()
        node = scene.node(first=1)
        scene.declare(node, "lost", replicas=1)
    channel = scene.declare(node, "kept")
    while scene.leader("kept") is gone:
        scene.ask(api.step_down(stream_name("/", "kept")))
        time.sleep(SETTLE_S)
    confirmed = Confirmed(channel)
    for name in ("kept", "lost"):
        confirmed.publish(name)
    confirmed.wait(1.0)
    undisturbed = _late_ms(confirmed, "kept")
    gone.kill()
    time.sleep(SETTLE_S)  # who is left notices
    found = _late_ms(confirmed, "lost", "kept")
    assert confirmed.open["lost"] == 500, "nobody has that queue"
    table.add("confirms beside a queue without its servers, latest", max(found), LATE_MS, "ms")
    table.add("the same, median", statistics.median(found), None, "ms")
    table.add("the same before it lost them, latest", max(undisturbed), None, "ms")


def _late_ms(confirmed: Confirmed, *queues: str) -> list[float]:
    """How long each of 500 confirms of `kept` takes, while 100 messages a second go to each of the queues."""
    confirmed.late_ms.clear()
    for _ in range(500):
        for name in queues:
            confirmed.publish(name)
        confirmed.wait(0.01)
    confirmed.wait(1.0)
    found = confirmed.late_ms["kept"]
    assert len(found) == 500
    return found


def many(scene: Scene, _: int, table: Table) -> None:
    """Declarations, and what the servers do when nobody does anything."""
    channel = scene.declare(scene.node(), "warm")
    took_ms = []
    for number in range(MANY):
        began_s = time.monotonic()
        arguments = {"x-queue-type": "quorum"}
        channel.queue_declare(f"many{number}", durable=True, arguments=arguments)
        took_ms.append((time.monotonic() - began_s) * 1000)
    table.add(
        f"{MANY:,} queues, to declare one, median", statistics.median(took_ms), DECLARE_MS, "ms"
    )
    table.add("the same, longest", max(took_ms), None, "ms")
    time.sleep(SETTLE_S)
    pids = [each.pid for each in scene.cluster.servers]
    before_s = sum(cpu_use(pid).total_s for pid in pids)
    time.sleep(IDLE_S)
    spent_s = sum(cpu_use(pid).total_s for pid in pids) - before_s
    table.add(
        f"{MANY:,} queues, idle, all three servers",
        spent_s / IDLE_S * 100,
        IDLE_PERCENT,
        "% of a core",
    )


def held(scene: Scene, _: int, table: Table) -> None:
    """A front-end is killed whose client holds 1,000 messages."""
    one, two = scene.node(first=0), scene.node(first=1)
    channel = scene.declare(one, "held")
    other = scene.declare(two, "held")
    confirmed = Confirmed(channel)
    for number in range(9_000):
        confirmed.publish("held")
        if number % 500 == 499:
            while confirmed.open["held"]:
                confirmed.wait(0.1)
    consumer = scene.channel(one)
    consumer.basic_qos(prefetch_count=1_000)
    tags = [method.delivery_tag for method, _ in _taken(consumer, 1_000, is_patient=True)]
    acknowledged = len(tags) // 2
    consumer.basic_ack(tags[acknowledged - 1], multiple=True)
    _taken(consumer, acknowledged, is_patient=True)
    time.sleep(1.0)  # acknowledgements have no answer
    one.kill()
    killed_s = time.monotonic()
    other.basic_qos(prefetch_count=10_000)  # without one it would get 2,000
    found = _taken(other, 9_000 - acknowledged, is_patient=False)
    assert len(found) == 9_000 - acknowledged, f"{len(found)} have come"
    table.add("front-end killed: the other's first message", found[0][1] - killed_s, FIRST_S, "s")
    table.add("the same, the last of 1,000 held ones", found[-1][1] - killed_s, HELD_S, "s")
    time.sleep(HELD_S)
    table.add(
        "the same, acknowledged ones that came again",
        len(_taken(other, 1, is_patient=False)),
        0,
        "",
    )


def _taken(channel: BlockingChannel, count: int, *, is_patient: bool) -> list[tuple[Any, float]]:
    """(method, when) of so many deliveries, unacknowledged; fewer when none comes for long."""
    found: list[tuple[Any, float]] = []
    limit_s = 60.0 if is_patient else HELD_S
    for method, _, _ in channel.consume("held", inactivity_timeout=limit_s):
        if method is None:
            assert not is_patient, f"{len(found)} of {count} have come"
            break
        found.append((method, time.monotonic()))
        if len(found) == count:
            break
    return found


def forward(scene: Scene, _: int, table: Table) -> None:
    """A reply that is published where its queue is, and elsewhere."""
    one, two = scene.node(first=0), scene.node(first=1)
    scene.declare(one, "warm")
    client = scene.channel(one)
    name = client.queue_declare("", exclusive=True).method.queue
    replies = client.consume(name, auto_ack=True, inactivity_timeout=10.0)
    time.sleep(1.0)
    channels = scene.channel(one), scene.channel(two)
    took_ms: tuple[list[float], list[float]] = [], []
    for number in range(REPLIES):
        which = number % 2
        began_s = time.monotonic()
        channels[which].basic_publish("", name, b"x" * 1024)
        assert next(replies)[0] is not None, "it is there"
        took_ms[which].append((time.monotonic() - began_s) * 1000)
    here_ms, elsewhere_ms = map(statistics.median, took_ms)
    table.add(
        "reply to a queue at another front-end, later by", elsewhere_ms - here_ms, FORWARD_MS, "ms"
    )
    table.add("the same at the queue's own front-end, in all", here_ms, None, "ms")
    worst_ms = statistics.quantiles(took_ms[1], n=100)[98]
    table.add("the same at another one, in all, 99 of 100", worst_ms, None, "ms")


ROWS: dict[str, Callable[[Scene, int, Table], None]] = {
    "gap": gap,
    "late": late,
    "many": many,
    "held": held,
    "forward": forward,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.cluster_rows", description=__doc__)
    parser.add_argument("--only", default=",".join(ROWS), help="names of rows")
    parser.add_argument("--runs", type=int, default=20, help="kills of the row gap")
    parser.add_argument(
        "--natsd",
        type=Path,
        nargs="?",
        const=NATSD,
        help=f"measure the row gap with these servers, too; {NATSD} unless another is named",
    )
    options = parser.parse_args()
    table = Table()
    turns: list[tuple[str, Path | None]] = [(name, None) for name in options.only.split(",")]
    if options.natsd is not None:
        turns.append(("gap", options.natsd.resolve()))
    for name, binary in turns:
        with tempfile.TemporaryDirectory(prefix="burrowmq-rows-") as directory:
            with Scene(Path(directory), binary) as scene:
                ROWS[name](scene, options.runs, table)
    print(table.markdown())
    return 1 if table.missed() else 0


if __name__ == "__main__":
    sys.exit(main())
