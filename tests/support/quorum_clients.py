"""What clients of a front-end with a quorum queue `q` do, on a `ClusterBench`.

Callers: tests of broker/replicated.
"""

from __future__ import annotations

from typing import Any

from pika import spec

from tests.support.bench.client import Client
from tests.support.cluster_bench import ClusterBench
from tests.support.wire_client import publish_bytes


def publisher(bench: ClusterBench) -> Client:
    """A client whose first channel has confirms."""
    client = bench.connect(1)
    client.call(1, spec.Confirm.Select())
    return client


def publish(client: Client, *bodies: bytes, key: str = "q") -> None:
    """By the default exchange, in one read."""
    client.send(*[publish_bytes(1, "", key, body) for body in bodies])


def consume(bench: ClusterBench, prefetch: int = 0, **options: Any) -> Client:
    """A client that takes what its prefetch allows."""
    client = bench.connect(1)
    client.call(1, spec.Basic.Qos(prefetch_count=prefetch))
    client.call(1, spec.Basic.Consume(queue="q", consumer_tag="c", **options))
    bench.settle()
    return client


def bodies(client: Client) -> list[tuple[int, bool]]:
    """(delivery tag, redelivered) of what has come."""
    return [(m.delivery_tag, m.redelivered) for _, m in client.read() if hasattr(m, "redelivered")]
