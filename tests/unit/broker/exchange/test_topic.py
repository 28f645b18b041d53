"""burrowmq.broker.exchange.topic: patterns, their edges, and patterns made to hurt."""

from __future__ import annotations

import pytest

from burrowmq.broker.exchange import topic
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


def steps_to_match(exchange: TopicExchange, key: bytes) -> int:
    return steps_of(lambda: list(exchange.match(key, None)))


def test_a_new_word_costs_a_look_into_dictionaries_however_many_bindings_there_are() -> None:
    steps = []
    for count in (10, 1000):
        exchange = bound(b"k.*.end", *[b"k.%d.end" % at for at in range(count)], b"#.never")
        for key in (b"k.new.end", b"k.5.end"):
            assert len(matched(exchange, key)) == 1 + (key == b"k.5.end")
        assert not matched(exchange, b"a.b.c")
        # States are made in the order of a set: the first new word may meet one that is not there yet.
        ways = [b"k.newer%d.end", b"k.5.end", b"x.y%d.z"]
        keys = [[way % at if b"%" in way else way for at in range(3)] for way in ways]
        steps.append([min(steps_to_match(exchange, key) for key in each) for each in keys])
    assert steps[0] == steps[1]


def test_new_words_make_no_new_states() -> None:
    exchange = bound(b"k.*.#", b"k.a.b")
    for number in range(100):
        assert matched(exchange, b"k.%d.%d" % (number, number)) == ["k.*.#"]
    assert len(exchange._states) < 10


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic, "KEPT_MIN", 20)
    monkeypatch.setattr(topic, "KEPT_EACH", 0)
    exchange = bound(*[b"#.%d.#.%d.#" % (at, at + 1) for at in range(10)])
    for first in range(10):
        for second in range(10):
            expected = [f"#.{first}.#.{second}.#"] if second == first + 1 else []
            assert matched(exchange, b"%d.x.%d" % (first, second)) == expected
            assert len(exchange._states) <= 22


def everybody_and_one_each(count: int) -> TopicExchange:
    """So many queues that get everything, and one more for each of as many last words."""
    bench, exchange = BrokerBench(), TopicExchange("x")
    for number in range(count):
        exchange.bind(Binding(exchange, bench.queue(f"all{number}"), "queue", b"#", {}))
        one = bench.queue(f"one{number}")
        exchange.bind(Binding(exchange, one, "queue", b"#.w%d" % number, {}))
    return exchange


def test_the_destinations_in_what_is_remembered_are_bounded_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(topic, "KEPT_MIN", 100)
    count = 100
    exchange = everybody_and_one_each(count)
    for number in range(count):
        found = exchange.match(b"w%d" % number, None)
        assert len(list(found)) == count + 1
    kept = sum(len(state.destinations) for state in exchange._states.values())
    assert kept < 10 * len(exchange.bindings)


def test_a_state_is_never_heavier_than_all_that_may_be_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(topic, "KEPT_MIN", 0)
    exchange = TopicExchange("x")
    bench = BrokerBench()
    # All the nodes of one pattern can match at once.
    binding = Binding(exchange, bench.queue("q"), "queue", b".".join([b"*", b"#"] * 60), {})
    exchange.bind(binding)
    exchange.match(b"a.b", None)
    kept = exchange._start
    assert kept is not None
    exchange.match(b"a.b", None)
    assert exchange._start is kept
    exchange.unbind(binding)
    assert exchange._node_count == 1


def test_a_binding_counts_from_the_next_key() -> None:
    exchange = bound(b"a.*")
    assert matched(exchange, b"a.b") == ["a.*"]
    queue = BrokerBench().queue("late")
    binding = Binding(exchange, queue, "queue", b"*.b", {})
    exchange.bind(binding)
    assert matched(exchange, b"a.b") == ["a.*", "late"]
    exchange.unbind(binding)
    assert matched(exchange, b"a.b") == ["a.*"]
