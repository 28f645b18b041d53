"""`python -m tests.mutation.reach`: which plans of the simulated machine, and which tests, come past which line of the store.

A mutant changes nothing in a run that never comes past its lines, so that such a run need not be made: for what is rare
one plan in a hundred is left. Each plan runs once, interpreted and under coverage, with its name as the context; then
the tests of the store do. What a module does while it is imported counts for all. State:
build/mutation-reach.json; a plan or a test that it does not know is taken for one that comes past everything.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import coverage
import pytest

from tests.mutation.mutant import ROOT, Mutant

REACH = ROOT / "build" / "mutation-reach.json"
IMPORT = "import"
ALL_TESTS = (
    "tests/unit/storage",
    "tests/unit/offline",
    "tests/simulation",
    "--ignore=tests/simulation/test_machine.py",
)
MARKED = "not long and not needs_server"

Lines = dict[str, dict[str, str]]  # by context, by file: a bit for each line


def lines_of(mutant: Mutant) -> set[int]:
    """The lines of its file that it changes."""
    text = (ROOT / mutant.path).read_text(encoding="utf-8")
    first = text.count("\n", 0, text.index(mutant.old)) + 1
    return set(range(first, first + mutant.old.count("\n") + 1))


class Reach:
    """What was measured; empty where nothing was."""

    def __init__(self, path: Path = REACH) -> None:
        self._contexts: Lines = json.loads(path.read_text("utf-8")) if path.exists() else {}

    def comes_past(self, mutant: Mutant, contexts: Iterable[str]) -> list[str]:
        """Those that come past a mutant, or of which it is not known."""
        lines = sum(1 << line for line in lines_of(mutant))

        def is_met(context: str) -> bool:
            found = self._contexts.get(context)
            return found is None or bool(int(found.get(mutant.path, "0"), 16) & lines)

        if is_met(IMPORT):
            return list(contexts)
        return [context for context in contexts if is_met(context)]


def measured(run: Callable[[Callable[[str], object]], object], *concurrency: str) -> Lines:
    """Run something that names its contexts, and has such threads."""
    watched = coverage.Coverage(
        data_file=None,
        source=[str(ROOT / "storage")],
        concurrency=list(concurrency),
        config_file=False,
    )
    watched.start()
    watched.switch_context(IMPORT)
    run(watched.switch_context)
    watched.stop()
    data = watched.get_data()
    found: Lines = {}
    for context in sorted(data.measured_contexts()):
        data.set_query_context(context)
        lines = {
            Path(file).relative_to(ROOT).as_posix(): sum(1 << one for one in data.lines(file) or ())
            for file in data.measured_files()
        }
        found[context] = {file: f"{its:x}" for file, its in lines.items() if its}
    return found


def run_plans(first: int, count: int, begin: Callable[[str], object]) -> None:
    """Run plans, each a context."""
    # What they import is to be measured.
    from tests.mutation.hunt import attempt
    from tests.mutation.plans import directed, drawn, plan_by

    for name in (*directed("", Counter()), *drawn(first, count)):
        begin(name)
        attempt(plan_by(name))


def run_tests(begin: Callable[[str], object]) -> None:
    """Run the tests of the store, each a context."""

    class Contexts:
        """Names the test that runs."""

        @pytest.hookimpl(tryfirst=True)
        def pytest_runtest_protocol(self, item: pytest.Item) -> None:
            begin(item.nodeid)

    begin("collection")
    chosen = ["-q", "-p", "no:randomly", "-p", "no:cacheprovider", "-m", MARKED]
    pytest.main([*chosen, *ALL_TESTS], plugins=[Contexts()])


def main() -> None:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("plans", "tests"))
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=2000)
    arguments = parser.parse_args()
    os.environ["BURROWMQ_PURE"] = "1"
    if arguments.what == "plans":
        found = measured(partial(run_plans, arguments.first, arguments.count), "greenlet")
    else:
        found = measured(run_tests, "thread")
    REACH.parent.mkdir(exist_ok=True)
    known: Lines = json.loads(REACH.read_text("utf-8")) if REACH.exists() else {}
    REACH.write_text(json.dumps({**known, **found}), encoding="utf-8")


if __name__ == "__main__":
    main()
