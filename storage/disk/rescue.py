"""Messages whose sync failed, written again: from memory, or as they can still be read.

After a failed sync Linux takes the pages for clean, so that a second sync of the same file would report success for
lost data. So the file is given up, and what was not synced in it is written to another: from memory where the commit
under way still has it, else as it can still be read; nobody was told yet that it is safe.

State: a `Rescue`, from the failed sync until everything is written elsewhere; where there is no room it waits, as a
commit does. Called by the writer on the disk thread, under the lock. Invariants: an entry is changed only while it is
live; the old handle loses exactly the references that the new one gets; nothing is synced while a rescue is not
finished.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from types import MappingProxyType
from typing import Protocol, TypeAlias

from burrowmq.records import dataclass
from burrowmq.storage.directory.context import StoreContext
from burrowmq.storage.errors import DiskFull, NoDescriptors, ReadFailed, StorageError, SyncFailed
from burrowmq.storage.files.cache import as_storage_errors
from burrowmq.storage.files.filesystem import NO_DESCRIPTORS
from burrowmq.storage.loop.staged_commit import Append, StagedCommit
from burrowmq.storage.names import NAME_FILE
from burrowmq.storage.queue.disk import QueueDisk
from burrowmq.storage.queue.entries import InMemory
from burrowmq.storage.queue.places import bits_of, slots_of
from burrowmq.storage.queue.segment import Segment
from burrowmq.storage.record import EntryColumns
from burrowmq.storage.shared.vhost_store import VhostStore, forget_handles
from burrowmq.storage.types import CarriedMessage, StoredMessage, StoreObserver


@dataclass(slots=True)
class _Place:
    """A live entry that names a given-up handle, as it was: a write that fails half-way leaves none to be read."""

    segment: Segment
    slot: int
    columns: EntryColumns


def steps_of(
    queue: QueueDisk, failed: set[str], runs: Iterable[Run], observer: StoreObserver
) -> list[Callable[[], None]]:
    """Give the steps that write elsewhere what `failed` files of a queue may have lost; `runs` are in memory."""
    in_memory = partial(in_memory_of, list(runs))
    steps = [queue.make] if f"{queue.directory}/{NAME_FILE}" in failed else []
    return [*steps, *queue.rescue_steps(failed, in_memory, observer)]


class Run(Protocol):
    """Messages with consecutive sequence numbers."""

    @property
    def first_seq(self) -> int:
        """Of the first."""

    @property
    def messages(self) -> Sequence[StoredMessage]:
        """All of them."""

    @property
    def expiries(self) -> Sequence[int] | None:
        """When each expires, if any does."""


def appends_of(commit: StagedCommit | None, queue_id: int) -> list[Append]:
    """Give the runs that a commit has for a queue."""
    commands = commit.commands if commit is not None else ()
    return [each for each in commands if isinstance(each, Append) and each.queue_id == queue_id]


def paths_by_queue(queues: Mapping[int, QueueDisk], paths: Collection[str]) -> dict[int, set[str]]:
    """Give those of the paths that are in a queue's directory."""
    directories = {queue.directory: queue_id for queue_id, queue in dict(queues).items()}
    found: dict[int, set[str]] = {}
    for path in paths:
        queue_id = directories.get(path.rpartition("/")[0])
        if queue_id is not None:
            found.setdefault(queue_id, set()).add(path)
    return found


def in_memory_of(runs: Iterable[Run], segment: Segment) -> InMemory:
    """Give the messages in memory that lie in a segment."""
    entry_count = segment.files.directory.entry_count
    base = segment.number * entry_count
    found = InMemory({}, {})
    for run in runs:
        for at, message in enumerate(run.messages):
            slot = run.first_seq - base + at
            if 0 <= slot < entry_count:
                found.messages[slot] = message
                if run.expiries is not None:
                    found.expiries[slot] = run.expiries[at]
    return found


NOTHING_OWED: Mapping[int, Sequence[Run]] = MappingProxyType({})
NOTHING_KEPT: Mapping[int, str] = MappingProxyType({})

Rename: TypeAlias = Callable[[str, Mapping[int, int]], None]
"""Told which handles of a vhost's messages were given up, and what they have in their place."""


