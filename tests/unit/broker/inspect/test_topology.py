"""Exchanges and bindings as rows."""

from __future__ import annotations

from burrowmq.broker import inspect
from tests.support.bench.node import NodeBench


def test_implicit_bindings_come_first(bench: NodeBench) -> None:
    rows = inspect.bindings(bench.node)
    assert [(row["source"], row["destination"]) for row in rows] == [
        ("", "lazy"),
        ("", "orders"),
        ("amq.topic", "orders"),
    ]


def test_find_binding(bench: NodeBench) -> None:
    node = bench.node
    implicit, _, row = inspect.bindings(node)
    found = inspect.find_binding(node, row)
    assert found is not None
    assert found.routing_key == b"a b/c"
    assert inspect.find_binding(node, implicit) is None
    assert inspect.find_binding(node, {**row, "properties_key": "other"}) is None


def test_properties_key() -> None:
    assert inspect.properties_key("", {}) == "~"
    assert inspect.properties_key("a b/c", {}) == "a+b%2Fc"
    assert inspect.properties_key("k", {"x": 1}) != inspect.properties_key("k", {"x": "1"})
