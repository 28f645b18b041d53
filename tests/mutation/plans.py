"""The plans of the simulated machine by name, in the order in which they are tried on a mutant.

`seed 5` and `fault 5` are drawn (without and with failing calls), `failed 3` is a line of failing_plans.jsonl, and
`kept 3` one of tests/mutation/plans.jsonl: each of those found the mutant that it is named after, when no other did.
A plan is kept whole, so that it stays what it was when the way in which seeds are drawn changes. State: none but that file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.simulation.machine.plans import kept as plans_of
from tests.simulation.machine.plans import packed
from tests.simulation.machine.run import Plan, plan_of

KEPT = Path(__file__).with_name("plans.jsonl")


@cache
def kept() -> tuple[tuple[Plan, str], ...]:
    """Plans, each with the name of the mutant that it found."""
    return tuple(plans_of(KEPT)) if KEPT.exists() else ()


@cache
def failed() -> tuple[Plan, ...]:
    """Plans that failed once without any mutant."""
    return tuple(plan for plan, _ in plans_of())


def plan_by(name: str) -> Plan:
    """The plan of a name."""
    kind, _, number = name.partition(" ")
    if kind == "kept":
        return kept()[int(number)][0]
    if kind == "failed":
        return failed()[int(number)]
    return plan_of(int(number), may_fail=kind == "fault")


def drawn_as(name: str) -> str:
    """The name of a kept plan where it would still be drawn like that, else its own."""
    if not name.startswith("kept "):
        return name
    plan = plan_by(name)
    other = f"{'fault' if plan.has_faults else 'seed'} {plan.seed}"
    return other if plan_by(other) == plan else name


def keep(name: str, mutant: str) -> None:
    """Keep a plan that was drawn, for the mutant that it found."""
    with KEPT.open("a", encoding="utf-8") as file:
        file.write(packed(plan_by(name), mutant) + "\n")


def drawn(first: int, count: int) -> Iterator[str]:
    """Plans that are drawn."""
    for seed in range(first, first + (count + 1) // 2):
        yield f"seed {seed}"
        yield f"fault {seed}"


def directed(mutant: str, kills: Counter[str]) -> list[str]:
    """What is tried before any that is drawn: the mutant's own plan, those that found most, those that failed once."""
    names = [f"kept {number}" for number in range(len(kept()))]
    own = [name for name, (_, reason) in zip(names, kept(), strict=True) if reason == mutant]
    others = sorted((name for name in names if name not in own), key=lambda name: -kills[name])
    return [*own, *others, *(f"failed {number}" for number in range(len(failed())))]
