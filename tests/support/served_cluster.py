"""A served node whose cluster is in memory, and servers that say who they are, and take whoever logs in.

Used by tests of what operators are shown. State: the node's (`tests.support.served`) and the cluster's.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from burrowmq.broker.replicated import front_end as front_end_module
from burrowmq.cluster import probe
from burrowmq.config.cluster import ClusterConfig
from tests.support.bench.node import NodeBench
from tests.support.fake_jetstream import FakeJetStream, FakeLink
from tests.support.patience import patient
from tests.support.ports import free_port
from tests.support.served import Served, request, serving

PUMP_S = 0.002


@dataclass
class ServedCluster:
    """The node, and what it takes for the servers; `ports` are where they can be asked who they are."""

    served: Served
    world: FakeJetStream
    ports: tuple[int, ...]

    @property
    def link(self) -> FakeLink:
        """The node's connection."""
        return self.world.links[0]

    def declare(self, name: str, vhost: str = "/", **arguments: Any) -> None:
        """A quorum queue, over the API."""
        body = {"durable": True, "arguments": {"x-queue-type": "quorum", **arguments}}
        path = f"/api/queues/{quote(vhost, safe='')}/{quote(name, safe='')}"
        answer = self.served.api("PUT", path, body)
        assert answer.status in {201, 204}, answer

    def scraped(self) -> dict[str, float]:
        """The samples without labels of what Prometheus reads."""
        page = request(self.served.metrics_port, "GET", "/metrics").body
        lines = [line.rsplit(" ", 1) for line in page.splitlines() if line[:1] not in "#"]
        return {name: float(value) for name, value in lines if "{" not in name}

    def lose(self, down_s: float) -> None:
        """The connection breaks, and is away for so long already."""

        def step() -> None:
            self.link.lose()
            front_end = self.served.node.replication.front_end
            assert front_end is not None
            front_end._since_s -= down_s
            front_end._since_ms -= int(down_s * 1000)

        self.served.bench.perform(step)

    def find_again(self) -> None:
        """It is there again."""
        self.served.bench.perform(self.link.open)


@contextlib.contextmanager
def serving_with_cluster(
    data_dir: Path, monkeypatch: Any, *names: str, mirrored: str = "classic", **options: Any
) -> Iterator[ServedCluster]:
    """Of the two servers in its configuration one answers, n1, and one does not; all do whose `names` are given.

    `options` are of the node's configuration.
    """
    world = FakeJetStream()
    monkeypatch.setattr(front_end_module, "Link", world.link)
    # They answer at once, if this process is let: they are never down for want of a processor.
    monkeypatch.setattr(probe, "PATIENCE_S", patient(60))

    def fill(bench: NodeBench) -> None:
        def pump() -> None:
            world.run()
            bench.loop.call_later(PUMP_S, pump)

        bench.loop.call_soon(pump)

    with contextlib.ExitStack() as stack:
        ports = tuple(stack.enter_context(saying_who_it_is(name)) for name in names or ("n1",))
        if not names:
            ports = (*ports, free_port())
        urls = tuple(f"nats://127.0.0.1:{each}" for each in ports)
        cluster = ClusterConfig(urls=urls, mirrored=mirrored)
        with serving(data_dir, fill, cluster=cluster, **options) as served:
            yield ServedCluster(served, world, ports)


@contextlib.contextmanager
def saying_who_it_is(name: str) -> Iterator[int]:
    """Port of a server that greets whoever connects, and answers what that says."""
    info = {"server_id": "N", "server_name": name, "version": "2.15.2", "max_payload": 1 << 20,
            "headers": True, "jetstream": True}  # fmt: skip
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(patient(60))

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    # Whoever goes early does not end this for the next one.
                    with connection, contextlib.suppress(OSError):
                        greet(connection)

        def greet(connection: socket.socket) -> None:
            connection.settimeout(patient(60))
            connection.sendall(b"INFO " + json.dumps(info).encode() + b"\r\n")
            if connection.recv(1 << 16):
                connection.sendall(b"PONG\r\n")

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield int(listener.getsockname()[1])
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
