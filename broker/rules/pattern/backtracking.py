r"""Which trees Python's backtracking `re` cannot be slow on, and how it writes them.

`re` tries one way after the other. On a name of n characters the number of ways is at most the product of the choices
(alternatives, optional parts, counted repeats), times n for every unlimited repeat, times n when the expression may
begin anywhere. That holds only if nothing that leaves a choice is itself repeated; such trees, and those with more than
`WAYS_MAX` ways on the longest name, are left to the automaton. No state; called by `compile_pattern`.
"""

from __future__ import annotations

from typing import Final

from burrowmq.broker.rules.pattern.tree import (
    MAX_CODE_POINT,
    Characters,
    Choice,
    Look,
    Node,
    Position,
    Repeat,
    Sequence,
)

NAME_MAX: Final = 255
WAYS_MAX: Final = 1_000_000
_POSITIONS: Final = {
    "begin": r"\A", "end": r"\Z", "last": r"(?=\n?\Z)", "line_begin": r"(?:\A|(?<=\n)(?!\Z))",
    "line_end": r"(?=\n|\Z)", "word": r"(?a:\b)",
    # Not Python's, which does not hold in an empty text before 3.14.
    "inside": "(?:(?<=[0-9A-Za-z_])(?=[0-9A-Za-z_])|(?<![0-9A-Za-z_])(?![0-9A-Za-z_]))",
}  # fmt: skip


def python_pattern(tree: Node) -> str | None:
    """The expression for `re`; None for one that could be slow there."""
    ways = _ways(tree)
    if ways is None or ways * (1 if _is_anchored(tree) else NAME_MAX) > WAYS_MAX:
        return None
    return written(tree)


def written(node: Node) -> str:
    """Any tree in the syntax of `re`, which may be slow on it; look-behind is not for it."""
    if isinstance(node, Characters):
        return _set(node)
    if isinstance(node, Sequence):
        return "".join(written(part) for part in node.parts)
    if isinstance(node, Choice):
        return f"(?:{'|'.join(written(option) for option in node.options)})"
    if isinstance(node, Repeat):
        most = "" if node.most is None else node.most
        return f"(?:{written(node.node)}){{{node.least},{most}}}"
    if isinstance(node, Position):
        return _POSITIONS[node.kind]
    return f"(?{'!' if node.is_negative else '='}{written(node.node)})"


def _ways(node: Node) -> int | None:
    """In how many ways `node` can be tried at one place; None when a choice is repeated, or beyond counting."""
    if isinstance(node, Characters | Position):
        return 1
    if isinstance(node, Look):
        # `re` wants look-behind of fixed length; the automaton takes any.
        return _ways(node.node) if node.is_ahead else None
    if isinstance(node, Repeat):
        # Something that takes no character can be repeated up to its limit, however short the name is.
        if _ways(node.node) != 1 or (_may_be_empty(node.node) and node.most not in (0, 1)):
            return None
        return NAME_MAX if node.most is None else min(node.most - node.least + 1, NAME_MAX)
    product, total = 1, 0
    for part in node.parts if isinstance(node, Sequence) else node.options:
        ways = _ways(part)
        if ways is None or product > WAYS_MAX:
            return None
        product *= ways
        total += ways
    return product if isinstance(node, Sequence) else max(total, 1)


def _may_be_empty(node: Node) -> bool:
    if isinstance(node, Characters):
        return False
    if isinstance(node, Sequence):
        return all(_may_be_empty(part) for part in node.parts)
    if isinstance(node, Choice):
        return any(_may_be_empty(option) for option in node.options)
    return isinstance(node, Position | Look) or node.least == 0 or _may_be_empty(node.node)


def _is_anchored(node: Node) -> bool:
    """Whether it can begin at the first character only."""
    if isinstance(node, Sequence):
        return bool(node.parts) and _is_anchored(node.parts[0])
    if isinstance(node, Choice):
        return all(_is_anchored(option) for option in node.options)
    return node == Position("begin")


def _set(characters: Characters) -> str:
    if not characters.ranges:
        return "(?!)"
    if characters.ranges == ((0, MAX_CODE_POINT),):
        return r"[\s\S]"
    return "[" + "".join(f"{_point(low)}-{_point(high)}" for low, high in characters.ranges) + "]"


def _point(point: int) -> str:
    return f"\\U{point:08x}"
