"""`python -m tests.simulation.machine`: run seeds of the simulated machine, on as many processes as are asked for.

Prints how many a second, what they did, what befell them in which step, and of each that fails its seed, its history and the shortest plan that fails
alike, as a line for tests/simulation/failing_plans.jsonl. Exits with 1 if one failed.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from tests.simulation.machine.coverage import Met, table
from tests.simulation.machine.draw import Plan, minimized, plan_of
from tests.simulation.machine.near import near
from tests.simulation.machine.plans import kept, packed
from tests.simulation.machine.run import run

_CHUNK = 20
_FIGURES = ("publications", "confirmed", "switches")


def work(
    seeds: list[int], *, may_fail: bool = False, is_near: bool = False
) -> tuple[int, Counter[str], Met, list[str]]:
    """Run some seeds: how many, what they did, what befell them, and the reports of those that failed."""
    total: Counter[str] = Counter()
    met = Met()
    reports: list[str] = []
    for seed in seeds:
        plan = (near if is_near else plan_of)(seed, may_fail=may_fail)
        try:
            result = run(plan)
        except Exception as error:
            reports.append(report(plan, error))
            continue
        total += result.operations
        met += result.met
        total["runs with a pair"] += bool(result.operations["pair"])
        for name in _FIGURES:
            total[name] += getattr(result, name)
    return len(seeds), total, met, reports


def report(plan: Plan, error: Exception) -> str:
    """What is said of a seed that fails."""
    wanted = likeness(error)

    def fails_alike(shorter: Plan) -> bool:
        try:
            run(shorter)
        except Exception as found:
            return likeness(found) == wanted
        return False

    shortest = minimized(plan, fails_alike)
    history = "\n".join(getattr(error, "__notes__", ()))
    return (
        f"seed {plan.seed}: {type(error).__name__}: {error}\n{history}\n"
        f"{len(shortest.steps)} of {len(plan.steps)} steps: {' '.join(name for name, _ in shortest.steps)}\n"
        f"{packed(shortest, str(error))}"
    )


def likeness(error: Exception) -> str:
    """Two failures are alike when they are of one kind and say the same but for names and numbers."""
    text = "".join(each for each in str(error) if not each.isdigit())
    return f"{type(error).__name__}{text.partition(':')[2][:12]}"


def collect_seldom() -> None:
    """What the program consists of is no garbage, and a run leaves little: an eighth of its time is the collector's."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)


def chunks(first: int, count: int) -> Iterator[list[int]]:
    """The seeds in handfuls."""
    seeds = iter(range(first, first + count))
    while chunk := list(itertools.islice(seeds, _CHUNK)):
        yield chunk


def simulate(
    first: int, count: int, jobs: int, *, may_fail: bool = False, is_near: bool = False
) -> int:
    """Run them; gives how many failed."""
    began = time.monotonic()
    done = failed = 0
    total: Counter[str] = Counter()
    met = Met()
    with ProcessPoolExecutor(
        jobs, initializer=collect_seldom
    ) as pool:  # one that is killed ends all: a Pool would wait for it for ever
        for number, counts, its, reports in pool.map(
            partial(work, may_fail=may_fail, is_near=is_near), chunks(first, count)
        ):
            done += number
            total += counts
            met += its
            failed += len(reports)
            for text in reports:
                print(text, flush=True)
            if done % 1000 < _CHUNK:
                print(
                    f"{done} seeds, {done / (time.monotonic() - began):.1f} a second, {failed} failed",
                    flush=True,
                )
    seconds = time.monotonic() - began
    share = total["runs with a pair"] / max(1, done)
    print(
        f"seeds {first} to {first + count - 1}: {done} in {seconds:.0f} s, {done / seconds:.1f} a second, {jobs} jobs"
    )
    print(f"deleted and declared again in one commit: in {share:.1%} of the runs")
    print(", ".join(f"{name} {value}" for name, value in sorted(total.items())))
    print(table(met))
    print(f"{failed} failed")
    return failed


def until_one_fails(first: int, count: int) -> None:
    """Exit with 1 at the first seed that fails, plans that failed once before all others; with 0 if none does."""
    for plan in (*(plan for plan, _ in kept()), *map(plan_of, range(first, first + count))):
        try:
            run(plan)
        except Exception as error:
            sys.exit(f"seed {plan.seed}: {error}")
    sys.exit(0)


def main() -> None:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=multiprocessing.cpu_count())
    parser.add_argument("--until-one-fails", action="store_true", help="no report, one process")
    parser.add_argument("--faults", action="store_true", help="let calls to the disk fail, too")
    parser.add_argument(
        "--near",
        action="store_true",
        help="plans near those that failed once, in place of new ones",
    )
    arguments = parser.parse_args()
    if arguments.until_one_fails:
        until_one_fails(arguments.first, arguments.seeds)
    failed = simulate(
        arguments.first,
        arguments.seeds,
        arguments.jobs,
        may_fail=arguments.faults,
        is_near=arguments.near,
    )
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
