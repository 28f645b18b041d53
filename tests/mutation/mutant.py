"""A mutant: one small edit of the store that somebody could make by mistake, and that matters.

They are lists of text (`mutants/*.txt`), each an edit with its name, its kind and the file that it is made in:

    # confirm before sync
    durability storage/disk/jobs.py
    -the text that is replaced, whole lines or a part of one
    +the text that takes its place; without one it is left out

The text has to be in the file exactly once. Behind the path, after a `|`, stands why the simulated machine cannot see
it, where that is so. State: none.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
LISTS = Path(__file__).parent / "mutants"
KINDS = ("durability", "order", "accounting")
MET = "__mutant_is_met__"
"""What is called where a function begins that a mutant is in, so that its user knows when it matters."""


class NotApplicable(Exception):
    """A mutant's text is not in its file exactly once: the code has changed, and the list has to."""


class Mutant(NamedTuple):
    """One edit; `outside`: why the simulated machine cannot see it, empty where it can."""

    name: str
    kind: str
    path: str
    old: str
    new: str
    outside: str

    def marked(self, *, has_edit: bool) -> str:
        """The file with the edit or without it, and a call of `MET` in the function that it is in."""
        text = (ROOT / self.path).read_text(encoding="utf-8")
        at = text.count("\n", 0, text.index(self.old)) + 1
        name = _function_at(text, at)
        return _with_call(self.applied() if has_edit else text, name)

    def applied(self, root: Path = ROOT) -> str:
        """The file with the edit. Raises NotApplicable."""
        text = (root / self.path).read_text(encoding="utf-8")
        count = text.count(self.old)
        if count != 1:
            raise NotApplicable(f"{self.path} has the text of '{self.name}' {count} times")
        return text.replace(self.old, self.new)


Function = ast.FunctionDef | ast.AsyncFunctionDef


def _functions(node: ast.AST, within: str = "") -> Iterator[tuple[str, Function]]:
    """All functions below a node, each with its name and those of what it is in; inner ones last."""
    for child in ast.iter_child_nodes(node):
        name = within
        if isinstance(child, Function | ast.ClassDef):
            name = f"{within}.{child.name}"
        if isinstance(child, Function):
            yield name, child
        yield from _functions(child, name)


def _function_at(text: str, line: int) -> str:
    """The innermost function that a line is in; empty where there is none."""
    found = ""
    for name, function in _functions(ast.parse(text)):
        if function.lineno <= line <= (function.end_lineno or 0):
            found = name
    return found


def _with_call(text: str, name: str) -> str:
    """The text with a call of `MET` as the first statement of a function."""
    lines = text.split("\n")
    for found, function in _functions(ast.parse(text)):
        has_text = ast.get_docstring(function) is not None
        if found == name:
            first = function.body[min(has_text, len(function.body) - 1)]
            decorators = first.decorator_list if isinstance(first, Function) else []
            line = min(one.lineno for one in (first, *decorators))
            if line > function.lineno:
                lines.insert(line - 1, f"{' ' * first.col_offset}{MET}()")
                break
    return "\n".join(lines)


def parsed(text: str) -> Iterator[Mutant]:
    """The mutants of a list. Raises ValueError."""
    for block in text.strip().split("\n\n"):
        head, place, *edit = block.splitlines()
        path, _, outside = place.partition(" | ")
        kind, _, path = path.partition(" ")
        old = "\n".join(line[1:] for line in edit if line.startswith("-"))
        new = "\n".join(line[1:] for line in edit if line.startswith("+"))
        if not head.startswith("# ") or kind not in KINDS or not old or old == new:
            raise ValueError(f"this is no mutant:\n{block}")
        yield Mutant(head[2:], kind, path, old, new, outside)


def mutants() -> list[Mutant]:
    """All of them, durability first."""
    found = [
        mutant
        for path in sorted(LISTS.glob("*.txt"))
        for mutant in parsed(path.read_text(encoding="utf-8"))
    ]
    return sorted(found, key=lambda one: KINDS.index(one.kind))
