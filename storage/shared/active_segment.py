"""The segment of a shared store that is appended to: begun, written, rolled over.

State owned: its table, the number of the next one, the files that were ended without a seal, and the highest number
that is on disk. The file with that number stays there until a higher one is durable, when it is dead as a bare header:
so a start always knows which numbers were used. Called by the message store on the disk thread.

- A new segment's header and its name are durable before its first record.
- A roll syncs the records itself before it writes the seal, in both confirm modes: a seal vouches for its records, and
  a whole segment un-synced is more than the store may hold.
- The first record behind a sync of the file says that all before it is durable: a start tells by it what was damaged
  since from what never reached the disk.
- After a failed write the file ends where it did, or is not appended to any more. What the disk refused for another
  reason than want of room is written to another segment, once: who gives up then is every queue of a virtual host.
- What was ended without a seal gets it at a clean stop, but for a file whose sync failed: no seal vouches for that one.

A large record gets a segment of its own: it can then be removed with its file, without copying.

Source: docs/formats/segment.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from burrowmq.storage import record
from burrowmq.storage.errors import DiskFull, WriteFailed
from burrowmq.storage.files.cache import new_file_error, write_error
from burrowmq.storage.files.filesystem import FileSystem
from burrowmq.storage.shared.scan import ScanTerms
from burrowmq.storage.shared.segment import (
    FILE_HEADER_SIZE,
    FLAG_TELLS_SYNCS,
    SegmentFile,
    SegmentHeader,
    Table,
    file_name,
    pack_file_header,
)
from burrowmq.storage.shared.segment_set import SegmentSet
from burrowmq.storage.shared.unsynced import Unsynced
from burrowmq.storage.types import StoredMessage

_BLOB_LIMIT: Final = 1 << 20
# A segment that is mostly dead is ended at an idle moment from this size on.
_IDLE_SIZE: Final = 1 << 20


class ActiveSegment:
    """The active segment of one store. There is none before the first append and after each roll."""

    def __init__(
        self, filesystem: FileSystem, terms: ScanTerms, segments: SegmentSet, unsynced: Unsynced
    ) -> None:
        self._filesystem = filesystem
        self._terms = terms
        self._segments = segments
        self._unsynced = unsynced
        self.table: Table | None = None
        self.next_segment_no = 0
        self.top_segment_no = -1
        self._dead_top: str | None = None
        self._unsealed: set[SegmentFile] = set()  # ended; `seal_left`
        self._kept_whole = ""  # the file that a backup copies: `keep_whole`
        self.appended_messages = 0
        self.appended_bytes = 0
        self.rolled = 0

    # Writing ----------------------------------------------------------------------------------

    def append(self, messages: Sequence[StoredMessage], position: int) -> tuple[int, int]:
        """Append as many messages as fit one write; gives the first handle and how many.

        Raises WriteFailed, DiskFull or SyncFailed; then nothing was appended.
        """
        try:
            return self._append(messages, position)
        except DiskFull:
            raise
        except WriteFailed:
            self._leave()
            return self._append(messages, position)

    def _append(self, messages: Sequence[StoredMessage], position: int) -> tuple[int, int]:
        table = self._writable(len(messages[position].raw))
        file = table.file
        slot = len(table)
        terms = self._terms
        room = terms.size_limit - file.end
        blob, sizes = record.pack_records(
            messages,
            slot,
            table.segment_no,
            terms.seed,
            position,
            min(room, _BLOB_LIMIT),
        )
        if slot and self._unsynced.is_durable_so_far(file):
            blob = record.tell_of_sync(blob, sizes[0], terms.seed)
        self._unsynced.note(file, slot)
        self._write(file, blob)
        table.extend(sizes)
        file.grow(len(blob))
        self._unsynced.note_written(len(blob))
        self.appended_messages += len(sizes)
        self.appended_bytes += len(blob)
        return table.segment_no << 32 | slot, len(sizes)

    def _writable(self, raw_size: int) -> Table:
        """Give the table to append to, a new segment's when the current one is full."""
        table = self.table
        if table is not None:
            end = table.file.end
            is_full = end >= self._terms.size_limit
            has_large = len(table) == 1 and end >= record.LARGE_RECORD
            if is_full or has_large or (raw_size >= record.LARGE_RECORD and len(table)):
                self.roll()
                table = None
        return self._begin() if table is None else table

    def _begin(self) -> Table:
        """Make a new segment; it is durable, in its directory too, before it is used."""
        terms = self._terms
        number = self.next_segment_no
        self.next_segment_no += 1
        path = f"{terms.directory}/{file_name(number, 0)}"
        header = SegmentHeader(number, 0, terms.size_limit, terms.identity, FLAG_TELLS_SYNCS)
        try:
            handle = self._filesystem.create(path)
            handle.pwrite(pack_file_header(header), 0)
        except OSError as error:
            self._segments.unlink(path)
            raise write_error(path, error) from error
        if terms.is_durable:
            try:
                handle.fdatasync()
                self._filesystem.fsync_dir(terms.directory)
            except OSError as error:
                self._segments.unlink(path)
                raise new_file_error(path, error) from error
        file = SegmentFile(self._filesystem, path, number, 0)
        file.adopt(handle)
        self.top_segment_no = number
        if self._dead_top is not None:
            self._segments.unlink(self._dead_top)
            self._dead_top = None
        table = terms.store_index.begin(file, number)
        file.tables.append(table)
        self._segments.add(file)
        self.table = table
        return table

    def _write(self, file: SegmentFile, blob: bytes) -> None:
        """Write at the end of a file; after a failure the file ends where it did."""
        try:
            file.file().pwrite(blob, file.end)
        except OSError as error:
            try:
                file.file().truncate(file.end)
            except OSError:
                # A torn tail: a scan ends before it, so nothing may be appended behind it.
                self._leave()
            raise write_error(file.path, error) from error

    def roll(self) -> None:
        """End the segment: sync its records, write its seal. The next append makes one. Raises SyncFailed."""
        table = self.table
        if table is None:
            return
        file = table.file
        self.table = None
        table.seal()
        if table.live_count == 0:
            self.remove(file)
            return
        self._unsynced.sync_rolled(file)
        self._seal(file)
        self.rolled += 1

    def _leave(self) -> None:
        """After a refused write: append no more to the file. It has no seal until a clean stop: a start scans it."""
        table, self.table = self.table, None
        if table is None:
            return
        table.seal()
        if table.live_count == 0:
            self.remove(table.file)
            return
        self._unsealed.add(table.file)

    def _seal(self, file: SegmentFile) -> None:
        """Write the seal. Failing is harmless: the segment is scanned at the next start."""
        try:
            file.write_seal(self._terms.seed)
        except (OSError, DiskFull):  # no descriptor to open it again is a NoDescriptors
            self._unsealed.add(file)
            return
        self._unsynced.note_seal(file, len(file.tables[-1]))

    def seal_left(self) -> None:
        """At a clean stop, all records are durable: seal what was ended without, else the stop counts as a crash.

        Raises NoDescriptors, after which it may be called again.
        """
        for file in list(self._unsealed):
            try:
                file.file().truncate(file.end)  # of a record or a seal that was written in part
            except OSError:
                self._unsealed.discard(file)
                continue
            self._unsealed.discard(file)
            self._seal(file)

    def roll_idle(self) -> None:
        """At an idle moment: end it if it is mostly dead, so that it can be compacted.

        Not while it has to be synced first: whoever syncs everything has a way out when that fails.
        """
        table = self.table
        if table is None or table.file.end <= _IDLE_SIZE:
            return
        if table.live_count and self._unsynced.is_sync_due(table.file):
            return
        if table.live_bytes * 2 < table.file.end:
            self.roll()

    def give_up(self, tables: Sequence[Table]) -> None:
        """If it is one of these, whose sync failed, append no more to it; none of them gets a seal."""
        self._unsealed.difference_update(table.file for table in tables)
        table = self.table
        if table is not None and table in tables:
            self.table = None
            table.seal()

    # The top file -----------------------------------------------------------------------------

    def is_top(self, file: SegmentFile) -> bool:
        """Tell whether a file has the highest number."""
        return any(table.segment_no == self.top_segment_no for table in file.tables)

    def keep_whole(self, file: SegmentFile) -> None:
        """A backup copies this file: do not cut it to its header when it is dead."""
        self._kept_whole = file.path

    def remove(self, file: SegmentFile) -> None:
        """Give a dead file's space back; the top one leaves its header on disk."""
        self._unsynced.forget(file)
        self._unsealed.discard(file)
        if not self.is_top(file):
            self._segments.remove(file)
            return
        self._dead_top = file.path
        self._segments.forget(file)
        if file.path == self._kept_whole:
            return
        try:
            file.file().truncate(FILE_HEADER_SIZE)
        except (OSError, DiskFull):
            return  # the space comes back when the file goes
        finally:
            file.release()
