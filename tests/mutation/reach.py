"""`python -m tests.mutation.reach`: which plans of the simulated machine, and which tests, come past which line of the store.

A mutant changes nothing in a run that never comes past its lines, so that such a run need not be made: for what is rare
one plan in a hundred is left. Each plan runs once, interpreted, with a mark before the statement of each mutant, which
counts; the tests of the store run once under coverage, with their names as contexts. What a module does while it is
imported counts for all. State: build/mutation-times.json and build/mutation-reach.json; a plan, a test or a mutant that
they do not know is taken for one that comes past, or is come past by, everything.
"""

from __future__ import annotations

import argparse
import builtins
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import coverage
import pytest

from tests.mutation.mutant import MET, ROOT, Mutant, mutants, with_calls
from tests.mutation.swapped import put_in_text

REACH = ROOT / "build" / "mutation-reach.json"
TIMES = ROOT / "build" / "mutation-times.json"
MANY = 40  # times in a plan: more say nothing
EDITS = "edits"  # those that were looked for
IMPORT = "import"
ALL_TESTS = (
    "tests/unit/storage",
    "tests/unit/offline",
    "tests/simulation",
    "--ignore=tests/simulation/test_machine.py",
)
MARKED = "not long and not needs_server"

Lines = dict[str, dict[str, str]]  # by context, by file: a bit for each line
Times = dict[str, dict[str, int]]  # by plan, by mutant's edit


def lines_of(mutant: Mutant) -> set[int]:
    """The lines of its file that it changes."""
    text = (ROOT / mutant.path).read_text(encoding="utf-8")
    first = text.count("\n", 0, text.index(mutant.old)) + 1
    return set(range(first, first + mutant.old.count("\n") + 1))


class Reach:
    """What was measured; empty where nothing was."""

    def __init__(self, path: Path = REACH, times: Path = TIMES) -> None:
        self._contexts: Lines = json.loads(path.read_text("utf-8")) if path.exists() else {}
        self._times: Times = json.loads(times.read_text("utf-8")) if times.exists() else {}

    def _is_counted(self, mutant: Mutant) -> bool:
        """Whether plans have been run with a mark where it is: constants have none."""
        if mutant.edit not in self._times.get(EDITS, {}):
            return False
        text = (ROOT / mutant.path).read_text(encoding="utf-8")
        return MET in with_calls(text, {mutant.line: MET})

    def most_often(self, mutant: Mutant, plans: Sequence[str]) -> list[str]:
        """Of these plans those that come past a mutant, or may: those first that do so most often in a step."""
        # What a plan is costs time to draw.
        from tests.mutation.plans import plan_by

        def often(plan: str) -> float:
            times = self._times.get(plan, {mutant.edit: 1}).get(mutant.edit, 0)
            return min(times, MANY) / (2 + len(plan_by(plan).steps)) if times else 0.0

        return sorted(self.comes_past(mutant, plans), key=often, reverse=True)

    def comes_past(self, mutant: Mutant, contexts: Iterable[str]) -> list[str]:
        """Those that come past a mutant, or of which it is not known."""
        if self._is_counted(mutant):
            unknown = {mutant.edit: 1}
            return [one for one in contexts if self._times.get(one, unknown).get(mutant.edit)]
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


def plans_met(first: int, count: int) -> Times:
    """Run plans with a mark at each mutant's statement: how often each came past which."""
    # What they import is to be loaded when the marks are put in.
    from tests.mutation.hunt import attempt
    from tests.mutation.plans import directed, drawn, plan_by

    by_path: dict[str, dict[int, list[int]]] = {}
    edits = [mutant.edit for mutant in mutants()]
    for number, mutant in enumerate(mutants()):
        by_path.setdefault(mutant.path, {}).setdefault(mutant.line, []).append(number)
    met: Counter[int] = Counter()
    setattr(builtins, MET, met.update)
    for path, numbers in by_path.items():
        text = (ROOT / path).read_text(encoding="utf-8")
        calls = {line: f"{MET}({tuple(its)})" for line, its in numbers.items()}
        put_in_text(path, with_calls(text, calls))
    found: Times = {}
    for name in (*directed("", Counter()), *drawn(first, count)):
        met.clear()
        attempt(plan_by(name))
        found[name] = {edits[number]: times for number, times in met.items()}
    return {**found, EDITS: dict.fromkeys(edits, 1)}


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
        TIMES.parent.mkdir(exist_ok=True)
        TIMES.write_text(json.dumps(plans_met(arguments.first, arguments.count)), encoding="utf-8")
        return
    found = measured(run_tests, "thread")
    REACH.parent.mkdir(exist_ok=True)
    known: Lines = json.loads(REACH.read_text("utf-8")) if REACH.exists() else {}
    REACH.write_text(json.dumps({**known, **found}), encoding="utf-8")


if __name__ == "__main__":
    main()
