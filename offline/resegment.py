"""`burrowmq-store resegment`: the store written anew with another segment file size or entry count.

Every message is read from the old store and appended to a new one beside it, queue by queue, in order; a message that
several queues share is still stored once. The new store takes the old one's place at once (storage.directory.swap), so
that a kill at any moment leaves the old store as it was or the new one complete. Needs room for the live messages once
more. State owned: where shared messages of one vhost went, 8 bytes for each slot of a segment that has any.
"""

from __future__ import annotations

import argparse
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from burrowmq.broker.definitions.restore import highest_levels
from burrowmq.config import units
from burrowmq.offline.directory import CannotUse, StoreDirectory
from burrowmq.offline.progress import Progress, size_text
from burrowmq.offline.report import shown
from burrowmq.offline.streams import Streams
from burrowmq.storage.directory import quarantine
from burrowmq.storage.directory.definition_store import (
    DefinitionChange,
    DefinitionStore,
    SqliteDefinitionStore,
)
from burrowmq.storage.directory.recovery import DefinitionsAt
from burrowmq.storage.directory.swap import begin_swap, commit_swap
from burrowmq.storage.directory.terms import ENTRY_COUNT_KEY, FILE_SIZE_KEY
from burrowmq.storage.engine import Engine
from burrowmq.storage.errors import ReadFailed
from burrowmq.storage.files.filesystem import FileSystem
from burrowmq.storage.loop.queue_log import QueueLog
from burrowmq.storage.names import QueueNames
from burrowmq.storage.types import (
    NO_HANDLE,
    ON_DISK,
    CarriedMessage,
    LoadedMessage,
    RecoveryReport,
    StoreOptions,
)

OK, DAMAGED = 0, 1
_READ_COUNT = 2048
_READ_BYTES = 8 << 20
# Shares of a message's size that the new store needs besides: record heads, index entries, seals.
_ENTRY_BYTES = 64
_ROOM = 64 << 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--file-size",
        type=_checked(units.binary_size(64 * 1024, 2**31)),
        metavar="N",
        help=f"the new {FILE_SIZE_KEY}, as in rabbitmq.conf: 33554432 or 32MiB",
    )
    parser.add_argument(
        "--entries",
        type=_checked(units.integer(256, 65536)),
        metavar="N",
        help=f"the new {ENTRY_COUNT_KEY}",
    )


def _checked(read: Callable[[str], int]) -> Callable[[str], int]:
    def convert(text: str) -> int:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return convert


def run(directory: StoreDirectory, arguments: argparse.Namespace, streams: Streams) -> int:
    """Write the store anew, unless it has the limits that are asked for."""
    found = directory.recorded.limits
    wanted = {
        FILE_SIZE_KEY: arguments.file_size or found[FILE_SIZE_KEY],
        ENTRY_COUNT_KEY: arguments.entries or found[ENTRY_COUNT_KEY],
    }
    if wanted == found:
        streams.report.write("the store has these limits already: nothing to do\n")
        return OK
    done = resegment(directory, wanted, streams)
    limits = ", ".join(f"{name} = {value}" for name, value in wanted.items())
    streams.report.write(
        f"{done.messages} messages, {size_text(done.size)}, written anew with {limits}\n"
    )
    return DAMAGED if done.has_lost else OK


class Rewritten(NamedTuple):
    """How many messages and bytes the new store has, and whether damaged ones were left behind."""

    messages: int
    size: int
    has_lost: bool


def resegment(directory: StoreDirectory, wanted: dict[str, int], streams: Streams) -> Rewritten:
    """Write the store anew. Raises StorageError or CannotUse."""
    notes = _Notes(streams)
    path, filesystem = directory.path, directory.filesystem
    definitions_at = _ReadDefinitions if directory.recorded.taking_over else _NoDefinitions
    old = _engine(directory, path, directory.recorded.limits, notes, definitions_at)
    report = old.recover()
    old.start_inline()
    try:
        size = sum(queue.bytes for queue in report.queues.values())
        _refuse_unnamed(report)
        _refuse_without_room(directory, report.messages, min(size, _used_bytes(directory)))
        new = _engine(directory, begin_swap(filesystem, path), wanted, notes)
        new.recover()
        new.start_inline()
        with Progress(streams.errors, "rewriting", size) as progress:
            copy = _Copy(old, new, progress)
            notes.unkept_count = 0
            for names, found in sorted(report.queues.items()):
                copy.queue(names, found.version)
        new.close()
        _set_aside(old, notes)
    finally:
        # As it was: clean, so that the next start need not look at every file.
        old.close()
    commit_swap(filesystem, path)
    return Rewritten(copy.count, size, notes.has_lost)


