"""Compaction as the threads do it: chosen between two commits, copied beside them, put in place between two others.

State: the lock between applying and planning, which it shares with `storage.disk.jobs`; the stores whose last
compaction failed. Called by the backends: `copy` on a thread of its own, everything else on the disk thread. Invariant:
the lock is not held while bytes are copied.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from burrowmq.storage.errors import DiskFull, StorageError, StoreClosed, WriteFailed
from burrowmq.storage.files.cache import as_storage_errors
from burrowmq.storage.shared.compaction import CompactionPlan
from burrowmq.storage.shared.store import MessageStore
from burrowmq.storage.shared.vhost_store import VhostStore
from burrowmq.storage.types import StoreObserver


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
        self._failed: dict[MessageStore, None] = {}

    def choose(self, *, is_idle: bool) -> tuple[MessageStore, CompactionPlan] | None:
        """Choose what to compact next in any vhost; None when nothing is worth it."""
        with self._lock, as_storage_errors():
            for store in self._stores():
                try:
                    if is_idle:
                        store.release_idle()
                    plan = store.plan(is_idle=is_idle)
                except DiskFull:  # its index has no room, or no descriptor: later
                    continue
                if plan is not None:
                    return store, plan
        return None

    def _stores(self) -> list[MessageStore]:
        """Give all stores; those whose compaction failed come behind the others, the last one last."""
        found = [one for each in self._vhosts() for one in (each.persistent, each.transient)]
        if self._failed:
            self._failed = {one: None for one in self._failed if one in found}
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
        is_done = self._put_in_place(store, plan, failed)
        self._failed.pop(store, None)
        if not is_done:
            self._failed[store] = None
        return is_done

    def _put_in_place(
        self, store: MessageStore, plan: CompactionPlan, failed: StorageError | None
    ) -> bool:
        with self._lock, as_storage_errors():
            if store.is_closed:  # its vhost was deleted meanwhile, the plan's files with it
                return True
            if failed is not None:
                store.abandon_plan()
                if not isinstance(failed, DiskFull | StoreClosed):
                    self._observer.compaction_failed(store.options.directory, str(failed))
                return False
            try:
                freed = store.put_in_place()
            except DiskFull:
                return False
            except WriteFailed as error:  # nothing has changed: the old files stay in use
                self._observer.compaction_failed(store.options.directory, str(error))
                return False
            self._observer.compaction_finished(
                store.options.directory, plan.victims[0].segment_no, freed, plan.copied_bytes
            )
            return True
