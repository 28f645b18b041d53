"""A message that is got over HTTP, and read from disk for that, is ready or unacknowledged all the time.

Covers: management/messages.py
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from burrowmq.config.schema import StoreConfig
from tests.support.bench.world import publish, small_world
from tests.support.served import Served, serving

PATH = "/api/queues/%2F/t"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A node with a disk thread, which checks its invariants after each turn; `small_world` is in it."""
    store = StoreConfig(commit_log="off")
    with serving(tmp_path / "data", small_world, store=store, has_disk_thread=True) as running:
        yield running


@pytest.mark.parametrize("ackmode", ["ack_requeue_false", "ack_requeue_true"])
def test_what_is_read_for_a_get_is_counted_as_persistent(served: Served, ackmode: str) -> None:
    served.bench.queue("t", arguments={"x-queue-mode": "lazy"})
    publish(served.bench.clients[0], "t", 4, size=1000, is_persistent=True)
    while not served.node.engine.is_idle():
        served.bench.perform(lambda: None)
    wanted = {"count": 4, "ackmode": ackmode, "encoding": "auto"}
    assert len(served.api("POST", f"{PATH}/get", wanted).body) == 4
    row = served.get(PATH)
    left = 0 if ackmode == "ack_requeue_false" else 4
    assert (row["messages"], row["messages_ready"], row["messages_persistent"]) == (left,) * 3
    assert served.bench.observer.named("invariant_broken") == []
