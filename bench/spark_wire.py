"""Rates of the bulk client and the converters, without a JVM: `python -m bench.spark_wire [AMQP-URI] [COUNT]`.

Starts a broker of its own when no address is given. Needs pyarrow for the conversion rows. The messages
are those of docs/spark.md: 200-byte bodies with eight properties.
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from pyspark_amqp.wire import (
    Consumer,
    Deliveries,
    Publisher,
    connect,
    declare_queue,
    delete_queue,
    message_octets,
)
from pyspark_amqp.wire.properties import encode
from tests.support.broker_process import BrokerProcess

QUEUE = "bench.spark_wire"
BODY = b"x" * 200
ROUNDS = 3
PIECE = 60_000


def block(number: int) -> bytes:
    return encode(
        {
            "content_type": "application/json",
            "headers": {"k": "v", "n": number % 3},
            "delivery_mode": 2,
            "priority": 1,
            "correlation_id": f"c{number}",
            "message_id": f"m{number}",
            "timestamp": 1_700_000_000,
            "type": "t",
            "app_id": "bench",
        }
    )


def rate(count: int, run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return count / (time.perf_counter() - began)


def report(name: str, rates: list[float]) -> None:
    print(f"{name:48} {sorted(rates)[len(rates) // 2]:12,.0f} messages/s (median of {len(rates)})")


def publish(url: str, messages: list[bytes]) -> None:
    with connect(url) as connection:
        publisher = Publisher(connection)
        publisher.send(messages)
        publisher.flush()


def consume(url: str, count: int, queue: str = QUEUE) -> list[Deliveries]:
    pieces = []
    while count:
        with connect(url) as connection:
            size = min(count, PIECE)
            consumer = Consumer(connection, queue, size)
            found = consumer.read(size, idle_timeout_s=10)
            consumer.settle(found)
        pieces.append(found)
        count -= len(found)
    return pieces


def convert(pieces: list[Deliveries], count: int) -> None:
    from pyspark_amqp.convert import Reader, Writer, schema_of  # noqa: PLC0415 - the client runs without

    def read(reader: Reader) -> None:
        for piece in pieces:
            for _ in reader.batches(piece):
                continue

    def write(writer: Writer) -> None:
        for batch in batches:
            writer.messages(batch)

    some = ["body", "routing_key", "message_id"]
    for name, columns in (("all", None), (", ".join(some), some)):
        reader = Reader(schema_of(columns))
        report(f"to Arrow: {name}", rates_of(count, read, reader))
    whole = Reader(schema_of(has_headers_raw=True))
    batches = [batch for piece in pieces for batch in whole.batches(piece)]
    report("from Arrow: all, headers_raw", rates_of(count, write, Writer()))


def rates_of(count: int, step: Callable[[Any], object], argument: Any) -> list[float]:
    return [rate(count, partial(step, argument)) for _ in range(ROUNDS)]


def run(url: str, count: int) -> None:
    with connect(url) as connection:
        declare_queue(connection, QUEUE)
        print(f"{connection.place}, {count} messages")
    try:
        blocks = [block(number) for number in range(count)]
        messages = [message_octets("", QUEUE, BODY, properties=one) for one in blocks]
        published, consumed = [], []
        pieces: list[Deliveries] = []
        for _ in range(ROUNDS):
            published.append(rate(count, lambda: publish(url, messages)))
            consumed.append(
                rate(count, lambda: pieces.__setitem__(slice(None), consume(url, count)))
            )
        report("publish, confirms, window 2000", published)
        report("consume into columns, acknowledged", consumed)
        if importlib.util.find_spec("pyarrow") is None:
            print("conversion: pyarrow is not installed: pip install 'burrowmq[spark]'")
        else:
            convert(pieces, count)
    finally:
        with connect(url) as connection:
            delete_queue(connection, QUEUE)


def main() -> None:
    url = sys.argv[1] if len(sys.argv) > 1 else ""
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 100_000
    if url:
        run(url, count)
        return
    with tempfile.TemporaryDirectory() as folder:
        node = BrokerProcess(Path(folder) / "data", is_verified=False)
        node.start()
        try:
            run(node.url, count)
        finally:
            node.stop()


if __name__ == "__main__":
    main()
