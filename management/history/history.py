"""The samples of everything whose history is kept, by key.

State: the timelines of the two retention policies in use, and a `Series` for each key. The node and the virtual hosts
(`WHOLE`, at most WHOLE_MAX) have theirs always; queues, exchanges, connections and channels share OBJECTS_MAX places.
Who is asked about gets a place, and who was asked about longest ago, or never, loses one; places that are left go to
whatever there is, so that on a small node the past is there before anybody looked. The sampler
(`management.history.sampler`) calls `begin`, `add` for each object, `end`; answers call `look` and `rows`. Time comes
from the caller. Memory is bounded: see docs/management-history.md. What `add` was not called for between `begin` and
`end` is forgotten.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from burrowmq.management.history.series import Series, Values
from burrowmq.management.history.timeline import BASIC, GLOBAL, Policies, Timeline

WHOLE_MAX = 257  # the node and 256 virtual hosts
OBJECTS_MAX = 1000


@dataclass(frozen=True, slots=True)
class Kind:
    """What is sampled of a kind of object: the columns' names; those from `counters_from` on never fall."""

    columns: tuple[str, ...]
    counters_from: int
    is_whole: bool = False


LENGTHS = ("messages", "messages_ready", "messages_unacknowledged")
DELIVERIES = (
    "deliver",
    "deliver_no_ack",
    "get",
    "get_no_ack",
    "get_empty",
    "ack",
    "redeliver",
    "deliver_get",
)
FINE = ("publish", "confirm", "return_unroutable", "drop_unroutable")
OCTETS = ("recv_oct", "send_oct")
CHURN = (
    "connection_created", "connection_closed", "channel_created", "channel_closed",
    "queue_declared", "queue_created", "queue_deleted",
)  # fmt: skip
GAUGES = ("mem_used", "disk_free", "fd_used", "sockets_used", "proc_used")
MACHINE = (
    "gc_num", "context_switches", "io_read_count", "io_read_bytes", "io_write_count", "io_write_bytes",
    "io_sync_count", "io_reopen_count", "msg_store_write_count",
)  # fmt: skip

QUEUE = Kind((*LENGTHS, "publish", *DELIVERIES), len(LENGTHS))
CHANNEL = Kind((*FINE, *DELIVERIES), 0)
EXCHANGE = Kind(("publish_in", "publish_out"), 0)
CONNECTION = Kind(OCTETS, 0)
VHOST = Kind((*LENGTHS, *FINE, *DELIVERIES, *OCTETS), len(LENGTHS), is_whole=True)
NODE = Kind(
    (*LENGTHS, *GAUGES, *MACHINE, *CHURN, *FINE, *DELIVERIES, "disk_writes"),
    len(LENGTHS) + len(GAUGES),
    is_whole=True,
)


class History:
    """All series."""

    def __init__(
        self, policies_whole: Policies = GLOBAL, policies: Policies = BASIC, interval_ms: int = 5000
    ) -> None:
        self._policies = {True: sorted(policies_whole), False: sorted(policies)}
        self._slack_ms = interval_ms // 2
        self._timelines: dict[bool, list[Timeline]] = {}
        self._whole: dict[Hashable, Series] = {}
        self._objects: OrderedDict[Hashable, Series] = OrderedDict()
        self._kinds: dict[Hashable, Kind] = {}
        # Whether all that there was at the last round has a place, so that whatever comes is new.
        self._had_room = True
        self._was_refused = False
        self._round = 0
        self.clear()

    def clear(self) -> None:
        """Forget everything: the figures begin anew."""
        self._timelines = {
            is_whole: [Timeline(*policy) for policy in policies]
            for is_whole, policies in self._policies.items()
        }
        self._whole.clear()
        self._objects.clear()
        self._kinds.clear()
        self._had_room, self._was_refused = True, False

    # -- the sampler's side -----------------------------------------------------------------------------------

    def begin(self, now_ms: int) -> None:
        """A round of samples begins; all of them bear this time, of a clock that never goes back."""
        self._round += 1
        for timelines in self._timelines.values():
            for timeline in timelines:
                timeline.advance(now_ms, self._slack_ms)

    def add(self, kind: Kind, key: Hashable, values: Values) -> None:
        """The figures of one object, in the order of its kind's columns."""
        kept: dict[Hashable, Series] = self._whole if kind.is_whole else self._objects
        series = kept.get(key)
        if series is None:
            if len(kept) >= (WHOLE_MAX if kind.is_whole else OBJECTS_MAX):
                self._was_refused = True
                return
            series = self._place(kind, key, is_from_birth=self._had_room)
        series.round = self._round
        series.add(values, self._timelines[kind.is_whole])

    @property
    def has_room(self) -> bool:
        """Whether there is a place for one more object."""
        return len(self._objects) < OBJECTS_MAX

    def note_refused(self) -> None:
        """An object was not added, since there is no place for it."""
        self._was_refused = True

    def unsampled(self, kind: Kind) -> list[Any]:
        """The keys of a kind that have a place and no figures in this round."""
        return [
            key
            for key, series in self._objects.items()
            if series.round != self._round and self._kinds[key] is kind
        ]

    def end(self) -> None:
        """The round is over: what was not in it is gone."""
        for kept in (self._whole, self._objects):
            for key in [key for key, series in kept.items() if series.round != self._round]:
                self._forget(kept, key)
        self._had_room, self._was_refused = not self._was_refused, False

    def _place(self, kind: Kind, key: Hashable, *, is_from_birth: bool) -> Series:
        series = Series(kind.counters_from, is_from_birth=is_from_birth)
        series.round = self._round
        self._kinds[key] = kind
        if kind.is_whole:
            self._whole[key] = series
        else:
            self._objects[key] = series
            self._objects.move_to_end(key, last=False)
        return series

    def _forget(self, kept: dict[Hashable, Series], key: Hashable) -> None:
        del kept[key], self._kinds[key]

    # -- the answers' side ------------------------------------------------------------------------------------

    def look(self, kind: Kind, key: Hashable) -> None:
        """Somebody looks at an object: its history is kept from now on, instead of one that nobody looks at."""
        if kind.is_whole:
            return
        if key not in self._objects:
            is_from_birth = self._had_room
            if len(self._objects) >= OBJECTS_MAX:
                self._was_refused, self._had_room = True, False
                self._forget(self._objects, next(iter(self._objects)))
            self._place(kind, key, is_from_birth=is_from_birth)
        self._objects.move_to_end(key)

    def rows(self, key: Hashable, times_ms: range) -> list[Values | None]:
        """The figures at these rising times, from the finest samples that reach back so far; [] if nothing is kept."""
        series = self._whole.get(key) or self._objects.get(key)
        if series is None:
            return []
        if not series.last:
            # Asked for before its first sample.
            width = len(self._kinds[key].columns)
            return [(0,) * width] * len(times_ms) if series.is_from_birth else []
        timelines = self._timelines[self._kinds[key].is_whole]
        age_ms = times_ms[-1] - times_ms[0]
        which = next(
            (at for at, each in enumerate(timelines) if each.age_ms > age_ms), len(timelines) - 1
        )
        return series.rows_at(times_ms, which, timelines[which])

    def policies(self, is_whole: bool) -> Policies:
        """What is kept for how long of the node and virtual hosts, or of other objects."""
        return tuple(self._policies[is_whole])

    @property
    def size_bytes(self) -> int:
        """What all rings take."""
        return sum(
            series.size_bytes for kept in (self._whole, self._objects) for series in kept.values()
        )

    def __len__(self) -> int:
        return len(self._whole) + len(self._objects)
