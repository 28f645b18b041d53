"""The pages of promises cannot rot: every row names tests that exist, or says what is different and why.

Read mechanically: a row is a table line that begins with a letter and a number (`| L1 | promise | shown by |`). Its last
cell has links to tests, or says `Deviation: …`, `Not yet: …` or `Not applicable: …` with a reason.
"""

from __future__ import annotations

import ast
import functools
import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("docs/compatibility.md", "docs/rabbitmq-suites.md")
ROW = re.compile(r"^\| ([A-Z])(\d+) \| (.+) \| ?(.*) \|$")
LINK = re.compile(r"\[`(\w+)`\]\(\.\./(tests/[\w/]+\.py)\)")
REASON = re.compile(r"(?:Deviation|Not yet|Not applicable): .{25,}")
SHORTENED = re.compile(r"`[^`]*…`|`\w*_\.\.\.")


def lines() -> list[tuple[str, str]]:
    """Every line of the pages, with a name for messages."""
    return [
        (f"{page}:{number}", line)
        for page in PAGES
        for number, line in enumerate((ROOT / page).read_text(encoding="utf-8").splitlines(), 1)
    ]


@functools.cache
def names_in(path: Path) -> frozenset[str]:
    """The names of the tests that pytest would collect from a module."""
    if not path.exists():
        return frozenset()
    module = ast.parse(path.read_text(encoding="utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    names = {node.name for node in ast.walk(module) if isinstance(node, functions)}
    for node in module.body:
        if isinstance(node, ast.Assign):  # state machines: TestModel = Model.TestCase
            names |= {each.id for each in node.targets if isinstance(each, ast.Name)}
    return frozenset(name for name in names if name.lower().startswith("test"))


def problems(place: str, line: str) -> list[str]:
    """What is wrong with one line."""
    found = [
        f"{place}: {path} has no {name}"
        for name, path in LINK.findall(line)
        if name not in names_in(ROOT / path)
    ]
    row = ROW.match(line)
    if row and not LINK.search(row[4]) and not REASON.search(row[4]):
        found.append(f"{place}: {row[1]}{row[2]} has neither a test nor a reason")
    if "../tests/" in line and SHORTENED.search(line):
        found.append(f"{place}: a test's name is shortened")
    return found


def test_every_row_has_tests_that_exist_or_a_reason() -> None:
    found = [problem for place, line in lines() for problem in problems(place, line)]
    if found:
        pytest.fail(
            "\n".join([*found, "=> name a test, or say what is different here"]), pytrace=False
        )


def test_rows_are_numbered_and_none_is_missing() -> None:
    numbers: dict[str, list[int]] = defaultdict(list)
    for _, line in lines():
        if row := ROW.match(line):
            numbers[row[1]].append(int(row[2]))
    assert numbers == {key: list(range(1, len(each) + 1)) for key, each in numbers.items()}
    assert sum(map(len, numbers.values())) > 150


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("| A1 | promise | |", 1),
        ("| A1 | promise | none |", 1),
        ("| A1 | promise | Deviation: no |", 1),
        ("| A1 | promise | [`test_gone`](../tests/architecture/test_compatibility.py) |", 1),
        ("| A1 | promise | [`test_x`](../tests/architecture/test_gone.py) |", 1),
        ("| A1 | promise | Not yet: this is told with a reason that is long enough |", 0),
        (
            "| A1 | p | [`test_what_the_check_finds`](../tests/architecture/test_compatibility.py) |",
            0,
        ),
    ],
)
def test_what_the_check_finds(line: str, count: int) -> None:
    assert len(problems("here", line)) == count
