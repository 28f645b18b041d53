"""Vhosts, users, totals."""

from __future__ import annotations

from burrowmq.broker import inspect
from tests.support.fake_node import FakeNode, small_world


def test_totals() -> None:
    node = small_world()
    assert inspect.totals(node) == {
        "messages": 1_000_004,
        "messages_ready": 1_000_003,
        "messages_unacknowledged": 1,
    }
    assert inspect.object_totals(node)["queues"] == 2
    assert inspect.object_totals(FakeNode())["queues"] == 0
    assert inspect.counters(node)["connections_opened"] == 0


def test_users_and_permissions() -> None:
    node = small_world()
    assert inspect.users(node)[0]["tags"] == ["administrator"]
    assert inspect.permissions(node, "/", "guest")[0]["read"] == ".*"
    assert inspect.permissions(node, "other") == []
    assert inspect.vhosts(node)[0]["cluster_state"] == {"rabbit@test": "running"}
