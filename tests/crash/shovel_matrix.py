"""What a shovel loses, doubles and puts out of order when something is killed: `python -m tests.crash.shovel_matrix`.

A cell is an ack mode, what is at each end, and what is killed: a broker with SIGKILL (and started again), or the link
to it by a reset. `here` is an end in the shovelling node itself, without a socket. Each cell moves numbered persistent
messages, kills when a fifth has arrived, waits until the source is empty and nothing moves, and looks at what arrived:

    lost        numbers that did not
    doubled     arrivals beyond the first of their number
    left        messages that are in the source after all
    reordered   numbers whose first arrival is behind that of a greater one

`expected` says what each mode promises. State: the brokers, which all cells share; queues are a cell's own.
Options: `--rabbitmq` (also with RabbitMQ at the ends, where it is installed), `--messages N`, `--only TEXT`, `--markdown`
(behind the lines, the table of docs/shovel.md).
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import pika

from tests.support.broker_process import BrokerProcess
from tests.support.rabbitmq_node import RabbitNode, free_node_port, is_installed
from tests.support.tcp_proxy import TcpProxy

MODES = ("on-confirm", "on-publish", "no-ack")
VICTIMS = ("source", "destination", "source's link", "destination's link")
TIMEOUT_S = 120.0
QUIET_S = 0.6
MESSAGES = 4000
SIZE = 500

End = Literal["here", "burrow", "rabbit"]


class Cell(NamedTuple):
    """One kill."""

    mode: str
    source: End
    destination: End
    victim: str

    @property
    def name(self) -> str:
        """For a person."""
        return f"{self.mode:10} {self.source:>6} → {self.destination:6} {self.victim}"


class Found(NamedTuple):
    """What came of it."""

    lost: int
    doubled: int
    reordered: int
    left: int
    """Still in the source when the shovel was gone: it had not been done."""
    moved_before: int


def cells(kinds: tuple[End, ...]) -> Iterator[Cell]:
    """All, with these at the ends that are not here."""
    ends: list[tuple[End, End]] = [("here", "here")]
    ends += [("here", kind) for kind in kinds] + [(kind, "here") for kind in kinds]
    ends += list(itertools.product(kinds, kinds))
    for mode, (source, destination), victim in itertools.product(MODES, ends, VICTIMS):
        end = source if victim.startswith("source") else destination
        if "link" in victim and end == "here":
            continue
        if (source, destination) == ("here", "here") and victim != "source":
            continue  # the same process
        if (source, destination) == ("rabbit", "rabbit"):
            continue  # neither end is ours
        yield Cell(mode, source, destination, victim)


def expected(cell: Cell, found: Found) -> str:
    """What a cell has not kept of its mode's promise, empty if nothing."""
    broken = []
    is_one_node = (cell.source, cell.destination) == ("here", "here")
    hits_source = cell.victim.startswith("source")
    hits_destination = cell.victim.startswith("destination") or is_one_node
    if found.reordered:
        broken.append("order")
    if found.lost and (
        cell.mode == "on-confirm" or (cell.mode == "on-publish" and not hits_destination)
    ):
        broken.append("lost")
    # A source that is killed may have forgotten what it sent, or that it was acked.
    if found.doubled and cell.mode != "on-confirm" and not hits_source:
        broken.append("doubled")
    if found.left:
        broken.append("left")
    return ", ".join(broken)


def compared(count: int, arrived: list[int]) -> tuple[int, int, int]:
    """Lost, doubled, reordered."""
    first = list(dict.fromkeys(arrived))
    highest, reordered = -1, 0
    for number in first:
        reordered += number < highest
        highest = max(highest, number)
    return count - len(first), len(arrived) - len(first), reordered


def markdown(found: list[tuple[Cell, Found]]) -> str:
    """A row for each ack mode and victim, a column for each pair of ends: lost/doubled, and /reordered where it is not 0."""
    ends = list(dict.fromkeys((cell.source, cell.destination) for cell, _ in found))
    lines = [
        "| ack mode | killed | " + " | ".join(f"{one} → {other}" for one, other in ends) + " |",
        "|---|---|" + "---|" * len(ends),
    ]
    for mode, victim in itertools.product(MODES, VICTIMS):
        row = {
            (cell.source, cell.destination): f"{some.lost}/{some.doubled}"
            + (f"/{some.reordered}" if some.reordered else "")
            for cell, some in found
            if (cell.mode, cell.victim) == (mode, victim)
        }
        if row:
            lines.append(
                f"| {mode} | {victim} | " + " | ".join(row.get(e, "") for e in ends) + " |"
            )
    return "\n".join(lines)


