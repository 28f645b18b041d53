"""A whole RabbitMQ moves in with `burrowctl import-from`, while both nodes are killed: what was there is here, once, in order.

    python -m tests.crash.moving_in --queues 200 --messages 1000000

With `--publishers` the command is not told that nobody publishes there: then messages that are alike in everything may come
twice (docs/migrating.md), which every tenth queue has, and only those; how many is printed.

State: the two nodes' directories, and what each queue was filled with, which a formula says. Callers: a person, and
`test_moving_in`. What is checked: each queue's messages one by one, in order (by priority where the queue has some); the
definitions, exported on both sides; and that the other broker is empty.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import functools
import json
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pika import BasicProperties, spec

from burrowmq.broker.link.connect import Opener, open_link
from burrowmq.broker.link.link import Link as NodeLink
from burrowmq.broker.link.uri import parse
from burrowmq.protocol import methods, properties
from burrowmq.protocol.client.events import ClientEvent, DeliveryRun
from tests.differential.peer import Link, Peer
from tests.support.broker_process import BURROWCTL, BrokerProcess
from tests.support.ports import free_port
from tests.support.rabbitmq_node import RabbitNode, free_node_port
from tests.support.wire_client import BODY, frame, header_bytes, method_bytes

PLUGINS = ["rabbitmq_consistent_hash_exchange", "rabbitmq_recent_history_exchange"]
KINDS = 5
CHUNK = 500
TIMEOUT_S = 1800


@dataclass
class Run:
    """Both nodes, and what is asked of them."""

    directory: Path
    queues: int
    messages: int
    is_quiet: bool = True
    """Whether the command is told that nobody publishes there."""
    kills: tuple[float, float] = (0.25, 0.5)
    """When so much of the messages is here, our node is killed, and then the other broker."""
    theirs: RabbitNode = field(init=False)
    ours: BrokerProcess = field(init=False)
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.theirs = RabbitNode(
            self.directory / "rabbit",
            free_node_port(),
            management_port=free_port(),
            plugins=PLUGINS,
        )
        self.ours = BrokerProcess(self.directory / "ours", is_verified=False)

    @property
    def names(self) -> list[str]:
        return [f"queue.{number}" for number in range(self.queues)]

    def count_of(self, number: int) -> int:
        """How many messages a queue has."""
        return self.messages // self.queues + (number < self.messages % self.queues)

    def say(self, text: str) -> None:
        self.said.append(text)
        print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def arguments_of(number: int) -> dict[str, Any]:
    """Queues of five kinds, in turn."""
    kinds: list[dict[str, Any]] = [
        {}, {"x-max-priority": 5}, {"x-queue-mode": "lazy"}, {"x-max-length": 10_000_000},
        {"x-message-ttl": 86_400_000, "x-dead-letter-exchange": "dead"},
    ]  # fmt: skip
    return kinds[number % KINDS]


def is_alike(number: int) -> bool:
    """Every tenth queue's messages are all alike: nothing in them tells one from another."""
    return number % 10 == 9


def body_of(number: int, index: int) -> bytes:
    return b"alike" if is_alike(number) else b"%d:%d:" % (number, index) + b"x" * (index % 200)


def priority_of(number: int, index: int) -> int:
    return index % 6 if number % KINDS == 1 else 0