class _Moves:
    """Messages of one vhost's shared store that get new handles, because the old ones were given up."""

    def __init__(
        self,
        store: VhostStore,
        ranges: Sequence[tuple[int, int]],
        queues: Sequence[QueueDisk],
        in_memory: Sequence[StoredMessage],
        rename: Rename,
    ) -> None:
        self._store = store
        self._rename = rename
        self._renames: dict[int, int] = {}
        self._ranges = ranges
        self._queues = queues
        self._in_memory = in_memory
        # By old handle. The new one has a reference of its own until every entry that named the old one names it.
        self._moved: dict[int, StoredMessage] = {}
        self._left: dict[int, list[_Place]] = {}  # the entries that name the old one still

    def run(self) -> None:
        """Append the messages once more and have the entries name the new handles; called again it goes on.

        A commit may be half applied: messages whose entries are still to be written move too. One that is damaged keeps
        its old handle. Raises WriteFailed or SyncFailed, and ReadFailed when one is neither in memory nor can be read:
        if it kept its place it would be confirmed with the next sync, which no longer syncs that file.
        """
        store = self._store
        store.finish_refs()
        self._append(_places(self._queues, self._ranges))
        for old, message in list(self._moved.items()):
            left = self._left[old]
            while left:
                place = left[-1]
                columns = place.columns._replace(locations=array("Q", [message.handle]))
                place.segment.files.relocate(place.segment, place.slot, columns)
                left.pop()
                store.move_refs(old, message.handle, 1)
            # For what is not in an entry, or about to be dropped.
            rest = store.store_of(old).refs_of(old)
            store.move_refs(old, message.handle, rest)
            self._renames[old] = message.handle
            del self._moved[old], self._left[old]
            store.drop_refs([message.handle])
        self._rename(store.vhost, self._renames)
        for message in self._in_memory:
            message.handle = self._renames.get(message.handle, message.handle)

    def _append(self, places: Mapping[int, list[_Place]]) -> None:
        store = self._store
        messages = {
            message.handle: message
            for message in self._in_memory
            if message.handle in places
            or (_is_in(message.handle, self._ranges) and store.contains(message.handle))
        }
        for handle in places.keys() - messages.keys() - self._moved.keys():
            try:
                entry = store.read([handle])[0]
            except ReadFailed as error:
                cause = error.__cause__
                if isinstance(cause, OSError) and cause.errno in NO_DESCRIPTORS:
                    raise NoDescriptors(str(error)) from error  # it can be read when one is free
                raise
            if entry is not None:
                messages[handle] = CarriedMessage(*entry)
        old_handles = sorted(messages)
        again = [messages[handle] for handle in old_handles]
        forget_handles(again)
        try:
            store.append(again)
        except StorageError:
            for old, message in zip(old_handles, again, strict=True):
                message.handle = old
            raise
        self._moved.update(zip(old_handles, again, strict=True))
        self._left.update((old, places.get(old, [])) for old in old_handles)


def _places(
    queues: Sequence[QueueDisk], ranges: Sequence[tuple[int, int]]
) -> Mapping[int, list[_Place]]:
    """Find the live entries that name a handle in one of the ranges."""
    places: dict[int, list[_Place]] = {}
    for queue in queues:
        for segment in queue.index:
            if not segment.shared:
                continue
            columns = segment.columns()
            for slot in slots_of(segment.live_mask() & bits_of(columns.kinds)):
                handle = columns.locations[slot]
                if _is_in(handle, ranges):
                    place = _Place(segment, slot, columns.rows(slot, slot + 1))
                    places.setdefault(handle, []).append(place)
    return places


def _is_in(handle: int, ranges: Sequence[tuple[int, int]]) -> bool:
    return any(first <= handle <= last for first, last in ranges)


class Rescue:
    """What one failed sync may have lost, on its way to other files. Each step is done whole or not at all."""

    def __init__(
        self,
        context: StoreContext,
        queues: Mapping[int, QueueDisk],
        commit: StagedCommit | None,
        failed: Collection[str],
        refuse: Callable[[int, StorageError, AbstractSet[str], Sequence[Run]], None],
        rename: Rename,
        owed: Mapping[int, Sequence[Run]] = NOTHING_OWED,
        kept: Mapping[int, str] = NOTHING_KEPT,
    ) -> None:
        """Give up the shared stores' files that hold un-synced messages, and the queues' own files in `failed`.

        `refuse` (queue id, error, its failed files, its messages in memory) is told which queue cannot be rescued,
        `rename` which handles others have that keep some to drop them later; `owed` are runs of refused queues that are
        in memory, too. What is written anew has no acks left out, and is put together from what the files say: the
        queues in `kept` cannot be rescued either, and why.
        """
        self._failed = set(failed)
        self._observer = context.observer
        self._refuse = refuse
        self._refused: set[int] = set()
        self._steps: deque[Callable[[], None]] = deque()
        runs: dict[int, list[Run]] = {queue_id: list(found) for queue_id, found in owed.items()}
        for command in commit.commands if commit is not None else ():
            if isinstance(command, Append) and command.queue_id in queues:
                runs.setdefault(command.queue_id, []).append(command)
        for vhost in context.vhosts():
            ranges = vhost.persistent.abandon_unsynced()
            if ranges:
                every = dict(queues).items()
                its = {at: queue for at, queue in every if queue.vhost == vhost.vhost}
                # Those of other vhosts may have the same handles.
                in_memory = [one for at in its for run in runs.get(at, ()) for one in run.messages]
                moves = _Moves(vhost, ranges, list(its.values()), in_memory, rename)
                self._steps.append(moves.run)
        for queue_id, paths in paths_by_queue(queues, failed).items():
            its_runs = runs.get(queue_id, [])
            if queue_id in kept:
                which = ", ".join(sorted(paths))
                error = SyncFailed(f"{which}: a sync failed, and {kept[queue_id]}")
                self._steps.append(partial(refuse, queue_id, error, paths, its_runs))
            else:
                self._plan(queue_id, queues[queue_id], paths, its_runs)

    def _plan(self, queue_id: int, queue: QueueDisk, failed: set[str], runs: Sequence[Run]) -> None:
        def attempt(step: Callable[[], None]) -> None:
            if queue_id in self._refused:
                return
            try:
                with as_storage_errors():
                    step()
            except DiskFull:
                raise
            except StorageError as error:
                self._refuse(queue_id, error, failed, runs)
                self._refused.add(queue_id)

        steps = steps_of(queue, failed, runs, self._observer)
        self._steps += [partial(attempt, step) for step in steps]

    def advance(self) -> None:
        """Go on. Raises DiskFull (call it again later) or another StorageError."""
        while self._steps:
            with as_storage_errors():
                self._steps[0]()
            self._steps.popleft()
