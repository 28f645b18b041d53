"""Several front-ends of one cluster in memory, whose definitions are shared.

State: the benches and their servers. Callers: unit tests of `broker.replicated.definitions` and what uses it.
"""

from __future__ import annotations

from typing import Any

from pika import spec

from burrowmq.broker.replicated.homes import Homes
from tests.support.bench.client import Client
from tests.support.cluster_bench import QUORUM, ClusterBench
from tests.support.fake_bucket import FakeBucket
from tests.support.fake_jetstream import FakeJetStream
from tests.support.wire_client import method_bytes

Row = tuple[str, str, Any]


class FrontEnds:
    """They begin as first starts do, one after the other, unless they are given rows."""

    def __init__(self, monkeypatch: Any) -> None:
        self._monkeypatch = monkeypatch
        self.world = FakeJetStream()
        self.benches: list[ClusterBench] = []

    def start(
        self, rows: list[Row] | None = None, *, is_away: bool = False, mirrored: str = "classic"
    ) -> ClusterBench:
        """One more; with `is_away` it does not reach the servers."""
        bench = ClusterBench(
            self._monkeypatch,
            rows,
            world=self.world,
            is_sharing=True,
            is_away=is_away,
            mirrored=mirrored,
        )
        self.benches.append(bench)
        self.settle()
        return bench

    def settle(self, seconds: float = 0.1) -> None:
        """Let time pass for all until nothing moves."""
        for _ in range(max(1, int(seconds / 0.05))):
            for bench in self.benches:
                bench.settle(0.05)
        while self.world.run():
            for bench in self.benches:
                bench.run()

    @property
    def bucket(self) -> FakeBucket:
        """What they share."""
        return self.world.buckets["KV_burrowmq"]

    def rows(self, bench: ClusterBench) -> list[Row]:
        """What the store of one has."""
        found: dict[tuple[str, str], Any] = dict(bench.engine.definitions._definitions.rows)
        return [(kind, key, value) for (kind, key), value in found.items()]


def confirming(bench: ClusterBench) -> Client:
    """A client whose channel 1 has confirms."""
    client = bench.connect(1)
    client.call(1, spec.Confirm.Select())
    return client


def consuming(ends: FrontEnds, bench: ClusterBench, prefetch: int) -> Client:
    """A client whose channel 1 consumes from "q"."""
    client = bench.connect(1)
    client.call(1, spec.Basic.Qos(prefetch_count=prefetch))
    say(client, spec.Basic.Consume(queue="q"))
    ends.settle(0.3)
    return client


def homes(bench: ClusterBench) -> Homes:
    """Where it knows classic queues to live."""
    found = bench.replication.homes
    assert found is not None
    return found


def say(client: Client, *methods: Any) -> None:
    """Send methods; what is answered is for the test to read."""
    client.send(*[method_bytes(1, method) for method in methods])


def declare_exchange(client: Client, name: str = "x", kind: str = "topic", **options: Any) -> None:
    """Ask for it; the answer comes when all have settled."""
    options = {"durable": True, **options}
    say(client, spec.Exchange.Declare(exchange=name, type=kind, **options))


def declare_queue(client: Client, name: str = "q", **arguments: Any) -> None:
    say(client, spec.Queue.Declare(queue=name, durable=True, arguments=QUORUM | arguments))


def bind(client: Client, key: str = "k") -> None:
    say(client, spec.Queue.Bind(queue="q", exchange="x", routing_key=key))
