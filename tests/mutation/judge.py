"""What finds a mutant: the simulated machine first, then the module's own tests, then the other tests that come past it.

The first that fails ends it, and counts only when it holds without the mutant. Each runs in a copy of this process that
has the mutant (`tests.mutation.swapped`). Plans that found others before come first, and nothing is run that does not
come past the mutant's lines (`tests.mutation.reach`). State: a `Judge`. Called by `tests.mutation.__main__`.
"""

from __future__ import annotations

import hashlib
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

from tests.mutation.hunt import Found, hunt
from tests.mutation.mutant import ROOT, Mutant
from tests.mutation.plans import directed, drawn, drawn_as, keep, kept
from tests.mutation.reach import Reach
from tests.mutation.swapped import put_in

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
    considered: int = 0  # plans that were drawn: run, or known not to come past it

    @property
    def is_simulator(self) -> bool:
        """Whether the simulated machine has found it."""
        return self.by.startswith(("seed ", "fault ", "focus ", "kept ", "failed ", START))

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
        considered = max(self.considered, known.considered)
        return best._replace(ran=max(self.ran, known.ran), tested=tested, considered=considered)


def edit_of(mutant: Mutant) -> str:
    """What the verdict on a mutant is worth for: this edit of this file."""
    text = f"{mutant.path}\n{mutant.old}\n{mutant.new}"
    return hashlib.sha256(text.encode()).hexdigest()[:12]


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

    def verdict(self, mutant: Mutant, known: Verdict | None) -> Verdict:
        """Find it if it can be found; `known` is what came of it before. Raises NotApplicable."""
        began = time.monotonic()
        ran, considered = (known.ran, known.considered) if known is not None else (0, 0)
        tested = known.tested if known is not None else "none"
        by = why = ""
        if not mutant.outside and self._count:
            found, considered = self._hunt(mutant, considered)
            by, why = found.by, found.why
            ran += found.ran
        if not by and LEVELS.index(self._tests) > LEVELS.index(tested):
            by, why = self._test(mutant)
            tested = self._tests
        seconds = round(time.monotonic() - began, 1)
        return Verdict(mutant.name, edit_of(mutant), by, why, ran, seconds, tested, considered)

    # -- the machine ----------------------------------------------------------------------------------------------

    def _hunt(self, mutant: Mutant, considered: int) -> tuple[Found, int]:
        """Try plans; gives how many of those that are drawn have been considered, too."""
        kept.cache_clear()  # other judges keep some meanwhile
        waiting = list(drawn(0, self._count))
        place = {name: at for at, name in enumerate(waiting, start=1)}
        first = directed(mutant.name, self._kills)
        if considered:
            first = [name for name in first if name.startswith("kept ")]
        names = [*first, *waiting[considered:]]
        as_drawn = {name: drawn_as(name) for name in first}
        met = set(self._reach.comes_past(mutant, [as_drawn.get(name, name) for name in names]))
        names = [name for name in names if as_drawn.get(name, name) in met]
        ran = 0
        while names:
            found = _apart(mutant, partial(hunt, names, self._seconds), has_edit=True)
            ran += found.ran
            tried, names = names[: found.ran], names[found.ran :]
            considered = max([considered, *(place.get(name, 0) for name in tried)])
            if not found.by:
                break
            if not _apart(mutant, partial(hunt, [found.by], self._seconds), has_edit=False).by:
                if found.by in place:
                    keep(found.by, mutant.name)
                self._kills[found.by] += 1
                return found._replace(ran=ran), considered
        return Found(ran, "", ""), considered if names else self._count

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


def _apart(mutant: Mutant, work: Callable[[], Found], *, has_edit: bool) -> Found:
    """Have something done in a copy of this process that has the mutant, or only its mark."""
    read, write = os.pipe()
    copy = os.fork()
    if not copy:
        try:
            os.close(read)
            resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S + 10))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            try:
                put_in(mutant, has_edit=has_edit)
                found = work()
            except Exception as error:
                found = Found(1, START, repr(error)[:300])
            os.write(write, json.dumps(found).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        text = pipe.read().decode() if select.select([pipe], [], [], WALL_S)[0] else ""
        if not text:
            os.kill(copy, signal.SIGKILL)
    os.waitpid(copy, 0)
    return Found(*json.loads(text)) if text else Found(1, START, "it does not end")


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
