"""`python -m tests.mutation`: does the simulated machine find the mistakes of a list? A table says what found each.

Each mutant of `mutants/*.txt` is put into copies of this process, in which seeds of the machine run, then tests. What
came of it is added to a file of results, one line each, so that a run can be cut off and goes on where it was, and so
that several processes can share the work (`--part 0/2` and `--part 1/2`). A mutant that survived runs further seeds with
each run that asks for more (`--again`). `--record` keeps what is known in the project (`tests.mutation.record`), and
`--recheck 30` has as many that were found looked for again, and keeps which plan finds them now where it is another.
Exits with 1 if one survived.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from tests.mutation.judge import LEVELS, Judge, Verdict
from tests.mutation.mutant import KINDS, ROOT, Mutant, mutants
from tests.mutation.reach import ALL_TESTS, MARKED
from tests.mutation.record import RECORD, known_of, read_results, sums, table, write_record

RESULTS = ROOT / "build" / "mutants.jsonl"
FOUND_AGAIN = (
    0.9  # of those that are looked for again: a plan's run changes with what it comes past
)


def keep(path: Path, verdict: Verdict) -> None:
    """Add a verdict to a file of results."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(verdict._asdict()) + "\n")


def judge_all(
    waiting: list[Mutant],
    results: dict[str, Verdict],
    arguments: argparse.Namespace,
    items: Sequence[pytest.Item] = (),
) -> None:
    """Judge them; each verdict is kept at once."""
    path: Path = arguments.results
    kills = Counter(verdict.by for verdict in results.values() if verdict.is_simulator)
    judge = Judge(
        arguments.seeds, arguments.seconds, tests=arguments.tests, kills=kills, items=items
    )
    until = time.monotonic() + 60 * arguments.minutes
    for number, mutant in enumerate(waiting, start=1):
        if time.monotonic() > until:
            return
        verdict = judge.verdict(mutant, known_of(mutant, results))
        results[verdict.name] = verdict
        keep(path, verdict)
        by = verdict.by or f"SURVIVED {verdict.ran} plans"
        print(f"{number}/{len(waiting)} {verdict.name}: {by} ({verdict.seconds} s)", flush=True)


def recheck(
    chosen: Sequence[Mutant], results: dict[str, Verdict], count: int, path: Path = RESULTS
) -> bool:
    """Look again for some that the machine found, and keep what found them now: whether it finds nearly all."""
    kills = Counter(verdict.by for verdict in results.values() if verdict.is_simulator)
    judge = Judge(0, 60.0, tests="none", kills=kills, items=())
    known = [(one, its) for one in chosen if (its := known_of(one, results)) is not None]
    found = [(one, its) for one, its in known if its.is_simulator]
    sample = random.sample(found, min(count, len(found)))
    missed = 0
    for number, (one, its) in enumerate(sample, start=1):
        verdict = judge.found_again(one, its)
        if verdict is None:
            missed += 1
        elif verdict.by != its.by:
            keep(path, verdict)
        by = "NOT FOUND" if verdict is None else verdict.by
        print(f"{number}/{len(sample)} {one.name}: {by}", flush=True)
    print(f"{len(sample) - missed} of {len(sample)} mutants were found again", flush=True)
    return len(sample) - missed >= FOUND_AGAIN * len(sample)


def with_tests(judging: Callable[[Sequence[pytest.Item]], None]) -> None:
    """Collect the store's tests, and judge instead of running them."""

    class Loop:
        """Takes the place of pytest's."""

        @pytest.hookimpl(tryfirst=True)
        def pytest_runtestloop(self, session: pytest.Session) -> bool:
            judging(session.items)
            return True

    chosen = ["-q", "-s", "-p", "no:randomly", "-p", "no:cacheprovider", "-m", MARKED]
    # The simulated machine has loaded the broker before pytest could.
    chosen += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    pytest.main([*chosen, *ALL_TESTS], plugins=[Loop()])


def main() -> None:
    """Read the arguments."""
    if os.environ.get("BURROWMQ_PURE") != "1" or "BURROWMQ_VERIFY" in os.environ:
        # An edited text has to be what runs, and the self-check is the plans' to choose.
        environment = {**os.environ, "BURROWMQ_PURE": "1"}
        environment.pop("BURROWMQ_VERIFY", None)
        os.execve(sys.executable, [*sys.orig_argv], environment)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="regular expressions; only mutants that one fits")
    parser.add_argument("--kind", choices=KINDS)
    parser.add_argument("--part", default="0/1", help="this part of so many")
    parser.add_argument("--seeds", type=int, default=400, help="plans of the machine for each")
    parser.add_argument("--seconds", type=float, default=40.0, help="at most, for these")
    parser.add_argument("--minutes", type=float, default=1e6, help="begin no mutant after these")
    parser.add_argument("--tests", choices=LEVELS, default="all", help="that run after the machine")
    parser.add_argument("--again", action="store_true", help="more seeds for survivors")
    parser.add_argument("--recheck", type=int, default=0, help="so many that were found, again")
    parser.add_argument("--record", action="store_true", help="keep what is known, and the page")
    parser.add_argument("--report", action="store_true", help="only print what is known")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    part, _, parts = arguments.part.partition("/")
    chosen = [
        one
        for at, one in enumerate(mutants())
        if at % int(parts) == int(part)
        and (arguments.kind in (None, one.kind))
        and not one.equal
        and (not arguments.names or any(re.search(name, one.name) for name in arguments.names))
    ]
    results = read_results(RECORD, arguments.results)
    if arguments.record:
        write_record(mutants(), results)
        return
    if arguments.recheck:
        sys.exit(not recheck(chosen, results, arguments.recheck, arguments.results))
    if not arguments.report:
        for one in chosen:
            one.applied()
        waiting = []
        for one in chosen:
            known = known_of(one, results)
            is_found = known is not None and bool(known.by)
            if known is not None and arguments.seeds and one.kind == "durability":
                is_found = known.is_simulator or (is_found and bool(one.outside))
            if known is None or (arguments.again and not is_found):
                waiting.append(one)
        waiting.sort(key=lambda one: its.ran if (its := known_of(one, results)) else 0)
        if arguments.tests == "none":
            gc.freeze()
            judge_all(waiting, results, arguments)
        else:
            with_tests(partial(judge_all, waiting, results, arguments))
    for row in (*table(chosen, results), "", *sums(chosen, results)):
        print(row)
    verdicts = [known_of(one, results) for one in chosen]
    sys.exit(any(verdict is not None and not verdict.by for verdict in verdicts))


if __name__ == "__main__":
    main()
