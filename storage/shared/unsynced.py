"""Which segment files hold bytes that a power cut could take, and from which slot on.

State owned: those files, from which slot on, and how many bytes of records that is. Used by the shared store alone,
which notes each write before it makes it. The files are synced at a roll, by `sync`, or by the writer together with all
others (`files`, then `note_synced`); after a failed sync they are given up (`abandon`). A store that is not durable
notes its writes and never syncs.

Invariants: a file with un-synced records stays open, so that its sync hears of a write-back that failed; a sync that
failed is never tried again on that file.
"""

from __future__ import annotations

from collections.abc import Container

from burrowmq.storage.files.cache import sync_error
from burrowmq.storage.files.filesystem import File
from burrowmq.storage.shared.segment import SegmentFile, Table


class Unsynced:
    """What is not synced of one store."""

    def __init__(self, *, is_durable: bool) -> None:
        self._is_durable = is_durable
        self._files: dict[SegmentFile, int] = {}  # file -> how many of its slots are durable
        self._bytes = 0

    @property
    def bytes(self) -> int:
        """Bytes of records that a power cut could take."""
        return self._bytes if self._is_durable else 0

    def is_durable_so_far(self, file: SegmentFile) -> bool:
        """Tell whether everything that was written to the file is durable."""
        return self._is_durable and file not in self._files

    def is_sync_due(self, file: SegmentFile) -> bool:
        """Tell whether a roll would sync the file."""
        return self._is_durable and file in self._files

    def note(self, file: SegmentFile, slot: int) -> None:
        """Records are about to be written from this slot on."""
        self._files.setdefault(file, slot)
        file.note_unsynced(is_dirty=self._is_durable)

    def note_written(self, size_bytes: int) -> None:
        """The records were written: so many bytes."""
        self._bytes += size_bytes

    def note_seal(self, file: SegmentFile, slot: int) -> None:
        """A seal was written. It is a hint: unlike records it need not keep the file open until its sync."""
        self._files.setdefault(file, slot)

    def forget(self, file: SegmentFile) -> None:
        """The file is gone."""
        self._files.pop(file, None)

    def sync_rolled(self, file: SegmentFile) -> None:
        """Make the file that ends here durable, before its seal vouches for it. Raises SyncFailed."""
        if self.is_sync_due(file):
            self._sync(file)
            self._bytes = 0

    def sync(self) -> None:
        """Make everything durable. Raises SyncFailed, then see `abandon`."""
        if self._is_durable:
            for file in list(self._files):
                self._sync(file)
        self.clear()

    def files(self) -> dict[File, str]:
        """Give what has to be synced, with paths, to whoever syncs it together with other files; then `note_synced`.

        Raises SyncFailed when one cannot be opened, NoDescriptors while there is no descriptor for it.
        """
        found: dict[File, str] = {}
        for file in self._files if self._is_durable else ():
            try:
                found[file.file()] = file.path
            except OSError as error:
                raise sync_error(file.path, error) from error
        return found

    def note_synced(self, failed: Container[str]) -> None:
        """The files were synced, but for those whose path is in `failed`: see `abandon`."""
        for file in list(self._files):
            if file.path not in failed:
                del self._files[file]
                file.note_unsynced(is_dirty=False)
        if not self._files:
            self._bytes = 0

    def _sync(self, file: SegmentFile) -> None:
        try:
            file.file().fdatasync()
        except OSError as error:
            raise sync_error(file.path, error) from error
        del self._files[file]
        file.note_unsynced(is_dirty=False)

    def clear(self) -> None:
        """Nothing is un-synced any more."""
        for file in self._files:
            file.note_unsynced(is_dirty=False)
        self._files.clear()
        self._bytes = 0

    def abandon(self) -> tuple[list[Table], list[tuple[int, int]]]:
        """Give the files up: the tables that were being written to, and the un-synced handles as ranges."""
        tables = [file.tables[-1] for file in self._files]
        ranges: list[tuple[int, int]] = []
        for table, durable in zip(tables, self._files.values(), strict=True):
            if durable < len(table):
                base = table.segment_no << 32
                ranges.append((base | durable, base | len(table) - 1))
        self.clear()
        return tables, ranges
