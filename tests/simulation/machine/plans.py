"""Plans as lines of text: those that failed once are kept for ever, in tests/simulation/failing_plans.jsonl;
those that fail still are in open_plans.jsonl until they are mended.

A plan is kept whole and not by its seed, so that it stays what it was when the way in which seeds are drawn changes.

Scripts (tests/mutation/scripts/*.txt) are plans that somebody wrote, one behind the other with a blank line between:

    # what it shows
    with log_limit=1500 logs=yes,no reverts scaled      where something is not as usual; also several lines
    publish a 3
    fail fdatasync log

Steps are those of `tests.simulation.machine.script`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

from tests.simulation.machine.draw import Plan
from tests.simulation.machine.node import Limits

SCRIPTS = Path(__file__).parents[2] / "mutation" / "scripts"
# What scripts say of themselves, beside options of the store and `Limits`.
FLAGS = {
    "scaled": "is_scaled",
    "sqlite": "has_sqlite",
    "os": "has_os",
    "checked": "is_checked_each_turn",
}
OF_PLAN = ("sector", "seed", "switch_share")
FAILED = Path(__file__).parents[1] / "failing_plans.jsonl"
OPEN = FAILED.with_name("open_plans.jsonl")


def packed(plan: Plan, reason: str) -> str:
    """One line."""
    return json.dumps({"reason": reason, **asdict(plan)})


def unpacked(line: str) -> tuple[Plan, str]:
    """The plan of a line, and why it is kept."""
    row: dict[str, Any] = json.loads(line)
    reason = row.pop("reason")
    limits = Limits(**row.pop("limits"))
    limits = replace(limits, logs=tuple(limits.logs))  # JSON knows lists only
    steps = tuple((name, seed) for name, seed in row.pop("steps"))
    return Plan(limits=limits, steps=steps, **row), reason


def kept(path: Path = FAILED) -> Iterator[tuple[Plan, str]]:
    """All that failed once, or (`OPEN`) that fail still."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line:
            yield unpacked(line)


@cache
def scripts(directory: Path = SCRIPTS) -> dict[str, Plan]:
    """All scripts, by what they show. Raises ValueError."""
    found: dict[str, Plan] = {}
    for path in sorted(directory.glob("*.txt")):
        for block in path.read_text(encoding="utf-8").strip().split("\n\n"):
            head, *lines = block.splitlines()
            name = head.removeprefix("# ")
            if name == head or name in found:
                raise ValueError(f"this is no script, or the second of its name:\n{block}")
            found[name] = _scripted(lines)
    return found


def _scripted(lines: list[str]) -> Plan:
    store: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    plan: dict[str, Any] = {"seed": 0, "sector": 64, "switch_share": 0.0, "reverts": False}
    for word in " ".join(line[5:] for line in lines if line.startswith("with ")).split():
        name, _, text = word.partition("=")
        value = int(text) if text.isdigit() else text
        if name in FLAGS:
            limits[FLAGS[name]] = True
        elif name == "logs":
            limits["logs"] = tuple(one == "yes" for one in text.split(","))
        elif name in ("reverts", *OF_PLAN):
            plan[name] = value if text else True
        elif name in Limits.__dataclass_fields__:
            limits[name] = value
        else:
            store[name] = value
    steps = tuple(
        (line, number) for number, line in enumerate(lines) if not line.startswith("with ")
    )
    return Plan(
        **plan,
        limits=Limits(store=store, **limits),
        strict=True,
        has_faults=any(line.startswith("fail ") for line in lines),
        has_damage=any(line.startswith("damage ") for line in lines),
        steps=steps,
        is_plain=True,
    )
