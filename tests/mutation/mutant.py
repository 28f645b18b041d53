"""A mutant: one small edit of the store that somebody could make by mistake, and that matters.

They are lists of text (`mutants/*.txt`), each an edit with its name, its kind and the file that it is made in:

    # confirm before sync
    durability storage/disk/jobs.py
    -the text that is replaced, whole lines or a part of one
    +the text that takes its place; without one it is left out

The text has to be in the file exactly once. Behind the path, after a `|`, stands why the simulated machine cannot see
it, where that is so; or, behind `equal:`, why it changes nothing that anybody could see: it is kept, and not counted.
State: none.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
LISTS = Path(__file__).parent / "mutants"
KINDS = ("durability", "order", "accounting")
EQUAL = "equal: "
MET = "__mutant_is_met__"
"""What is called before the statement that a mutant is in, so that its user knows when it matters."""


class NotApplicable(Exception):
    """A mutant's text is not in its file exactly once: the code has changed, and the list has to."""


class Mutant(NamedTuple):
    """One edit; `outside`: why the simulated machine cannot see it, empty where it can; `equal`: why nobody can."""

    name: str
    kind: str
    path: str
    old: str
    new: str
    outside: str
    equal: str = ""

    def marked(self, *, has_edit: bool) -> str:
        """The file with the edit or without it, and a call of `MET` before the statement that it is in."""
        text = (ROOT / self.path).read_text(encoding="utf-8")
        call, line = f"{MET}()", self.line
        marked = with_calls(text, {line: call})
        if not has_edit or marked == text:
            return marked if not has_edit else self.applied()
        while (marked := with_calls(self.applied(), {line: call})) == self.applied():
            line -= 1  # the last statement of a function was left out
        return marked

    @property
    def line(self) -> int:
        """Where in its file it begins."""
        text = (ROOT / self.path).read_text(encoding="utf-8")
        return text.count("\n", 0, text.index(self.old)) + 1

    @property
    def edit(self) -> str:
        """What a verdict on it is worth for: this edit of this file."""
        text = f"{self.path}\n{self.old}\n{self.new}"
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def applied(self, root: Path = ROOT) -> str:
        """The file with the edit. Raises NotApplicable."""
        text = (root / self.path).read_text(encoding="utf-8")
        count = text.count(self.old)
        if count != 1:
            raise NotApplicable(f"{self.path} has the text of '{self.name}' {count} times")
        return text.replace(self.old, self.new)


Function = ast.FunctionDef | ast.AsyncFunctionDef


def with_calls(text: str, calls: Mapping[int, str]) -> str:
    """The text with a call before the statement that each of these lines is in; none where no function has the line."""
    tree = ast.parse(text)
    lines = text.split("\n")
    found = [(_place_at(tree, lines, line), call) for line, call in calls.items()]
    for place, call in sorted(found, key=lambda one: one[0], reverse=True):
        line, column = place
        if line:
            lines.insert(line - 1, f"{' ' * column}{call}")
    return "\n".join(lines)


def _place_at(tree: ast.AST, lines: Sequence[str], line: int) -> tuple[int, int]:
    """Where the innermost statement of a function begins that a line is in: its line and column; (0, 0): there is none."""
    place, node, function = (0, 0), tree, None
    while True:
        inner = next((child for child in _children(node) if _has(child, line)), None)
        if inner is None:
            return place
        if function is not None and not lines[inner.lineno - 1].lstrip().startswith("elif "):
            place = _begins(inner)
        if isinstance(inner, Function):
            function = inner
            body = inner.body[ast.get_docstring(inner) is not None :] or inner.body
            if body[0].lineno > inner.lineno:
                place = _begins(body[0])
        node = inner


def _children(node: ast.AST) -> Iterator[ast.stmt]:
    """The statements below a node, those of clauses too."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        elif isinstance(child, ast.ExceptHandler | ast.match_case):
            yield from _children(child)


def _has(statement: ast.stmt, line: int) -> bool:
    return _begins(statement)[0] <= line <= (statement.end_lineno or 0)


def _begins(statement: ast.stmt) -> tuple[int, int]:
    decorators = getattr(statement, "decorator_list", ())
    return min(one.lineno for one in (statement, *decorators)), statement.col_offset


def parsed(text: str) -> Iterator[Mutant]:
    """The mutants of a list. Raises ValueError."""
    for block in text.strip().split("\n\n"):
        head, place, *edit = block.splitlines()
        path, _, why = place.partition(" | ")
        is_equal = why.startswith(EQUAL)
        outside, equal = ("", why.removeprefix(EQUAL)) if is_equal else (why, "")
        kind, _, path = path.partition(" ")
        old = "\n".join(line[1:] for line in edit if line.startswith("-"))
        new = "\n".join(line[1:] for line in edit if line.startswith("+"))
        if not head.startswith("# ") or kind not in KINDS or not old or old == new:
            raise ValueError(f"this is no mutant:\n{block}")
        yield Mutant(head[2:], kind, path, old, new, outside, equal)


def mutants() -> list[Mutant]:
    """All of them, durability first."""
    found = [
        mutant
        for path in sorted(LISTS.glob("*.txt"))
        for mutant in parsed(path.read_text(encoding="utf-8"))
    ]
    return sorted(found, key=lambda one: KINDS.index(one.kind))
