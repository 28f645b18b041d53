"""What `bench.instructions` counts: one row in a process of its own, with as many reads as it is told.

    python bench/instructions_rows.py ROW READS

Prints how many messages that were. The broker is the one that PYTHONPATH leads to, which may be an older checkout than
this file: it is the real core, from the octets of a read to those of a write, on a loop run by hand, and for persistent
rows a whole node, whose commits are applied in the same thread to files in memory. Sockets and threads are not there,
so that two runs take the same steps. Owns what a row owns, for the time of the process.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pika import spec

from tests.support.bench.broker import BrokerBench
from tests.support.bench.client import Client
from tests.support.bench.node import NodeBench
from tests.support.wire_client import method_bytes, publish_bytes

READ_BYTES = 65_000
"""What one read of a busy socket brings."""


class Row:
    """A broker, and a publisher whose reads are all the same."""

    def __init__(self, bench: BrokerBench | NodeBench) -> None:
        self.bench = bench
        self.client = bench.connect(1)
        self.others: list[Client] = []
        self.messages = 0
        self.data = b""
        self.after: Callable[[], object] = lambda: None
        """What comes after each read."""

    def publish(self, exchange: str, key: str, size: int, mode: int = 1) -> None:
        """Let a read have as many of these as it holds."""
        properties = spec.BasicProperties(delivery_mode=mode)
        one = publish_bytes(1, exchange, key, b"x" * size, properties=properties)
        self.messages = READ_BYTES // len(one)
        self.data = one * self.messages

    def take(self) -> None:
        """One read, and the turns after it."""
        self.send(self.client, self.data)
        self.after()

    def send(self, client: Client, data: bytes) -> None:
        """A read of one client; nobody looks at what is written."""
        client.send(data)
        for each in (self.client, *self.others):
            each._unread = b""
            each.written.clear()

    def published(self) -> int:
        """How many messages the channel has had."""
        count: int = self.client.session.channels[1].metrics.publish
        return count

    def close(self) -> None:
        """End a node."""
        if isinstance(self.bench, NodeBench):
            self.bench.close()


def core() -> Row:
    """A row without a disk."""
    return Row(BrokerBench(default_mode="cached", is_verified=False))


def publishing(size: int) -> Row:
    """Nobody consumes: what was published is purged."""
    row = core()
    row.client.call(1, spec.Queue.Declare(queue="q"))
    row.publish("", "q", size)
    row.after = row.bench.vhost.queues["q"].purge  # type: ignore[union-attr] # a row without a disk
    return row


def consuming(consumers: int) -> Row:
    """So many queues, each with a consumer that need not acknowledge, bound to one exchange if there are several."""
    row = core()
    row.client.call(1, spec.Exchange.Declare(exchange="x", type="fanout"))
    row.others = [row.bench.connect(1) for _ in range(consumers)]
    for number, each in enumerate(row.others):
        row.client.call(1, spec.Queue.Declare(queue=f"q{number}"))
        row.client.call(1, spec.Queue.Bind(queue=f"q{number}", exchange="x", routing_key=""))
        each.call(1, spec.Basic.Consume(queue=f"q{number}", no_ack=True))
    row.publish(*(("x", "") if consumers > 1 else ("", "q0")), 16)
    return row


def on_disk(**arguments: Any) -> Row:
    """A row with a durable queue."""
    # The files are in memory: the path is a name.
    row = Row(NodeBench(Path("/burrowmq")))
    row.client.call(1, spec.Queue.Declare(queue="q", durable=True, arguments=arguments))
    return row


def confirming() -> Row:
    """Persistent, with confirms, and a consumer that acknowledges each."""
    row = on_disk()
    row.client.call(1, spec.Confirm.Select())
    consumer = row.bench.connect(1)
    consumer.call(1, spec.Basic.Consume(queue="q"))
    row.others = [consumer]
    row.publish("", "q", 1024, mode=2)
    tag = [0]

    def acknowledge() -> None:
        tags = range(tag[0] + 1, tag[0] + row.messages + 1)
        tag[0] += row.messages
        row.send(consumer, b"".join(method_bytes(1, spec.Basic.Ack(each)) for each in tags))

    row.after = acknowledge
    return row


def keeping(**arguments: Any) -> Row:
    """Persistent, without confirms; nobody consumes, and all of it stays on disk."""
    row = on_disk(**arguments)
    row.publish("", "q", 1000, mode=2)
    return row


ROWS: dict[str, Callable[[], Row]] = {
    "publish-16": lambda: publishing(16),
    "publish-1k": lambda: publishing(1024),
    "1p1c-16": lambda: consuming(1),
    "fanout-5": lambda: consuming(5),
    "confirms-1k": confirming,
    "persistent-1000": keeping,
    "lazy-1000": lambda: keeping(**{"x-queue-mode": "lazy"}),
}


def run(name: str, reads: int) -> int:
    """Take the reads of a row; returns how many messages they had."""
    row = ROWS[name]()
    for _ in range(reads):
        row.take()
    return row.published()


if __name__ == "__main__":
    print(run(sys.argv[1], int(sys.argv[2])))
