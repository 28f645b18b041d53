"""What all files of one queue have in common: where they lie and what they are made with.

State: none that changes. Made by `storage.queue.disk`, handed to whatever reads or writes a file of the queue.
"""

from __future__ import annotations

from sys import intern

from burrowmq.records import NamedTuple
from burrowmq.storage import record
from burrowmq.storage.files.cache import FileCache
from burrowmq.storage.queue.record_reader import RecordReader


class QueueDirectory(NamedTuple):
    """One queue's directory. `seed` is what the checksums in it start from, so that no other queue's bytes pass."""

    path: str
    identity: bytes
    seed: int
    entry_count: int
    cache: FileCache
    is_durable: bool

    @property
    def reader(self) -> RecordReader:
        """How messages are read to be delivered."""
        return RecordReader(self.seed, self.buffer_bytes, self.cache.is_checked)

    @property
    def buffer_bytes(self) -> int:
        """The largest piece that is written at once; 1: each message by itself."""
        return max(self.cache.buffer_bytes, 1)


def directory_at(
    path: str, identity: bytes, entry_count: int, cache: FileCache, *, is_durable: bool
) -> QueueDirectory:
    """Give the directory at a path; its name is part of the seed."""
    seed = record.seed_of(identity, path)
    path = intern(path)  # the commit log has it too
    return QueueDirectory(path, identity, seed, entry_count, cache, is_durable)
