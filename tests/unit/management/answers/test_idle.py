"""Since when nothing has happened to a queue or on a channel."""

from __future__ import annotations

from datetime import datetime
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp.test_utils import make_mocked_request

from burrowmq.broker.queue.queue import Queue
from burrowmq.management import sampling
from burrowmq.management.answers import idle
from burrowmq.management.answers.access import TRUSTED
from burrowmq.management.answers.rates import Rates, channel_key
from burrowmq.management.answers.reply import Call
from tests.support.bench.node import NodeBench
from tests.support.bench.world import publish
from tests.support.served import Served


class Asked:
    """Questions about the queues of a bench, whose samples lie in the past."""

    def __init__(self, bench: NodeBench) -> None:
        self.bench = bench
        request = make_mocked_request("GET", "/")
        self.call = Call(request, bench.host, TRUSTED, Rates())
        self.begin_ms = int(bench.node.scheduler.monotonic() * 1000) - 100_000

    def sample(self, *times_s: int) -> None:
        for now_s in times_s:
            for _ in sampling.steps(self.bench.node, self.call.rates, self.begin_ms + now_s * 1000):
                pass

    def ago_s(self, text: str | None) -> int | None:
        """How long before now, to the second."""
        if text is None:
            return None
        then = datetime.fromisoformat(text).timestamp()
        return round(self.bench.node.scheduler.wall_ms() / 1000 - then)

    def queue(self, queue: Queue) -> int | None:
        return self.ago_s(idle.queue_since(self.call, queue))


@pytest.fixture
def asked(bench: NodeBench) -> Asked:
    """Nothing sampled yet."""
    return Asked(bench)


def test_a_queue_is_idle_from_the_sample_on_that_showed_a_change(asked: Asked) -> None:
    lazy = asked.bench.node.vhosts["/"].queues["lazy"]
    assert asked.queue(lazy) is None, "messages are there, and since when nobody knows"
    asked.sample(0)
    assert asked.queue(lazy) is None, "it may have changed just before"
    asked.sample(5, 10)
    assert asked.queue(lazy) == 100
    publish(asked.bench.connect(1), "lazy", 1)
    asked.sample(15)
    assert asked.queue(lazy) is None
    asked.sample(20)
    assert asked.queue(lazy) == 85


def test_a_queue_that_was_never_used_is_idle_since_it_is_there(asked: Asked) -> None:
    queue = asked.bench.queue("new")
    asked.sample(0, 5)
    assert asked.queue(queue) == 0
    queue.made_ms -= 50_000
    assert asked.queue(queue) == 0, "made by an earlier run, of which nothing is known"
    process = asked.bench.node.process
    object.__setattr__(process, "started_at", process.started_at - 100)  # it is frozen
    assert asked.queue(queue) == 50
    assert queue.is_dormant


def test_a_channel(asked: Asked) -> None:
    (session,) = asked.bench.node.sessions
    key = channel_key(f"{session.name} (1)")
    assert idle.since(asked.call, key) is None
    asked.sample(0, 5)
    assert asked.ago_s(idle.since(asked.call, key)) == 100
    publish(asked.bench.clients[0], "lazy", 1)
    asked.sample(10)
    assert idle.since(asked.call, key) is None


def test_who_shows_it(served: Served) -> None:
    """Single queues, the detailed list, and who asks for the column: as in RabbitMQ, not the list without columns."""
    served.bench.queue("new")
    shown: dict[str, Any] = {
        path: served.get(f"/api/{path}")
        for path in (
            "queues/%2F/new",
            "queues/detailed",
            "queues?columns=name,idle_since",
            "queues",
        )
    }
    assert "idle_since" in shown["queues/%2F/new"]
    for path, is_shown in (("queues/detailed", True), ("queues?columns=name,idle_since", True), ("queues", False)):  # fmt: skip
        (row,) = [row for row in shown[path] if row["name"] == "new"]
        assert ("idle_since" in row) is is_shown, path
    assert list(served.get("/api/queues/%2F/new?columns=idle_since")) == ["idle_since"]
    assert list(served.get("/api/queues/%2F/new?columns=name")) == ["name"]
    channel = SimpleNamespace(**served.get("/api/channels")[0])
    found = served.get(f"/api/channels/{channel.name.replace(' ', '%20')}")
    assert (found["deliveries"], found["publishes"]) == ([], [])
