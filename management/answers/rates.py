"""Rates from counters: `{"publish": 10}` becomes `{"publish": 10, "publish_details": {"rate": 2.0}}`.

State: the two last samples of each object that has anything to count, by a key (`*_key` below), each with the time
since when it has been the same; one for both of those that rest, until something happens to them; and the `History` of
those whose past is kept. `management.sampling` adds a round of samples every `collect_statistics_interval`; a reader
gets the slope between the two. What is not sampled any more is forgotten at the end of the round: with
many queues deleted that is memory to give back. Invariant: memory is two small arrays a key
(about 300 bytes), and one of keys a connection (`still`). Source: rabbit_mgmt_stats, rates_mode = basic, 5 s interval.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Sequence
from functools import cache
from typing import Any, cast

from burrowmq.management.answers.still import Still
from burrowmq.management.history.history import History

Columns = tuple[str, ...]
Sample = tuple[Columns, "array[int]", int]

NODE_KEY = "node"
DERIVED_MAX = 50


def queue_key(vhost: str, name: str) -> Hashable:
    """Of a queue."""
    return (vhost, name)


def vhost_key(name: str) -> Hashable:
    """Of a virtual host; keys of queues are pairs, these and the others are triples."""
    return ("vhost", name, "")


def exchange_key(vhost: str, name: str) -> Hashable:
    """Of an exchange."""
    return ("exchange", vhost, name)


def connection_key(name: str) -> Hashable:
    """Of a connection."""
    return ("connection", name, "")


def channel_key(name: str) -> Hashable:
    """Of a channel, by the name that the API shows."""
    return ("channel", name, "")


@cache
def _places(columns: Columns) -> dict[str, int]:
    return {name: place for place, name in enumerate(columns)}


class Rates:
    """The last two samples of everything, and the history."""

    def __init__(self, history: History | None = None) -> None:
        self.history = history or History()
        self.still = Still()
        self._current: dict[Hashable, Sample] = {}
        self._previous: dict[Hashable, Sample] = {}
        self._pending: dict[Hashable, Sample] = {}
        self._resting: dict[Hashable, Sample] = {}
        self._times_ms = (0, 0, 0)  # of pending, current, previous
        self.derived: dict[Hashable, Any] = {}
        """What was made of all figures since the last round, for who asks next; at most DERIVED_MAX."""

    def begin(self, now_ms: int) -> None:
        """A round of samples begins; `now_ms` is of a clock that never goes back."""
        self._pending = {}
        self._times_ms = (now_ms, *self._times_ms[1:])

    def add(self, columns: Columns, key: Hashable, values: tuple[int, ...]) -> None:
        """Add an object's figures to the round."""
        row = array("q", values)
        before = self._current.get(key)
        if before is not None and before[0] is columns and before[1] == row:
            self._pending[key] = before  # one for all rounds in which nothing happened
        else:
            self._pending[key] = (columns, row, self._times_ms[0])

    def rest(self, keys: Sequence[Hashable]) -> bool:
        """Nothing has happened to these since the last round, and they are in all from now on.

        False, and nothing done, when one was not in the last.
        """
        found = [*map(self._current.get, keys)]
        if None in found:
            return False
        self._resting.update(zip(keys, cast("list[Sample]", found), strict=True))
        for key in keys:
            del self._current[key]
        return True

    def wake(self, keys: Sequence[Hashable]) -> None:
        """What is added to this round of these is compared with what they were while they rested."""
        for key in keys:
            # Behind a proxy two connections may have one name, and the other one has taken its figures along.
            found = self._resting.pop(key, None)
            if found is not None:
                self._current[key] = found

    def drop(self, keys: Sequence[Hashable]) -> None:
        """These rested, and are gone."""
        for key in keys:
            self._resting.pop(key, None)

    def kept(self, key: Hashable) -> tuple[int, ...] | None:
        """An object's figures in this round as far as it is, None if it is not in it."""
        found = self._pending.get(key) or self._resting.get(key)
        return None if found is None else tuple(found[1])

    def end(self) -> None:
        """The round is complete; what was in the last one and is not in this is forgotten."""
        before = self._current
        if not before.keys() <= self._pending.keys():
            before = {key: before[key] for key in self._pending if key in before}
        self._previous, self._current, self._pending = before, self._pending, {}
        self._times_ms = (self._times_ms[0], self._times_ms[0], self._times_ms[1])
        self.derived.clear()

    def clear(self) -> None:
        """Forget everything: the counters begin anew."""
        self._previous, self._current, self._pending = {}, {}, {}
        self._resting.clear()
        self.still.clear()
        self.derived.clear()
        self.history.clear()

    def derive(self, key: Hashable, value: Any) -> None:
        """Keep for the rest of the round what was made of all figures, while there is room."""
        if len(self.derived) < DERIVED_MAX:
            self.derived[key] = value

    def rate(self, key: Hashable, name: str) -> float:
        """Events a second between the two last samples; 0.0 when there are not two."""
        new, old = self._current.get(key), self._previous.get(key)
        elapsed_ms = self._times_ms[1] - self._times_ms[2]
        if new is None or old is None or new[0] is not old[0] or elapsed_ms <= 0:
            return 0.0
        place = _places(new[0]).get(name)
        if place is None:
            return 0.0
        return round((new[1][place] - old[1][place]) * 1000 / elapsed_ms, 2)

    def changed_ms(self, key: Hashable) -> int | None:
        """When an object's figures were last seen to have changed; None if they are not sampled."""
        found = self._current.get(key) or self._resting.get(key)
        return None if found is None else found[2]

    @property
    def now_ms(self) -> int:
        """When the last round of samples began."""
        return self._times_ms[1]

    def details(self, key: Hashable, values: dict[str, Any]) -> dict[str, Any]:
        """The values with a `_details` object beside each."""
        row: dict[str, Any] = {}
        for name, value in values.items():
            row[name] = value
            row[f"{name}_details"] = {"rate": self.rate(key, name)}
        return row
