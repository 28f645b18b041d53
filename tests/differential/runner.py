"""Runs a scenario on both brokers at the same time and judges what came of it.

State: the brokers' places, the table, and the scenarios of modules that say `BESIDE_OTHERS` (their names are their own,
and they mostly wait): so many of them at once run in the background from the first question on. Modules that say
`NODES_APART` (alarms stop every publisher of a node) have two more nodes for themselves.
Callers: the conftest and the test. Invariants: a scenario runs once on each broker; each broker runs the scenarios of a
module one after the other, or so many at once as the module says, whatever the other broker or an error in one does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import pytest

from tests.differential.broker import Broker, Place, made_comparable
from tests.differential.catalogue import Scenario, at_once, is_apart
from tests.differential.compare import Accepted, Verdict, differences, judge

Crowd = tuple[ThreadPoolExecutor, ThreadPoolExecutor]


class Runner:
    """Two brokers and what was found in them so far."""

    def __init__(
        self,
        places: tuple[Place, Place],
        scenarios: Mapping[str, Scenario],
        accepted: Sequence[Accepted],
        places_apart: tuple[Place, Place] | None = None,
    ) -> None:
        self.verdicts: dict[str, Verdict] = {}
        self._places = places
        self._places_apart = places_apart
        self._scenarios = scenarios
        self._accepted = accepted
        self._pair = _crowd(1)
        self._crowds: dict[str, Crowd] = {}
        self._early: dict[str, list[Future[Any]]] = {}

    def judge(self, name: str, among: Sequence[str]) -> Verdict:
        """Run one scenario; `among` are the names that this session will ask for."""
        if not self._crowds:
            self._start_early(among)
        pair = self._early.pop(name, None) or self._start(self._pair, name)
        wait(pair)  # both: one that raised must not leave the other to run beside the next scenario
        theirs, ours = (each.result() for each in pair)
        assert theirs is not None, "a scenario returns what is compared"
        agreed = [row for row in self._accepted if name in row.scenarios]
        self.verdicts[name] = judge(differences(theirs, ours), agreed)
        return self.verdicts[name]

    def _start_early(self, among: Sequence[str]) -> None:
        self._crowds[""] = self._pair
        for name in among:
            if count := at_once(self._scenarios[name]):
                module = name.partition(".")[0]
                crowd = self._crowds.setdefault(module, _crowd(count))
                self._early[name] = self._start(crowd, name)

    def _start(self, crowd: Crowd, name: str) -> list[Future[Any]]:
        scenario = self._scenarios[name]
        places = self._places_apart if is_apart(scenario) else self._places
        assert places is not None, f"{name} has no nodes of its own"
        return [
            pool.submit(record, name, scenario, place)
            for pool, place in zip(crowd, places, strict=True)
        ]

    def settle(self) -> None:
        """Wait for what runs in the background: afterwards somebody else has the nodes to himself."""
        for pair in self._early.values():
            wait(pair)

    def close(self) -> None:
        """Wait for what still runs."""
        for crowd in self._crowds.values():
            for pool in crowd:
                pool.shutdown()


RUNNER = pytest.StashKey[Runner]()
"""Where a session has its runner, once there is one."""


def _crowd(count: int) -> Crowd:
    return ThreadPoolExecutor(count), ThreadPoolExecutor(count)


def record(name: str, scenario: Scenario, place: Place) -> Any:
    """Return one broker's record; what the scenario made is gone afterwards."""
    broker = Broker(place, name)
    try:
        return made_comparable(scenario(broker), broker.mark)
    except Exception as error:
        error.add_note(f"on {place.product}")
        raise
    finally:
        broker.finish()
