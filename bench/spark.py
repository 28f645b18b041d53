"""Rates of Spark's source and sink beside pika and the bare client: `python -m bench.spark [--count N] [--peers a,b]`.

Runs in .venv/spark (`make bench-spark`). Starts BurrowMQ, and RabbitMQ where Debian's is installed, one after the other. A row
is the median of its rounds; peers that are measured in separate runs are merged in the file of results. The messages are
those of docs/spark.md: 200-byte bodies with eight properties.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pika
from pyspark.sql import SparkSession

from bench.spark_wire import BODY, block
from pyspark_amqp.wire import (
    Consumer,
    Publisher,
    connect,
    declare_queue,
    message_octets,
    purge_queue,
)
from tests.support import rabbitmq_node
from tests.support.broker_process import BrokerProcess

SOURCE_QUEUE, SINK_QUEUE = "bench.source", "bench.sink"
PIECE = 60_000
EACH_COUNT = 1000
ROWS = {
    "client_publish": "bare client: publish, window 2000",
    "client_consume": "bare client: consume and acknowledge",
    "pika_publish": "pika: publish, confirm each",
    "pika_consume": "pika: consume, acknowledge in hundreds",
    "sink_1": "sink: DataFrame to queue, 1 task",
    "sink_2": "sink: DataFrame to queue, 2 tasks",
    "source_1": "source: stream to Parquet, 1 consumer, one batch",
    "source_2": "source: stream to Parquet, 2 consumers, one batch",
    "source_batches": "source: stream to Parquet, 1 consumer, 5 batches",
    "source_columns": "source: 1 consumer, one batch, body and message_id only",
    "drain": "source: mode=drain to Parquet, pieces of 20,000",
}


class Run:
    """One broker, one session; each method measures one row and leaves the queues empty."""

    def __init__(self, spark: SparkSession, url: str, count: int, folder: Path) -> None:
        self.spark = spark
        self.url = url
        self.count = count
        self.folder = folder
        self.messages = [
            message_octets("", SOURCE_QUEUE, BODY, properties=block(n)) for n in range(count)
        ]
        with connect(url) as connection:
            for queue in (SOURCE_QUEUE, SINK_QUEUE):
                declare_queue(connection, queue)

    def warm_up(self) -> None:
        """Use everything once: the first time is slow in each process."""
        self.sink(2)
        messages, self.messages = self.messages, self.messages[:1000]
        self.fill()
        self.stream()
        self.messages = messages

    def rate(self, row: str) -> float:
        before, measure = self._steps()[row]
        before()
        began = time.perf_counter()
        done = measure()
        taken_s = time.perf_counter() - began
        with connect(self.url) as connection:
            purge_queue(connection, SOURCE_QUEUE)
            purge_queue(connection, SINK_QUEUE)
        return done / taken_s

    def _steps(self) -> dict[str, tuple[Callable[[], object], Callable[[], int]]]:
        nothing: Callable[[], object] = lambda: None  # noqa: E731 - a step like the others
        return {
            "client_publish": (nothing, self.fill),
            "client_consume": (self.fill, self.client_consume),
            "pika_publish": (nothing, self.pika_publish),
            "pika_consume": (self.fill, self.pika_consume),
            "sink_1": (nothing, lambda: self.sink(1)),
            "sink_2": (nothing, lambda: self.sink(2)),
            "source_1": (self.fill, self.stream),
            "source_2": (self.fill, lambda: self.stream(consumersPerQueue="2")),
            "source_batches": (
                self.fill,
                lambda: self.stream(maxRecordsPerTrigger=str(-(-self.count // 5))),
            ),
            "source_columns": (self.fill, lambda: self.stream("message_id string, body binary")),
            "drain": (self.fill, self.drain),
        }

    def fill(self) -> int:
        with connect(self.url) as connection:
            publisher = Publisher(connection)
            publisher.send(self.messages)
            publisher.flush()
        return self.count

    def client_consume(self) -> int:
        left = self.count
        while left:
            with connect(self.url) as connection:
                size = min(left, PIECE)
                consumer = Consumer(connection, SOURCE_QUEUE, size)
                found = consumer.read(size, idle_timeout_s=10)
                consumer.settle(found)
            left -= len(found)
        return self.count

    def pika_publish(self) -> int:
        with pika.BlockingConnection(pika.URLParameters(self.url)) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            properties = pika.BasicProperties(delivery_mode=2, message_id="m")
            for _ in range(EACH_COUNT):
                channel.basic_publish("", SINK_QUEUE, BODY, properties, mandatory=True)
        return EACH_COUNT

    def pika_consume(self) -> int:
        count = min(self.count, 30_000)
        with pika.BlockingConnection(pika.URLParameters(self.url)) as connection:
            channel = connection.channel()
            channel.basic_qos(prefetch_count=1000)
            for number, (method, _, _) in enumerate(channel.consume(SOURCE_QUEUE), start=1):
                if number % 100 == 0:
                    channel.basic_ack(method.delivery_tag, multiple=True)
                if number == count:
                    break
            channel.cancel()
        return count

    def sink(self, task_count: int) -> int:
        text = BODY.decode()
        frame = self.spark.range(0, self.count, 1, task_count).selectExpr(
            f"'{text}' as body",
            "concat('m', id) as message_id",
            "'application/json' as content_type",
            "map('k', 'v', 'n', cast(id % 3 as string)) as headers",
        )
        options = {"amqp.uri": self.url, "routingKey": SINK_QUEUE}
        frame.write.format("amqp").options(**options).mode("append").save()
        return self.count

    def stream(self, columns: str = "", **more: str) -> int:
        place = self.folder / uuid.uuid4().hex
        read = self.spark.readStream.schema(columns) if columns else self.spark.readStream
        frame = read.format("amqp").options(**self._source(place), **more).load()
        query = (
            frame.writeStream.format("parquet")
            .option("path", str(place / "out"))
            .option("checkpointLocation", str(place / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return sum(progress.numInputRows for progress in query.recentProgress)

    def drain(self) -> int:
        place = self.folder / uuid.uuid4().hex
        options = {**self._source(place), "mode": "drain", "drainId": "d", "prefetch": "20000"}
        frame = self.spark.read.format("amqp").options(**options).load()
        frame.write.parquet(str(place / "out"))
        return self.count

    def _source(self, place: Path) -> dict[str, str]:
        return {
            "amqp.uri": self.url,
            "queue": SOURCE_QUEUE,
            "spoolLocation": str(place / "spool"),
        }


def session(folder: Path) -> SparkSession:
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.local.dir", str(folder / "local"))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    return spark


def nodes(names: list[str], folder: Path) -> dict[str, Any]:
    """Return the brokers to measure, not started."""
    found: dict[str, Any] = {}
    if not names or "burrowmq" in names:
        found["burrowmq"] = BrokerProcess(folder / "burrowmq" / "data")
    if "rabbitmq" in names or (not names and rabbitmq_node.is_installed()):
        found["rabbitmq"] = rabbitmq_node.RabbitNode(
            folder / "rabbitmq", rabbitmq_node.free_node_port()
        )
    return found


def table(results: dict[str, dict[str, float]]) -> str:
    names = sorted(results)
    lines = [f"| rows/s | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for row, title in ROWS.items():
        rates = [results[name].get(row) for name in names]
        cells = ["" if rate is None else f"{rate:,.0f}" for rate in rates]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def keep(
    path: Path, results: dict[str, dict[str, float]], peer: str, rates: dict[str, list[float]]
) -> None:
    """Write what there is so far: a run that is stopped loses one row."""
    medians = {row: statistics.median(found) for row, found in rates.items()}
    results[peer] = results.get(peer, {}) | medians
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.spark", description=__doc__)
    parser.add_argument("--count", type=int, default=100_000, help="messages in a row")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--peers", type=lambda text: text.split(","), default=[])
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(ROWS))
    parser.add_argument("--out", type=Path, default=Path("bench-results") / "spark.json")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the brokers are stopped on the way out
    results = json.loads(asked.out.read_text()) if asked.out.exists() else {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spark = session(folder)
        for peer, node in nodes(asked.peers, folder).items():
            node.start()
            try:
                run = Run(spark, node.url, asked.count, folder)
                run.warm_up()
                rates: dict[str, list[float]] = {}
                for _ in range(asked.rounds):
                    for row in asked.only:
                        rates.setdefault(row, []).append(run.rate(row))
                        print(f"{peer} {row} {rates[row][-1]:,.0f}", file=sys.stderr, flush=True)
                        keep(asked.out, results, peer, rates)
            finally:
                node.stop()
        spark.stop()
    print(table(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
