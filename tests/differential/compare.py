"""Two records beside each other: where they differ, and which of that is agreed.

State: none. Callers: the runner, with the table of agreed differences (`accepted.toml`).
Invariants: an agreed difference names its scenarios, the place, and both answers; it counts only when both answers
are exactly these (or match these patterns), and a scenario that no longer shows one of its own is different.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ABSENT = "<absent>"


@dataclass(frozen=True, slots=True, order=True)
class Difference:
    """One place in a record, and what either broker has there (as text)."""

    at: str
    rabbitmq: str
    burrowmq: str


def differences(theirs: Any, ours: Any, at: str = "") -> list[Difference]:
    """Return every place in which two comparable records differ."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        found = []
        for key in [*theirs, *(key for key in ours if key not in theirs)]:
            place = f"{at}.{key}" if at else str(key)
            found += differences(theirs.get(key, ABSENT), ours.get(key, ABSENT), place)
        return found
    if isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        found = []
        for index, (left, right) in enumerate(zip(theirs, ours, strict=True)):
            found += differences(left, right, f"{at}[{index}]")
        return found
    if type(theirs) is type(ours) and theirs == ours:
        return []
    return [Difference(at, str(theirs), str(ours))]


@dataclass(frozen=True, slots=True)
class Accepted:
    """One row of the table: what may differ in which scenarios, and why."""

    scenarios: frozenset[str]
    at: str
    rabbitmq: str
    burrowmq: str
    why: str
    is_pattern: bool = False

    def covers(self, found: Difference) -> bool:
        """Say whether this is the difference that was agreed on."""
        if not self.is_pattern:
            return found == Difference(self.at, self.rabbitmq, self.burrowmq)
        said = re.fullmatch(self.rabbitmq, found.rabbitmq)
        if said is None or not re.fullmatch(self.at, found.at):
            return False
        # \1 in our pattern is what RabbitMQ's first group was.
        ours = re.sub(r"\\(\d)", lambda number: re.escape(said[int(number[1])]), self.burrowmq)
        return re.fullmatch(ours, found.burrowmq) is not None


def read_accepted(path: Path) -> list[Accepted]:
    """Return the table; every row has its reason."""
    rows = tomllib.loads(path.read_text(encoding="utf-8")).get("difference", [])
    return [
        Accepted(
            frozenset(row["scenarios"]),
            at,
            row["rabbitmq"],
            row["burrowmq"],
            row["why"],
            row.get("patterns", False),
        )
        for row in rows
        for at in ([row["at"]] if isinstance(row["at"], str) else row["at"])
    ]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one scenario."""

    accepted: list[Difference]
    unexpected: list[Difference]
    vanished: list[Accepted]

    @property
    def word(self) -> str:
        """Say it in one word."""
        if self.unexpected or self.vanished:
            return "different"
        return "accepted" if self.accepted else "equal"

    def __str__(self) -> str:
        lines = [
            f"{each.at or 'whole record'}:\n    RabbitMQ {each.rabbitmq}\n    BurrowMQ {each.burrowmq}"
            for each in self.unexpected
        ]
        lines += [
            f"{each.at}: accepted, but not found (RabbitMQ {each.rabbitmq}, BurrowMQ {each.burrowmq})"
            for each in self.vanished
        ]
        return "\n".join(lines)


def judge(found: Sequence[Difference], agreed: Sequence[Accepted]) -> Verdict:
    """Sort differences into accepted, unexpected and vanished ones."""
    accepted = [each for each in found if any(row.covers(each) for row in agreed)]
    return Verdict(
        accepted=accepted,
        unexpected=[each for each in found if each not in accepted],
        vanished=[row for row in agreed if not any(row.covers(each) for each in found)],
    )
