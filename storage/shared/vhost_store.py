"""The shared stores of one vhost: persistent messages in one, transient ones in the other.

A message's own flag decides which of them it goes to, whatever queues it is in, so that it has one handle. The
transient store numbers its segments from 2**30 on: so a handle tells which store it belongs to. State: the two stores,
and the changes of references that their index had no room for.
Called by the writer on the disk thread; `read` also on the reader thread.

Invariant: the transient store's directory is wiped at every start.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from burrowmq.storage import record
from burrowmq.storage.record import Record
from burrowmq.storage.shared.store import MessageStore
from burrowmq.storage.types import NO_HANDLE, NO_LIMIT, PERSISTENT, StoredMessage

TRANSIENT_SEGMENTS = 1 << 30
_TRANSIENT_HANDLES = TRANSIENT_SEGMENTS << 32
_BEING_APPENDED = -2  # the handle of a message between `choose` and the append of the same commit


class VhostStore:
    """Both shared stores of a vhost."""

    __slots__ = ("_due", "directory", "persistent", "transient", "vhost")

    def __init__(
        self, vhost: str, directory: str, persistent: MessageStore, transient: MessageStore
    ) -> None:
        self.vhost = vhost
        self.directory = directory
        self.persistent = persistent
        self.transient = transient
        self._due: deque[tuple[int, int, int]] = deque()  # (first handle, last, references more)

    def choose(
        self,
        messages: Sequence[StoredMessage],
        fresh: list[StoredMessage],
        repeated: list[StoredMessage],
    ) -> None:
        """Sort messages into those that have to be appended and those that only get one more reference."""
        for message in messages:
            handle = message.handle
            if handle == _BEING_APPENDED or (handle >= 0 and self.contains(handle)):
                repeated.append(message)
            else:
                message.handle = _BEING_APPENDED
                fresh.append(message)

    def contains(self, handle: int) -> bool:
        """Tell whether a handle is live."""
        return self.store_of(handle).refs_of(handle) > 0

    def store_of(self, handle: int) -> MessageStore:
        """Give the store that a handle belongs to."""
        return self.transient if handle >= _TRANSIENT_HANDLES else self.persistent

    def release_files(self) -> None:
        """Close the segment files that need not stay open."""
        self.persistent.release_files()
        self.transient.release_files()

    def append(self, messages: list[StoredMessage]) -> None:
        """Append messages; each gets its handle with one reference. Raises WriteFailed or SyncFailed."""
        persistent = [message for message in messages if message.flags & PERSISTENT]
        if len(persistent) < len(messages):
            transient = [message for message in messages if not message.flags & PERSISTENT]
            self._append(self.transient, transient)
        if persistent:
            self._append(self.persistent, persistent)

    def _append(self, store: MessageStore, messages: list[StoredMessage]) -> None:
        waiting = [message for message in messages if message.handle < 0]  # a retry may have some
        if waiting:
            store.append(waiting)

    def add_refs(self, messages: Sequence[StoredMessage], count: int = 1) -> None:
        """Refer `count` times more to each. Raises DiskFull, then see `finish_refs`."""
        self._due += [
            (first, last, count)
            for first, last in record.ranges_of([message.handle for message in messages])
        ]
        self.finish_refs()

    def drop_refs(self, handles: Sequence[int]) -> None:
        """One reference less for each. Raises DiskFull, then see `finish_refs`."""
        self._due += [(first, last, -1) for first, last in record.ranges_of(handles)]
        self.finish_refs()

    def move_refs(self, old: int, new: int, count: int) -> None:
        """So many references of one handle are of another from here on. Raises DiskFull, then see `finish_refs`.

        Both halves are due before either is done: whoever is called again may not count what is left once more.
        """
        if count:
            self._due += [(new, new, count), *[(old, old, -1)] * count]
        self.finish_refs()

    def finish_refs(self) -> None:
        """Do what is left of `add_refs` and `drop_refs`, where the index had no room: in their order, and each once."""
        due = self._due
        while due:
            first, last, count = due[0]
            store = self.store_of(first)
            if count > 0:
                store.add_range(first, last, count)
            else:
                store.drop_range(first, last)
            due.popleft()

    def read(self, handles: Sequence[int], max_bytes: int = NO_LIMIT) -> list[Record | None]:
        """Read messages, up to so many bytes, at least one; None for each that is not there whole and right.

        Raises ReadFailed.
        """
        if not handles or max(handles) < _TRANSIENT_HANDLES:
            return self.persistent.read(handles, max_bytes)
        found: list[Record | None] = []
        left = max_bytes
        for handle in handles:
            (entry,) = self.store_of(handle).read([handle])
            left -= 0 if entry is None else len(entry[1])
            if left < 0 and found:
                break
            found.append(entry)
        return found


def forget_handles(messages: Sequence[StoredMessage]) -> None:
    """Make messages new to the shared store again."""
    for message in messages:
        message.handle = NO_HANDLE
