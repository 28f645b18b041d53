"""burrowmq.broker.exchange.topic: patterns, their edges, and patterns made to hurt."""

from __future__ import annotations

import pytest

from burrowmq.broker.exchange.binding import Binding
from burrowmq.broker.exchange.topic import TopicExchange, pattern_words
from tests.support.bench.broker import BrokerBench
from tests.support.steps import steps_of


def bound(*patterns: bytes) -> TopicExchange:
    """An exchange to which queues with the names of their patterns are bound."""
    bench, exchange = BrokerBench(), TopicExchange("x")
    for pattern in patterns:
        queue = bench.queue(pattern.decode())
        exchange.bind(Binding(exchange, queue, "queue", pattern, {}))
    return exchange


def matched(exchange: TopicExchange, key: bytes) -> list[str]:
    """The queues' names, each once, sorted."""
    return sorted({each.name for each in exchange.match(key, None)})


@pytest.mark.parametrize(
    ("pattern", "key", "matches"),
    [
        (b"#", b"", True),
        (b"", b"", True),
        (b"*", b"", False),
        (b"*", b".", False),
        (b"*.*", b".", True),
        (b"a.*", b"a.", True),
        (b"a.#", b"a", True),
        (b"#.a", b"a", True),
        (b"*.#", b"", False),
        (b"a.*.b", b"a..b", True),
        (b"#.#", b"x", True),
        (b"a.b", b"a.B", False),
        (b"a.#.b", b"a.x.y.b", True),
        (b"a.#.b", b"a.x.y", False),
        (b"#.*.#", b"", False),
        (b"#.*", b"a.b.c", True),
        (b"*", b"#", True),
        (b"#", b"*.#", True),
        (b"a", b"#", False),
        (b"", b"a", False),
    ],
)
def test_patterns(pattern: bytes, key: bytes, matches: bool) -> None:
    assert bool(matched(bound(pattern), key)) is matches


def test_many_patterns_are_matched_together() -> None:
    exchange = bound(b"a.b", b"a.*", b"#", b"*.b", b"b.#", b"a.b.c")
    assert matched(exchange, b"a.b") == ["#", "*.b", "a.*", "a.b"]


def test_runs_of_hashes_are_one() -> None:
    assert pattern_words(b"#.#.a.#.#") == [b"#", b"a", b"#"]
    exchange = bound(b"#", b"#.#")
    assert matched(exchange, b"x") == ["#", "#.#"]
    exchange.unbind(next(iter(exchange.bindings)))
    assert matched(exchange, b"x") == ["#.#"]


def test_unbinding_prunes_the_trie() -> None:
    exchange = bound(b"a.b.c", b"a.b", b"a.#.d")
    for binding in list(exchange.bindings):
        exchange.unbind(binding)
    assert not exchange._root.children
    assert list(exchange.match(b"a.b", None)) == []


@pytest.mark.parametrize(
    "pattern",
    [
        b".".join([b"#"] * 64),
        b".".join([b"#", b"a"] * 32),
        b".".join([b"#", b"*"] * 32),
    ],
)
def test_patterns_made_to_hurt_take_no_time(pattern: bytes) -> None:
    exchange = bound(pattern)
    key = b".".join([b"a"] * 63 + [b"b"])
    # At most words of the key x words of the pattern, some lines each: the naive search takes 2^64.
    assert steps_of(lambda: list(exchange.match(key, None))) < 64 * 64 * 16
