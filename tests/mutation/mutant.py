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

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
LISTS = Path(__file__).parent / "mutants"
KINDS = ("durability", "order", "accounting")


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

    def applied(self, root: Path = ROOT) -> str:
        """The file with the edit. Raises NotApplicable."""
        text = (root / self.path).read_text(encoding="utf-8")
        count = text.count(self.old)
        if count != 1:
            raise NotApplicable(f"{self.path} has the text of '{self.name}' {count} times")
        return text.replace(self.old, self.new)


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
