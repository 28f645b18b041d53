"""What storage raises.

    StorageError
      StoreRefused         start refused: the files were made under other terms
        LimitChanged       a recorded limit differs from the configured one
        ForeignStore       a file carries another store's identity
        UnknownFormat      a file is of a format version that this code does not know
      StoreClosed          used after close, or after it failed for good
      ReadFailed           the file system refused a read (after one retry)
      WriteFailed          the file system refused a write; the file was cut back to its last good end
        DiskFull           ... because there is no room (ENOSPC, EDQUOT, EFBIG): may be tried again
          NoDescriptors    ... because too many files are open: may be tried again when some were closed
      SyncFailed           fdatasync or a directory fsync failed: never retried on the same file

State: none. Raised by every module of storage, policy is decided in disk. Invariant: after any
of them the raising object is consistent and can be used or closed. Refusals have written nothing.
"""

from __future__ import annotations


class StorageError(Exception):
    """Base of everything that storage raises on purpose."""


class StoreRefused(StorageError):
    """The files on disk were made under terms that are not the configured ones."""


class LimitChanged(StoreRefused):
    """A limit that is recorded on disk differs from the configured one."""


class ForeignStore(StoreRefused):
    """A file belongs to another store (its identity differs)."""


class UnknownFormat(StoreRefused):
    """A file has a format version or checksum kind that this code does not know."""


class StoreClosed(StorageError):
    """The store was used after it was closed."""


class ReadFailed(StorageError):
    """The file system refused a read."""


class WriteFailed(StorageError):
    """The file system refused a write; what was there before is unharmed."""


class DiskFull(WriteFailed):
    """There is no room for a write; it may be tried again when there is."""


class NoDescriptors(DiskFull):
    """Too many files are open; nothing was tried on this one."""


class SyncFailed(StorageError):
    """A sync failed: what the file holds on disk is unknown and the sync is never retried on it."""
