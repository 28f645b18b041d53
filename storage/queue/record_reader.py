"""Reading the bodies of a queue's messages, wherever they lie: the files of both versions hold the same records.

State: none. Called by `storage.queue.read` on the reader thread, by recovery and by rewriting on the disk thread.

Invariants: a record that does not pass its check is never returned (unless the operator turned the check of reads off);
bytes are read once more before a record counts as bad.
"""

from __future__ import annotations

from collections.abc import Sequence

from burrowmq.records import NamedTuple
from burrowmq.storage import record
from burrowmq.storage.errors import ReadFailed, error_text
from burrowmq.storage.files.cache import BUFFER_BYTES
from burrowmq.storage.files.filesystem import File

# Neighbouring records are read with one call when the gap between them is smaller than this ...
GAP = 16 * 1024
# ... and the call stays below this many times the buffer.
_READ_BUFFERS = 2


class RecordReader(NamedTuple):
    """How records are read: what their checksums start from, in what pieces, whether those are verified."""

    seed: int
    buffer_bytes: int = BUFFER_BYTES
    is_checked: bool = True

    def read(
        self,
        file: File,
        segment: int,
        slots: Sequence[int],
        offsets: Sequence[int],
        sizes: Sequence[int],
    ) -> list[tuple[bytes, bytes, int, int] | None]:
        """Read records with few large reads; None for each that is bad. Any thread.

        Raises ReadFailed: what cannot be read is not taken for damaged.
        """
        found: list[tuple[bytes, bytes, int, int] | None] = []
        first, count = 0, len(offsets)
        most = _READ_BUFFERS * self.buffer_bytes
        while first < count:
            start = offsets[first]
            end = start + sizes[first]
            last = first + 1
            while last < count:
                offset = offsets[last]
                past = offset + sizes[last]
                if not end <= offset <= end + GAP or past - start > most:
                    break
                end = past
                last += 1
            data = self._bytes(file, end - start, start)
            places = [offset - start for offset in offsets[first:last]]
            chosen = slots[first:last]
            part = record.unpack_many(data, places, segment, chosen, self.seed, self.is_checked)
            if None in part:
                self._read_again(file, (start, end), places, segment, chosen, part)
            found += part
            first = last
        return found

    def _read_again(
        self,
        file: File,
        extent: tuple[int, int],
        places: Sequence[int],
        segment: int,
        slots: Sequence[int],
        part: list[tuple[bytes, bytes, int, int] | None],
    ) -> None:
        """Put what is right at the second look into the places of what was bad at the first."""
        bad = [at for at, entry in enumerate(part) if entry is None]
        again = record.unpack_many(
            self._bytes(file, extent[1] - extent[0], extent[0]),
            [places[at] for at in bad],
            segment,
            [slots[at] for at in bad],
            self.seed,
            self.is_checked,
        )
        for at, entry in zip(bad, again, strict=True):
            part[at] = entry

    def _bytes(self, file: File, size: int, offset: int) -> bytes:
        """Read; a refused read is tried once more. Raises ReadFailed."""
        try:
            return file.pread(size, offset)
        except OSError:
            pass
        try:
            return file.pread(size, offset)
        except OSError as error:
            raise ReadFailed(error_text(error, file.path)) from error
