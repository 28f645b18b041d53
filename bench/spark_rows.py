"""The rows of `bench.spark`: what is done to a broker, and to a store, and how it is timed.

State: a `QueueRows` owns two queues of one broker and a folder for checkpoints; a `StoreRows` a backup of a
node that it filled. Called by `bench.spark`. Each row leaves the queues empty.

Messages have eight properties and are durable. A stream's row gives two rates: of the whole query, with Spark's
starting and planning of it, and of its batches alone (`triggerExecution`), which is what a query that goes on has.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import pika

from bench.spark_wire import BODY, block, consume, publish
from pyspark_amqp.wire import connect, declare_queue, message_octets, purge_queue, queue_state
from tests.support.broker_process import BrokerProcess

SOURCE_QUEUE: Final = "bench.source"
SINK_QUEUE: Final = "bench.sink"
PIKA_PUBLISHED, PIKA_CONSUMED = 1000, 30_000
BATCHES: Final = 4
IN_BATCHES: Final = ".batches"
_CHUNK: Final = 2000
_BIG_BODY: Final = b"y" * 1000

Rates = dict[str, float]
Step = Callable[[], Rates]


class Row(NamedTuple):
    """A line of the table; `floor` is what the prototype of this source reached, with RabbitMQ 3.10.8."""

    title: str
    floor: int | None = None


ROWS: Final = {
    "pika_publish": Row("pika: publish, confirm each"),
    "pika_consume": Row("pika: consume, acknowledge in hundreds"),
    "client_publish": Row("bare client: publish, window 2000", 12_000),
    "client_consume": Row("bare client: consume and acknowledge"),
    "sink_1": Row("sink: DataFrame to queue, 1 task", 11_139),
    "sink_2": Row("sink: DataFrame to queue, 2 tasks", 7_488),
    "stream_1": Row("stream to Parquet, 1 consumer, 4 batches: whole query", 10_174),
    "stream_1.batches": Row("… its batches alone", 14_241),
    "stream_2": Row("stream to Parquet, 2 consumers, 4 batches: whole query", 13_098),
    "stream_2.batches": Row("… its batches alone", 16_238),
    "stream_whole": Row("stream to Parquet, 2 consumers, one batch: whole query", 17_636),
    "stream_whole.batches": Row("… its batch alone", 22_813),
    "stream_columns": Row("the same, `body` and `message_id` only: whole query"),
    "stream_columns.batches": Row("… its batch alone"),
    "drain": Row("`mode=drain` to Parquet, pieces of 20,000"),
    "store_200": Row("store, 200 B: all columns", 41_000),
    "store_200_unchecked": Row("store, 200 B: `verifyCrc=false`", 70_000),
    "store_200_index": Row("store, 200 B: `queue`, `body_size`", 172_000),
    "store_200_pushed": Row("store, 200 B: one queue of eight, filter pushed"),
    "store_1000": Row("store, 1000 B: all columns", 27_000),
    "store_1000_unchecked": Row("store, 1000 B: `verifyCrc=false`", 54_000),
    "store_1000_index": Row("store, 1000 B: `queue`, `body_size`", 115_000),
}


def timed(count: int, step: Callable[[], object]) -> float:
    """Return messages a second."""
    began = time.perf_counter()
    step()
    return count / (time.perf_counter() - began)


def pour(url: str, queue: str, messages: list[bytes]) -> None:
    """Publish without waiting for confirms, and return when all are in the queue."""
    with connect(url) as connection:
        declare_queue(connection, queue)
        before = queue_state(connection, queue).ready_count
        for start in range(0, len(messages), _CHUNK):
            connection.send(b"".join(messages[start : start + _CHUNK]), "publishing")
        while queue_state(connection, queue).ready_count < before + len(messages):
            time.sleep(0.05)


class QueueRows:
    """The rows that need a broker."""

    def __init__(self, spark: Any, url: str, count: int, folder: Path) -> None:
        self._spark = spark
        self._url = url
        self._count = count
        self._folder = folder
        self._messages = [
            message_octets("", SOURCE_QUEUE, BODY, properties=block(n)) for n in range(count)
        ]
        with connect(url) as connection:
            for queue in (SOURCE_QUEUE, SINK_QUEUE):
                declare_queue(connection, queue)
        a_batch = str(-(-count // BATCHES))
        self.steps: dict[str, Step] = {
            "pika_publish": self._pika_publish,
            "pika_consume": self._pika_consume,
            "client_publish": self._client_publish,
            "client_consume": self._client_consume,
            "sink_1": partial(self._sink, 1),
            "sink_2": partial(self._sink, 2),
            "stream_1": partial(self._stream, "stream_1", maxRecordsPerTrigger=a_batch),
            "stream_2": partial(
                self._stream, "stream_2", maxRecordsPerTrigger=a_batch, consumersPerQueue="2"
            ),
            "stream_whole": partial(self._stream, "stream_whole", consumersPerQueue="2"),
            "stream_columns": partial(
                self._stream, "stream_columns", "message_id string, body binary",
                consumersPerQueue="2",
            ),
            "drain": self._drain,
        }  # fmt: skip

    def warm_up(self) -> None:
        """Use everything once: the first time is slow in each process."""
        whole, self._messages = self._messages, self._messages[:20_000]
        self._sink(2)
        self._stream("stream_whole", consumersPerQueue="2")
        self._messages = whole
        self.clear()

    def clear(self) -> None:
        """Empty the queues."""
        with connect(self._url) as connection:
            purge_queue(connection, SOURCE_QUEUE)
            purge_queue(connection, SINK_QUEUE)

    def _fill(self, count: int | None = None) -> None:
        pour(self._url, SOURCE_QUEUE, self._messages[:count])

    def _pika_publish(self) -> Rates:
        def step() -> None:
            with pika.BlockingConnection(pika.URLParameters(self._url)) as connection:
                channel = connection.channel()
                channel.confirm_delivery()
                properties = pika.BasicProperties(delivery_mode=2, message_id="m")
                for _ in range(PIKA_PUBLISHED):
                    channel.basic_publish("", SINK_QUEUE, BODY, properties, mandatory=True)

        return {"pika_publish": timed(PIKA_PUBLISHED, step)}

    def _pika_consume(self) -> Rates:
        count = min(len(self._messages), PIKA_CONSUMED)
        self._fill(count)

        def step() -> None:
            with pika.BlockingConnection(pika.URLParameters(self._url)) as connection:
                channel = connection.channel()
                channel.basic_qos(prefetch_count=1000)
                for number, (method, _, _) in enumerate(channel.consume(SOURCE_QUEUE), start=1):
                    if number % 100 == 0 or number == count:
                        channel.basic_ack(method.delivery_tag, multiple=True)
                    if number == count:
                        break
                channel.cancel()

        return {"pika_consume": timed(count, step)}

    def _client_publish(self) -> Rates:
        return {"client_publish": timed(self._count, lambda: publish(self._url, self._messages))}

    def _client_consume(self) -> Rates:
        self._fill()

        def step() -> None:
            consume(self._url, self._count, SOURCE_QUEUE)

        return {"client_consume": timed(self._count, step)}

    def _sink(self, task_count: int) -> Rates:
        count = len(self._messages)
        text = BODY.decode()
        frame = self._spark.range(0, count, 1, task_count).selectExpr(
            f"'{text}' as body",
            "concat('m', id) as message_id",
            "'application/json' as content_type",
            "map('k', 'v', 'n', cast(id % 3 as string)) as headers",
        )
        options = {"amqp.uri": self._url, "routingKey": SINK_QUEUE}
        write = frame.write.format("amqp").options(**options).mode("append")
        return {f"sink_{task_count}": timed(count, write.save)}

    def _stream(self, row: str, columns: str = "", **more: str) -> Rates:
        self._fill()
        place = self._folder / uuid.uuid4().hex
        reader = self._spark.readStream
        reader = reader.schema(columns) if columns else reader
        began = time.perf_counter()
        query = (
            reader.format("amqp")
            .options(**self._source(place), **more)
            .load()
            .writeStream.format("parquet")
            .option("path", str(place / "out"))
            .option("checkpointLocation", str(place / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        taken_s = time.perf_counter() - began
        batches = [progress for progress in query.recentProgress if progress.numInputRows]
        count = sum(progress.numInputRows for progress in batches)
        if count != len(self._messages):
            raise RuntimeError(f"{row}: {count} rows of {len(self._messages)}")
        busy_s = sum(progress.durationMs["triggerExecution"] for progress in batches) / 1000
        return {row: count / taken_s, row + IN_BATCHES: count / busy_s}

    def _drain(self) -> Rates:
        self._fill()
        place = self._folder / uuid.uuid4().hex
        options = {**self._source(place), "mode": "drain", "drainId": "d", "prefetch": "20000"}
        frame = self._spark.read.format("amqp").options(**options).load()
        return {"drain": timed(self._count, lambda: frame.write.parquet(str(place / "out")))}

    def _source(self, place: Path) -> dict[str, str]:
        return {
            "amqp.uri": self._url,
            "queue": SOURCE_QUEUE,
            "spoolLocation": str(place / "spool"),
        }


class StoreRows:
    """The rows that read a backup: eight queues of small messages and one of larger ones."""

    def __init__(self, spark: Any, node: BrokerProcess, count: int, folder: Path) -> None:
        self._spark = spark
        self._count = count
        self._each = count // 8
        self._path = str(folder / "backup")
        for number in range(8):
            self._publish(node.url, f"small.{number}", BODY, self._each)
        self._publish(node.url, "big", _BIG_BODY, count)
        node.ctl("backup", self._path)
        with connect(node.url) as connection:
            for queue in [*(f"small.{number}" for number in range(8)), "big"]:
                purge_queue(connection, queue)
        self.steps: dict[str, Step] = {}
        for size in ("200", "1000"):
            for name, columns, options in (
                ("", "", {}),
                ("_unchecked", "", {"verifyCrc": "false"}),
                ("_index", "queue string, body_size long", {}),
            ):
                row = f"store_{size}{name}"
                self.steps[row] = partial(self._read, row, size, columns, options)
        self.steps["store_200_pushed"] = self._read_pushed

    def _publish(self, url: str, queue: str, body: bytes, count: int) -> None:
        messages = [message_octets("", queue, body, properties=block(n)) for n in range(count)]
        pour(url, queue, messages)

    def _read(self, row: str, size: str, columns: str, options: dict[str, str]) -> Rates:
        small = [f"small.{number}" for number in range(8)]
        reader = self._spark.read.format("amqp-store").options(**options)
        reader = reader.option("queues", "big" if size == "1000" else ",".join(small))
        reader = reader.schema(columns) if columns else reader
        frame = reader.load(self._path)
        count = self._count if size == "1000" else self._each * 8
        return {row: timed(count, partial(use_up, frame))}

    def _read_pushed(self) -> Rates:
        """One queue of eight by a filter; the rate is of the rows that come, not of those passed over."""
        switch = "spark.sql.python.filterPushdown.enabled"
        self._spark.conf.set(switch, "true")
        try:
            reader = self._spark.read.format("amqp-store").option("pushFilters", "true")
            frame = reader.load(self._path).where("queue = 'small.3'")
            return {"store_200_pushed": timed(self._each, partial(use_up, frame))}
        finally:
            self._spark.conf.unset(switch)


def use_up(frame: Any) -> None:
    """Have every column of every row made."""
    frame.write.format("noop").mode("overwrite").save()
