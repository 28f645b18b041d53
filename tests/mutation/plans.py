"""The plans of the simulated machine by name, in the order in which they are tried on a mutant.

`seed 5` and `fault 5` are drawn (without and with failing calls), `focus 5` does much of one thing, `drill 5` does a few things again and again,
`failed 3` is a line of failing_plans.jsonl, and `kept NAME` one of tests/mutation/plans.jsonl: each of those found the mutant that it is named
after, when no other did. `script NAME` was written by somebody who knew what would show a mutant (tests/mutation/scripts/).
A plan is kept whole, so that it stays what it was when the way in which seeds are drawn changes. State: none but that file.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

from tests.simulation.machine.draw import Plan, plan_of
from tests.simulation.machine.plans import kept as plans_of
from tests.simulation.machine.plans import packed, scripts

ACCENTS = ("crash", "restart", "strike", "redeclare", "settle", "idle", "policy", "consume")
# What a drill is made of; a failing disk adds the others.
DRILLS = (
    *("settle", "settle", "restart", "restart", "crash", "wait", "idle", "delete", "redeclare"),
    *("renew", "policy", "purge", "transact", "get", "lose", "inherit"),
)
FAILING_DRILLS = ("strike", "strike", "fault", "heal", "owe")
KEPT = Path(__file__).with_name("plans.jsonl")


@cache
def kept() -> dict[str, Plan]:
    """Plans by the mutant that they found."""
    return {mutant: plan for plan, mutant in plans_of(KEPT)} if KEPT.exists() else {}


@cache
def failed() -> tuple[Plan, ...]:
    """Plans that failed once without any mutant."""
    return tuple(plan for plan, _ in plans_of())


@cache
def plan_by(name: str) -> Plan:
    """The plan of a name."""
    kind, _, number = name.partition(" ")
    if kind == "kept":
        return kept()[number]
    if kind == "script":
        return scripts()[number]
    if kind == "failed":
        return failed()[int(number)]
    if kind == "focus":
        return focused(int(number))
    if kind == "drill":
        return drilled(int(number))
    return plan_of(int(number), may_fail=kind == "fault")


def focused(number: int) -> Plan:
    """A plan that does much of one thing, on a store that has a commit log or has none."""
    rng = random.Random(f"focus {number}")
    plan = plan_of(number, may_fail=rng.random() < 0.4)
    accents = rng.sample(ACCENTS, 2)
    share = rng.choice((0.2, 0.4))
    steps = tuple(
        (rng.choice(accents) if rng.random() < share else name, seed) for name, seed in plan.steps
    )
    if plan.has_faults and rng.random() < 0.25:
        steps = tuple(("owe" if rng.random() < 0.25 else name, seed) for name, seed in steps)
    if rng.random() < 0.25:
        steps = tuple(("renew" if rng.random() < 0.2 else name, seed) for name, seed in steps)
    is_damaged = rng.random() < 0.2 and not plan.has_faults
    limits = replace(
        plan.limits,
        logs=rng.choice(((False,), (False,), (True,), (True, False), (False, True))),
        is_checked_each_turn=plan.limits.is_checked_each_turn and not is_damaged,
    )
    return replace(plan, limits=limits, steps=steps, has_damage=is_damaged or plan.has_damage)


def drilled(number: int) -> Plan:
    """A short plan that publishes and does one to three other things, again and again in the same order."""
    rng = random.Random(f"drill {number}")
    plan = plan_of(number, may_fail=rng.random() < 0.45)
    others = [*DRILLS, *(FAILING_DRILLS * 2 if plan.has_faults else ())]
    drill = ["publish", *rng.sample(others, rng.choice((1, 2, 2, 3)))]
    if "settle" in drill:
        drill.insert(0, "consume")
    rng.shuffle(drill)
    count = rng.choice((10, 16, 24))
    steps = tuple((drill[at % len(drill)], rng.randrange(1 << 30)) for at in range(count))
    limits = replace(
        plan.limits,
        logs=rng.choice(((False,), (False,), (True,), (True, False), (False, True))),
        is_checked_each_turn=False,
    )
    return replace(plan, limits=limits, steps=steps)


@cache
def drawn_as(name: str) -> str:
    """The name of a kept plan where it would still be drawn like that, else its own."""
    if not name.startswith("kept "):
        return name
    plan = plan_by(name)
    others = [f"{kind} {plan.seed}" for kind in ("seed", "fault", "focus", "drill")]
    return next((other for other in others if plan_by(other) == plan), name)


def keep(name: str, mutant: str) -> None:
    """Keep a plan that was drawn, for the mutant that it found."""
    with KEPT.open("a", encoding="utf-8") as file:
        file.write(packed(plan_by(name), mutant) + "\n")


def drawn(first: int, count: int) -> Iterator[str]:
    """Plans that are drawn."""
    for seed in range(first, first + (count + 5) // 6):
        yield f"seed {seed}"
        yield f"drill {2 * seed}"
        yield f"focus {2 * seed}"
        yield f"fault {seed}"
        yield f"drill {2 * seed + 1}"
        yield f"focus {2 * seed + 1}"


def directed(mutant: str, kills: Counter[str]) -> list[str]:
    """What is tried before any that is drawn: the mutant's own script or plan, those that found most, those that failed once."""
    names = [*(f"script {found}" for found in scripts()), *(f"kept {found}" for found in kept())]
    own = [name for name in names if name in (f"script {mutant}", f"kept {mutant}")]
    others = sorted((name for name in names if name not in own), key=lambda name: -kills[name])
    return [*own, *others, *(f"failed {number}" for number in range(len(failed())))]