def _set_aside(old: Engine, notes: _Notes) -> None:
    """Have what was left behind kept in quarantine, some messages at a time, before the old store goes."""
    while notes.unkept_count:
        before = notes.unkept_count
        old.idle()
        if notes.unkept_count >= before:
            raise CannotUse(
                f"{before} damaged messages cannot be kept in quarantine, which has room for {quarantine.LIMIT}: "
                "nothing was rewritten"
            )


def _engine(
    directory: StoreDirectory,
    path: str,
    limits: dict[str, int],
    notes: _Notes,
    definitions_at: DefinitionsAt | None = None,
) -> Engine:
    options = StoreOptions(
        confirm="written",
        segment_size_limit=limits[FILE_SIZE_KEY],
        segment_entry_count=limits[ENTRY_COUNT_KEY],
    )
    return Engine(
        path,
        directory.filesystem,
        options,
        notes,
        CarriedMessage,
        definitions_at or _NoDefinitions,
        highest_levels,
    )


def _refuse_unnamed(report: RecoveryReport) -> None:
    """What is not named stays behind: a queue whose name file is damaged is known to its definition only.

    So is a vhost: of that nothing is in the report.
    """
    if report.unnamed_vhosts:
        raise CannotUse(
            f"whose vhost this is cannot be read: {report.unnamed_vhosts[0]}: start the node, which knows its vhosts"
        )
    if report.unnamed_count:
        raise CannotUse(
            f"{report.unnamed_count} queues have a damaged name file: "
            "start the node and stop it once, which writes it again"
        )


def _used_bytes(directory: StoreDirectory) -> int:
    """Give what the old store's messages take: there, too, those that several queues share are once."""
    root, filesystem = f"{directory.path}/vhosts", directory.filesystem
    total = 0
    for vhost in _names_in(filesystem, root):
        queues = f"{root}/{vhost}/queues"
        places = [f"{queues}/{name}" for name in _names_in(filesystem, queues)]
        for place in (f"{root}/{vhost}/msg_store_persistent", *places):
            total += sum(
                filesystem.file_size(f"{place}/{name}") for name in _names_in(filesystem, place)
            )
    return total


def _names_in(filesystem: FileSystem, path: str) -> list[str]:
    """Give the names in a directory; none where there is no such one, or somebody else's file."""
    try:
        return filesystem.listdir(path)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _refuse_without_room(directory: StoreDirectory, count: int, size: int) -> None:
    needed = size + count * _ENTRY_BYTES + _ROOM
    free = directory.filesystem.disk_free(directory.path)
    if free < needed:
        raise CannotUse(
            f"{directory.path}: about {size_text(needed)} are needed, {size_text(free)} are free"
        )


@dataclass(slots=True)
class _Copy:
    """The copying of all queues."""

    old: Engine
    new: Engine
    progress: Progress
    count: int = 0
    _vhost: str = ""  # of the queue copied last
    # Per old segment of that vhost, the new handle + 1 of each slot that was copied: its other queues refer to that.
    _moved: dict[int, array[int]] = field(default_factory=dict)

    def queue(self, names: QueueNames, version: int) -> None:
        """Copy one queue, or one of its levels, into files of this version. Those of a vhost come together."""
        if names.vhost != self._vhost:
            self._vhost = names.vhost
            self._moved.clear()  # the segments of each vhost have the same numbers
        source, target = (
            engine.open_queue(
                names.vhost, names.name, durable=True, version=version, level=names.level
            )
            for engine in (self.old, self.new)
        )
        delivered = source.next_deliver_seq
        next_seq = deliver_seq = 0
        for loaded in _batches(source):
            old_handles = [self._prepare(message) for _, message, _ in loaded]
            messages = [message for _, message, _ in loaded]
            size = sum(message.size for message in messages)
            expiries = [expiry for _, _, expiry in loaded]
            target.append(next_seq, messages, expiries if any(expiries) else None, size)
            self.new.hand_over()
            for handle, message in zip(old_handles, messages, strict=True):
                if handle >= 0:
                    self._note(handle, message.handle)
            next_seq += len(loaded)
            deliver_seq += sum(seq < delivered for seq, _, _ in loaded)
            self.count += len(loaded)
            self.progress.add(size)
        target.set_delivered(deliver_seq)

    def _prepare(self, message: object) -> int:
        """Make a message of the old store one of the new; gives its old handle."""
        assert isinstance(message, CarriedMessage)
        handle = message.handle
        message.flags &= ~ON_DISK
        slots = self._moved.get(handle >> 32) if handle >= 0 else None
        slot = handle & 0xFFFF_FFFF
        moved = slots[slot] if slots is not None and slot < len(slots) else 0
        message.handle = moved - 1 if moved else NO_HANDLE
        return handle

    def _note(self, old_handle: int, new_handle: int) -> None:
        slots = self._moved.setdefault(old_handle >> 32, array("Q"))
        slot = old_handle & 0xFFFF_FFFF
        if slot >= len(slots):
            slots.extend(array("Q", bytes(8 * (slot + 1 - len(slots)))))
        slots[slot] = new_handle + 1


