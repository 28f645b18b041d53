"""A queue to Parquet and back into a queue, every message compared: `python -m tests.spark.round_trip --messages 1000000`.

Run it with the Python of `.venv/spark`. State: none but a scratch folder. Message n is made from n alone, with headers of
every type, so what comes out is compared with what must be, octet by octet.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

from pyspark_amqp.wire import Consumer, Publisher, connect, declare_queue, message_octets
from pyspark_amqp.wire.properties import PropertyValue, encode
from pyspark_amqp.wire.table import Timestamp

_PIECE = 5000


def session_free_name(url: str) -> str:
    """Declare a durable queue of its own."""
    name = f"trip.{uuid.uuid4().hex[:10]}"
    with connect(url) as connection:
        declare_queue(connection, name)
    return name


def properties_of(n: int) -> bytes:
    """The property block of message n."""
    found: dict[str, PropertyValue] = {
        "content_type": "application/json",
        "headers": {
            "n": n,
            "text": f"größe {n % 100}",
            "flag": n % 2 == 0,
            "real": n / 4,
            "at": Timestamp(1_700_000_000 + n),
            "raw": bytes([n % 256, 0, 255]),
            "price": Decimal(n).scaleb(-2),
            "list": [n % 10, "x", None],
            "table": {"inner": n % 3},
        },
        "delivery_mode": 2,
        "priority": n % 10,
        "message_id": f"m{n}",
        "timestamp": Timestamp(1_700_000_000 + n),
    }
    if n % 3 == 0:
        found |= {"correlation_id": f"c{n % 50}", "reply_to": "answers", "type": "t"}
    if n % 5 == 0:
        found |= {
            "content_encoding": "identity",
            "app_id": "trip",
            "user_id": "guest",
            "expiration": "86400000",
        }
    return encode(found)


def body_of(n: int) -> bytes:
    """The body of message n: mostly small, some empty, some in several frames."""
    if n % 997 == 0:
        return b""
    if n % 1499 == 0:
        return b"%09d" % n * 20_000
    return b"message %d " % n * (1 + n % 16)


def fill(url: str, queue: str, count: int) -> None:
    """Publish messages 0.. with confirms."""
    with connect(url) as connection:
        publisher = Publisher(connection)
        for first in range(0, count, _PIECE):
            publisher.send(
                [
                    message_octets("", queue, body_of(n), properties=properties_of(n))
                    for n in range(first, min(first + _PIECE, count))
                ]
            )
        publisher.flush()


def differences(url: str, queue: str, count: int) -> list[str]:
    """Take the queue's messages and compare each with what it must be, in its place; the first few that differ."""
    wrong: list[str] = []
    seen_count = 0
    with connect(url) as connection:
        while seen_count < count and not wrong:
            piece_count = min(_PIECE, count - seen_count)
            consumer = Consumer(connection, queue, piece_count)
            found = consumer.read(piece_count, idle_timeout_s=5.0)
            if not len(found):
                wrong.append(f"{seen_count} of {count} messages came")
                break
            for n, one in enumerate(found, seen_count):
                if (came := number_of(one.properties)) != n:
                    wrong.append(f"{came} came where {n} belongs")
                elif one.properties != properties_of(n) or one.body != body_of(n):
                    wrong.append(f"{n} differs: {one.properties!r} is not {properties_of(n)!r}")
            consumer.settle(found)
            seen_count += len(found)
    return wrong[:6]


def number_of(properties: bytes) -> int:
    """The number in the first header, "n" of 32 or 64 bits; -1 when there is none."""
    _, _, value = properties.partition(b"\x01n")  # the name: no number stands before it
    size = {b"I": 4, b"l": 8}.get(value[:1])
    return -1 if size is None else int.from_bytes(value[1 : 1 + size], "big")


def main(argv: Sequence[str] | None = None) -> int:
    """Fill, archive, replay, compare; figures of each step."""
    from pyspark_amqp_jobs import __main__ as command

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--uri", default="amqp://127.0.0.1")
    parser.add_argument("--messages", type=int, default=1_000_000)
    options = parser.parse_args(argv)
    source, target = session_free_name(options.uri), session_free_name(options.uri)
    began = time.monotonic()

    def step(what: str) -> None:
        nonlocal began
        now = time.monotonic()
        rate = options.messages / (now - began)
        sys.stdout.write(f"{what}: {now - began:.1f} s, {rate:,.0f} messages/s\n")
        sys.stdout.flush()
        began = time.monotonic()

    with tempfile.TemporaryDirectory(prefix="trip-") as folder:
        fill(options.uri, source, options.messages)
        step("published with confirms")
        where = str(Path(folder) / "archive")
        words = ["--uri", options.uri]
        assert command.main(["archive", "--queue", source, "--to", where, *words]) == 0
        step("archived, Spark's start included")
        assert command.main(["replay", "--from", where, "--to-queue", target, *words]) == 0
        step("replayed, Spark's start included")
    wrong = differences(options.uri, target, options.messages)
    step("compared")
    right = f"all {options.messages:,} messages are equal, and in their order"
    sys.stdout.write("\n".join(wrong or [right]) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
