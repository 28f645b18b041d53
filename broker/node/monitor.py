"""Watches memory and disk: sets the alarms, and has queues page out while memory is short.

State owned: the last measurement, the limits (an operator may change them while the node runs), whether queues are
paging and whether free space is watched (an operator may end that too). Memory is looked at in a fixed interval, and
what was freed of it given back to the system (`broker.machine.reclaim`), so that use can fall below a limit again;
free space is looked at the more often the nearer it is to its limit, as in RabbitMQ: so often that a fast disk cannot
pass the limit between two looks. A free-space reading that fails (the file system is away for a moment) leaves the
disk alarm as it is.

Source: RabbitMQ's memory and disk alarm guides; rabbit_disk_monitor; vm_memory_high_watermark_paging_ratio.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

from burrowmq.broker.machine.alarms import Alarms
from burrowmq.broker.machine.reclaim import Allocator, Reclaim
from burrowmq.broker.machine.resources import Measurement, amount
from burrowmq.broker.queue.memory.ram_share import RamShare
from burrowmq.broker.turn.clock import Scheduler, Timer
from burrowmq.broker.vhost.vhost import Vhost
from burrowmq.records import dataclass

FAST_DISK_BYTES_S = 250_000_000
DISK_INTERVAL_MIN_S = 0.1


@dataclass(slots=True, kw_only=True)
class ResourceLimits:
    """Where alarms go on; `paging_ratio` of None: queues never page out for want of memory.

    `memory_relative` is the share of `memory_total_bytes` that the operator asked for, None for a number of bytes.
    """

    memory_bytes: int
    disk_free_bytes: int
    paging_ratio: float | None
    memory_relative: float | None = None
    memory_total_bytes: int = 0

    @property
    def paging_above_bytes(self) -> int | None:
        """Above which use queues page out; it moves with the watermark."""
        return None if self.paging_ratio is None else int(self.memory_bytes * self.paging_ratio)

    def set_memory(self, *, relative: float | None = None, absolute_bytes: int = 0) -> None:
        """Take a share of the memory there is, or a number of bytes, as the new watermark."""
        self.memory_relative = relative
        self.memory_bytes = (
            absolute_bytes if relative is None else int(self.memory_total_bytes * relative)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals:
    """How often to look; free space at least so often."""

    memory_s: float = 1.0
    disk_s: float = 10.0


class Monitor:
    """The node's eye on its machine."""

    def __init__(
        self,
        limits: ResourceLimits,
        measure: Callable[[], Measurement],
        alarms: Alarms,
        vhosts: Mapping[str, Vhost],
        scheduler: Scheduler,
        allocator: Allocator,
        ram_share: RamShare,
        intervals: Intervals = Intervals(),  # noqa: B008 - it cannot change
    ) -> None:
        self.limits = limits
        self.last = Measurement(rss_bytes=0, disk_free_bytes=None)
        self.is_paging = False
        self.is_watching_disk = True
        self._measure = measure
        self._alarms = alarms
        self._vhosts = vhosts
        self._scheduler = scheduler
        self._reclaim = Reclaim(allocator)
        self._ram_share = ram_share
        self._intervals = intervals
        self._timers: dict[str, Timer] = {}

    def look(self) -> None:
        """Measure, and act on it."""
        self._look_at_machine()
        self._judge_memory()
        self._judge_disk()

    def start(self) -> None:
        """Look now, and from now on."""
        self.look()
        self._memory_later()
        self._disk_later()

    def stop(self) -> None:
        """Look no more."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _memory_later(self) -> None:
        self._timers["memory"] = self._scheduler.call_later(
            self._intervals.memory_s, self._look_at_memory
        )

    def _look_at_memory(self) -> None:
        self._memory_later()  # first: whatever fails here, the next one comes
        self._look_at_machine()
        used, paging_above = self.last.rss_bytes, self.limits.paging_above_bytes
        is_short = used > self.limits.memory_bytes or (
            paging_above is not None and used > paging_above
        )
        if self._reclaim.look(used, is_short=is_short):
            self._look_at_machine()
        self._judge_memory()  # by now: what nobody uses is no reason to stop publishers

    def give_back_memory(self) -> None:
        """Return what lies unused to the system now, and act on what is left."""
        self._reclaim.now()
        self._measure_memory()

    def _look_at_machine(self) -> None:
        # No descriptor is left, say: what was seen last holds, and it looks again.
        with suppress(OSError):
            self.last = self._measure()

    def _measure_memory(self) -> None:
        self._look_at_machine()
        self._judge_memory()

    def watch_disk(self, *, is_on: bool) -> None:
        """Look at free space, or no more; an alarm that nobody watches over would never end, so it ends now."""
        self.is_watching_disk = is_on
        if "disk" in self._timers:
            self._timers.pop("disk").cancel()
        if is_on:
            self._look_at_disk()
        elif "disk" in self._alarms.active:
            self._alarms.update("disk", False, "free space is not watched any more")

    def _disk_later(self) -> None:
        self._timers["disk"] = self._scheduler.call_later(
            self.disk_interval_s(), self._look_at_disk
        )

    def _look_at_disk(self) -> None:
        try:
            self._look_at_machine()
            self._judge_disk()
        finally:
            self._disk_later()  # whatever failed: free space that nobody looks at again would fill, or block for ever

    def disk_interval_s(self) -> float:
        """When to look at free space again: a disk that is filled fast must not pass the limit before."""
        longest = self._intervals.disk_s
        free = self.last.disk_free_bytes
        if free is None or free <= self.limits.disk_free_bytes:
            return longest
        ideal = 2 * (free - self.limits.disk_free_bytes) / FAST_DISK_BYTES_S
        return min(longest, max(DISK_INTERVAL_MIN_S, ideal))

    def _judge_memory(self) -> None:
        limits, used = self.limits, self.last.rss_bytes
        self._ram_share.renew(used, limits.memory_bytes)
        is_on = used > limits.memory_bytes
        if is_on != ("memory" in self._alarms.active):
            detail = f"{amount(used)} used, the watermark is {amount(limits.memory_bytes)}"
            self._alarms.update("memory", is_on, detail)
        paging_above = limits.paging_above_bytes
        self._page(paging_above is not None and used > paging_above)

    def _judge_disk(self) -> None:
        free, limit = self.last.disk_free_bytes, self.limits.disk_free_bytes
        if free is not None and self.is_watching_disk:
            is_on = free < limit
            if is_on != ("disk" in self._alarms.active):
                self._alarms.update(
                    "disk", is_on, f"{amount(free)} free, the limit is {amount(limit)}"
                )

    def _page(self, is_paging: bool) -> None:
        if not (is_paging or self.is_paging):
            return  # with many queues, a look that changes nothing must not walk over them
        self.is_paging = is_paging
        for vhost in self._vhosts.values():
            for queue in vhost.classic_queues():
                queue.memory_is_short(is_short=is_paging)
        self._scheduler.touch()
