"""What the product's tree looks like, now or at a commit: rooms, longest modules, and what the type checker was told to pass over.

    python -m scripts.house [COMMIT]

Read from git's index or from the commit, so that two states can be laid side by side; files that were never added do not
count. `Any` is counted where it annotates something, not where it is imported or stands in a text.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from typing import NamedTuple

SERVER = (
    "protocol",
    "storage",
    "config",
    "cluster",
    "broker",
    "management",
    "offline",
    "embedded",
    "cli",
)
SPARK = ("pyspark_amqp", "pyspark_amqp_jobs", "pyspark_amqp_store")
PACKAGES = ("burrowmq", *SERVER, *SPARK)
DOMAIN = re.compile(
    r"\b(node|queue|session|vhost|channel|consumer|exchange|engine)\w*: (?:\w+ \| )*Any\b"
)
LONGEST = 10
FULL = 13
"""Modules side by side from which on a room is marked as full: a newcomer takes in a dozen names at a glance."""


class Module(NamedTuple):
    """One module of the product."""

    path: str
    text: str

    @property
    def room(self) -> str:
        """Return the folder it lies in."""
        return self.path.rpartition("/")[0]

    @property
    def line_count(self) -> int:
        """Return its length."""
        return self.text.count("\n")


def main() -> None:
    """Print the tables for the commit named on the command line, or for what git has been given."""
    commit = sys.argv[1] if len(sys.argv) > 1 else ""
    modules = read(commit)
    if not modules:
        sys.exit(f"house: no modules in {commit or 'the index'}")
    print(
        f"{commit or 'index'}: {len(modules)} modules, {sum(m.line_count for m in modules)} lines\n"
    )
    print("\n".join([*rooms(modules), "", *longest(modules), "", *passed_over(modules)]))


def read(commit: str) -> list[Module]:
    """Return the product's modules at the commit; of git's index where it is empty. Two processes of git for all."""
    listing = ("ls-tree", "-r", "--name-only", commit) if commit else ("ls-files",)
    paths = [
        path
        for path in _git(*listing).decode().splitlines()
        if path.partition("/")[0] in PACKAGES and path.endswith((".py", ".pyx", ".pxi"))
    ]
    asked = "".join(f"{commit}:{path}\n" for path in paths)
    answer = _git("cat-file", "--batch", feed=asked.encode())
    modules = []
    at = 0
    for path in paths:
        head, _, _ = answer[at:].partition(b"\n")
        at += len(head) + 1
        size = int(head.split()[2])
        modules.append(Module(path, answer[at : at + size].decode()))
        at += size + 1
    return modules


def rooms(modules: list[Module]) -> list[str]:
    """Return the folders with how many modules lie directly in each, `__init__` and parts of modules left out."""
    counts = Counter(m.room for m in modules if not m.path.endswith(("/__init__.py", ".pxi")))
    lines = ["| folder | modules |", "|---|---|"]
    return lines + [
        f"| {room} | {count}{' (full)' if count >= FULL else ''} |"
        for room, count in sorted(counts.items())
    ]


def longest(modules: list[Module]) -> list[str]:
    """Return the longest modules."""
    ranked = sorted(modules, key=lambda m: -m.line_count)[:LONGEST]
    return ["| module | lines |", "|---|---|", *(f"| {m.path} | {m.line_count} |" for m in ranked)]


def passed_over(modules: list[Module]) -> list[str]:
    """Return how often the type checker and the linter were told to pass over something."""
    plain = [m for m in modules if m.path.endswith(".py")]
    rows = {
        "`type: ignore`": sum(m.text.count("# type: ignore") for m in plain),
        "`Any` in annotations": sum(_anys(m) for m in plain),
        "`Any` for domain objects": sum(len(DOMAIN.findall(m.text)) for m in plain),
        "`noqa`": sum(m.text.count("# noqa") for m in plain),
    }
    return [
        "| what | count |",
        "|---|---|",
        *(f"| {what} | {count} |" for what, count in rows.items()),
    ]


def _anys(module: Module) -> int:
    names = (node for node in ast.walk(ast.parse(module.text)) if isinstance(node, ast.Name))
    return sum(name.id == "Any" for name in names)


def _git(*arguments: str, feed: bytes | None = None) -> bytes:
    return subprocess.run(
        ["git", *arguments], input=feed, stdout=subprocess.PIPE, check=True
    ).stdout


if __name__ == "__main__":
    main()
