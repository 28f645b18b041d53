"""What a seed of the simulated machine stands for: limits, faults and a list of operations.

`plan_of` draws them. Each operation has a seed of its own, so that a plan can be cut down (`minimized`) and what is left
does what it did. State: none.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from tests.simulation.machine.node import Limits

STORMS = 0.25  # of the runs
DEBTS = 0.25  # of the runs in which calls fail
CRAMPS = 0.25  # the same
FULL = 0.2  # of these have a disk that is full for a while, most of them with SQLite's own calls
PAIRS = 0.3
ESTATES = 0.2
TRICKLES = 0.4
CONVERSIONS = 0.2  # of the runs in which calls fail
TORN_SMALL = 0.2  # what the sectors are to the files of a large queue, 64 octets are to these
SQLITE = 0.2
RESEGMENTED = 0.05
SPOILED = (
    0.6  # of the runs with damage have some while the process runs, and take some out of quarantine
)
CALM = 0.1  # of the runs have a clean stop every eight steps: what was not delivered before it is fresh after it
OS = 0.05
VHOSTS = 0.2
DOUBTS = 0.2  # of the runs in which calls fail
# Stores without a commit log, with one, and with one after some starts.
LOGS = ((False,), (True,), (True,), (True, False), (False, True, True))
WEIGHTS = {
    "publish": 30,
    "settle": 16,
    "consume": 6,
    "cancel": 2,
    "get": 5,
    "transact": 4,
    "declare": 4,
    "delete": 2,
    "redeclare": 2,
    "purge": 2,
    "policy": 3,
    "lose": 2,
    "wait": 8,
    "idle": 3,
    "fault": 3,
    "heal": 3,
    "look": 1,
    "crash": 3,
    "restart": 1,
}


@dataclass(frozen=True)
class Plan:
    """What a seed stands for."""

    seed: int
    limits: Limits
    strict: bool
    sector: int
    reverts: bool
    switch_share: float
    has_faults: bool
    has_damage: bool
    steps: tuple[tuple[str, int], ...]
    letters: float = 0.4  # of the queues have dead letters
    priorities: float = 0.25
    silence: float = 0.0  # of the publishes wait for no confirm, so that nothing is synced for them
    strays: float = (
        0.0  # of the cuts find an index entry in another place, too, where damage is had
    )
    bounds: float = 0.0  # of the queues have a most of messages: what is more goes from the head
    is_plain: bool = (
        False  # queues are durable and nothing else, and nothing happens that no step says
    )

    @property
    def may_lose_power(self) -> bool:
        """Whether what is confirmed outlives the power, and not only the process."""
        return self.limits.store.get("confirm") != "written"


def _with_short_commits(limits: Limits) -> Limits:
    """Such that a commit of a small message for a queue with own files takes the short way of the commit log."""
    store = {**limits.store, "open_files": 256, "log_queue_limit": 300}
    return replace(limits, store=store, embed_below=120, cache_size=512 * 1024)


def plan_of(seed: int, *, may_fail: bool = False) -> Plan:
    """Draw a seed's limits and operations. Each run is good at something else: weights are swarm-varied.

    `may_fail`: calls to the disk fail, too.
    """
    rng = random.Random(seed)
    log = random.Random(f"log {seed}")  # of its own: what the others draw does not depend on it
    scrub = random.Random(f"scrub {seed}")
    confirm = random.Random(f"confirm {seed}")
    storm = random.Random(f"storms {seed}")
    debt = random.Random(f"debts {seed}")
    pairs = random.Random(f"pairs {seed}")
    stray = random.Random(f"strays {seed}")
    estate = random.Random(f"estates {seed}")
    trickle = random.Random(f"trickles {seed}")
    entry_count = rng.choice((8, 16, 16, 64, 256))
    limits = Limits(
        store={
            "rewrite_above": rng.choice((600, 600, 4000, 1 << 22)),
            "journal_run_bytes": rng.choice((200, 500, 16384)),
            "journal_direct_bytes": rng.choice((3000, 1 << 26)),
            "convert_slice": rng.choice((1, 2, 32)),
            "unsynced_limit": rng.choice((2000, 32 << 20)),
            "open_files": rng.choice((6, 12, 256)),
            "confirm": "written" if confirm.random() < 0.12 and not may_fail else "fsync",
            "log_limit": log.choice((1500, 6000, 6000, 1 << 20)),
            "log_queue_limit": log.choice((300, 700, 700, 16 * 1024)),
            "log_total_limit": log.choice((2500, 1 << 20)),
            "scrub_period_s": scrub.choice((0.0, 0.0, 0.0, 2.0, 10.0, 60.0)),
            "scrub_bytes_per_s": scrub.choice((20_000, 200_000, 8 << 20)),
        },
        embed_below=rng.choice((0, 120, 120, 120, 4096)),
        segment_size=rng.choice((1500, 3000, 3000, 20_000)),
        entry_count=entry_count,
        journal_entries=rng.choice((5, 20, 200)),
        cache_size=rng.choice((600, 4096, 512 * 1024)),
        default_version=rng.choice((1, 2)),
        default_mode=rng.choice(("bounded", "bounded", "cached")),
        index=rng.choice(("array", "array", "array", "paged")),
        reserved_segments=rng.choice((4, 10, 4096)),
        is_checked_each_turn=rng.random() < 0.1,
        logs=log.choice(LOGS),
        alone=random.Random(f"alone {seed}").choice((1, 3, 10)),
        acked_bytes=random.Random(f"acked {seed}").choice((100, 1000, 8 << 20)),
        is_scaled=random.Random(f"scaled {seed}").random() < 0.5,
        has_os=random.Random(f"os {seed}").random() < OS,
        has_sqlite=random.Random(f"sqlite {seed}").random() < SQLITE,
    )
    weights = {name: weight * rng.choice((0, 1, 1, 1, 3)) for name, weight in WEIGHTS.items()}
    weights["publish"] = weights["publish"] or 30
    rng.random()  # so that the others are drawn as when a third of the runs had faults
    if may_fail:
        weights["fault"] = weights["fault"] or WEIGHTS["fault"]
    else:
        weights["fault"] = weights["heal"] = 0
    names = list(weights)
    count = rng.choice((25, 40, 60))
    chosen = rng.choices(names, list(weights.values()), k=count)
    if storm.random() < STORMS:
        chosen = ["strike" if storm.random() < 0.25 else name for name in chosen]
    if may_fail and debt.random() < DEBTS:
        chosen = ["owe" if debt.random() < 0.2 else name for name in chosen]
    anew = random.Random(f"resegment {seed}")
    if anew.random() < RESEGMENTED:
        chosen = ["resegment" if anew.random() < 0.1 else name for name in chosen]
    calm = random.Random(f"calm {seed}")
    if calm.random() < CALM:
        chosen = ["restart" if calm.random() < 0.12 else name for name in chosen]
    if pairs.random() < PAIRS:
        chosen = ["renew" if pairs.random() < 0.15 else name for name in chosen]
    has_estates = estate.random() < ESTATES
    if has_estates:
        chosen = ["inherit" if estate.random() < 0.15 else name for name in chosen]
    if trickle.random() < TRICKLES:
        limits = _with_short_commits(limits)
        chosen = ["trickle" if trickle.random() < 0.2 else name for name in chosen]
    other = random.Random(f"vhosts {seed}")
    if other.random() < VHOSTS:
        chosen = ["vhost" if other.random() < 0.2 else name for name in chosen]
    if may_fail:
        limits, chosen = _with_refusals(seed, limits, chosen)
    plan = Plan(
        seed,
        limits,
        strict=rng.random() < 0.7,
        sector=_sector(seed, rng.choice((512, 4096))),
        reverts=rng.random() < 0.3,
        switch_share=rng.choice((0.0, 0.1, 0.5)),
        has_faults=may_fail,
        # The self-check counts a persistent message that was damaged until the next start.
        has_damage=rng.random() < 0.1 and not limits.is_checked_each_turn,
        steps=tuple((name, rng.randrange(1 << 30)) for name in chosen),
        letters=estate.choice((0.4, 0.8)) if has_estates else 0.4,
        priorities=estate.choice((0.1, 0.25, 0.25, 0.7)),
        silence=estate.choice((0.0, 0.0, 0.3, 0.7)),
        strays=stray.choice((0.0, 0.5)),
        bounds=random.Random(f"bounds {seed}").choice((0.0, 0.0, 0.0, 0.5)),
    )
    return _spoiled(plan) if plan.has_damage else plan


def _with_refusals(seed: int, limits: Limits, chosen: list[str]) -> tuple[Limits, list[str]]:
    """With what refuses one queue, or everybody, for a while in the place of some operations."""
    cramp = random.Random(f"cramps {seed}")
    if cramp.random() < CRAMPS:
        chosen = ["cramp" if cramp.random() < 0.15 else name for name in chosen]
    conversion = random.Random(f"conversions {seed}")
    if conversion.random() < CONVERSIONS:
        chosen = ["convert" if conversion.random() < 0.15 else name for name in chosen]
    doubt = random.Random(f"doubts {seed}")
    if doubt.random() < DOUBTS:
        chosen = ["doubt" if doubt.random() < 0.15 else name for name in chosen]
    full = random.Random(f"full {seed}")
    if full.random() < FULL:
        limits = replace(limits, has_sqlite=limits.has_sqlite or full.random() < 0.6)
        chosen = ["fill" if full.random() < 0.15 else name for name in chosen]
    return limits, chosen


def _spoiled(plan: Plan) -> Plan:
    """With damage that no power cut leaves in the place of some operations, and what operators do about it."""
    spoil = random.Random(f"spoils {plan.seed}")
    if spoil.random() >= SPOILED:
        return plan
    names = ("spoil", "spoil", "release")
    steps = [
        (spoil.choice(names) if spoil.random() < 0.25 else name, seed) for name, seed in plan.steps
    ]
    return replace(plan, steps=tuple(steps))


def _sector(seed: int, usual: int) -> int:
    """By how many octets a power cut tears this run's writes."""
    return 64 if random.Random(f"sector {seed}").random() < TORN_SMALL else usual


def minimized(plan: Plan, fails: Callable[[Plan], bool]) -> Plan:
    """The shortest plan found that still fails: pieces of it are left out, larger ones first (delta debugging)."""
    size = max(1, len(plan.steps) // 2)
    while True:
        at, is_shorter = 0, False
        while at < len(plan.steps):
            shorter = replace(plan, steps=plan.steps[:at] + plan.steps[at + size :])
            if fails(shorter):
                plan, is_shorter = shorter, True
            else:
                at += size
        if size == 1 and not is_shorter:
            return plan
        size = max(1, size // 2)
