"""Two nodes of ours, of which one takes over the queues of the other (`burrowctl import-from`).

State: the processes, from `Two(directory)` to `close`. Callers: tests of what is moved, copied, refused and gone on with.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pika
import pytest
from pika import BasicProperties

from tests.crash.moving_in import http
from tests.support.broker_process import BURROWCTL, BrokerProcess
from tests.support.rabbitmq_node import RabbitNode

PERSISTENT = BasicProperties(delivery_mode=2)


class Two:
    """The node there, and ours."""

    def __init__(self, directory: Path) -> None:
        self.there = BrokerProcess(directory / "there")
        self.ours = BrokerProcess(directory / "ours")
        self.there.start()
        self.ours.start()

    def close(self) -> None:
        """End both."""
        self.there.kill()
        self.ours.kill()

    def argv(self, *words: str) -> list[str]:
        """The command line that asks ours to take over from there."""
        return [
            str(BURROWCTL), "--data-dir", str(self.ours.data_dir), "import-from",
            f"amqp://127.0.0.1:{self.there.amqp_port}",
            "--management", f"http://guest:guest@127.0.0.1:{self.there.management_port}", *words,
        ]  # fmt: skip

    def ctl(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        return subprocess.run(self.argv(*words), capture_output=True, text=True, timeout=60, check=False)  # fmt: skip

    def rows(self, *words: str) -> dict[str, dict[str, Any]]:
        """What the report says of each queue."""
        done = self.ctl("--formatter", "json", *words)
        assert done.returncode in (0, 75), done
        return {each["name"]: each for each in json.loads(done.stdout.splitlines()[-1])["queues"]}


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Two]:
    """Both run; nothing is declared."""
    nodes = Two(tmp_path)
    try:
        yield nodes
    finally:
        nodes.close()


def channel(node: BrokerProcess | RabbitNode) -> Any:
    """One of a connection of its own."""
    return pika.BlockingConnection(pika.URLParameters(node.url)).channel()


def publish(node: BrokerProcess, queue: str, *bodies: bytes, **arguments: Any) -> None:
    """Persistent messages to a durable queue with these arguments, in one transaction."""
    found = channel(node)
    found.queue_declare(queue, durable=True, arguments=arguments)
    found.tx_select()
    for body in bodies:
        found.basic_publish("", queue, body, PERSISTENT)
    found.tx_commit()
    found.connection.close()


def drained(node: BrokerProcess | RabbitNode, queue: str) -> list[tuple[Any, Any, bytes]]:
    """All that is ready in a queue, taken: (method, properties, body)."""
    found = channel(node)
    taken = []
    while (got := found.basic_get(queue, auto_ack=True))[0] is not None:
        taken.append(got)
    found.connection.close()
    return taken


def asked(two: Two) -> dict[str, Any]:
    """How far it is, as the node says it."""
    found = http(two.ours.management_port, "GET", "burrowmq/import")
    assert isinstance(found, dict)
    return found


def wait_for(two: Two, is_so: Callable[[dict[str, Any]], bool]) -> None:
    """Until the node says so."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            if is_so(asked(two)):
                return
        time.sleep(0.02)
    raise AssertionError(asked(two))
