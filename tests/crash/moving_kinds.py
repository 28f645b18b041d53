"""Messages of all kinds and sizes move in from RabbitMQ, while both nodes are killed: `python -m tests.crash.moving_kinds`.

A cell is a kind of queue or message and a size of bodies; each has a queue, and all of them move in one import. Our node
is killed at one point of it and RabbitMQ at another (`--seed` draws them). Then each queue here is read: what is compared
are the octets of each message's content header (body size, flags, properties with every type of header) and of its
body, in order.

    lost, twice, reordered      messages; those that are alike in everything (empty bodies without an id) are counted

State: the nodes' directories; a queue's messages are made anew from its cell. Callers: a person, and `test_moving_in`.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from pika import spec

from burrowmq.broker.link.connect import Opener, open_link
from burrowmq.broker.link.link import Link as NodeLink
from burrowmq.broker.link.uri import parse
from burrowmq.protocol import methods, properties
from burrowmq.protocol.client.events import ClientEvent, DeliveryRun
from burrowmq.protocol.codec import join_address
from burrowmq.protocol.properties import Properties
from burrowmq.protocol.table import (
    Byte,
    DecimalValue,
    Float,
    Long,
    Short,
    Timestamp,
    UnsignedByte,
    UnsignedInt,
    UnsignedShort,
)
from tests.crash import moving_in
from tests.crash.moving_in import Run, http
from tests.differential.peer import Link, Peer
from tests.support.wire_client import method_bytes

COUNTS = {0: 6000, 64 << 10: 120, 1 << 20: 24, 16 << 20: 4}
"""Messages of a queue, by the size of their bodies."""
TYPES: dict[str, Any] = {
    "string": "text äöü", "int": 7, "long": Long(1 << 40), "short": Short(-3), "ushort": UnsignedShort(60_000),
    "byte": Byte(-5), "ubyte": UnsignedByte(200), "uint": UnsignedInt(4_000_000_000), "double": 0.1, "float": Float(0.5),
    "bool": True, "decimal": DecimalValue(2, 314), "time": Timestamp(1_700_000_000), "binary": b"\x00\xff", "void": None,
    "array": [1, "two", [3.0, None], {"four": Long(4)}], "table": {"a": {"b": {"c": [True]}}}, "": "no name",
}  # fmt: skip


class Kind(NamedTuple):
    """What is special about a queue's messages."""

    arguments: dict[str, Any]
    given: Callable[[int], Properties]


def _all(number: int) -> Properties:
    return Properties(
        content_type="text/plain", content_encoding="gzip", headers={**TYPES, "n": number}, delivery_mode=2,
        priority=number % 10, correlation_id="c" * 255, reply_to="amq.reply", expiration="864000000",
        message_id=str(number), timestamp=1_700_000_000 + number, type="t", user_id="guest", app_id="a", cluster_id="c",
    )  # fmt: skip


def _plain(number: int) -> Properties:
    return Properties(delivery_mode=2, message_id=str(number))


def _with_priority(number: int) -> Properties:
    return Properties(delivery_mode=2, message_id=str(number), priority=number % 11)


KINDS = {
    "plain": Kind({}, _plain),
    "alike": Kind({}, lambda number: Properties(delivery_mode=2)),
    "types": Kind({}, lambda number: Properties(delivery_mode=2, headers={**TYPES, "n": number})),
    "all": Kind({}, _all),
    "lazy": Kind({"x-queue-mode": "lazy"}, _plain),
    "priority": Kind({"x-max-priority": 9}, _with_priority),
    "ttl": Kind({"x-message-ttl": 864_000_000, "x-dead-letter-exchange": "amq.fanout"}, _plain),
    "own-ttl": Kind({}, lambda number: Properties(delivery_mode=2, expiration=str(864_000_000 + number))),
    "version-1": Kind({"x-queue-version": 1}, _plain),
}  # fmt: skip


