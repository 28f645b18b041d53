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
import contextlib
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import uvloop

from bench.cluster.amqp_rows import BurrowBench, RabbitMQBench
from bench.cluster.jetstream_rows import WINDOWS, JetStreamBench
from bench.cluster.measures import RUN, Load, Row
from bench.nats_servers import NatsCluster


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
    async with contextlib.AsyncExitStack() as started:
        started.callback(cluster.stop)
        cluster.start()
        started.push_async_callback(jetstream.close)
        await jetstream.start()
        for each in amqp.values():
            started.callback(each.stop)
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
