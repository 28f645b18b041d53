"""Brokers that have streams, for the tests of the source: RabbitMQ, and BurrowMQ with three nats-servers of its own.

State: the processes, which `stop` ends. Used by test_stream_queues.py.
"""

from __future__ import annotations

import contextlib
import itertools
from pathlib import Path
from typing import Protocol

import pytest

from bench.nats_servers import CannotBuild, NatsCluster
from tests.support import rabbitmq_node
from tests.support.broker_process import BrokerProcess


class StreamBroker(Protocol):
    """What these tests do with a broker."""

    @property
    def url(self) -> str: ...

    def start(self) -> None: ...

    def restart_killed(self) -> None:
        """End it as kill -9 does, and start it again."""
        ...

    def stop(self) -> None: ...


class RabbitStreams(rabbitmq_node.RabbitNode):
    """One node of RabbitMQ."""

    def restart_killed(self) -> None:
        self.kill()
        self.start()


class BurrowStreams:
    """A front-end and three servers that sync always."""

    def __init__(self, directory: Path) -> None:
        self._cluster = NatsCluster(directory / "servers")
        urls = ",".join(server.url for server in self._cluster.servers)
        self._front_end = BrokerProcess(directory / "node", settings={"cluster.urls": urls})
        self._next = itertools.cycle(self._cluster.servers)

    @property
    def url(self) -> str:
        return self._front_end.url

    def start(self) -> None:
        self._cluster.start()
        self._front_end.start()

    def restart_killed(self) -> None:
        """The front-end and one of the servers, another one each time."""
        server = next(self._next)
        server.kill()
        self._front_end.kill()
        server.start()
        self._front_end.start()

    def stop(self) -> None:
        with contextlib.suppress(RuntimeError):  # it never started
            self._front_end.kill()
        self._cluster.stop()


def broker(kind: str, directory: Path) -> StreamBroker:
    """Return one that is not started; skips the test, by name, where its program is not there."""
    if kind == "rabbitmq":
        if not rabbitmq_node.is_installed():
            pytest.skip("RabbitMQ is not installed: apt-get install rabbitmq-server")
        return RabbitStreams(directory, rabbitmq_node.free_node_port())
    try:
        return BurrowStreams(directory)
    except CannotBuild as reason:
        pytest.skip(str(reason))
