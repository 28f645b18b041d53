"""Runs a scenario on both brokers at the same time and judges what came of it.

State: the brokers' places, the table, and the scenarios of modules that say `BESIDE_OTHERS` (their names are their own,
and they mostly wait): so many of them at once run in the background from the first question on. Modules that say
`NODES_APART` (alarms stop every publisher of a node) have two more nodes for themselves.
Callers: the conftest and the test. Invariant: a scenario runs once on each broker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from tests.differential.broker import Broker, Place, made_comparable
from tests.differential.catalogue import Scenario, at_once, is_apart
from tests.differential.compare import Accepted, Verdict, differences, judge


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
        self._pair = ThreadPoolExecutor(2)
        self._crowds: dict[str, ThreadPoolExecutor] = {}
        self._early: dict[str, list[Future[Any]]] = {}

    def judge(self, name: str, among: Sequence[str]) -> Verdict:
        """Run one scenario; `among` are the names that this session will ask for."""
        if not self._crowds:
            self._start_early(among)
        pair = self._early.pop(name, None) or self._start(self._pair, name)
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
                crowd = self._crowds.setdefault(module, ThreadPoolExecutor(2 * count))
                self._early[name] = self._start(crowd, name)

    def _start(self, pool: ThreadPoolExecutor, name: str) -> list[Future[Any]]:
        scenario = self._scenarios[name]
        places = self._places_apart if is_apart(scenario) else self._places
        assert places is not None, f"{name} has no nodes of its own"
        return [pool.submit(record, scenario, place) for place in places]

    def close(self) -> None:
        """Wait for what still runs."""
        for pool in self._crowds.values():
            pool.shutdown()


def record(scenario: Scenario, place: Place) -> Any:
    """Return one broker's record; what the scenario made is gone afterwards."""
    broker = Broker(place)
    try:
        return made_comparable(scenario(broker))
    except Exception as error:
        error.add_note(f"on {place.product}")
        raise
    finally:
        broker.finish()
