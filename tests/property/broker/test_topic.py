"""The topic trie gives what a naive matcher gives, for any patterns, keys and order of changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burrowmq.broker.exchange import topic
from burrowmq.broker.exchange.binding import Binding
from burrowmq.broker.exchange.topic import TopicExchange, split_words
from tests.support.bench.broker import BrokerBench

WORDS = st.sampled_from([b"a", b"b", b"", b"*", b"#", b"ab"])
KEYS = st.lists(WORDS, max_size=6).map(b".".join)
CHANGES = st.lists(st.tuples(st.booleans(), KEYS), max_size=30)


def naive(pattern: list[bytes], words: list[bytes]) -> bool:
    if not pattern:
        return not words
    if pattern[0] == b"#":
        return any(naive(pattern[1:], words[start:]) for start in range(len(words) + 1))
    if not words:
        return False
    return pattern[0] in (b"*", words[0]) and naive(pattern[1:], words[1:])


@given(CHANGES, st.lists(KEYS, min_size=1, max_size=5), st.sampled_from([0, 100_000]))
def test_trie_equals_naive(changes: list[tuple[bool, bytes]], keys: list[bytes], kept: int) -> None:
    bench, exchange = BrokerBench(), TopicExchange("x")
    bound: dict[bytes, Binding] = {}
    for is_bind, pattern in changes:
        if is_bind and pattern not in bound:
            queue = bench.queue(pattern.decode())
            bound[pattern] = Binding(exchange, queue, "queue", pattern, {})
            exchange.bind(bound[pattern])
        elif not is_bind and bound:
            _, binding = bound.popitem()
            exchange.unbind(binding)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(topic, "KEPT_MIN", kept)
        patch.setattr(topic, "KEPT_EACH", 0)
        for key in [*keys, *keys]:
            expected = sorted(
                pattern.decode()
                for pattern in bound
                if naive(split_words(pattern), split_words(key))
            )
            found = [each.name for each in exchange.match(key, None)]
            assert sorted(found) == expected
