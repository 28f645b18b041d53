"""The topic exchange: patterns of dot-separated words, `*` for exactly one word, `#` for any number.

Both sides are split on dots; the empty key has no words at all, while `a.` has two, the second empty. Bindings live
in a trie of pattern words. A match walks the trie as a set of states, one step per word of the key: a node is in the
set at most once, so the cost is at most (words of the key) x (nodes that can still match), whatever the patterns
are. Consecutive `#` mean the same as one and are merged when the pattern enters the trie; together this makes
patterns such as `#.#.#.#...` harmless (the naive search is exponential in them).

Source: AMQP 0-9-1 topic exchange; cases checked against RabbitMQ's rabbit_exchange_type_topic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from burrowmq.broker.exchange.base import Exchange, Properties

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from burrowmq.broker.exchange.binding import Binding, Destination
    from burrowmq.protocol.table import FieldTable

STAR = b"*"
HASH = b"#"


def split_words(key: bytes) -> list[bytes]:
    """The words of a key or pattern; the empty key has none."""
    return key.split(b".") if key else []


def pattern_words(pattern: bytes) -> list[bytes]:
    """The words of a pattern with runs of `#` merged into one."""
    words: list[bytes] = []
    for word in split_words(pattern):
        if word == HASH and words and words[-1] == HASH:
            continue
        words.append(word)
    return words


class Node:
    """One pattern word in the trie; `after_hash` nodes stay alive over any number of words."""

    __slots__ = ("after_hash", "bindings", "children")

    def __init__(self, *, after_hash: bool) -> None:
        self.after_hash = after_hash
        self.children: dict[bytes, Node] | None = None
        self.bindings: dict[Binding, None] | None = None


class TopicExchange(Exchange):
    """Routes by patterns."""

    type = "topic"

    def __init__(self, name: str, **properties: Unpack[Properties]) -> None:
        super().__init__(name, **properties)
        self._root = Node(after_hash=False)

    def match(
        self, routing_key: bytes, headers: Callable[[], FieldTable] | None
    ) -> Iterable[Destination]:
        """The destinations of every pattern that the key matches; O(words x live nodes)."""
        if not self.bindings:
            return ()
        live: dict[Node, None] = {}
        _enter(self._root, live)
        for word in split_words(routing_key):
            following: dict[Node, None] = {}
            for node in live:
                if node.after_hash:
                    _enter(node, following)
                children = node.children
                if children is None:
                    continue
                # A key may itself have the word "#" or "*": the node found then is live anyway.
                exact = children.get(word)
                if exact is not None:
                    _enter(exact, following)
                star = children.get(STAR)
                if star is not None:
                    _enter(star, following)
            if not following:
                return ()
            live = following
        return [
            binding.destination
            for node in live
            if node.bindings is not None
            for binding in node.bindings
        ]

    def _index(self, binding: Binding) -> None:
        node = self._root
        for word in pattern_words(binding.routing_key):
            if node.children is None:
                node.children = {}
            child = node.children.get(word)
            if child is None:
                child = node.children[word] = Node(after_hash=word == HASH)
            node = child
        if node.bindings is None:
            node.bindings = {}
        node.bindings[binding] = None

    def _unindex(self, binding: Binding) -> None:
        words = pattern_words(binding.routing_key)
        path = [self._root]
        for word in words:
            children = path[-1].children
            assert children is not None, "an indexed binding has its path in the trie"
            path.append(children[word])
        last = path[-1]
        assert last.bindings is not None, "an indexed binding is at the end of its path"
        del last.bindings[binding]
        if not last.bindings:
            last.bindings = None
        while words and path[-1].bindings is None and not path[-1].children:
            path.pop()
            children = path[-1].children
            assert children is not None, "a parent has children"
            del children[words.pop()]


def _enter(node: Node, live: dict[Node, None]) -> None:
    """Add a node and, because `#` also stands for no word at all, its `#` child.

    The child of a `#` node is never `#` again (runs are merged), so one step down is enough.
    """
    live[node] = None
    if node.children is not None:
        hash_child = node.children.get(HASH)
        if hash_child is not None:
            live[hash_child] = None
