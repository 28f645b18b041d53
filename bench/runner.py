"""Runs scenarios in interleaved rounds: within a round every scenario visits all its peers in random order.

Owns the stage of a run. Neighbours on the machine disturb single runs by a factor of two; peers measured within seconds of each
other are disturbed alike, so ratios are formed per round and only then averaged. Called by `__main__`.
"""

import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench import native, perftest, procfs
from bench.peers import PEERS, NodeFailed
from bench.results import Measure, Results
from bench.scenarios import SCENARIOS, Scenario
from bench.stage import Stage

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to run."""

    is_full: bool
    rounds: int
    scenarios: tuple[Scenario, ...]
    peers: tuple[str, ...]
    scratch: Path | None = None
    touched_bytes: int = 0
    """Free memory that is used once before each node's first measurement, so that none pays for what its host hands out."""
    is_fresh: bool = False
    """Each round's measurements have a node of their own: what one process holds back of its memory would favour a whole run."""
    longer: int = 1
    """Loads have so many times their messages."""
    turns: int = 1
    """So often each peer is measured in a round, by turns with the others and on the same node."""


def say(text: str) -> None:
    """A progress line on standard error."""
    print(f"{datetime.now():%H:%M:%S} {text}", file=sys.stderr, flush=True)


def select(only: list[str], *, is_full: bool) -> tuple[Scenario, ...]:
    """Scenarios by key or by the beginning of a key, in table order; all of the run's size when nothing is asked for."""
    if not only:
        return tuple(each for each in SCENARIOS if is_full or not each.is_full_only)
    for wanted in only:
        if not any(each.key.startswith(wanted) for each in SCENARIOS):
            known = ", ".join(each.key for each in SCENARIOS)
            raise ValueError(f"no scenario {wanted!r}; there are {known}")
    exact = {each.key for each in SCENARIOS} & set(only)
    begins = tuple(set(only) - exact)
    return tuple(e for e in SCENARIOS if e.key in exact or e.key.startswith(begins))


def installed(wanted: list[str]) -> dict[str, str]:
    """Peer → version, for those that are installed; names the others on standard error."""
    versions: dict[str, str] = {}
    for name in wanted or list(PEERS):
        if name not in PEERS:
            raise ValueError(f"no peer {name!r}; there are {', '.join(PEERS)}")
        version = PEERS[name].version()
        if version is None:
            say(f"{name}: not installed here, left out")
        else:
            versions[name] = version
    return versions


def _measure(stage: Stage, scenario: Scenario, peer: str, number: int, turn: int) -> Measure:
    try:
        outcome = scenario.run(stage, peer)
    except (native.GeneratorFailed, perftest.PerfTestFailed, NodeFailed, OSError) as failure:
        stage.drop(peer)
        return Measure(scenario.key, peer, number, {}, failure=str(failure).strip(), turn=turn)
    mode, limit = outcome.mode, outcome.limit
    return Measure(scenario.key, peer, number, outcome.values, mode, limit, turn=turn)


def _describe(measure: Measure) -> str:
    if measure.failure:
        return f"FAILED: {measure.failure}"
    values = measure.values
    parts = [f"{values['rate'] / 1000:,.1f} k/s"] if "rate" in values else []
    if "cpu_us" in values:
        parts.append(f"{values['cpu_us']:.2f} µs CPU")
    if not parts or "rate" not in values:
        parts += [f"{name} {value:,.4g}" for name, value in values.items() if name != "cpu_us"]
    return ", ".join([*parts, measure.limit]).rstrip(", ")


def _round(stage: Stage, plan: Plan, scenario: Scenario, number: int) -> Iterator[Measure]:
    peers = [peer for peer in scenario.peers if peer in plan.peers]
    for turn in range(plan.turns):
        for peer in random.sample(peers, len(peers)):
            if plan.touched_bytes and turn == 0:
                procfs.touch_memory(plan.touched_bytes)
            measure = _measure(stage, scenario, peer, number, turn)
            yield measure
            if plan.is_fresh and turn == plan.turns - 1:
                stage.drop(peer)
            if measure.failure:
                peers.remove(peer)  # its turns are of one process, which is gone


def run(plan: Plan, versions: dict[str, str], progress: Say = say) -> Results:
    """Run the plan. Interrupted, it keeps the rounds that are complete, or what it has of the first."""
    results = Results(
        is_full=plan.is_full,
        rounds=plan.rounds,
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=procfs.machine(),
        versions=versions,
    )
    stage = Stage(is_full=plan.is_full, scratch=plan.scratch, longer=plan.longer)
    started = time.monotonic()
    number = 0
    try:
        for number in range(plan.rounds):
            for scenario in plan.scenarios:
                if number >= scenario.max_rounds:
                    continue
                for measure in _round(stage, plan, scenario, number):
                    results.measures.append(measure)
                    head = f"round {number + 1}/{plan.rounds} {scenario.key} {measure.peer}"
                    head += f" turn {measure.turn + 1}/{plan.turns}" if plan.turns > 1 else ""
                    progress(f"{head}: {_describe(measure)}")
    except KeyboardInterrupt:
        results.cut(max(number, 1))
        progress(f"interrupted; kept: {results.rounds} round(s)")
    finally:
        stage.close()
    progress(f"{len(results.measures)} measurements in {time.monotonic() - started:.0f} s")
    return results
