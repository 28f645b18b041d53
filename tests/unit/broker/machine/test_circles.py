"""A full look for circles is due after closed connections, in idle moments, and before memory gets short."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from burrowmq.broker.machine.circles import GONE, GONE_MAX, IDLE_S, LATEST_S, Circles
from tests.support.collector import IdleCollector


@dataclass
class Node:
    """A node's counters, its loop, and whether memory is short."""

    connections_closed: int = 7
    turns: int = 3
    now: float = 100.0
    is_short: bool = False

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def node() -> Node:
    return Node()


@pytest.fixture
def collector() -> IdleCollector:
    return IdleCollector()


@pytest.fixture
def circles(node: Node, collector: IdleCollector) -> Circles:
    return Circles(collector, node, node, node)


def looks(circles: Circles, collector: IdleCollector) -> int:
    """How many full looks one more look at the clock has led to."""
    before = len(collector.told)
    circles.look()
    return len(collector.told) - before


def test_a_busy_node_that_only_gets_messages_is_left_alone(
    node: Node, circles: Circles, collector: IdleCollector
) -> None:
    for _ in range(1000):
        node.turns += 100
        node.now += 1
        circles.look()
    assert collector.told == []


def test_closed_connections_are_looked_for_once_nothing_happens_for_a_moment(
    node: Node, circles: Circles, collector: IdleCollector
) -> None:
    node.turns += 1
    node.connections_closed += GONE
    assert looks(circles, collector) == 0  # something has happened since the last look
    assert looks(circles, collector) == 1
    assert looks(circles, collector) == 0  # none has closed since
    node.connections_closed += GONE - 1
    assert looks(circles, collector) == 0
    node.connections_closed += 1
    assert looks(circles, collector) == 1


def test_many_closed_connections_are_looked_for_whatever_happens(
    node: Node, circles: Circles, collector: IdleCollector
) -> None:
    node.turns += 1
    node.connections_closed += GONE_MAX - 1
    assert looks(circles, collector) == 0
    node.turns += 1
    node.connections_closed += 1
    assert looks(circles, collector) == 1
    node.turns += 1
    assert looks(circles, collector) == 0


def test_an_idle_node_is_looked_at_once_after_an_hour_in_which_anything_happened(
    node: Node, circles: Circles, collector: IdleCollector
) -> None:
    node.now += IDLE_S
    assert looks(circles, collector) == 0  # nothing has happened at all
    node.turns += 1
    assert looks(circles, collector) == 0
    assert looks(circles, collector) == 1
    node.turns += 1
    node.now += IDLE_S - 1
    assert looks(circles, collector) == looks(circles, collector) == 0
    node.now += 1
    assert looks(circles, collector) == 1
    node.now += IDLE_S
    assert looks(circles, collector) == 0


def test_a_node_that_is_never_idle_is_looked_at_in_the_end(
    node: Node, circles: Circles, collector: IdleCollector
) -> None:
    node.turns += 1
    node.now += LATEST_S - 1
    assert looks(circles, collector) == 0
    node.turns += 1
    node.now += 1
    assert looks(circles, collector) == 1


def test_when_memory_gets_short_it_is_looked_once(
    node: Node, circles: Circles, collector: IdleCollector
) -> None:
    node.is_short = True
    assert looks(circles, collector) == 1
    assert looks(circles, collector) == 0
    node.is_short = False
    assert looks(circles, collector) == 0
    node.is_short = True
    assert looks(circles, collector) == 1
