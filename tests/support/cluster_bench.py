"""The broker's core with a cluster in memory: one front-end, whose time is the bench's loop's.

Callers: unit tests of `broker.replicated` and of what meets it. State: the bench and the servers.
"""

from __future__ import annotations

from typing import Any, cast

from pika import spec

from burrowmq.broker.node.replication import NodeReplication
from burrowmq.broker.queue.outcome import CLUSTER
from burrowmq.broker.replicated import front_end as front_end_module
from burrowmq.broker.replicated.front_end import FrontEnd
from burrowmq.broker.replicated.queue import ReplicatedQueue
from burrowmq.config.cluster import ClusterConfig
from tests.support.bench.broker import BrokerBench
from tests.support.bench.client import Client
from tests.support.fake_jetstream import FakeJetStream, FakeLink, Stream

BEGAN_MS = 1_700_000_000_000
QUORUM = {"x-queue-type": "quorum"}


class ClusterBench(BrokerBench):
    """A node that is connected."""

    def __init__(
        self,
        monkeypatch: Any,
        rows: Any = None,
        *,
        world: FakeJetStream | None = None,
        is_sharing: bool = False,
        is_away: bool = False,
        mirrored: str = "classic",
    ) -> None:
        self.world = FakeJetStream() if world is None else world
        self.clients: list[Client] = []
        monkeypatch.setattr(front_end_module, "Link", self.world.link)
        config = ClusterConfig(urls=("nats://fake",), replicas=3, mirrored=mirrored)
        replication = NodeReplication(config, self._connect)
        super().__init__(
            rows,
            cluster=config,
            replication=replication,
            is_sharing=is_sharing,
            first_token=1_000_000 * len(self.world.links) if is_sharing else 0,
        )
        # Servers and node have one clock, which is the bench's.
        self.world.wall_ms = lambda: BEGAN_MS + int(self.loop.now_s * 1000)
        monkeypatch.setattr(self.scheduler, "wall_ms", self.world.wall_ms)
        if replication.share is not None:
            monkeypatch.setattr(self.scheduler, "monotonic", lambda: self.loop.now_s)
            self.front_end._changed_now()  # by that clock
            self.own_link = self.world.links[-1]
            if rows is None:
                replication.share.is_seeded = True
            replication.share.remember(rows or ())
        if is_away:
            assert replication.share is not None, "else there is nothing to see of it"
            replication.share.start()
            return
        replication.start()
        self.settle()

    def _connect(self) -> FrontEnd:
        found = self.front_end = FrontEnd(
            [],
            self.scheduler,
            self.entropy,
            cast("Any", self.observer),
            name="n",
            version="0",
            on_eased=self._on_eased,
        )
        found.now_ms = lambda: self.loop.now_s * 1000.0  # type: ignore[method-assign]
        return found

    def socket(self, *given: Any, **options: Any) -> Client:
        """See BrokerBench."""
        self.clients.append(super().socket(*given, **options))
        return self.clients[-1]

    def _on_eased(self) -> None:
        for client in self.clients:
            client.resume_reading(CLUSTER)

    @property
    def link(self) -> FakeLink:
        """The node's connection."""
        return self.world.links[0]

    def settle(self, seconds: float = 0.1) -> None:
        """Let the servers, the disk and some time pass until nothing moves."""
        for _ in range(max(1, int(seconds / 0.01))):
            self.loop.advance(0.01)
            self.run()
            if self.engine.in_flight is not None:
                self.commit()
            while self.world.run():
                self.run()

    def declared(self, client: Client, name: str = "q", **arguments: Any) -> ReplicatedQueue:
        """A quorum queue that a client has declared."""
        client.call(1, spec.Queue.Declare(queue=name, durable=True, arguments=QUORUM | arguments))
        self.settle()
        assert client.names() == ["Queue.DeclareOk"]
        found = self.vhost.queues[name]
        assert isinstance(found, ReplicatedQueue)
        return found

    def stream(self) -> Stream:
        """The only one."""
        (found,) = self.world.streams.values()
        return found
