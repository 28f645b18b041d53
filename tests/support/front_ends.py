"""Front-ends of one cluster as processes, and what pika does with them.

Used by `tests.cluster`. State: the processes and connections, which `close` ends.
"""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path
from typing import Any

import pika
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import ChannelClosedByBroker

from bench.nats_servers import NatsCluster
from tests.support.broker_process import BrokerProcess
from tests.support.patience import patient

QUORUM = {"x-queue-type": "quorum"}
STREAM = {"x-queue-type": "stream"}
PERSISTENT = pika.BasicProperties(delivery_mode=2)


class Nodes:
    """Front-ends of one cluster."""

    def __init__(self, directory: Path, cluster: NatsCluster) -> None:
        self.cluster = cluster
        self._directory = directory
        self._connections: list[pika.BlockingConnection] = []
        self.processes: list[BrokerProcess] = []

    def start(self, name: str = "one", **settings: str) -> BrokerProcess:
        """One more; `settings` are keys of `cluster.` beside the servers' addresses."""
        urls = ",".join(server.url for server in self.cluster.servers)
        given = {f"cluster.{key}": value for key, value in {"urls": urls, **settings}.items()}
        process = BrokerProcess(self._directory / name, settings=given)
        self.processes.append(process)
        process.start()
        return process

    def channel(self, process: BrokerProcess) -> BlockingChannel:
        connection = pika.BlockingConnection(pika.URLParameters(process.url))
        self._connections.append(connection)
        return connection.channel()

    def close(self) -> None:
        for process in self.processes:
            process.kill()
        for connection in self._connections:
            with contextlib.suppress(Exception):
                connection.close()


def until_agreed(process: BrokerProcess) -> BrokerProcess:
    """The same, once the servers have elected who keeps definitions: until then a change is refused after five seconds."""
    deadline = time.monotonic() + patient(60)
    while True:
        try:
            process.ctl("set_global_parameter", "first", "1")
        except RuntimeError as refused:
            if "metadata store" not in str(refused) or time.monotonic() > deadline:
                raise
        else:
            return process


def declare(channel: BlockingChannel, name: str, **arguments: Any) -> int:
    """Declare it, as soon as the servers have elected who makes streams; gives how many messages it has."""
    deadline = time.monotonic() + patient(60)
    while True:
        try:
            found = channel.queue_declare(name, durable=True, arguments=QUORUM | arguments)
        except ChannelClosedByBroker as refused:
            if refused.reply_code != 404 or time.monotonic() > deadline:
                raise
            channel = channel.connection.channel()
        else:
            return int(found.method.message_count)


def publish(channel: BlockingChannel, name: str, count: int, first: int = 0) -> None:
    for number in range(first, first + count):
        channel.basic_publish("", name, b"%d" % number, PERSISTENT)


UNASKED_MAX = 2_000
"""A consumer of a quorum queue that names no prefetch count gets so many at once."""


def take(channel: BlockingChannel, name: str, count: int) -> list[tuple[Any, Any, bytes]]:
    """So many deliveries, unacknowledged."""
    if count > UNASKED_MAX:
        channel.basic_qos(prefetch_count=count)
    found: list[tuple[Any, Any, bytes]] = []
    for method, properties, body in channel.consume(name, inactivity_timeout=patient(30)):
        assert method is not None, f"{len(found)} of {count} have come"
        found.append((method, properties, body))
        if len(found) == count:
            break
    return found


def numbers(found: list[tuple[Any, Any, bytes]]) -> list[int]:
    return [int(body) for _, _, body in found]


def members_of(process: BrokerProcess, kind: str = "quorum", name: str = "q") -> list[str]:
    """Who keeps it, asked now."""
    rows = json.loads(process.ctl(f"{kind}_status", name, "--formatter", "json"))
    return [row["Node Name" if kind == "quorum" else "node"] for row in rows]


def leader_of(process: BrokerProcess) -> str:
    """Who leads the queue "q"."""
    rows = json.loads(process.ctl("quorum_status", "q", "--formatter", "json"))
    return str(next(row["Node Name"] for row in rows if row["Raft State"] == "leader"))


def change(process: BrokerProcess, *words: str) -> str:
    """The reason of a refusal, or "": what a server that starts says is waited for."""
    deadline = time.monotonic() + patient(60)
    while True:
        try:
            process.ctl(*words)
        except RuntimeError as failed:
            text = str(failed)
            if not any(each in text for each in ("down", "all of it yet")):
                return text
            assert time.monotonic() < deadline, text
            time.sleep(0.5)
        else:
            return ""