class Broker:
    """One broker of the matrix, and the proxy before it."""

    def __init__(self, process: BrokerProcess | RabbitNode) -> None:
        self.process = process
        self.process.start()
        self.proxy = TcpProxy(process.amqp_port)

    def connect(self) -> pika.BlockingConnection:
        """A connection that leads past the proxy."""
        return pika.BlockingConnection(pika.URLParameters(self.process.url))

    def fill(self, queue: str, count: int) -> None:
        """A durable queue with numbered messages."""
        with contextlib.closing(self.connect()) as connection:
            channel = connection.channel()
            channel.queue_declare(queue, durable=True)
            channel.tx_select()
            properties = pika.BasicProperties(delivery_mode=2)
            for number in range(count):
                body = str(number).encode().ljust(SIZE)
                channel.basic_publish("", queue, body, properties)
            channel.tx_commit()
        if isinstance(self.process, RabbitNode):
            # What it has just declared is in its memory for some seconds: killed then, it forgets the queue with its messages.
            self.process.ctl("eval", "mnesia:sync_log().")

    def ready(self, queue: str) -> int:
        """Its ready messages, -1 when it is not there."""
        with contextlib.closing(self.connect()) as connection:
            try:
                found = connection.channel().queue_declare(queue, passive=True)
            except pika.exceptions.ChannelClosedByBroker:
                return -1
            return int(found.method.message_count)

    def wait_for(self, queue: str, count: int) -> int:
        """Return when the queue has so many messages (or a second has passed without one more): how many."""
        with contextlib.closing(self.connect()) as connection:
            channel = connection.channel()
            channel.queue_declare(queue, durable=True)
            seen, since = 0, time.monotonic()
            while seen < count and time.monotonic() < since + 10:
                found = channel.queue_declare(queue, passive=True).method.message_count
                if found > seen:
                    seen, since = found, time.monotonic()
            return seen

    def drain(self, queue: str) -> list[int]:
        """The numbers of all its messages; the queue is deleted."""
        with contextlib.closing(self.connect()) as connection:
            channel = connection.channel()
            left = channel.queue_declare(queue, passive=True).method.message_count
            arrived: list[int] = []
            if left:
                for method, _, body in channel.consume(queue, auto_ack=True, inactivity_timeout=10):
                    if method is None or body is None:
                        break
                    arrived.append(int(body))
                    if len(arrived) == left:
                        break
                channel.cancel()
            channel.queue_delete(queue)
            return arrived

    def restart(self) -> None:
        """SIGKILL, and a start on what is on disk."""
        self.process.kill()
        self.process.start()

    def close(self) -> None:
        """Stop it."""
        self.proxy.close()
        if isinstance(self.process, BrokerProcess):
            self.process.close()
        else:
            self.process.stop()


