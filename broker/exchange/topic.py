"""The topic exchange: patterns of dot-separated words, `*` for exactly one word, `#` for any number.

Both sides are split on dots; the empty key has no words at all, while `a.` has two, the second empty. Bindings live
in a trie of pattern words. A key is matched by walking the trie as a set of nodes, one step per word: a node is in the
set at most once, so the cost is at most (words of the key) x (nodes that can still match), whatever the patterns are.
Consecutive `#` mean the same as one and are merged when the pattern enters the trie; together this makes patterns such
as `#.#.#.#...` harmless (the naive search is exponential in them).

Such a set of nodes is a `State`, and states are remembered: where a word leads is found out once, and then a key costs
a dictionary's answer for each of its words. All words that no pattern has at this place lead to one state, so that new
words make no new states. A change of the bindings forgets them all. So does a weight that only patterns made for it
reach: `KEPT_MIN`, and `KEPT_EACH` for each binding and each node of the trie, so that no state alone is too heavy. A
key at this limit costs what it would if nothing was remembered: its words x the nodes that can still match.

Source: AMQP 0-9-1 topic exchange; cases checked against RabbitMQ's rabbit_exchange_type_topic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from burrowmq.broker.exchange.base import Exchange, Properties

if TYPE_CHECKING:
    from collections.abc import Iterable

    from burrowmq.broker.exchange.base import Look
    from burrowmq.broker.exchange.binding import Binding, Destination

STAR = b"*"
HASH = b"#"
KEPT_MIN = 100_000
KEPT_EACH = 4
"""States, nodes and destinations in them, and ways between them that are remembered, together."""


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


class State:
    """The nodes that can still match behind some words of a key, and where the next word leads."""

    __slots__ = ("destinations", "following", "named", "nodes", "other")

    def __init__(self, nodes: tuple[Node, ...]) -> None:
        self.nodes = nodes
        self.named = tuple(
            node.children
            for node in nodes
            if node.children
            and len(node.children) > (STAR in node.children) + (HASH in node.children)
        )
        """Where patterns go on with words of their own; a key's word `*` or `#` is one like any other."""
        self.following: dict[bytes, State] = {} if self.named else _NO_WAYS
        """By words that a pattern has here, as far as they were met."""
        self.other: State | None = None
        """Where every other word leads, once one was met."""
        self.destinations: tuple[Destination, ...] = tuple(
            dict.fromkeys(
                binding.destination
                for node in nodes
                if node.bindings is not None
                for binding in node.bindings
            )
        )

    def names(self, word: bytes) -> bool:
        """Whether a pattern has this word here."""
        for children in self.named:  # noqa: SIM110 - a generator would cost as much as the rest of a match
            if word in children:
                return True
        return False

    def after(self, word: bytes) -> tuple[Node, ...]:
        """The nodes that can still match behind this word; O(nodes)."""
        live: dict[Node, None] = {}
        for node in self.nodes:
            if node.after_hash:
                _enter(node, live)
            children = node.children
            if children is None:
                continue
            # A key may itself have the word "#" or "*": the node found then is live anyway.
            exact = children.get(word)
            if exact is not None:
                _enter(exact, live)
            star = children.get(STAR)
            if star is not None:
                _enter(star, live)
        return tuple(live)


# What all states have behind which no pattern goes on.
_NO_WAYS: dict[bytes, State] = {}


class TopicExchange(Exchange):
    """Routes by patterns."""

    type = "topic"

    def __init__(self, name: str, **properties: Unpack[Properties]) -> None:
        super().__init__(name, **properties)
        self._root = Node(after_hash=False)
        self._start: State | None = None
        self._states: dict[tuple[Node, ...], State] = {}
        self._kept_count = 0
        self._node_count = 1

    def match(self, routing_key: bytes, look: Look | None) -> Iterable[Destination]:
        """The destinations of every pattern that the key matches, each once; O(words) but for states that are new."""
        state = self._start or self._begin()
        for word in split_words(routing_key):
            following = state.following.get(word)
            if following is None:
                following = state.other
                if following is None or (state.named and state.names(word)):
                    following = self._step(state, word)
            state = following
        return state.destinations

    def _begin(self) -> State:
        live: dict[Node, None] = {}
        _enter(self._root, live)
        self._start = self._state(tuple(live))
        return self._start

    def _step(self, state: State, word: bytes) -> State:
        """Find out where a word leads."""
        following = self._state(state.after(word))
        self._kept_count += 1
        if state.names(word):
            state.following[word] = following
        else:
            state.other = following
        return following

    def _state(self, nodes: tuple[Node, ...]) -> State:
        found = self._states.get(nodes)
        if found is None:
            if self._kept_count > KEPT_MIN + KEPT_EACH * (len(self.bindings) + self._node_count):
                self._forget()
            found = self._states[nodes] = State(nodes)
            self._kept_count += 1 + len(nodes) + len(found.destinations)
        return found

    def _forget(self) -> None:
        self._start = None
        self._states = {}
        self._kept_count = 0

    def _index(self, binding: Binding) -> None:
        self._forget()
        node = self._root
        for word in pattern_words(binding.routing_key):
            if node.children is None:
                node.children = {}
            child = node.children.get(word)
            if child is None:
                child = node.children[word] = Node(after_hash=word == HASH)
                self._node_count += 1
            node = child
        if node.bindings is None:
            node.bindings = {}
        node.bindings[binding] = None

    def _unindex(self, binding: Binding) -> None:
        self._forget()
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
            self._node_count -= 1


def _enter(node: Node, live: dict[Node, None]) -> None:
    """Add a node and, because `#` also stands for no word at all, its `#` child.

    The child of a `#` node is never `#` again (runs are merged), so one step down is enough.
    """
    live[node] = None
    if node.children is not None:
        hash_child = node.children.get(HASH)
        if hash_child is not None:
            live[hash_child] = None
