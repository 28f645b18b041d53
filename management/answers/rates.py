"""Rates from counters: `{"publish": 10}` becomes `{"publish": 10, "publish_details": {"rate": 2.0}}`.

State: the two last samples of each counter set, by a key the caller chooses. The sampler (management.server) adds one
every `collect_statistics_interval`; a reader gets the slope between the two. Counter sets that stop being sampled are
forgotten. Invariant: memory is two small tuples a key. Source: rabbit_mgmt_stats, rates_mode = basic, 5 s interval.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any


class Rates:
    """Samples of counter sets."""

    def __init__(self) -> None:
        self._current: dict[Hashable, tuple[float, dict[str, int]]] = {}
        self._previous: dict[Hashable, tuple[float, dict[str, int]]] = {}
        self._pending: dict[Hashable, tuple[float, dict[str, int]]] = {}

    def add(self, key: Hashable, now_s: float, values: dict[str, int]) -> None:
        """Add one counter set to the sample being taken."""
        self._pending[key] = (now_s, values)

    def finish(self) -> None:
        """The sample is complete; a counter set that was not in it is forgotten with the next sample."""
        self._previous, self._current, self._pending = self._current, self._pending, {}

    def clear(self) -> None:
        """Forget everything: the counters begin anew."""
        self._previous, self._current, self._pending = {}, {}, {}

    def rate(self, key: Hashable, name: str) -> float:
        """Events a second between the two last samples; 0.0 when there are not two."""
        new, old = self._current.get(key), self._previous.get(key)
        if new is None or old is None or new[0] <= old[0]:
            return 0.0
        gained = new[1].get(name, 0) - old[1].get(name, 0)
        return round(gained / (new[0] - old[0]), 2)

    def details(self, key: Hashable, values: dict[str, Any]) -> dict[str, Any]:
        """The values with a `_details` object beside each."""
        row: dict[str, Any] = {}
        for name, value in values.items():
            row[name] = value
            row[f"{name}_details"] = {"rate": self.rate(key, name)}
        return row
