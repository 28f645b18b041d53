"""A served node whose quorum queue, stream and classic queue are asked for their members.

Used by tests of members. State: none of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from burrowmq.broker.replicated import members as changes
from tests.support.served_cluster import ServedCluster, serving_with_cluster


def make(path: Path, monkeypatch: pytest.MonkeyPatch, *names: str) -> Iterator[ServedCluster]:
    """Servers of these names, the queue q at n1 to n3, where n2 leads, and others."""
    monkeypatch.setattr(changes, "LOOK_S", 0.001)
    with serving_with_cluster(path / "data", monkeypatch, *names) as found:
        found.world.choices = list(names)
        found.declare("q")
        found.declare("s", **{"x-queue-type": "stream"})
        found.served.api("PUT", "/api/queues/%2F/classic", {"durable": True})
        yield found


def status(cluster: ServedCluster, name: str = "q") -> dict[str, str]:
    """What each server is to a quorum queue."""
    rows = cluster.served.get(f"/api/queues/quorum/%2F/{name}/status")
    return {row["Node Name"]: row["Raft State"] for row in rows}


def http(cluster: ServedCluster, verb: str, server: str, name: str = "q") -> tuple[int, Any]:
    """Status and reason."""
    method = "POST" if verb == "add" else "DELETE"
    path = f"/api/queues/quorum/%2F/{name}/replicas/{verb}"
    answer = cluster.served.api(method, path, {"node": server})
    return answer.status, answer.body["reason"] if answer.body else ""