class Cell(NamedTuple):
    """A queue."""

    kind: str
    size: int
    count: int

    @property
    def name(self) -> str:
        return f"{self.kind} {self.size}"

    def contents(self) -> Iterator[tuple[bytes, int]]:
        """Header and body frames of each message, in the order of publishing, and its priority."""
        pattern = random.Random(self.name).randbytes(1 << 16)
        for number in range(self.count):
            given = KINDS[self.kind].given(number)
            start = b"" if self.kind == "alike" else b"%d:" % number
            body = (start + pattern * (self.size // len(pattern) + 1))[: self.size]
            raw = properties.build(join_address(b"", self.name.encode()), given, body).raw
            yield raw, given.priority or 0

    def expected(self) -> list[bytes]:
        """The digests of its messages in the order in which the queue gives them out."""
        top = KINDS[self.kind].arguments.get("x-max-priority")
        found = [(-min(level, top or 0), of(raw)) for raw, level in self.contents()]
        return [digest for _, digest in sorted(found, key=lambda each: each[0])]


def of(raw: bytes) -> bytes:
    """A digest of a content header's octets and of the body."""
    end = 7 + int.from_bytes(raw[3:7], "big")
    return blake2b(raw[7:end] + properties.body(raw), digest_size=16).digest()


def cells(scale: float, only: str) -> list[Cell]:
    """All whose name has that in it."""
    every = [
        Cell(kind, size, max(1, int(COUNTS[size] * scale)))
        for kind, size in itertools.product(KINDS, COUNTS)
    ]
    return [cell for cell in every if only in cell.name]


def fill(run: Run, wanted: list[Cell]) -> None:
    """Declare the queues there, and publish everything."""
    queues = [
        {"vhost": "/", "name": cell.name, "durable": True, "auto_delete": False, "arguments": KINDS[cell.kind].arguments}
        for cell in wanted
    ]  # fmt: skip
    http(run.theirs.management_port, "POST", "definitions", {"queues": queues})
    link = Link(run.theirs.amqp_port)
    peer = Peer(link, 1, set())
    for cell in wanted:
        method = method_bytes(1, spec.Basic.Publish(exchange="", routing_key=cell.name))
        for raw, _ in cell.contents():
            peer.send(method + raw)
        found = peer.wait_ready(cell.name, cell.count, 120)
        assert found == cell.count, f"{cell.name} has {found} of {cell.count} messages"
    link.close()
    run.theirs.ctl("eval", "mnesia:sync_log().")


def move(run: Run, rng: random.Random, words: tuple[str, ...]) -> None:
    """Move everything; both nodes are killed on the way, in either order."""
    first, second = sorted(rng.uniform(0.02, 0.95) for _ in range(2))
    victims = [run.ours, run.theirs]
    rng.shuffle(victims)
    argv = moving_in.ctl(run, "--no-publishers", "--quiet", *words)
    command = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    for victim, share in zip(victims, (first, second), strict=True):
        moving_in.wait_moved(run, int(run.messages * share))
        victim.kill()
        name = "our node" if victim is run.ours else "RabbitMQ"
        run.say(f"{name} was killed at {share:.0%}")
        if victim is run.ours:
            command.communicate(timeout=60)
        victim.start()
        if victim is run.ours:
            command = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    out, _ = command.communicate(timeout=moving_in.TIMEOUT_S)
    assert command.returncode == 0, out.decode()[-4000:]


class Reader:
    """Takes the digests of everything that one queue has."""

    def __init__(self) -> None:
        self.found: list[bytes] = []
        self.wake = asyncio.Event()

    def received(self, link: NodeLink, events: list[ClientEvent]) -> None:
        for event in events:
            if isinstance(event, DeliveryRun):
                self.found += [of(message.raw) for message in event.messages]
        self.wake.set()

    def drained(self, link: NodeLink) -> None:
        """Nothing is published."""

    def lost(self, link: NodeLink, reason: str) -> None:
        self.wake.set()


async def read(port: int, queue: str, count: int) -> list[bytes]:
    """The digests of a queue's messages here, in order."""
    reader = Reader()
    opener = Opener(open_session=moving_in.no_session, max_message_size=1 << 30)
    link = await open_link(opener, parse(f"amqp://127.0.0.1:{port}", "/"), reader, "reader")
    link.connection.send(1, methods.Channel.Open())
    link.connection.send(1, methods.Basic.Consume(queue=queue, no_ack=True))
    link.flush()
    async with asyncio.timeout(120):
        while len(reader.found) < count:
            reader.wake.clear()
            await reader.wake.wait()
    link.close()
    await asyncio.sleep(0)  # the transport lets go of its socket
    return reader.found


def compared(wanted: list[bytes], found: list[bytes]) -> tuple[int, int, int]:
    """Lost, twice, out of order."""
    lost = Counter(wanted) - Counter(found)
    more = Counter(found) - Counter(wanted)
    in_order = [each for each in dict.fromkeys(found) if each in set(wanted)]
    right = [each for each in dict.fromkeys(wanted) if each in set(found)]
    return lost.total(), more.total(), sum(a != b for a, b in zip(in_order, right, strict=True))


def run_all(run: Run, wanted: list[Cell], seed: int, words: tuple[str, ...] = ()) -> int:
    """One import of all cells; how many of them are not as they were."""
    bad = 0
    try:
        run.theirs.start()
        run.ours.start()
        fill(run, wanted)
        run.say(f"RabbitMQ has {run.messages} messages in {len(wanted)} queues")
        began = time.monotonic()
        move(run, random.Random(seed), words)
        run.say(f"moved in {time.monotonic() - began:.0f} s")
        rows = http(run.ours.management_port, "GET", "queues?columns=name,messages_ready")
        counts = {row["name"]: row["messages_ready"] for row in rows}
        for cell in wanted:
            found = asyncio.run(read(run.ours.amqp_port, cell.name, counts.get(cell.name, 0)))
            lost, twice, reordered = compared(cell.expected(), found)
            bad += bool(lost or twice or reordered)
            run.say(
                f"{cell.kind:10} {cell.size:9} {cell.count:6} lost {lost} twice {twice} reordered {reordered}"
            )
        assert run.ours.stop() == 0
    finally:
        run.theirs.stop()
        run.ours.kill()
    return bad


def main() -> int:
    """Run it with a seed for each import; 1 when something is not as it was."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of messages")
    parser.add_argument("--only", default="", help="cells whose name has this in it")
    given = parser.parse_args()
    wanted, bad = cells(given.scale, given.only), 0
    for seed in range(given.seed, given.seed + given.runs):
        with tempfile.TemporaryDirectory() as directory:
            run = Run(Path(directory), len(wanted), sum(cell.count for cell in wanted))
            run.say(f"seed {seed}")
            bad += run_all(run, wanted, seed)
    sys.stdout.write(f"cells that are not as they were: {bad}\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
