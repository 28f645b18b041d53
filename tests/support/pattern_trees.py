"""Trees of expressions, and texts to look for them in, as Hypothesis makes them.

No look-behind: Python's `re`, with which the tests compare, has it of fixed length only. Callers: tests of
`broker.rules.pattern`.
"""

from __future__ import annotations

from hypothesis import strategies as st

from burrowmq.broker.rules.pattern.tree import (
    Characters,
    Choice,
    Look,
    Node,
    Position,
    Repeat,
    Sequence,
)

LETTERS = "ab\n_"
KINDS = ("begin", "end", "last", "line_begin", "line_end", "word", "inside")
characters = st.sampled_from(["a", "b", "ab", "\n", "a_"]).map(
    lambda text: Characters(tuple(sorted((ord(each), ord(each)) for each in text)))
)
leaves = st.one_of(characters, st.sampled_from([Position(kind) for kind in KINDS]))


def wider(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    limits = st.sampled_from([(0, 1), (0, None), (1, None), (2, 2), (1, 2), (0, 0)])
    return st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: Sequence(tuple(parts))),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: Choice(tuple(parts))),
        st.builds(lambda node, limit: Repeat(node, *limit), inner, limits),
        st.builds(lambda node, is_not: Look(node, True, is_not), inner, st.booleans()),
    )


trees = st.recursive(leaves, wider, max_leaves=8)
texts = st.text(LETTERS, max_size=8)