def definitions(run: Run) -> dict[str, Any]:
    """What the other broker is given."""
    queues = [
        {"vhost": "/", "name": name, "durable": True, "auto_delete": False, "arguments": arguments_of(n)}
        for n, name in enumerate(run.names)
    ]  # fmt: skip
    exchanges = [
        {"vhost": "/", "name": name, "type": kind, "durable": True, "auto_delete": False,
         "internal": False, "arguments": arguments}
        for name, kind, arguments in (
            ("orders", "x-consistent-hash", {"hash-header": "id"}), ("dead", "fanout", {}),
            ("last", "x-recent-history", {"x-recent-history-length": 5}), ("topics", "topic", {"alternate-exchange": "dead"}),
        )
    ]  # fmt: skip
    bindings = [
        {"vhost": "/", "source": "orders", "destination": name, "destination_type": "queue",
         "routing_key": str(1 + n % 9), "arguments": {}}
        for n, name in enumerate(run.names)
    ]  # fmt: skip
    return {
        "users": [
            {"name": "guest", "password": "guest", "tags": "administrator"},
            {"name": "shop", "password": "a secret", "tags": "monitoring"},
        ],
        "vhosts": [{"name": "/"}, {"name": "billing"}],
        "permissions": [
            {"user": "guest", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"},
            {"user": "shop", "vhost": "billing", "configure": "^shop", "write": ".*", "read": ""},
        ],
        "topic_permissions": [
            {"user": "shop", "vhost": "billing", "exchange": "amq.topic", "write": "^a", "read": ".*"}
        ],
        "parameters": [
            {"vhost": "billing", "component": "vhost-limits", "name": "limits",
             "value": {"max-queues": 50}},
            {"vhost": "/", "component": "operator_policy", "name": "cap",
             "value": {"pattern": "^queue", "apply-to": "queues", "priority": 1,
                       "definition": {"max-length": 20_000_000}}},
        ],
        "policies": [
            {"vhost": "/", "name": "dlx", "pattern": "^none", "apply-to": "queues", "priority": 3,
             "definition": {"dead-letter-exchange": "dead"}}
        ],
        "queues": queues, "exchanges": exchanges, "bindings": bindings,
    }  # fmt: skip


def http(port: int, verb: str, path: str, body: Any = None) -> Any:
    """One request below /api."""
    token = base64.b64encode(b"guest:guest").decode()
    headers = {"Authorization": f"Basic {token}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/api/{path}", data, headers, method=verb
    )
    try:
        with urllib.request.urlopen(request, timeout=120) as response:
            raw = response.read()
    except urllib.error.HTTPError as refused:
        refused.close()
        raise
    return json.loads(raw) if raw else None


@functools.cache
def header_of(number: int, size: int, priority: int) -> bytes:
    """A content header as it goes over the wire."""
    given = BasicProperties(delivery_mode=2, priority=priority, headers={"n": number})
    return header_bytes(1, size, given)


def fill(run: Run) -> None:
    """Publish everything to the other broker, and wait until it has it."""
    link = Link(run.theirs.amqp_port)
    peer = Peer(link, 1, set())
    for number, name in enumerate(run.names):
        count = run.count_of(number)
        method = method_bytes(1, spec.Basic.Publish(exchange="", routing_key=name))
        for first in range(0, count, CHUNK):
            peer.send(
                *[
                    method + header_of(number, len(body), priority) + frame(BODY, 1, body)
                    for body, priority in (
                        (body_of(number, index), priority_of(number, index))
                        for index in range(first, min(first + CHUNK, count))
                    )
                ]
            )
        found = peer.wait_ready(name, count, 120)
        assert found == count, f"{name} has {found} of {count} messages"
    link.close()


def ctl(run: Run, *words: str) -> list[str]:
    return [
        str(BURROWCTL), "--data-dir", str(run.ours.data_dir), "import-from",
        f"amqp://127.0.0.1:{run.theirs.amqp_port}",
        "--management", f"http://guest:guest@127.0.0.1:{run.theirs.management_port}", *words,
    ]  # fmt: skip


def moved(run: Run) -> int:
    """How many messages have been stored here, as the node says it."""
    try:
        return int(http(run.ours.management_port, "GET", "burrowmq/import")["moved"])
    except OSError:
        return 0


def wait_moved(run: Run, count: int) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while moved(run) < count:
        assert time.monotonic() < deadline, f"{moved(run)} of {count} in {TIMEOUT_S} s"
        time.sleep(0.05)


def move(run: Run, *, rate: int = 0) -> str:
    """Move everything, and kill each side once; what the last command printed."""
    words = (
        *(("--no-publishers",) if run.is_quiet else ()),
        *(("--rate", str(rate)) if rate else ()),
    )
    first = subprocess.Popen(ctl(run, *words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    wait_moved(run, int(run.messages * run.kills[0]))
    run.ours.kill()
    out, _ = first.communicate(timeout=60)
    run.say(f"our node was killed; the command ended with {first.returncode}")
    assert first.returncode != 0, out
    run.ours.start()
    second = subprocess.Popen(ctl(run, *words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    wait_moved(run, int(run.messages * run.kills[1]))
    run.theirs.kill()
    run.say(f"RabbitMQ was killed when {moved(run)} messages were here")
    run.theirs.start()
    out, _ = second.communicate(timeout=TIMEOUT_S)
    text = out.decode()
    assert second.returncode == 0, text[-4000:]
    return text


class Reader:
    """Takes everything that one queue has."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.wake = asyncio.Event()
        self.is_lost = False

    def received(self, link: NodeLink, events: list[ClientEvent]) -> None:
        for event in events:
            if isinstance(event, DeliveryRun):
                self.bodies += [properties.body(message.raw) for message in event.messages]
        self.wake.set()

    def drained(self, link: NodeLink) -> None:
        """Nothing is published."""

    def lost(self, link: NodeLink, reason: str) -> None:
        self.is_lost = True
        self.wake.set()


async def read(port: int, queue: str, count: int) -> list[bytes]:
    """Bodies of a queue here, in order."""
    reader = Reader()
    opener = Opener(open_session=no_session)
    link = await open_link(opener, parse(f"amqp://127.0.0.1:{port}", "/"), reader, "reader")
    link.connection.send(1, methods.Channel.Open())
    link.connection.send(1, methods.Basic.Consume(queue=queue, no_ack=True))
    link.flush()
    async with asyncio.timeout(120):
        while len(reader.bodies) < count and not reader.is_lost:
            reader.wake.clear()
            await reader.wake.wait()
        link.close()
        while not reader.is_lost:
            reader.wake.clear()
            await reader.wake.wait()
    await asyncio.sleep(0)  # the transport lets go of its socket
    return reader.bodies


def no_session(peer: object) -> Any:
    raise AssertionError("the link goes over a socket")


def check_messages(run: Run) -> int:
    """Each queue has what it had there: nothing lost, nothing twice but what may be, in order; how many are twice."""
    rows = http(run.ours.management_port, "GET", "queues?columns=name,messages_ready")
    counts = {row["name"]: row["messages_ready"] for row in rows}
    twice = {
        name: counts.get(name, 0) - run.count_of(number) for number, name in enumerate(run.names)
    }
    for number, name in enumerate(run.names):
        if is_alike(number) and not run.is_quiet:
            assert 0 <= twice.pop(name) <= run.count_of(number), f"{name} has {counts[name]}"
    assert not any(twice.values()), {name: count for name, count in twice.items() if count}
    for number, name in enumerate(run.names):
        count = counts[name]
        order = sorted(range(count), key=lambda n, q=number: -min(priority_of(q, n), 5))  # type: ignore[misc] - bound
        found = asyncio.run(read(run.ours.amqp_port, name, count))
        assert found == [body_of(number, index) for index in order], f"{name}: another order"
    return sum(counts.values()) - run.messages


def comparable(document: dict[str, Any]) -> dict[str, list[str]]:
    """The sections of an export as sets."""
    sections = ("users", "vhosts", "permissions", "topic_permissions", "parameters", "policies",
                "queues", "exchanges", "bindings")  # fmt: skip
    result = {}
    for section in sections:
        rows = []
        for row in document.get(section, []):
            kept = {key: value for key, value in row.items() if key not in ("metadata", "limits")}
            if isinstance(kept.get("tags"), str):
                kept["tags"] = [each for each in kept["tags"].split(",") if each]
            rows.append(json.dumps(kept, sort_keys=True))
        result[section] = sorted(rows)
    return result


def check_definitions(run: Run) -> None:
    theirs = comparable(http(run.theirs.management_port, "GET", "definitions"))
    ours = comparable(http(run.ours.management_port, "GET", "definitions"))
    for section, rows in theirs.items():
        missing = sorted(set(rows) - set(ours[section]))
        added = sorted(set(ours[section]) - set(rows))
        assert (missing, added) == ([], []), f"{section}: only there, only here"


def check_source(run: Run) -> None:
    link = Link(run.theirs.amqp_port)
    peer = Peer(link, 1, set())
    left = {name: peer.ready(name) for name in run.names}
    link.close()
    assert not any(left.values()), {name: count for name, count in left.items() if count}


def run_all(run: Run, *, rate: int = 0) -> None:
    """The whole of it."""
    try:
        run.theirs.start()
        run.ours.start()
        http(run.theirs.management_port, "POST", "definitions", definitions(run))
        began = time.monotonic()
        fill(run)
        run.say(
            f"RabbitMQ has {run.messages} messages in {run.queues} queues, {time.monotonic() - began:.0f} s"
        )
        began = time.monotonic()
        text = move(run, rate=rate)
        run.say(f"moved in {time.monotonic() - began:.0f} s, with both kills and their restarts")
        run.say(text.splitlines()[-1])
        check_source(run)
        check_definitions(run)
        twice = check_messages(run)
        run.say(f"nothing lost, {twice} alike ones twice, order kept, definitions equal")
        assert run.ours.stop() == 0
    finally:
        run.theirs.stop()
        run.ours.kill()


def main() -> int:
    """Run it at the size that is asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--queues", type=int, default=200)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--rate", type=int, default=0)
    parser.add_argument("--publishers", action="store_true", help="leave --no-publishers out")
    parser.add_argument(
        "--kills",
        type=float,
        nargs=2,
        default=(0.25, 0.5),
        metavar="SHARE",
        help="ours, then the other",
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        run = Run(
            Path(directory), given.queues, given.messages, not given.publishers, tuple(given.kills)
        )
        run_all(run, rate=given.rate)
    return 0


if __name__ == "__main__":
    sys.exit(main())
