"""What `bench.instructions` counts: each row in two processes, one with twice the reads of the other.

    python bench/instructions_rows.py ROW:READS ...

They are children of this one, which has loaded everything; each prints its process id and how many messages it had, and
valgrind, which is told nothing, what it had executed with its parent when it ended. The broker is the one that PYTHONPATH leads to, which may be an older checkout than
this file: it is the real core, from the octets of a read to those of a write, on a loop run by hand, and for persistent
rows a whole node, whose commits are applied in the same thread. Sockets and threads are not there, so that two runs
take the same steps. Owns what a row owns, for the time of the process.
"""

import os
import struct
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pika import spec

from burrowmq.broker.node.server_process import Machine
from burrowmq.storage.files.filesystem import OsFileSystem
from tests.support.bench import node
from tests.support.bench.broker import BrokerBench
from tests.support.bench.client import Client
from tests.support.bench.node import NodeBench
from tests.support.wire_client import method_bytes, publish_bytes

MEMORY = "/dev/shm"
READ_BYTES = 65_000
"""What one read of a busy socket brings."""
ACK = struct.Struct(">BHIIQBB")
ACK_HEAD, ACK_END = (1, 1, 13, 60 << 16 | 80), (0, 0xCE)
"""basic.ack on channel 1, what stands before its tag and behind it: by pika's tables it costs as much as the broker."""
TURNED = 200
"""Messages of a read whose consumer takes them in turns."""


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


class Files(OsFileSystem):
    """The machine's, in the place of the simulated ones of `NodeBench`, which take ten times what a store does."""

    free_bytes = 0

    def __init__(self, *, strict: bool) -> None:
        super().__init__()

    def disk_free(self, path: str) -> int:
        """Too little for the ballast of a store, as there."""
        return self.free_bytes


def on_disk(directory: str, make: type[Row] = Row, **arguments: Any) -> Row:
    """A row with a durable queue, on the machine's file system, whose node does not check itself as tests' nodes do."""
    unchecked = {
        "SimFileSystem": Files,
        "Machine": lambda **given: Machine(**{**given, "end": None}),
    }
    with patch.multiple(node, **unchecked):
        row = make(NodeBench(Path(directory)))
    row.client.call(1, spec.Queue.Declare(queue="q", durable=True, arguments=arguments))
    return row


def confirming(directory: str) -> Row:
    """Persistent, with confirms, and a consumer that acknowledges each."""
    row = on_disk(directory)
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


def in_turns(prefetch: int) -> Row:
    """A consumer that acknowledges each message, as many in a read as it may have at a time, and gets the next for it."""
    row = core()
    row.client.call(1, spec.Queue.Declare(queue="q"))
    consumer = row.bench.connect(1)
    consumer.call(1, spec.Basic.Qos(prefetch_count=prefetch))
    consumer.call(1, spec.Basic.Consume(queue="q"))
    row.others = [consumer]
    row.publish("", "q", 16)
    row.data = row.data[: len(row.data) // row.messages * TURNED]
    row.messages = TURNED
    tag = [0]

    def acknowledge() -> None:
        for _ in range(row.messages // prefetch):
            tags = range(tag[0] + 1, tag[0] + prefetch + 1)
            tag[0] += prefetch
            row.send(consumer, b"".join([ACK.pack(*ACK_HEAD, each, *ACK_END) for each in tags]))

    row.after = acknowledge
    return row


class Waiting(Row):
    """Publishers of which each waits for the confirm of its last message; those of all come with one commit."""

    def __init__(self, bench: BrokerBench | NodeBench) -> None:
        super().__init__(bench)
        self.publishers = [self.client]

    def take(self) -> None:
        """A read of each, and the turns after them."""
        self.bench.perform(self._read)
        for each in self.publishers:
            each._unread = b""
            each.written.clear()

    def _read(self) -> None:
        for each in self.publishers:
            each.session.receive(self.data)

    def published(self) -> int:
        """How many messages the channels have had."""
        return sum(each.session.channels[1].metrics.publish for each in self.publishers)


def waiting(directory: str, publishers: int) -> Row:
    """So many publishers to one queue, persistent; nobody consumes."""
    row = on_disk(directory, Waiting)
    assert isinstance(row, Waiting)
    row.publishers += [row.bench.connect(1) for _ in range(publishers - 1)]
    properties = spec.BasicProperties(delivery_mode=2)
    row.data = publish_bytes(1, "", "q", b"x" * 512, properties=properties)
    row.messages = publishers
    for each in row.publishers:
        each.call(1, spec.Confirm.Select())
    return row


def keeping(directory: str, **arguments: Any) -> Row:
    """Persistent, without confirms; nobody consumes, and all of it stays on disk."""
    row = on_disk(directory, **arguments)
    row.publish("", "q", 1000, mode=2)
    return row


ROWS: dict[str, Callable[[str], Row]] = {
    "publish-16": lambda _: publishing(16),
    "publish-1k": lambda _: publishing(1024),
    "1p1c-16": lambda _: consuming(1),
    "fanout-5": lambda _: consuming(5),
    "confirms-1k": confirming,
    "prefetch-1": lambda _: in_turns(1),
    "prefetch-10": lambda _: in_turns(10),
    "waiting-100": partial(waiting, publishers=100),
    "persistent-1000": keeping,
    "lazy-1000": lambda directory: keeping(directory, **{"x-queue-mode": "lazy"}),
}
"""What makes each, given an empty directory."""


def count_time() -> Callable[[], None]:
    """Let time stand still in this process, but for a millisecond whenever what is returned is called.

    So timers and rates are the same in each run, however long it takes.
    """
    passed = [1000.0]
    clocks = {id(time.monotonic), id(time.perf_counter)}
    if real_time := sys.modules.get("burrowmq.storage.real_time"):  # older commits have none
        clocks |= {id(vars(real_time)["monotonic"]), id(vars(real_time)["perf_counter"])}
    for module in list(sys.modules.values()):
        for name, value in list(vars(module).items()):
            if id(value) in clocks:
                setattr(module, name, lambda: passed[0])

    def tick() -> None:
        passed[0] += 0.001

    return tick


def run(name: str, reads: int, directory: str) -> int:
    """Take the reads of a row; returns how many messages they had. Time is not the machine's afterwards."""
    tick = count_time()
    row = ROWS[name](directory)
    for _ in range(reads):
        tick()
        row.take()
    return row.published()


def fork(step: Callable[[], int]) -> None:
    """Take a step in a child, which says its process id and what the step gives."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    try:
        print(os.getpid(), step(), flush=True)
    except BaseException:
        traceback.print_exc()
    os._exit(0)


def main(rows: list[str]) -> None:
    """Two children that do nothing, then two for each `ROW:READS`: one with those reads, one with twice as many."""
    for _ in range(2):
        fork(lambda: 0)
    for each in rows:
        name, _, reads = each.partition(":")
        for times in (1, 2):
            with tempfile.TemporaryDirectory(
                dir=MEMORY if os.path.isdir(MEMORY) else None
            ) as directory:
                fork(partial(run, name, times * int(reads), directory))


if __name__ == "__main__":
    main(sys.argv[1:])
