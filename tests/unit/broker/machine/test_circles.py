"""A full look for circles is due after closed connections, in idle moments, and while memory is short."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from burrowmq.broker.machine.circles import (
    GONE,
    GONE_MAX,
    IDLE_S,
    LATEST_S,
    REST_S,
    SHARE,
    Circles,
)
from tests.support.collector import IdleCollector


@dataclass
class Node:
    """A node's counters, its loop, and its alarms."""

    connections_closed: int = 7
    turns: int = 3
    is_quiet: bool = True
    now: float = 100.0
    active: set[str] = field(default_factory=set)

    def monotonic(self) -> float:
        return self.now


class SlowCollector(IdleCollector):
    """Takes a while for each look."""

    def __init__(self, node: Node) -> None:
        super().__init__()
        self.node = node
        self.takes_s = 0.0

    def collect(self) -> None:
        super().collect()
        self.node.now += self.takes_s


@pytest.fixture
def node() -> Node:
    return Node()


@pytest.fixture
def collector(node: Node) -> SlowCollector:
    return SlowCollector(node)


@pytest.fixture
def circles(node: Node, collector: SlowCollector) -> Circles:
    made = Circles(collector, node, node, node)
    node.now += REST_S
    return made


def looks(circles: Circles, collector: SlowCollector) -> int:
    """How many full looks one more look at the clock has led to."""
    before = len(collector.told)
    circles.look()
    return len(collector.told) - before


def test_a_busy_node_that_only_gets_messages_is_left_alone(
    node: Node, circles: Circles, collector: SlowCollector
) -> None:
    for _ in range(1000):
        node.turns += 100
        node.now += 1
        circles.look()
    assert collector.told == []


def test_closed_connections_are_looked_for_once_nothing_happens_for_a_moment(
    node: Node, circles: Circles, collector: SlowCollector
) -> None:
    node.turns += 1
    node.connections_closed += GONE
    assert looks(circles, collector) == 0  # there was a turn since the last look
    node.is_quiet = False
    assert looks(circles, collector) == 0  # one is to come
    node.is_quiet = True
    assert looks(circles, collector) == 1
    node.now += REST_S
    assert looks(circles, collector) == 0  # none has closed since
    node.connections_closed += GONE - 1
    assert looks(circles, collector) == 0
    node.connections_closed += 1
    assert looks(circles, collector) == 1


def test_many_closed_connections_are_looked_for_whatever_happens(
    node: Node, circles: Circles, collector: SlowCollector
) -> None:
    node.turns += 1
    node.connections_closed += GONE_MAX - 1
    assert looks(circles, collector) == 0
    node.turns += 1
    node.connections_closed += 1
    assert looks(circles, collector) == 1
    node.now += REST_S
    node.turns += 1
    assert looks(circles, collector) == 0


@pytest.mark.parametrize(("takes_s", "apart_s"), [(0.001, REST_S), (0.3, SHARE * 0.3)])
def test_however_many_close_a_thousandth_of_the_time_goes_into_it(
    node: Node, circles: Circles, collector: SlowCollector, takes_s: float, apart_s: float
) -> None:
    collector.takes_s = takes_s
    began = node.now
    while len(collector.told) < 5:
        node.turns += 1
        node.connections_closed += 10 * GONE_MAX
        circles.look()
        node.now += 1
    assert node.now - began == pytest.approx(4 * apart_s, rel=0.2)


def test_an_idle_node_is_looked_at_once_after_an_hour_in_which_anything_happened(
    node: Node, circles: Circles, collector: SlowCollector
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
    node: Node, circles: Circles, collector: SlowCollector
) -> None:
    node.turns += 1
    node.now += LATEST_S - REST_S - 1
    assert looks(circles, collector) == 0
    node.turns += 1
    node.now += 1
    assert looks(circles, collector) == 1


def test_while_the_alarm_of_memory_is_on_it_is_looked_again_and_again(
    node: Node, circles: Circles, collector: SlowCollector
) -> None:
    node.turns += 1
    node.active.add("disk")
    assert looks(circles, collector) == 0
    node.active.add("memory")
    assert looks(circles, collector) == 1
    node.turns += 1
    assert looks(circles, collector) == 0  # not each second
    node.now += REST_S
    assert looks(circles, collector) == 1
    node.now += REST_S
    assert looks(circles, collector) == 0  # nothing has happened
