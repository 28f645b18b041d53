"""Resource alarms: memory, disk, and a store that is full or has failed.

State owned: the set of resources in alarm, why and since when, and whether the store lags behind (which only slows
publishers). The node's monitor and the engine's callbacks set them. Sessions read them at each run of publishes, with
one truth test. While the set is not empty, connections that publish are blocked; consumers are not.

Source: RabbitMQ's memory and disk alarm guides; rabbit_alarm.
"""

from __future__ import annotations

from collections.abc import Callable

from burrowmq.broker.report.observer import Observer
from burrowmq.storage import real_time as time

NAMES = {"memory": "memory", "disk": "disk", "store": "disk", "asked": "memory"}
"""Resources in alarm as clients are told of them; "asked" is set by whoever tests what clients do."""


class Alarms:
    """The alarms in force on this node."""

    def __init__(
        self,
        observer: Observer,
        on_change: Callable[[bool], None],
        wall_s: Callable[[], float] = time.time,
    ) -> None:
        self._observer = observer
        self._on_change = on_change
        self._wall_s = wall_s
        self.active: set[str] = set()
        self.causes: dict[str, str] = {}
        """What each alarm in force was set for, in words."""
        self.since_s: dict[str, float] = {}
        """When each alarm in force was set, by the wall clock."""
        self.behind: set[str] = set()
        """What takes less than is published, so that publishers are not read: backlog (the disk's)."""

    @property
    def reason(self) -> str:
        """What connection.blocked says."""
        return "low on " + " & ".join(sorted({NAMES[resource] for resource in self.active}))

    def update(self, resource: str, is_on: bool, detail: str = "") -> None:
        """Set or clear one alarm; `on_change(blocked)` is told when the first goes on or the last goes off.

        `detail` is its cause, for the log and for who asks.
        """
        if is_on == (resource in self.active):
            return
        was_blocked = bool(self.active)
        if is_on:
            self.active.add(resource)
            self.causes[resource] = detail
            self.since_s[resource] = self._wall_s()
            self._observer.alarm_set(resource, detail)
        else:
            self.active.discard(resource)
            self.causes.pop(resource, None)
            self.since_s.pop(resource, None)
            self._observer.alarm_cleared(resource, detail)
        if was_blocked != bool(self.active):
            self._on_change(bool(self.active))
