"""How long conversions between the storage versions take, beside the figures of RabbitMQ's guide.

`python -m tests.crash.conversion_times [--case NAME] [--scale 0.1]` fills a node of its own, changes the version of all
queues by policy there and back, and prints seconds, and how often the event loop was late by more than 50 ms meanwhile.
The guide says 2, 9 and 3 s "on our test machine". Source: RabbitMQ's guide on classic queues. Not a test: nothing is asserted
but that all messages are still there.
"""

from __future__ import annotations

import argparse
import http.client
import os
import re
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from pika import spec

from tests.crash.load import persistent_publish, set_version
from tests.support.broker_process import BrokerProcess
from tests.support.wire_client import WireClient

_RUN = 500  # messages sent as one buffer


@dataclass(frozen=True)
class Case:
    """Queues of messages, and what the guide says of them."""

    name: str
    queues: int
    messages: int  # in each
    size: int
    guide_s: int


CASES = (
    Case("queues", 1000, 1000, 100, 2),
    Case("small", 1, 1_000_000, 100, 9),
    Case("large", 1, 1_000_000, 5000, 3),
)


def metrics(node: BrokerProcess) -> dict[str, float]:
    """The node's gauges and counters by name, labels included."""
    connection = http.client.HTTPConnection("127.0.0.1", node.prometheus_port, timeout=60)
    try:
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
    finally:
        connection.close()
    found: dict[str, float] = {}
    for line in text.splitlines():
        name, _, value = line.rpartition(" ")
        if name and not line.startswith("#"):
            found[name] = float(value)
    return found


def stalls(found: dict[str, float]) -> int:
    """How often the loop was late by more than 50 ms."""
    buckets = {
        match[1]: value
        for name, value in found.items()
        if (match := re.match(r'burrowmq_loop_stall_seconds_bucket\{.*le="([^"]+)"', name))
    }
    return int(buckets.get("+Inf", 0) - buckets.get("0.05", 0))


def ready(client: WireClient, queue: str) -> int:
    """How many messages are ready in a queue."""
    client.send_method(1, spec.Queue.Declare(queue=queue, passive=True))
    return int(client.expect(spec.Queue.DeclareOk).message_count)


def fill(client: WireClient, names: list[str], messages: int, size: int) -> None:
    """Declare the queues and publish persistent messages to each."""
    for name in names:
        client.declare(1, name, durable=True, arguments={"x-queue-mode": "lazy"})
        one = persistent_publish("", name, b"x" * size)
        for first in range(0, messages, _RUN):
            client.send(one * min(_RUN, messages - first))
    while ready(client, names[-1]) < messages:
        time.sleep(0.05)


def is_of(node: BrokerProcess, version: int) -> bool:
    """Whether no file of the other version is left, looked at from outside: asking the node costs it time."""
    suffixes = (".qi",) if version == 1 else (".idx", ".jif")
    return not any(
        entry.name.endswith(suffixes)
        for directory in node.data_dir.glob("vhosts/*/queues/*")
        for entry in os.scandir(directory)
    )


def convert(node: BrokerProcess, version: int) -> tuple[float, int]:
    """Change the version of everything: (seconds, loop stalls of more than 50 ms)."""
    before = stalls(metrics(node))
    began = time.monotonic()
    set_version(node.management_port, version)
    while not is_of(node, version):
        time.sleep(0.05)
    seconds = time.monotonic() - began
    return seconds, stalls(metrics(node)) - before


def measure(case: Case, scale: float, directory: Path) -> list[str]:
    """Fill a node and convert it there and back; gives the table's rows."""
    node = BrokerProcess(
        directory / case.name, {"classic_queue.default_version": "1"}, is_verified=False
    )
    queues = max(1, int(case.queues * scale)) if case.queues > 1 else 1
    messages = case.messages if case.queues > 1 else int(case.messages * scale)
    names = [f"q{number}" for number in range(queues)]
    rows: list[str] = []
    node.start()
    try:
        with WireClient("127.0.0.1", node.amqp_port) as client:
            client.open().channel(1)
            fill(client, names, messages, case.size)
            time.sleep(2.0)  # the journals go into the segment files
            for version in (2, 1):
                seconds, late = convert(node, version)
                label = f"{queues:,} x {messages:,} x {case.size:,} B"
                rows.append(
                    f"| {label} | {3 - version} to {version} | {seconds:.1f} s |"
                    f" {case.guide_s * scale:g} s | {late} |"
                )
            assert all(ready(client, name) == messages for name in names)
    finally:
        node.kill()
    return rows


def main() -> int:
    """Run from the command line and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", choices=[case.name for case in CASES])
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--directory", type=Path, default=None)
    options = parser.parse_args()
    sys.stdout.write(
        "| messages | version | here | guide | loop late > 50 ms |\n|---|---|---|---|---|\n"
    )
    with tempfile.TemporaryDirectory(prefix="convert-", dir=options.directory) as place:
        for case in CASES:
            if options.case in (None, case.name):
                for row in measure(case, options.scale, Path(place)):
                    sys.stdout.write(row + "\n")
                    sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
