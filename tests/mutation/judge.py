"""What finds a mutant: the simulated machine first, then the module's own tests, then the other tests that come past it.

The first that fails ends it, and counts only when it holds without the mutant. Each runs in a copy of this process that
has the mutant (`tests.mutation.swapped`). Plans that found others before come first, and nothing is run that does not
come past the mutant's lines (`tests.mutation.reach`). State: a `Judge`. Called by `tests.mutation.__main__`.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.mutation.hunt import Found, calls_of, hunt
from tests.mutation.mutant import ROOT, Mutant
from tests.mutation.plans import directed, drawn, keep, kept
from tests.mutation.reach import Reach
from tests.mutation.swapped import put_in
from tests.simulation.machine.branches import MOST

MOST_FOUND = (
    4  # plans of those that found most are tried before such that come past the mutant often
)
CHUNK = 12  # plans in one copy of the process
CPU_S = 400
WALL_S = 1200.0
MEMORY_BYTES = 4 << 30
START = "start"  # of the program: the machine cannot even be loaded
LEVELS = ("none", "own", "all")  # of tests that run after the machine


class Verdict(NamedTuple):
    """What came of one mutant. `by` is empty where it survived."""

    name: str
    edit: str
    by: str
    why: str
    ran: int  # plans of the machine, in all
    seconds: float
    tested: str  # which tests have run, too: none, own, all
    tried: tuple[str, ...] = ()  # plans that it survived, so that they are not run again

    @property
    def is_simulator(self) -> bool:
        """Whether the simulated machine has found it."""
        return self.by.startswith(
            ("seed ", "fault ", "focus ", "drill ", "script ", "kept ", "failed ", START)
        )

    def beside(self, known: Verdict) -> Verdict:
        """What is known of this edit after this verdict and an earlier one."""
        if known.edit != self.edit:
            return self
        best = (
            known
            if (known.is_simulator, bool(known.by)) > (self.is_simulator, bool(self.by))
            else self
        )
        tested = max(self.tested, known.tested, key=LEVELS.index)
        tried = tuple(dict.fromkeys((*known.tried, *self.tried)))
        return best._replace(ran=max(self.ran, known.ran), tested=tested, tried=tried)


class Judge:
    """See the module. `kills` has the names of plans that found mutants, `items` are the tests that were collected."""

    def __init__(
        self,
        count: int,
        seconds: float,
        *,
        tests: str,
        kills: Counter[str],
        items: Sequence[pytest.Item],
    ) -> None:
        self._count = count
        self._seconds = seconds
        self._tests = tests
        self._kills = kills
        self._items = items
        self._reach = Reach()
        self._calls: dict[str, list[int]] = {}  # that plans make to the disk without any mutant

    def verdict(self, mutant: Mutant, known: Verdict | None) -> Verdict:
        """Find it if it can be found; `known` is what came of it before. Raises NotApplicable."""
        began = time.monotonic()
        tried = known.tried if known is not None else ()
        tested = known.tested if known is not None else "none"
        by = why = ""
        if not mutant.outside and self._count:
            found, tried = self._hunt(mutant, tried)
            by, why = found.by, found.why
        if not by and LEVELS.index(self._tests) > LEVELS.index(tested):
            by, why = self._test(mutant)
            tested = self._tests
        seconds = round(time.monotonic() - began, 1)
        ran = len(tried)
        return Verdict(mutant.name, mutant.edit, by, why, ran, seconds, tested, tried)

    def found_again(self, mutant: Mutant, known: Verdict) -> Verdict | None:
        """What finds it today: the plan that found it, another that is kept or failed once, or none.

        A plan is kept whole, but what its steps do changes with the machine: one that found it may come past it no more.
        """
        began = time.monotonic()
        found, own = Found(0, "", ""), [known.by]
        if known.by.startswith(("script ", "kept ", "failed ")):
            found = self._try(mutant, own, self._seconds)
            if found.by and not self._holds(mutant, known.by):
                found = found._replace(by="")
        if not found.by:
            found, _ = self._hunt(mutant, own)
        if not found.by:
            return None
        seconds = round(time.monotonic() - began, 1)
        return known._replace(by=found.by, why=found.why, seconds=seconds)

    def _try(self, mutant: Mutant, names: Sequence[str], seconds: float) -> Found:
        """Run these plans with the mutant."""
        unknown = [name for name in names if name not in self._calls]
        if unknown:
            told = _in_a_copy(lambda: calls_of(unknown))
            self._calls.update(zip(unknown, json.loads(told or "[]"), strict=False))
        work = partial(hunt, names, seconds, copies_for(mutant), self._calls)
        return _apart(mutant, work, has_edit=True)

    # -- the machine ----------------------------------------------------------------------------------------------

    def _hunt(self, mutant: Mutant, tried: Sequence[str]) -> tuple[Found, tuple[str, ...]]:
        """Try plans that were not tried before; gives all that have been, too."""
        kept.cache_clear()  # other judges keep some meanwhile
        first, waiting = directed(mutant.name, self._kills), list(drawn(0, self._count))
        best = self._reach.comes_past(mutant, first)[:MOST_FOUND]
        names = best + self._reach.most_often(mutant, [*first, *waiting])
        names = [name for name in dict.fromkeys(names) if name not in tried]
        run = list(tried)
        began = _spent()
        while names and (left := self._seconds - _spent() + began) > 0:
            found = self._try(mutant, names[:CHUNK], left)
            last = names[found.ran - 1]
            run += names[: found.ran]
            names = names[found.ran :]
            if found.by and self._holds(mutant, last):
                by = found.by
                if by in waiting:
                    keep(by, mutant.name)
                    by = f"kept {mutant.name}"
                self._kills[by] += 1
                return found._replace(by=by), tuple(run)
        return Found(len(run), "", ""), tuple(run)

    def _holds(self, mutant: Mutant, name: str) -> bool:
        """Whether a plan does not fail without the mutant."""
        work = partial(hunt, [name], self._seconds, copies_for(mutant))
        return not _apart(mutant, work, has_edit=False).by

    # -- the tests ------------------------------------------------------------------------------------------------

    def _test(self, mutant: Mutant) -> tuple[str, str]:
        files = own_tests(mutant.path)
        items = {item.nodeid: item for item in self._items}
        met = self._reach.comes_past(mutant, items)
        own = [name for name in met if name.partition("::")[0] in files]
        chosen = own if self._tests == "own" else [*own, *(one for one in met if one not in own)]
        while chosen:
            waiting = [items[name] for name in chosen]
            found = _apart(mutant, partial(run_tests, waiting), has_edit=True)
            if found.by not in items:
                break
            again = partial(run_tests, [items[found.by]])
            if not _apart(mutant, again, has_edit=False).by:
                return found.by, "a test fails"
            chosen = chosen[found.ran :]
        return "", ""


def copies_for(mutant: Mutant) -> int:
    """Copies of a run that lose their power: what they leave matters to promises, and each costs a third of a run."""
    return MOST if mutant.kind == "durability" else 1


def run_tests(items: Sequence[pytest.Item]) -> Found:
    """Run tests up to the first that fails."""
    failed: list[str] = []

    class Reports:
        """Notes what fails."""

        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.failed:
                failed.append(report.nodeid)

    for number, item in enumerate(items, start=1):
        if number == 1:
            item.config.pluginmanager.register(Reports())
        following = items[number] if number < len(items) else None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if failed:
            return Found(number, failed[0], "a test fails")
    return Found(len(items), "", "")


def _spent() -> float:
    """Seconds of a processor that copies of this process have needed."""
    return sum(os.times()[2:4])


def _apart(mutant: Mutant, work: Callable[[], Found], *, has_edit: bool) -> Found:
    """Have something done in a copy of this process that has the mutant, or only its mark."""

    def with_mutant() -> Found:
        try:
            put_in(mutant, has_edit=has_edit)
            return work()
        except Exception as error:
            return Found(1, START, repr(error)[:300])

    told = _in_a_copy(with_mutant)
    return Found(*json.loads(told)) if told else Found(1, "", "it did not end in time")


def _in_a_copy(work: Callable[[], object]) -> str:
    """Have something done in a copy of this process; gives what came of it as JSON, nothing if it did not end."""
    read, write = os.pipe()
    copy = os.fork()
    if not copy:
        try:
            os.close(read)
            resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S + 10))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            with os.fdopen(write, "w") as pipe:
                pipe.write(json.dumps(work()))
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        text = pipe.read().decode() if select.select([pipe], [], [], WALL_S)[0] else ""
        if not text:
            os.kill(copy, signal.SIGKILL)
    os.waitpid(copy, 0)
    return text


def own_tests(path: str) -> tuple[str, ...]:
    """The tests of one module: at the same place below tests/unit, or named by a `Covers:` line."""
    place = ROOT / "tests" / "unit" / Path(path).parent
    stem = Path(path).stem.lstrip("_")
    found = [*place.glob(f"test_{stem}.py"), *place.glob(f"test_{stem}_*.py")]
    for test in sorted((ROOT / "tests" / "unit").rglob("test_*.py")):
        head = test.read_text(encoding="utf-8")[:600]
        if test not in found and "Covers:" in head and path in head:
            found.append(test)
    return tuple(test.relative_to(ROOT).as_posix() for test in sorted(found))
