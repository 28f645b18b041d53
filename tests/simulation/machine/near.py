"""Plans near those that failed once: where one mistake was, another is not far, and short plans are run fast.

`near(seed)` takes one of them, or one that found a mutant (tests/mutation/plans.jsonl), and changes a few things in it:
what a step does, steps more or fewer, steps of another plan, limits. State: none.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from tests.simulation.machine.draw import WEIGHTS, Plan, plan_of
from tests.simulation.machine.plans import SCRIPTS, kept

OF_MUTANTS = SCRIPTS.with_name("plans.jsonl")
MOST_STEPS = 40
OF_FAULTS = frozenset({"fault", "heal", "owe", "convert"})
# What usual seeds do seldom, or only some of them, often.
_MORE = ("strike", "resegment", "renew", "inherit", "trickle", "crash", "restart")
_WAYS = (
    "strict",
    "reverts",
    "switch_share",
    "sector",
    "letters",
    "priorities",
    "silence",
    "strays",
    "bounds",
)


@cache
def _kept() -> Sequence[Plan]:
    return [plan for plan, _ in (*kept(), *kept(OF_MUTANTS)) if not plan.is_plain]


def near(seed: int, *, may_fail: bool) -> Plan:
    """Draw a neighbour of a kept plan; without `may_fail` of one in which no call to the disk fails."""
    rng = random.Random(f"near {seed}")
    plans = [plan for plan in _kept() if may_fail or not plan.has_faults]
    plan = rng.choice(plans)
    for _ in range(rng.choice((1, 1, 2, 3, 5))):
        plan = rng.choice(_CHANGES)(plan, rng, plans)
    if rng.random() < 0.5:
        plan = replace(plan, seed=seed)
    has_faults = plan.has_faults or any(name in OF_FAULTS for name, _ in plan.steps)
    if has_faults:  # what is confirmed when it is written outlives no disk that fails
        limits = replace(plan.limits, store={**plan.limits.store, "confirm": "fsync"})
        plan = replace(plan, limits=limits)
    return replace(plan, has_faults=has_faults)


def _another_turn(plan: Plan, rng: random.Random, _: Sequence[Plan]) -> Plan:
    """A step does something else of its kind."""
    steps = list(plan.steps)
    for at in rng.sample(range(len(steps)), min(len(steps), rng.choice((1, 1, 2, 3)))):
        steps[at] = (steps[at][0], rng.randrange(1 << 30))
    return replace(plan, steps=tuple(steps))


def _more(plan: Plan, rng: random.Random, _: Sequence[Plan]) -> Plan:
    """Steps more, anywhere."""
    steps = list(plan.steps)
    names = [name for name in (*WEIGHTS, *_MORE) if plan.has_faults or name not in OF_FAULTS]
    for _ in range(rng.choice((1, 1, 2, 4))):
        if len(steps) < MOST_STEPS:
            steps.insert(rng.randrange(len(steps) + 1), (rng.choice(names), rng.randrange(1 << 30)))
    return replace(plan, steps=tuple(steps))


def _again(plan: Plan, rng: random.Random, _: Sequence[Plan]) -> Plan:
    """Some of its steps once more, elsewhere."""
    first = rng.randrange(len(plan.steps))
    part = plan.steps[first : first + rng.choice((1, 2, 4))]
    at = rng.randrange(len(plan.steps) + 1)
    return replace(plan, steps=(*plan.steps[:at], *part, *plan.steps[at:])[:MOST_STEPS])


def _fewer(plan: Plan, rng: random.Random, _: Sequence[Plan]) -> Plan:
    at = rng.randrange(len(plan.steps))
    return (
        replace(plan, steps=(*plan.steps[:at], *plan.steps[at + 1 :]))
        if len(plan.steps) > 3
        else plan
    )


def _behind(plan: Plan, rng: random.Random, plans: Sequence[Plan]) -> Plan:
    """Another plan's end behind its beginning."""
    other = rng.choice(plans)
    steps = (
        *plan.steps[: rng.randrange(len(plan.steps) + 1)],
        *other.steps[rng.randrange(len(other.steps)) :],
    )
    return replace(plan, steps=steps[:MOST_STEPS], has_faults=plan.has_faults or other.has_faults)


def _other_limits(plan: Plan, rng: random.Random, _: Sequence[Plan]) -> Plan:
    """A limit or two as another seed has them; confirms wait for the disk wherever calls may fail."""
    drawn = plan_of(rng.randrange(1 << 40), may_fail=True).limits
    limits = plan.limits
    for name in rng.sample(sorted(drawn.store), rng.choice((0, 1, 2))):
        limits = replace(limits, store={**limits.store, name: drawn.store[name]})
    for name in rng.sample(_LIMITS, rng.choice((0, 1, 2))):
        limits = replace(limits, **{name: getattr(drawn, name)})
    return replace(plan, limits=limits)


def _other_ways(plan: Plan, rng: random.Random, _: Sequence[Plan]) -> Plan:
    """The disk and the publishers as another seed has them."""
    drawn = plan_of(rng.randrange(1 << 40), may_fail=True)
    return replace(plan, **{name: getattr(drawn, name) for name in rng.sample(_WAYS, 2)})


_LIMITS = (
    "embed_below", "segment_size", "entry_count", "journal_entries", "cache_size", "default_version", "default_mode",
    "index", "reserved_segments", "logs", "alone", "acked_bytes", "is_scaled",
)  # fmt: skip
_CHANGES = (
    _another_turn,
    _another_turn,
    _more,
    _more,
    _again,
    _fewer,
    _behind,
    _other_limits,
    _other_ways,
)
