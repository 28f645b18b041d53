"""Seeds of the simulated machine: the real broker, its clients, its store and a disk that keeps no more than it must.

`make test` runs the seeds below, half of them at each speed; `make simulate SEEDS=n JOBS=n FIRST=n` runs others, and
`make test-long` 20,000 of each kind that no earlier run had, without failing calls and with. Plans that failed once are run for ever,
and others near them.
"""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
import weakref
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from tests.simulation.machine.__main__ import simulate
from tests.simulation.machine.coverage import KILLED, POWER_CUT, Met, table
from tests.simulation.machine.draw import Plan, minimized, plan_of
from tests.simulation.machine.near import near
from tests.simulation.machine.plans import OPEN, kept, packed, scripts, unpacked
from tests.simulation.machine.run import Run, run, run_seed
from tests.support.speeds import IS_INTERPRETED

SEEDS = 2000  # in `make test`, both speeds together
GROUPS = 20
LONG_SEEDS = 20_000  # of each kind, in `make test-long`
PER_GROUP = SEEDS // 2 // GROUPS
NEAR = 20  # plans near those that failed once, in each group of a speed
PAIRS_SHARE = 0.01
FAILED = list(kept())
STILL_FAILING = list(kept(OPEN))
OPEN_SEEDS = {plan.seed for plan, _ in STILL_FAILING}  # known, and strictly expected to fail below


@pytest.mark.parametrize("group", range(GROUPS))
def test_what_was_promised_is_there(group: int) -> None:
    first = (group + GROUPS * IS_INTERPRETED) * PER_GROUP
    operations: Counter[str] = Counter()
    pairs = 0
    for seed in range(first, first + PER_GROUP):
        if seed in OPEN_SEEDS:
            continue  # `test_a_plan_that_fails_still` has it
        result = run_seed(seed)
        operations += result.operations
        pairs += bool(result.operations["pair"])
    assert operations["crash"]
    assert operations["publish"]
    assert operations["scrub"], "no scrubber has read everything"
    assert pairs >= PAIRS_SHARE * PER_GROUP, (
        "queues deleted and declared again in one commit are too rare"
    )


