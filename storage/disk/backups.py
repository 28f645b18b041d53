"""Backups as the threads make them: the cut between two commits, the copying on a thread of its own.

State: none but the lock between applying and planning, which it shares with `storage.disk.jobs`. Called by the
backends: `cut` on the disk thread, `build` on a thread of its own. Invariant: whatever goes wrong ends the job, and
nothing else.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from dataclasses import replace

from burrowmq.storage import real_time as time
from burrowmq.storage.directory.backup import (
    Cut,
    Pause,
    discard_staging,
    make_backup,
    take_cut,
)
from burrowmq.storage.directory.context import StoreContext
from burrowmq.storage.disk.counters import Counters
from burrowmq.storage.errors import StorageError
from burrowmq.storage.queue.disk import QueueDisk
from burrowmq.storage.types import BackupJob


class Backups:
    """Backups of one store."""

    def __init__(
        self,
        context: StoreContext,
        durable_queues: Callable[[], list[QueueDisk]],
        counters: Counters,
        lock: threading.Lock,
    ) -> None:
        self._context = context
        self._durable_queues = durable_queues
        self._counters = counters
        self._lock = lock

    def cut(self, job: BackupJob) -> Cut | None:
        """Take a backup's cut; None, and the job has failed, when that is not possible."""
        began = time.monotonic()
        try:
            with self._lock:
                rescues = self._counters.rescues
                return replace(
                    take_cut(self._context, self._durable_queues(), job), rescues=rescues
                )
        except StorageError as error:
            job.fail(str(error))
            return None
        finally:
            job.note_cut((time.monotonic() - began) * 1000)

    def give_up(self, job: BackupJob, reason: str) -> None:
        """The backup of a cut cannot be built."""
        discard_staging(self._context.filesystem, self._context.data_dir)
        job.fail(reason)

    def build(self, cut: Cut, job: BackupJob, pause: Pause) -> None:
        """Build the backup of a cut; the job says how that went."""

        def pause_if_whole(wait_s: float) -> bool:
            is_closing = pause(wait_s)
            if self._counters.rescues != cut.rescues:
                raise StorageError(
                    "a sync failed meanwhile and entries were changed in place: make it again"
                )
            return is_closing

        try:
            make_backup(self._context.filesystem, cut, job, pause_if_whole)
        except Exception as error:  # noqa: BLE001 - the thread's last line
            is_known = isinstance(error, StorageError)
            job.fail(str(error) if is_known else "".join(traceback.format_exception(error)))
            return
        job.finish()
