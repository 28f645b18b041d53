"""burrowmq.broker.exchange.graph: exchanges by name, bindings in both directions, rows."""

from __future__ import annotations

from typing import Any

import pytest

from burrowmq.broker.exchange.binding import Edge
from burrowmq.broker.exchange.graph import ExchangeDeclaration, ExchangeGraph
from burrowmq.broker.queue.queue import Queue
from burrowmq.broker.words.resource import Rows
from burrowmq.protocol.errors import NotFound, PreconditionFailed
from tests.support.bench.broker import BrokerBench
from tests.support.bench.engine import BenchEngine


class World:
    """A graph, its rows, the number of changes it told of, and queues that things may be bound to."""

    def __init__(self) -> None:
        self.engine = BenchEngine()
        self.queues = BrokerBench()
        self.change_count = 0
        self.installed: list[str] = []
        self.graph = ExchangeGraph(
            "/",
            Rows(self.engine),
            lambda exchange: self.installed.append(exchange.name),
            self._on_changed,
        )

    def _on_changed(self) -> None:
        self.change_count += 1

    def queue(self, name: str = "q") -> Queue:
        """A durable queue, whose own row is elsewhere."""
        return self.queues.queue(name, durable=True)

    def create(self, name: str, **more: Any) -> Any:
        return self.graph.create(ExchangeDeclaration(name=name, **more))

    def bind(self, source: str, destination: Any, kind: Any = "queue") -> Edge:
        edge = Edge(source, kind, destination.name, b"k", {})
        self.graph.bind(edge, destination)
        return edge


def test_every_change_is_told_and_every_new_exchange_named() -> None:
    world = World()
    exchange = world.create("x")
    edge = world.bind("x", world.queue())
    binding = world.graph.find(edge)
    assert binding is not None
    assert world.change_count == 2
    world.graph.unbind(binding)
    world.graph.delete(exchange)
    assert world.change_count == 4
    assert world.installed == ["x"]


def test_the_same_binding_again_is_no_change() -> None:
    world = World()
    world.create("x", durable=True)
    world.bind("x", world.queue())
    before = world.change_count, dict(world.engine.definitions.rows)
    world.bind("x", world.queue())
    assert (world.change_count, world.engine.definitions.rows) == before


def test_a_missing_source() -> None:
    world = World()
    with pytest.raises(NotFound):
        world.bind("x", world.queue())
    edge = Edge("x", "queue", "q", b"k", {})
    assert world.graph.find(edge) is None
    assert not world.graph.restore_binding(edge, world.queue())


def test_removing_a_destination_names_the_exchanges_left_unused() -> None:
    world = World()
    queue = world.queue()
    for name in ("a", "b"):
        world.create(name, auto_delete=True)
        world.bind(name, queue)
    world.create("c")
    world.bind("c", queue)
    world.bind("b", world.queue("other"))
    assert len(list(world.graph.bindings_to("queue", "q"))) == 3
    assert [each.name for each in world.graph.remove_bindings_to("queue", "q")] == ["a"]
    assert not list(world.graph.bindings_to("queue", "q"))
    assert len(list(world.graph.bindings_to("queue", "other"))) == 1


def test_rows_come_and_go_with_durable_things() -> None:
    world = World()
    durable, transient = world.create("d", durable=True), world.create("t")
    world.bind("d", transient, "exchange")
    world.bind("t", durable, "exchange")
    world.bind("d", world.queue())
    rows = world.engine.definitions
    assert [kind for kind, _ in rows.rows] == ["binding", "exchange"]
    world.graph.delete(durable)
    assert not rows.rows


def test_arguments_are_validated_by_the_type() -> None:
    world = World()
    world.create("h", type="headers")
    with pytest.raises(PreconditionFailed):
        world.graph.bind(Edge("h", "queue", "q", b"", {"x-match": "some"}), world.queue())