def _batches(source: QueueLog) -> Iterator[list[LoadedMessage]]:
    """Read a queue from its first message to its last."""
    seq = source.recovered.first_seq if source.recovered is not None else 0
    while seq < source.next_seq:
        answer = source.read(seq, _READ_COUNT, _READ_BYTES, _unanswered)
        if answer is None:  # what cannot be read is not damaged, and not to be left behind
            raise ReadFailed(
                f"queue '{source.names.name}' in vhost '{source.names.vhost}' cannot be read"
            )
        loaded, next_seq = answer
        if loaded:
            yield loaded
        elif next_seq == seq:
            return
        seq = next_seq


def _unanswered(_: list[LoadedMessage], __: int) -> None:
    raise AssertionError("inline reads are answered at once")


class _NoDefinitions(DefinitionStore):
    """Definitions stay in their own file, which is not touched."""

    def __init__(self, _: str) -> None:
        """Open nothing."""

    def load(self) -> list[DefinitionChange]:
        """There are none here."""
        return []

    def commit(self, changes: list[DefinitionChange]) -> None:
        """Nobody changes a definition."""
        raise AssertionError(changes)

    def close(self) -> None:
        """Nothing to do."""


class _ReadDefinitions(_NoDefinitions):
    """What they say counts: the store is of format 1, where only they tell levels of queues from queues."""

    def __init__(self, path: str) -> None:
        """Read the file and let go of it."""
        definitions = SqliteDefinitionStore(path)
        self._rows = definitions.load()
        definitions.close()

    def load(self) -> list[DefinitionChange]:
        """All rows."""
        return self._rows


class _Notes:
    """What the stores report, on the error stream: a message that cannot be read is left behind."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self.has_lost = False
        self.unkept_count = 0

    def segment_rolled(self, store: str, segment: int) -> None:
        """Nothing to say."""

    def segment_deleted(self, store: str, segment: int) -> None:
        """Nothing to say."""

    def compaction_finished(
        self, store: str, segment: int, freed_bytes: int, copied_bytes: int
    ) -> None:
        """Nothing to say."""

    def compaction_failed(self, store: str, reason: str) -> None:
        """Nothing is lost by it."""

    def record_lost(self, place: str, seq_or_handle: int, reason: str) -> None:
        """A message is left behind."""
        self.has_lost = True
        self.unkept_count += 1
        self._streams.errors.write(f"lost: {shown(place)}: {seq_or_handle}: {reason}\n")

    def file_damaged(self, path: str, what: str) -> None:
        """Only a node looks for that."""

    def scrub_finished(self, bytes_read: int, found: int, unread: int, duration_ms: float) -> None:
        """Only a node does that."""

    def message_set_aside(self, vhost: str, queue: str, seq: int, name: str, reason: str) -> None:
        """It was told as left behind, and is kept."""
        self.unkept_count -= 1

    def index_unreadable(self, place: str, reason: str) -> None:
        """Nothing is acknowledged here."""

    def recovery_finished(self, clean: bool, messages: int, lost: int, duration_ms: float) -> None:
        """Nothing to say."""

    def sync_failed(self, path: str, reason: str) -> None:
        """Say it."""
        self._streams.errors.write(f"sync failed: {path}: {reason}\n")

    def space_exhausted(self, path: str, is_exhausted: bool) -> None:
        """Say it."""
        if is_exhausted:
            self._streams.errors.write(f"the disk is full: {path}\n")
