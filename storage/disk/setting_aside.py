"""What becomes of messages whose bytes failed their check twice: they are kept in quarantine, then leave their queue.

State: none but the figures; what waits is the reader's. Called by the writer's upkeep on the disk thread, under the
lock. Invariants: a message leaves its queue's index only after its bytes are durable in a file of their own; one whose
bytes cannot be read just now waits for the next upkeep.
"""

from __future__ import annotations

import struct
from typing import Final

from burrowmq.records import NamedTuple
from burrowmq.storage import real_time as time
from burrowmq.storage import record
from burrowmq.storage.directory import quarantine
from burrowmq.storage.directory.context import StoreContext
from burrowmq.storage.errors import ReadFailed
from burrowmq.storage.queue.disk import QueueDisk
from burrowmq.storage.queue.entries import KIND_SHARED, KIND_STORE
from burrowmq.storage.queue.segment import Segment
from burrowmq.storage.record import ENTRY_PRESENT

# A body whose entry is bad is looked for in so much of its file.
_LOOK_BYTES: Final = 64 << 20
_PIECE_BYTES: Final = 1 << 20
_HEAD: Final = struct.Struct("<HBBII")
_SIZES: Final = struct.Struct("<II")


class _Found(NamedTuple):
    """The bytes of one message: from where, and what its entry says."""

    source: str
    data: bytes
    expiry: int


class SettingAside:
    """Keeps damaged messages of all queues."""

    def __init__(self, context: StoreContext) -> None:
        self._context = context
        self.kept_count = self._count()
        """How many messages are in quarantine, as far as this node knows: some may have been taken out meanwhile."""

    def _count(self) -> int:
        try:
            return len(quarantine.names(self._context.filesystem, self._context.data_dir))
        except OSError:
            return 0

    def recount(self) -> None:
        """Some may have been taken out. Any thread."""
        self.kept_count = self._count()

    def keep(self, queue: QueueDisk, seq: int, reason: str) -> bool:
        """Keep one message's bytes; False when there is no more room for such files: it stays where it is.

        Raises ReadFailed, OSError or WriteFailed: then nothing has changed.
        """
        if self.kept_count >= quarantine.LIMIT:
            self.kept_count = self._count()
            if self.kept_count >= quarantine.LIMIT:
                return False
        found = self._find(queue, seq)
        names = queue.names
        about = quarantine.SetAside(
            vhost=names.vhost,
            queue=names.name,
            level=names.level,
            seq=seq,
            expiry=found.expiry,
            reason=reason,
            source=found.source,
            size=len(found.data),
            set_aside_at=time.time_ns() // 1_000_000,
        )
        context = self._context
        name = quarantine.keep(
            context.filesystem, context.data_dir, queue.directory, about, found.data
        )
        self.kept_count += 1
        context.observer.message_set_aside(names.vhost, names.name, seq, name, reason)
        return True

    def is_whole(self, queue: QueueDisk, seq: int) -> bool:
        """Look at a suspected message once more, at where it lies now. Raises ReadFailed or OSError."""
        number, slot = divmod(seq, queue.index.entry_count)
        segment = queue.index.segments[number]
        segment.files.trim()  # what was read before the damage says nothing about the file
        columns = _entry_of(segment, slot)
        if columns is None or columns.statuses[0] != ENTRY_PRESENT:
            return False
        kind, location = columns.kinds[0], columns.locations[0]
        if kind == KIND_SHARED:
            return (
                self._context.vhost(queue.vhost).store_of(location).read([location])[0] is not None
            )
        try:
            file = segment.files.open_bodies(segment, kind)
        except FileNotFoundError:
            return False
        reader = queue.place.reader._replace(is_checked=True)
        (found,) = reader.read(file, number, [slot], [location], columns.sizes)
        return found is not None

    def _find(self, queue: QueueDisk, seq: int) -> _Found:
        number, slot = divmod(seq, queue.index.entry_count)
        segment = queue.index.segments[number]
        columns = _entry_of(segment, slot)
        if columns is None or columns.statuses[0] != ENTRY_PRESENT:
            return self._without_entry(segment, slot, columns)
        location, expiry = columns.locations[0], columns.expiries[0]
        if columns.kinds[0] == KIND_SHARED:
            store = self._context.vhost(queue.vhost).store_of(location)
            raw = store.raw(location)
            path, offset, data = raw if raw is not None else (f"handle {location}", 0, b"")
            return _Found(f"{path}, byte {offset}", data, expiry)
        try:
            file = segment.files.open_bodies(segment, columns.kinds[0])
        except FileNotFoundError as error:
            return _Found(f"{error.filename}, which is gone", b"", expiry)
        data = file.pread(columns.sizes[0], location)
        return _Found(f"{file.path}, byte {location}", data, expiry)

    def _without_entry(
        self, segment: Segment, slot: int, columns: record.EntryColumns | None
    ) -> _Found:
        """The entry is what is damaged: look for a body that says that it is this message's, else keep the entry."""
        path, entry = segment.files.path(segment.number), b""
        source = f"{path}, which is gone"
        if columns is not None:
            columns = columns._replace(statuses=bytes((ENTRY_PRESENT,)))
            entry = record.pack_index_entries(
                columns, slot, segment.number, segment.files.directory.seed
            )
            source = f"{path}, entry {slot}"
        if not segment.store_end:
            return _Found(source, entry, 0)
        try:
            file = segment.files.open_bodies(segment, KIND_STORE)
        except FileNotFoundError:
            return _Found(source, entry, 0)
        head = _HEAD.pack(record.MAGIC, record.TYPE_MESSAGE, 0, segment.number, slot)
        for at in range(0, min(segment.store_end, _LOOK_BYTES), _PIECE_BYTES):
            piece = file.pread(_PIECE_BYTES + record.HEADER_SIZE, at)
            place = piece.find(head)
            if place < 0 or len(piece) < place + record.HEADER_SIZE:
                continue
            meta, body = _SIZES.unpack_from(piece, place + _HEAD.size)
            size = record.HEADER_SIZE + meta + body
            if at + place + size <= segment.store_end:
                return _Found(f"{file.path}, byte {at + place}", file.pread(size, at + place), 0)
        return _Found(source, entry, 0)


def _entry_of(segment: Segment, slot: int) -> record.EntryColumns | None:
    """Read one entry; None when its file is gone: a read counts its messages as damaged, too. Raises ReadFailed."""
    try:
        return segment.load(slot, slot)
    except ReadFailed as error:
        if not isinstance(error.__cause__, FileNotFoundError):
            raise
        return None