class Matrix:
    """The brokers, and the cells that run on them."""

    def __init__(self, directory: Path, *, has_rabbit: bool, count: int = MESSAGES) -> None:
        self.count = count
        self._stack = contextlib.ExitStack()
        self._here = self._open(Broker(BrokerProcess(directory / "here")))
        self._others: dict[tuple[End, str], Broker] = {
            ("burrow", role): self._open(Broker(BrokerProcess(directory / role)))
            for role in ("source", "destination")
        }
        if has_rabbit:
            node = RabbitNode(directory / "rabbit", free_node_port())
            rabbit = self._open(Broker(node))
            self._others["rabbit", "source"] = self._others["rabbit", "destination"] = rabbit
        self._numbers = itertools.count()

    def _open(self, broker: Broker) -> Broker:
        self._stack.callback(broker.close)
        return broker

    def close(self) -> None:
        """Stop them."""
        self._stack.close()

    def _broker(self, end: End, role: str) -> Broker:
        return self._here if end == "here" else self._others[end, role]

    def _uri(self, end: End, role: str) -> str:
        if end == "here":
            return "amqp://"
        return f"amqp://guest:guest@127.0.0.1:{self._broker(end, role).proxy.port}/%2F?heartbeat=5"

    def run(self, cell: Cell) -> Found:
        """One cell."""
        number = next(self._numbers)
        source, destination = f"source-{number}", f"destination-{number}"
        from_broker = self._broker(cell.source, "source")
        to_broker = self._broker(cell.destination, "destination")
        from_broker.fill(source, self.count)
        value = {
            "src-uri": self._uri(cell.source, "source"),
            "src-queue": source,
            "dest-uri": self._uri(cell.destination, "destination"),
            "dest-queue": destination,
            "ack-mode": cell.mode,
            "src-prefetch-count": 100,
            "reconnect-delay": 0.5,
        }
        name = f"cell-{number}"
        self._ctl("PUT", f"/api/parameters/shovel/%2F/{name}", {"value": value})
        moved = to_broker.wait_for(destination, self.count // 5)
        victim = from_broker if cell.victim.startswith("source") else to_broker
        if "link" in cell.victim:
            victim.proxy.cut()
        else:
            victim.restart()
        self._wait_until_done(from_broker, source, to_broker, destination, name)
        self._ctl("DELETE", f"/api/parameters/shovel/%2F/{name}")
        arrived = to_broker.drain(destination)
        return Found(*compared(self.count, arrived), from_broker.ready(source), moved)

    def _wait_until_done(
        self, from_broker: Broker, source: str, to_broker: Broker, destination: str, name: str
    ) -> None:
        """Return when the shovel runs, the source is empty and for a while nothing has changed."""
        deadline, last, since = time.monotonic() + TIMEOUT_S, None, time.monotonic()
        while time.monotonic() < deadline:
            rows = json.loads(self._ctl("GET", "/api/shovels"))
            (row,) = [row for row in rows if row["name"] == name]
            now = (
                row["state"],
                row.get("pending"),
                from_broker.ready(source),
                to_broker.ready(destination),
            )
            if now != last:
                last, since = now, time.monotonic()
            if now[:3] == ("running", 0, 0) and time.monotonic() > since + QUIET_S:
                return
            time.sleep(0.02)
        raise TimeoutError(f"the shovel did not get through: {last}")

    def _ctl(self, method: str, path: str, body: object = None) -> str:
        process = self._here.process
        assert isinstance(process, BrokerProcess)
        request = urllib.request.Request(
            f"http://127.0.0.1:{process.management_port}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": "Basic Z3Vlc3Q6Z3Vlc3Q="},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            text: str = answer.read().decode()
        return text


def main() -> int:
    """Run the matrix and print it; 1 when a promise was broken."""
    parser = argparse.ArgumentParser(description="What a shovel loses when something is killed.")
    parser.add_argument("--rabbitmq", action="store_true", help="RabbitMQ at the ends, too")
    parser.add_argument("--messages", type=int, default=MESSAGES)
    parser.add_argument("--only", default="", help="cells whose name has this in it")
    parser.add_argument("--markdown", action="store_true", help="print the table, too")
    options = parser.parse_args()
    if options.rabbitmq and not is_installed():
        parser.error("RabbitMQ is not installed")
    kinds: tuple[End, ...] = ("burrow", "rabbit") if options.rabbitmq else ("burrow",)
    failures = 0
    results: list[tuple[Cell, Found]] = []
    with tempfile.TemporaryDirectory() as directory:
        matrix = Matrix(Path(directory), has_rabbit=options.rabbitmq, count=options.messages)
        with contextlib.closing(matrix):
            head = f"{'mode':10} {'from':>6} → {'to':6} {'killed':20}"
            sys.stdout.write(f"{head} at lost doubled reordered\n")
            for cell in cells(kinds):
                if options.only not in cell.name:
                    continue
                found = matrix.run(cell)
                results.append((cell, found))
                broken = expected(cell, found)
                failures += bool(broken)
                sys.stdout.write(
                    f"{cell.mode:10} {cell.source:>6} → {cell.destination:6} {cell.victim:20}"
                    f" {found.moved_before:5} {found.lost:5} {found.doubled:5} {found.reordered:5}"
                    f"  {'BROKEN: ' + broken if broken else ''}\n"
                )
                sys.stdout.flush()
    if options.markdown:
        sys.stdout.write(markdown(results) + "\n")
    sys.stdout.write(f"{len(results)} cells, with a broken promise: {failures}\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
