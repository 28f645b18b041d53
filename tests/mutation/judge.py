"""What finds a mutant: the simulated machine first, then the module's own tests, then all tests of the store.

The first that fails ends it, and counts only when it holds in the same tree without the mutant. State: a `Judge`, with
its tree and what is known to hold there. Called by `tests.mutation.__main__`, a judge for each of its threads.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from tests.mutation.mutant import ROOT, Mutant
from tests.mutation.tree import Tree

HUNT_SLACK_S = 90.0  # a seed that does not end is told by the hunt itself
TESTS_S = 90.0
START = "start"  # of the program: the machine cannot even be loaded
LEVELS = ("none", "own", "all")  # of tests that run after the machine
ALL_TESTS = (
    "tests/unit/storage",
    "tests/unit/offline",
    "tests/simulation",
    "--ignore=tests/simulation/test_machine.py",
)
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


class Verdict(NamedTuple):
    """What came of one mutant. `by` is empty where it survived; `ran` are the plans of the machine, in all."""

    name: str
    edit: str
    by: str
    why: str
    ran: int
    seconds: float
    tested: str  # which tests have run, too: none, own, all

    @property
    def is_simulator(self) -> bool:
        """Whether the simulated machine has found it."""
        return self.by.startswith(("seed ", "fault ", "plan ", START))


class Found(NamedTuple):
    """What some plans of the machine came to: how many ran, the one that failed, and why."""

    ran: int
    by: str
    why: str


def edit_of(mutant: Mutant) -> str:
    """What the verdict on a mutant is worth for: this edit of this file."""
    text = f"{mutant.path}\n{mutant.old}\n{mutant.new}"
    return hashlib.sha256(text.encode()).hexdigest()[:12]


class Judge:
    """See the module."""

    def __init__(self, first: int, count: int, seconds: float, *, tests: str) -> None:
        self._first = first
        self._count = count
        self._seconds = seconds
        self._tests = tests
        self._tree = Tree()
        self._sound: dict[str, bool] = {}

    def close(self) -> None:
        """Remove the tree."""
        self._tree.close()

    def verdict(self, mutant: Mutant, known: Verdict | None) -> Verdict:
        """Find it if it can be found; `known` is what came of it before. Raises NotApplicable."""
        began = time.monotonic()
        ran = known.ran if known is not None else 0
        tested = known.tested if known is not None else "none"
        by = why = ""
        if not mutant.outside:
            more, by, why = self._hunt(mutant, ran)
            ran += more
        if not by and LEVELS.index(self._tests) > LEVELS.index(tested):
            by, why = self._test(mutant)
            tested = self._tests
        seconds = round(time.monotonic() - began, 1)
        return Verdict(mutant.name, edit_of(mutant), by, why, ran, seconds, tested)

    # -- the machine ----------------------------------------------------------------------------------------------

    def _hunt(self, mutant: Mutant, skipped: int) -> Found:
        ran = 0
        while ran < self._count:
            self._tree.take(mutant)
            found = self._run_hunt(
                *("--first", str(self._first)),
                *("--skip", str(skipped + ran)),
                *("--count", str(self._count - ran)),
                *("--seconds", str(self._seconds)),
            )
            ran += found.ran
            if not found.by or self._holds(found.by):
                return found._replace(ran=ran)
        return Found(ran, "", "")

    def _holds(self, name: str) -> bool:
        """Whether a plan holds without a mutant."""
        if name not in self._sound:
            self._tree.take(None)
            arguments = () if name == START else ("--only", name)
            self._sound[name] = not self._run_hunt(*arguments, "--count", "1").by
        return self._sound[name]

    def _run_hunt(self, *arguments: str) -> Found:
        try:
            done = subprocess.run(
                [sys.executable, "-m", "tests.mutation.hunt", *arguments],
                cwd=self._tree.root,
                env=self._tree.environment(),
                capture_output=True,
                check=False,
                text=True,
                timeout=self._seconds + HUNT_SLACK_S,
            )
        except subprocess.TimeoutExpired:
            return Found(1, START, "it does not end")
        lines = done.stdout.strip().splitlines()
        if lines:
            return Found(**json.loads(lines[-1]))
        last = done.stderr.strip().splitlines()[-1:] or [f"exit {done.returncode}"]
        return Found(1, START, last[0])

    # -- the tests ------------------------------------------------------------------------------------------------

    def _test(self, mutant: Mutant) -> tuple[str, str]:
        own = own_tests(mutant.path)
        for chosen in (own, ALL_TESTS) if self._tests == "all" else (own,):
            if not chosen:
                continue
            self._tree.take(mutant)
            found = self._run_tests(*chosen)
            if found:
                self._tree.take(None)
                if not self._run_tests(found):
                    return found, "a test fails"
        return "", ""

    def _run_tests(self, *chosen: str) -> str:
        """Run tests up to the first that fails: which it is."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
        command += ["-p", "no:randomly", "--no-header", "-m", "not long and not needs_server"]
        try:
            done = subprocess.run(
                [*command, *chosen],
                cwd=self._tree.root,
                env=self._tree.environment(),
                capture_output=True,
                check=False,
                text=True,
                timeout=TESTS_S,
            )
        except subprocess.TimeoutExpired:
            return ""
        found = _FAILED.search(done.stdout)
        return found[1] if found is not None else ""


def own_tests(path: str) -> tuple[str, ...]:
    """The tests of one module: at the same place below tests/unit, or named by a `Covers:` line."""
    place = ROOT / "tests" / "unit" / Path(path).parent
    stem = Path(path).stem.lstrip("_")
    found = [*place.glob(f"test_{stem}.py"), *place.glob(f"test_{stem}_*.py")]
    for test in sorted(place.rglob("test_*.py")):
        head = test.read_text(encoding="utf-8")[:600]
        if test not in found and "Covers:" in head and path in head:
            found.append(test)
    return tuple(test.relative_to(ROOT).as_posix() for test in sorted(found))
