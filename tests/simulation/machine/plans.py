"""Plans as lines of text: those that failed once are kept for ever, in tests/simulation/failing_plans.jsonl;
those that fail still are in open_plans.jsonl until they are mended.

A plan is kept whole and not by its seed, so that it stays what it was when the way in which seeds are drawn changes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from tests.simulation.machine.node import Limits
from tests.simulation.machine.run import Plan

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
