"""Watches memory and disk: sets the alarms, and has queues page out while memory is short.

State owned: the last measurement, the limits (an operator may change them), whether queues are paging. Called by the
node about once a second. A free-space reading that fails (the file system is away for a moment) leaves the disk alarm
as it is.

Source: RabbitMQ's memory and disk alarm guides; vm_memory_high_watermark_paging_ratio.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from broker.alarms import Alarms
from broker.clock import Scheduler
from broker.resources import Measurement
from broker.vhost import Vhost


@dataclass(slots=True, kw_only=True)
class ResourceLimits:
    """Where alarms go on; `paging_above_bytes` of None: queues never page out for want of memory."""

    memory_bytes: int
    disk_free_bytes: int
    paging_above_bytes: int | None


class Monitor:
    """The node's eye on its machine."""

    def __init__(
        self,
        limits: ResourceLimits,
        measure: Callable[[], Measurement],
        alarms: Alarms,
        vhosts: Mapping[str, Vhost],
        scheduler: Scheduler,
    ) -> None:
        self.limits = limits
        self.last = Measurement(rss_bytes=0, disk_free_bytes=None)
        self.is_paging = False
        self._measure = measure
        self._alarms = alarms
        self._vhosts = vhosts
        self._scheduler = scheduler

    def look(self) -> None:
        """Measure, and act on it."""
        self.last = found = self._measure()
        limits = self.limits
        self._alarms.update("memory", found.rss_bytes > limits.memory_bytes)
        if found.disk_free_bytes is not None:
            self._alarms.update("disk", found.disk_free_bytes < limits.disk_free_bytes)
        paging_above = limits.paging_above_bytes
        self._page(paging_above is not None and found.rss_bytes > paging_above)

    def _page(self, is_paging: bool) -> None:
        if not (is_paging or self.is_paging):
            return  # with many queues, a look that changes nothing must not walk over them
        self.is_paging = is_paging
        for vhost in self._vhosts.values():
            for queue in vhost.queues.values():
                if is_paging and not queue.is_paging:
                    queue.page_out()
                queue.is_paging = is_paging
        self._scheduler.touch()
