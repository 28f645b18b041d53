"""`python -m tests.mutation`: does the simulated machine find the mistakes of a list? A table says what found each.

Each mutant of `mutants/*.txt` is put into copies of this process, in which seeds of the machine run, then tests. What
came of it is added to a file of results, one line each, so that a run can be cut off and goes on where it was, and so
that several processes can share the work (`--part 0/2` and `--part 1/2`). A mutant that survived runs further seeds with
each run that asks for more (`--again`). Exits with 1 if one survived.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

import pytest

from tests.mutation.judge import LEVELS, Judge, Verdict, edit_of
from tests.mutation.mutant import KINDS, ROOT, Mutant, mutants
from tests.mutation.reach import ALL_TESTS, MARKED

RESULTS = ROOT / "build" / "mutants.jsonl"


def read_results(path: Path) -> dict[str, Verdict]:
    """What is known; of several verdicts on one edit that of the machine counts, then that of tests, then the last."""
    found: dict[str, Verdict] = {}
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    for line in lines:
        verdict = Verdict(**json.loads(line))
        known = found.get(verdict.name)
        found[verdict.name] = verdict if known is None else verdict.beside(known)
    return found


def known_of(mutant: Mutant, results: dict[str, Verdict]) -> Verdict | None:
    """What came of this very edit."""
    found = results.get(mutant.name)
    return found if found is not None and found.edit == edit_of(mutant) else None


def table(chosen: Iterable[Mutant], results: dict[str, Verdict]) -> list[str]:
    """A row for each mutant, then the sums."""
    rows = ["| mutant | kind | killed by | plans | s |", "| --- | --- | --- | --- | --- |"]
    sums: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    for mutant in chosen:
        verdict = known_of(mutant, results)
        count = sums[mutant.kind]
        count["mutants"] += 1
        if verdict is None:
            count["not run"] += 1
            continue
        fate = "simulator" if verdict.is_simulator else "tests" if verdict.by else "survived"
        count[fate] += 1
        count["outside"] += bool(mutant.outside)
        by = f"{verdict.by}: {verdict.why[:80]}" if verdict.by else "**nothing**"
        rows.append(f"| {mutant.name} | {mutant.kind} | {by} | {verdict.ran} | {verdict.seconds} |")
    columns = ("mutants", "simulator", "tests", "survived", "not run", "outside")
    rows += ["", f"| kind | {' | '.join(columns)} | killed |", "| --- " * 8 + "|"]
    total: Counter[str] = sum(sums.values(), Counter())
    for kind, count in (*sums.items(), ("sum", total)):
        ran = count["mutants"] - count["not run"]
        share = (count["simulator"] + count["tests"]) / ran if ran else 0.0
        rows.append(f"| {kind} | {' | '.join(str(count[one]) for one in columns)} | {share:.1%} |")
    return rows


def judge_all(
    waiting: list[Mutant],
    results: dict[str, Verdict],
    arguments: argparse.Namespace,
    items: Sequence[pytest.Item] = (),
) -> None:
    """Judge them; each verdict is kept at once."""
    path: Path = arguments.results
    path.parent.mkdir(parents=True, exist_ok=True)
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
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(verdict._asdict()) + "\n")
        by = verdict.by or f"SURVIVED {verdict.ran} plans"
        print(f"{number}/{len(waiting)} {verdict.name}: {by} ({verdict.seconds} s)", flush=True)


def with_tests(judging: Callable[[Sequence[pytest.Item]], None]) -> None:
    """Collect the store's tests, and judge instead of running them."""

    class Loop:
        """Takes the place of pytest's."""

        @pytest.hookimpl(tryfirst=True)
        def pytest_runtestloop(self, session: pytest.Session) -> bool:
            judging(session.items)
            return True

    chosen = ["-q", "-s", "-p", "no:randomly", "-p", "no:cacheprovider", "-m", MARKED]
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
    parser.add_argument("--report", action="store_true", help="only print what is known")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    part, _, parts = arguments.part.partition("/")
    chosen = [
        one
        for at, one in enumerate(mutants())
        if at % int(parts) == int(part)
        and (arguments.kind in (None, one.kind))
        and (not arguments.names or any(re.search(name, one.name) for name in arguments.names))
    ]
    results = read_results(arguments.results)
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
        known = {one.name: known_of(one, results) for one in waiting}
        waiting.sort(key=lambda one: verdict.ran if (verdict := known[one.name]) else 0)
        if arguments.tests == "none":
            gc.freeze()
            judge_all(waiting, results, arguments)
        else:
            with_tests(partial(judge_all, waiting, results, arguments))
    for row in table(chosen, results):
        print(row)
    verdicts = [known_of(one, results) for one in chosen]
    sys.exit(any(verdict is not None and not verdict.by for verdict in verdicts))


if __name__ == "__main__":
    main()
