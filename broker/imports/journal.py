"""What is known of one queue's move after a stop: the digests of everything stored here, in order, in one file.

A batch is written down and synced before it is given to the queue here, with the ids that the queue's next messages get
there. After a stop the queue itself is asked which messages of the last batch it has (`remains`): so the file is right
whatever was killed, and whatever a power cut kept of a commit, without one commit over two files.

    first line  JSON: version 1; vhost, queue; made_ms, when the queue here was made; there, how many there were
    then records, each with a u32 CRC32 of it behind it; numbers are little endian:
    "I" u32 count, u64 levels, levels times u64 id, count times 16 octets   a batch is about to be stored: next ids
                                    of the queue's priorities, lowest first, and the digests of the messages
    "S" u32 0, u64 run              the last batch was stored, all of it, by that run of a node; not synced
    "P" u32 count, u64 0            of the last batch only so many were stored
    "M" u32 0, u64 0                from here on messages are acknowledged there: before, they were copied

A queue that was deleted and made again has nothing of what its predecessor had: its journal begins anew.

State owned: the file, and the digests in memory (16 octets a message, at most KNOWN_MAX of the last ones). Called by
`move` in a thread, for it syncs. Invariants: nothing is stored here whose digest is not durable; a torn record at the
end counts as not written, and nothing behind it was stored.
"""

from __future__ import annotations

import json
import os
from binascii import crc32
from collections.abc import Sequence
from pathlib import Path
from struct import Struct
from typing import BinaryIO, Final

from burrowmq.broker.imports.recognise import SIZE

_RECORD: Final = Struct("<cIQ")
_CRC: Final = Struct("<I")
_NUMBER: Final = Struct("<Q")
VERSION: Final = 1
DEPTH: Final = 3
"""So many directories down from the data directory, which is there, it lies: `import`, the other broker's."""
KNOWN_MAX: Final = 1_000_000
"""As many as may be copied. Of acknowledged ones far less come again: what a killed broker had not written."""


class Journal:
    """That of one queue."""

    def __init__(self, path: Path, vhost: str, queue: str, made_ms: int) -> None:
        self._path = path
        self._head: dict[str, object] = {
            "version": VERSION, "vhost": vhost, "queue": queue, "made_ms": made_ms,
        }  # fmt: skip
        self.there = -1
        """How many messages the queue there had when the move began; -1: it has not begun."""
        self.known = bytearray()
        self.count = 0
        """Of messages that were stored, those whose digests were forgotten included."""
        self.last = 0
        """How many the last batch has."""
        self.next_ids: tuple[int, ...] = ()
        """Before it was stored, the ids of the next message of each of the queue's priorities."""
        self.stored_by = 0
        """Which run of a node has stored all of it; 0: that was not written down."""
        self.is_moving = False
        """Whether anything was to be acknowledged there; else all of it was copied."""
        self._file = -1

    def open(self) -> None:
        """Read what there is. Raises: OSError, ValueError for a file that is none of ours."""
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        with open(self._file, "rb", closefd=False) as file:
            line = file.readline()
            if not line.endswith(b"\n"):
                os.ftruncate(self._file, 0)
                os.lseek(self._file, 0, os.SEEK_SET)
                return
            head = json.loads(line)
            self.there = int(str(head["there"]))
            if any(head.get(key) != value for key, value in self._head.items()):
                self.forget()
                return
            end = self._replay(file, len(line))
        os.ftruncate(self._file, end)
        os.lseek(self._file, end, os.SEEK_SET)

    def _replay(self, file: BinaryIO, at: int) -> int:
        """Take the records, one at a time: the file has those of all messages; where the last good one ends."""
        size = os.fstat(self._file).st_size
        while at + _RECORD.size + _CRC.size <= size:
            head = file.read(_RECORD.size)
            kind, count, value = _RECORD.unpack(head)
            is_batch = kind == b"I"
            ids_size = value * _NUMBER.size if is_batch else 0
            rest_size = ids_size + (count * SIZE if is_batch else 0)
            end = at + _RECORD.size + rest_size + _CRC.size
            if end > size:
                break
            rest = file.read(rest_size)
            if _CRC.unpack(file.read(_CRC.size))[0] != crc32(rest, crc32(head)):
                break
            if is_batch:
                ids = [each for (each,) in _NUMBER.iter_unpack(rest[:ids_size])]
                self._add(rest[ids_size:], ids)
            elif kind == b"S":
                self.stored_by = value
            elif kind == b"M":
                self.is_moving = True
            else:
                self._keep(count)
            at = end
        return at

    def begin(self, there: int) -> None:
        """The move begins: so many messages are there."""
        self.there = there
        os.lseek(self._file, 0, os.SEEK_SET)
        head = json.dumps({**self._head, "there": there}).encode() + b"\n"
        os.write(self._file, head)
        os.fsync(self._file)
        # The directories above it may be new as well.
        for path in (self._path.parent, *self._path.parents[1:DEPTH]):
            directory = os.open(path, os.O_RDONLY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)

    def forget(self) -> None:
        """Begin anew: the queue here has nothing of what was written down."""
        os.ftruncate(self._file, 0)
        os.lseek(self._file, 0, os.SEEK_SET)
        self.there = -1
        self.known.clear()
        self.count = self.last = self.stored_by = 0
        self.next_ids = ()
        self.is_moving = False

    def intend(self, digests: bytes, next_ids: Sequence[int]) -> None:
        """A batch is about to be stored in a queue whose priorities go on with these ids."""
        head = _RECORD.pack(b"I", len(digests) // SIZE, len(next_ids))
        self._write(head + b"".join(map(_NUMBER.pack, next_ids)) + digests)
        self._add(digests, next_ids)

    def stored(self, run: int) -> None:
        """All of the last batch is stored. Not synced: without it the queue is asked."""
        self.stored_by = run
        self._write(_RECORD.pack(b"S", 0, run), is_synced=False)

    def move(self) -> None:
        """From now on messages are acknowledged there."""
        if not self.is_moving:
            self.is_moving = True
            self._write(_RECORD.pack(b"M", 0, 0))

    def settle(self, stored: int) -> None:
        """Of the last batch so many were stored."""
        if stored < self.last:
            self._write(_RECORD.pack(b"P", stored, 0))
            self._keep(stored)

    def close(self) -> None:
        """Let go of the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    @property
    def batch(self) -> bytes:
        """The digests of the last batch."""
        return bytes(self.known[len(self.known) - self.last * SIZE :])

    def _add(self, digests: bytes, next_ids: Sequence[int]) -> None:
        self.known += digests
        self.next_ids = tuple(next_ids)
        self.last, self.stored_by = len(digests) // SIZE, 0
        self.count += self.last
        if len(self.known) > KNOWN_MAX * SIZE:
            del self.known[: len(self.known) - KNOWN_MAX * SIZE]

    def _keep(self, stored: int) -> None:
        gone = self.last - stored
        if gone > 0:
            del self.known[len(self.known) - gone * SIZE :]
            self.count -= gone
        self.last = stored

    def _write(self, record: bytes, *, is_synced: bool = True) -> None:
        data = record + _CRC.pack(crc32(record))
        written = os.write(self._file, data)
        if written != len(data):
            raise OSError("the journal's file system is full")
        if is_synced:
            os.fsync(self._file)