@pytest.mark.parametrize("may_fail", [False, True], ids=["plain", "faults"])
@pytest.mark.parametrize("group", range(GROUPS // 2))
def test_near_what_failed_once(group: int, may_fail: bool) -> None:
    first = (group + GROUPS // 2 * IS_INTERPRETED) * NEAR
    for seed in range(first, first + NEAR):
        run(near(seed, may_fail=may_fail))


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("may_fail", [False, True], ids=["plain", "faults"])
@pytest.mark.parametrize("is_near", [False, True], ids=["new", "near"])
def test_20000_seeds_that_nobody_ran(
    is_near: bool, may_fail: bool, pytestconfig: pytest.Config
) -> None:
    # A run of so many takes longer than the 20 s after which the next begins with others.
    first = time.time_ns() // 1_000_000
    again = f"make simulate SEEDS={LONG_SEEDS} FIRST={first}{' FAULTS=1' if may_fail else ''}{' NEAR=1' if is_near else ''}"
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled() if capture else nullcontext():
        print(f"\n{again}", flush=True)
        failed = simulate(
            first, LONG_SEEDS, os.cpu_count() or 1, may_fail=may_fail, is_near=is_near
        )
    assert not failed, again


@pytest.mark.parametrize(
    "plan", [plan for plan, _ in FAILED], ids=[reason[:60] for _, reason in FAILED]
)
def test_a_plan_that_failed_once(plan: Plan) -> None:
    run(plan)


@pytest.mark.parametrize("name", scripts())
def test_a_script_holds(name: str) -> None:
    """Each shows a mistake that somebody could make (docs/mutants.md): without one nothing is lost."""
    run(scripts()[name])


@pytest.mark.xfail(strict=True, reason="open: who mends it moves the plan to failing_plans.jsonl")
@pytest.mark.parametrize(
    "plan", [plan for plan, _ in STILL_FAILING], ids=[reason[:60] for _, reason in STILL_FAILING]
)
def test_a_plan_that_fails_still(plan: Plan) -> None:
    run(plan)


def test_a_seed_gives_the_same_run_again() -> None:
    for seed in range(4):
        plan = plan_of(seed)
        plan = replace(plan, limits=replace(plan.limits, has_sqlite=seed == 0))
        first, second = Run(plan), Run(plan)
        assert first.go() == second.go()
        assert first.machine.threads.now_s == second.machine.threads.now_s
        assert first.machine.disk.counters == second.machine.disk.counters


@pytest.mark.parametrize("has_sqlite", [False, True])
def test_a_run_leaves_nothing_in_memory(has_sqlite: bool) -> None:
    """Else a long row of seeds ends for want of it."""
    plan = plan_of(5)
    one = Run(replace(plan, limits=replace(plan.limits, has_sqlite=has_sqlite)))
    one.go()
    machine = weakref.ref(one.machine)
    del one
    gc.collect()
    assert machine() is None


HISTORIES = """
from tests.simulation.machine.draw import plan_of
from tests.simulation.machine.run import Run
for seed in (300017, 300036, 300050):
    one = Run(plan_of(seed, may_fail=True))
    print(one.go(), [(path, one.machine.disk.content(path)) for path in one.machine.disk.paths()])
"""


@pytest.mark.slow
def test_a_seed_gives_the_same_run_in_any_process() -> None:
    """Neither how strings are hashed nor where objects lie in memory has a part in it."""
    found = []
    for number in range(2):
        code = f"held = [object() for _ in range({50_000 * number})]\n{HISTORIES}"
        environment = {**os.environ, "PYTHONHASHSEED": str(number)}
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, env=environment, capture_output=True, check=True, text=True)
        found.append(done.stdout)
    assert found[0] == found[1]


@pytest.mark.slow
def test_a_process_that_is_killed_ends_the_run_of_seeds() -> None:
    command = [sys.executable, "-m", "tests.simulation.machine", "--seeds", "1000", "--jobs", "1"]
    running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        children = Path(f"/proc/{running.pid}/task/{running.pid}/children")
        while not (found := children.read_text()) and running.poll() is None:
            time.sleep(0.01)
        os.kill(int(found.split()[0]), signal.SIGKILL)
        _, errors = running.communicate(timeout=60)
    finally:
        running.kill()
    assert running.returncode == 1
    assert "BrokenProcessPool" in errors


def test_what_befell_the_runs_is_told_by_step() -> None:
    met = Met({("publish", "sync EIO"): 2, ("start", POWER_CUT): 1, ("publish", "read EIO"): 3})
    assert table(met).splitlines() == [
        "| step | read EIO | sync EIO | power cut | sum |",
        "| --- | --- | --- | --- | --- |",
        "| publish | 3 | 2 |  | 5 |",
        "| start |  |  | 1 | 1 |",
        "| sum | 3 | 2 | 1 | 6 |",
    ]
    steps = (("fault", 1), ("publish", 2), ("idle", 3))
    found: Counter[tuple[str, str]] = Counter()
    for seed in range(8):  # in one run the calls that are to fail may not come
        found.update(run(replace(plan_of(seed), has_faults=True, steps=steps)).met)
    assert found.total() > found["end", POWER_CUT] + found["end", KILLED]


def test_a_plan_is_kept_whole() -> None:
    plan = plan_of(5)
    assert unpacked(packed(plan, "why")) == (plan, "why")


def test_a_plan_is_cut_down_to_what_fails() -> None:
    plan = plan_of(5)
    wanted = {plan.steps[3], plan.steps[-1]}
    shortest = minimized(plan, lambda shorter: wanted <= set(shorter.steps))
    assert set(shortest.steps) == wanted
