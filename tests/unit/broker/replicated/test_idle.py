"""How often a queue has its turn while nothing happens, however long that lasts.

Covers: broker/replicated/intake.py
"""

from __future__ import annotations

import pytest
from pika import spec

from burrowmq.broker.replicated.queue import ReplicatedQueue
from tests.support.cluster_bench import ClusterBench

STEP_S = 0.001
"""That of the shortest wait."""


class Turns:
    """Those of all queues of one class."""

    def __init__(self, bench: ClusterBench, monkeypatch: pytest.MonkeyPatch, kind: type) -> None:
        self._bench = bench
        self._count = 0
        pump = kind.pump  # type: ignore[attr-defined]

        def counted(queue: object) -> None:
            self._count += 1
            pump(queue)

        monkeypatch.setattr(kind, "pump", counted)

    def in_seconds(self, seconds: float) -> int:
        """How many of them come in so long."""
        self._count = 0
        for _ in range(int(seconds / STEP_S)):
            self._bench.loop.advance(STEP_S)
            self._bench.run()
            while self._bench.world.run():
                self._bench.run()
        return self._count


def test_a_consumer_who_is_given_nothing_costs_next_to_nothing(
    bench: ClusterBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = bench.connect(1)
    bench.declared(client)
    client.call(1, spec.Basic.Consume(queue="q", consumer_tag="t"))
    bench.settle(20)
    assert Turns(bench, monkeypatch, ReplicatedQueue).in_seconds(3) < 6
