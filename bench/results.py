"""The result file: what was measured, on what, by whom; written by `runner`, read by `report`.

Owns no state. The format is JSON with one object per measurement (a scenario on a peer in a round), so that every median can be
recomputed; `FORMAT` rises when a reader would misunderstand an older file.
"""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Measure:
    """One scenario on one peer in one round. A failed one has no values and says why."""

    scenario: str
    peer: str
    round: int
    values: dict[str, float]
    mode: str = ""
    limit: str = ""
    failure: str = ""
    turn: int = 0
    """Which it is of several in a round that alternate with the other peer's."""


@dataclass(slots=True)
class Results:
    """One run of the benchmark."""

    is_full: bool
    rounds: int
    started: str
    machine: dict[str, str]
    versions: dict[str, str]
    measures: list[Measure] = field(default_factory=list)
    format: int = FORMAT

    def of(self, scenario: str, peer: str, value: str) -> dict[int, float]:
        """Round → value, for the rounds that have it; the median where a round has several."""
        found: dict[int, list[float]] = {}
        for (number, _), each in self.by_turn(scenario, peer, value).items():
            found.setdefault(number, []).append(each)
        return {number: median(values) for number, values in found.items()}

    def by_turn(self, scenario: str, peer: str, value: str) -> dict[tuple[int, int], float]:
        """(Round, turn) → value, for those that have it."""
        return {
            (each.round, each.turn): each.values[value]
            for each in self.measures
            if each.scenario == scenario and each.peer == peer and value in each.values
        }

    def cut(self, rounds: int) -> None:
        """Keep so many rounds only."""
        self.rounds = rounds
        self.measures = [each for each in self.measures if each.round < rounds]

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=1, sort_keys=True) + "\n")


def read(path: Path) -> Results:
    """Results from a file; refuses another format."""
    fields = json.loads(path.read_text())
    if fields.get("format") != FORMAT:
        raise ValueError(f"{path} has format {fields.get('format')}, this program reads {FORMAT}")
    fields["measures"] = [Measure(**each) for each in fields["measures"]]
    return Results(**fields)
