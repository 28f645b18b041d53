"""How much of each module of the server its own tests reach, beside what all unit tests reach: one table, worst first.

A module that other modules' tests happen to pass through looks covered, and is not: nobody notices there what it
promises. websockets measures each module by its own test module (tests/maxi_cov.py), one process for each. Here the
unit tests run once, interpreted, under coverage, with the test file as the context of each test; both columns come
from the contexts that were recorded. What a module does while it is imported counts for everybody.

A module's own tests are those that `make tidy` knows: at the same place below tests/unit, or named by a `Covers:` line.
Called by `make own-coverage`; arguments are passed to pytest. State: build/own-coverage.sqlite, and the table on
standard output and, with --write, in docs/testing.md.
"""

from __future__ import annotations

import ast
import importlib
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from scripts.house import SERVER

if TYPE_CHECKING:
    import coverage

ROOT = Path(__file__).resolve().parents[1]
DATA_FILE = ROOT / "build" / "own-coverage.sqlite"
PAGE = ROOT / "docs" / "testing.md"
BEGIN, END = "<!-- own coverage: begin -->", "<!-- own coverage: end -->"
IMPORT = "import"
"""The context of everything that runs before the first test."""
SHOWN_BELOW = 80.0
"""The page lists the modules whose own tests reach less."""


class Row(NamedTuple):
    """One module: statements, both coverages in per cent, and its own tests."""

    module: str
    lines: int
    own: float
    by_all: float
    tests: tuple[str, ...]


# -- which tests are whose ----------------------------------------------------------------------------------------


def modules(root: Path = ROOT) -> list[str]:
    """The modules of the server, as paths in the checkout."""
    found = [path for package in SERVER for path in sorted((root / package).rglob("*.py"))]
    return [path.relative_to(root).as_posix() for path in found]


def covers(docstring: str) -> list[str]:
    """The modules that a test's docstring names on a line `Covers: a/b.py, c/d.py`."""
    lines = re.findall(r"^Covers:(.*(?:\n .*)*)", docstring, re.MULTILINE)
    return [name for line in lines for name in re.findall(r"[\w/]+\.py", line)]


def own_tests_of(names: Iterable[str], tests: dict[str, str]) -> dict[str, tuple[str, ...]]:
    """The own tests of each module; `tests` has the docstring of each test file by its path.

    test_disk_sizes.py is the test of disk_sizes.py, and not of disk.py, where both are there.
    """
    names = list(names)
    owners: dict[str, list[str]] = {name: [] for name in names}
    by_place: dict[str, dict[str, str]] = {}
    for name in names:
        folder, _, file = name.rpartition("/")
        stem = file.removesuffix(".py").lstrip("_")
        if file == "__init__.py":  # a package's own code has the package's name, in it or beside it
            inner = folder.rpartition("/")
            by_place.setdefault(folder, {}).setdefault(inner[2], name)
            folder, stem = inner[0], inner[2]
        by_place.setdefault(folder, {})[stem] = name
    for test, docstring in tests.items():
        for name in covers(docstring):
            if name in owners:
                owners[name].append(test)
        if not test.startswith("tests/unit/"):
            continue
        folder, _, file = test.removeprefix("tests/unit/").rpartition("/")
        name_of_test = file.removesuffix(".py").removeprefix("test_")
        stems = [
            stem
            for stem in by_place.get(folder, {})
            if name_of_test == stem or name_of_test.startswith(f"{stem}_")
        ]
        if stems:
            owners[by_place[folder][max(stems, key=len)]].append(test)
    return {name: tuple(sorted(set(found))) for name, found in owners.items()}


def docstrings(root: Path = ROOT) -> dict[str, str]:
    """The docstring of every test file, by its path."""
    return {
        path.relative_to(root).as_posix(): ast.get_docstring(ast.parse(path.read_text("utf-8")))
        or ""
        for path in sorted((root / "tests").rglob("test_*.py"))
    }


# -- the run ------------------------------------------------------------------------------------------------------


def recorder(sources: Sequence[str]) -> coverage.Coverage:
    """Make what records which lines below these folders are reached, and in which context."""
    import coverage  # noqa: PLC0415 - only where something is measured

    watched = coverage.Coverage(
        data_file=str(DATA_FILE),
        branch=True,
        source=sources,
        config_file=str(ROOT / "pyproject.toml"),
    )
    watched.set_option("run:core", "ctrace")  # what Python 3.14 has instead knows no contexts
    return watched


