"""Compaction as the threads do it: chosen between two commits, copied beside them, put in place between two others.

A store whose compaction failed is left alone for a pause that doubles, until another one's has freed space: a disk that
refuses it for a week is not asked, and nobody told, four times a second.

State: the lock between applying and planning, which it shares with `storage.disk.jobs`; the stores whose last
compaction failed, and when each is due again. Called by the backends: `copy` on a thread of its own, everything else on
the disk thread. Invariant: the lock is not held while bytes are copied.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from burrowmq.records import dataclass
from burrowmq.storage import real_time as time
from burrowmq.storage.errors import DiskFull, ReadFailed, StorageError, StoreClosed, WriteFailed
from burrowmq.storage.files.cache import as_storage_errors
from burrowmq.storage.shared.compaction import CompactionPlan
from burrowmq.storage.shared.store import MessageStore
from burrowmq.storage.shared.vhost_store import VhostStore
from burrowmq.storage.types import StoreObserver

LONGEST_PAUSE_S: Final = 60.0
# Where there is no room space may come any time, and the compaction brings more.
LONGEST_WITHOUT_ROOM_S: Final = 5.0
_MOST_DOUBLED: Final = 16


@dataclass(slots=True)
class _Failed:
    """How often the compactions of a store have failed without one between that did not, and when it is due again."""

    count: int = 0
    due: float = 0.0


class Compactor:
    """Compactions of all vhosts' shared stores, one at a time."""

    def __init__(
        self,
        vhosts: Callable[[], list[VhostStore]],
        observer: StoreObserver,
        lock: threading.Lock,
    ) -> None:
        self._vhosts = vhosts
        self._observer = observer
        self._lock = lock
        # In the order of their failures: what one has no room for may fit where another's space was freed.
        self._failed: dict[MessageStore, _Failed] = {}
        self.first_pause_s = 0.0

    @property
    def has_failed(self) -> bool:
        """Whether a compaction is to be tried again."""
        return bool(self._failed)

    def choose(self, *, is_idle: bool) -> tuple[MessageStore, CompactionPlan] | None:
        """Choose what to compact next in any vhost; None when nothing is worth it."""
        now = time.monotonic()
        with self._lock, as_storage_errors():
            for store in self._stores():
                failed = self._failed.get(store)
                try:
                    if is_idle:
                        store.release_idle()
                    is_due = failed is None or failed.due <= now
                    plan = store.plan(is_idle=is_idle) if is_due else None
                except DiskFull:  # its index has no room, or no descriptor: later
                    continue
                if plan is not None:
                    return store, plan
        return None

    def _stores(self) -> list[MessageStore]:
        """Give all stores; those whose compaction failed come behind the others, the last one last."""
        found = [one for each in self._vhosts() for one in (each.persistent, each.transient)]
        if self._failed:
            self._failed = {one: failed for one, failed in self._failed.items() if one in found}
            found = [*(one for one in found if one not in self._failed), *self._failed]
        return found

    @staticmethod
    def copy(plan: CompactionPlan, pause: Callable[[], bool] | None = None) -> StorageError | None:
        """Copy a plan; gives what went wrong. `pause` is called between slices; True: the store is being closed."""
        try:
            while not plan.step():
                if pause is not None and pause():
                    return StoreClosed("the store is being closed")
        except StorageError as error:
            return error
        return None

    def put_in_place(
        self, store: MessageStore, plan: CompactionPlan, failed: StorageError | None
    ) -> bool:
        """Let a copied plan's file count, or give the plan up: its new file is no loss. Raises SyncFailed.

        False when it failed: what is left to compact waits for another idle moment, and for the other stores.
        """
        why_not = self._put_in_place(store, plan, failed)
        before = self._failed.pop(store, _Failed())
        if why_not is None:
            for other in self._failed.values():  # there may be room for it now
                other.due = 0.0
            return True
        self._failed[store] = self._again(before, why_not)
        return False

    def _again(self, before: _Failed, error: StorageError) -> _Failed:
        """When to try it again; at once where a file cannot be read, since that is left out then."""
        if isinstance(error, ReadFailed):
            return before
        longest = LONGEST_WITHOUT_ROOM_S if isinstance(error, DiskFull) else LONGEST_PAUSE_S
        pause = min(self.first_pause_s * 2.0**before.count, longest)
        return _Failed(min(before.count + 1, _MOST_DOUBLED), time.monotonic() + pause)

    def _put_in_place(
        self, store: MessageStore, plan: CompactionPlan, failed: StorageError | None
    ) -> StorageError | None:
        """The same; gives why it failed."""
        with self._lock, as_storage_errors():
            if store.is_closed:  # its vhost was deleted meanwhile, the plan's files with it
                return None
            if failed is not None:
                store.abandon_plan()
                if not isinstance(failed, DiskFull | StoreClosed):
                    self._observer.compaction_failed(store.options.directory, str(failed))
                return failed
            try:
                freed = store.put_in_place()
            except DiskFull as error:
                return error
            except WriteFailed as error:  # nothing has changed: the old files stay in use
                self._observer.compaction_failed(store.options.directory, str(error))
                return error
            self._observer.compaction_finished(
                store.options.directory, plan.victims[0].segment_no, freed, plan.copied_bytes
            )
            return None