def measure(arguments: Sequence[str], own: dict[str, tuple[str, ...]]) -> int:
    """Run the server's unit tests, and what else is a module's own, under coverage; gives pytest's exit status."""
    import pytest  # noqa: PLC0415 - only where something is measured

    os.environ["BURROWMQ_PURE"] = "1"
    DATA_FILE.parent.mkdir(exist_ok=True)
    # The folders, not `burrowmq`: coverage goes by the files that its links lead to.
    watched = recorder([str(ROOT / package) for package in SERVER])
    watched.erase()
    watched.start()
    watched.switch_context(IMPORT)
    for name in own:
        if not name.endswith("__main__.py") and not name.endswith("_c.py"):
            importlib.import_module(
                f"burrowmq.{name.removesuffix('.py').removesuffix('/__init__').replace('/', '.')}"
            )

    class Contexts:
        """Names the file of the test that runs."""

        @pytest.hookimpl(tryfirst=True)
        def pytest_runtest_protocol(self, item: pytest.Item) -> None:
            watched.switch_context(item.path.relative_to(ROOT).as_posix())

    elsewhere = {test for tests in own.values() for test in tests if "tests/unit/" not in test}
    places = [f"tests/unit/{package}" for package in SERVER] + sorted(elsewhere)
    chosen = ["-q", "-p", "no:randomly", "-m", "not long and not differential"]
    status = int(pytest.main([*chosen, *places, *arguments], plugins=[Contexts()]))
    watched.stop()
    watched.save()
    return status


def rows(own: dict[str, tuple[str, ...]]) -> Iterator[Row]:
    """What the last run recorded."""
    import coverage  # noqa: PLC0415

    watched = coverage.Coverage(
        data_file=str(DATA_FILE), branch=True, config_file=str(ROOT / "pyproject.toml")
    )
    watched.load()
    known = watched.get_data().measured_files()
    for name, tests in own.items():
        path = str(ROOT / name)
        if path not in known:
            continue
        lines, by_all = _summary(watched, path, [])
        if lines:
            contexts = [re.escape(context) + "$" for context in (IMPORT, *tests)]
            yield Row(name, lines, _summary(watched, path, contexts)[1], by_all, tests)


def _summary(watched: object, path: str, contexts: list[str]) -> tuple[int, float]:
    """(statements, per cent of lines and branches) of one file in these contexts; all of them when none is named."""
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        watched.json_report(  # type: ignore[attr-defined]
            morfs=[path], outfile=report.name, contexts=contexts or None, ignore_errors=True
        )
        totals = json.loads(Path(report.name).read_text("utf-8"))["totals"]
    return int(totals["num_statements"]), float(totals["percent_covered"])


# -- the table ----------------------------------------------------------------------------------------------------


def table(found: Sequence[Row]) -> str:
    """As Markdown, the least covered by its own tests first."""
    lines = [
        "| module | statements | own tests | all unit tests | its tests |",
        "|---|---|---|---|---|",
    ]
    for row in sorted(found, key=lambda each: (each.own, each.module)):
        tests = ", ".join(test.rpartition("/")[2] for test in row.tests) or "none"
        lines.append(
            f"| `{row.module}` | {row.lines} | {row.own:.0f} % | {row.by_all:.0f} % | {tests} |"
        )
    return "\n".join(lines)


def sums(found: Sequence[Row]) -> str:
    """The whole in two sentences."""
    count = sum(row.lines for row in found)
    own = sum(row.lines * row.own for row in found) / max(count, 1)
    by_all = sum(row.lines * row.by_all for row in found) / max(count, 1)
    below = sum(row.own < SHOWN_BELOW for row in found)
    return (
        f"{len(found)} modules with {count} statements: their own tests reach {own:.1f} %, all unit tests "
        f"{by_all:.1f} %.\nModules of which they reach less than {SHOWN_BELOW:.0f} %: {below}."
    )


def written(page: str, found: Sequence[Row]) -> str:
    """The page with the sums and the rows below the limit between its marks."""
    shown = [row for row in found if row.own < SHOWN_BELOW]
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{sums(found)}\n\n{table(shown)}\n{END}{after}"


def main(arguments: Sequence[str]) -> int:
    """Measure, unless --last is given, and print; exit status 1 when a test failed."""
    options = {"--last", "--write"}
    own = own_tests_of(modules(), docstrings())
    status = 0
    if "--last" not in arguments:
        status = measure([each for each in arguments if each not in options], own)
    found = list(rows(own))
    print(table(found))
    print()
    print(sums(found))
    if "--write" in arguments:
        PAGE.write_text(written(PAGE.read_text("utf-8"), found), "utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
