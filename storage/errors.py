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
      DirectoryFailed      a directory fsync, or the rename that puts files in place, failed: nothing is written there
      SyncFailed           fdatasync or a directory fsync failed: never retried on the same file
        SyncFull           ... because there is no room: what it was for is written elsewhere when there is

State: none. Every module of storage raises them; `storage.disk` decides what follows. Invariants: after any of them the
object that raised it is consistent, and can be used or closed; refusals have written nothing. Texts name the file, the
operation and the system's error (`error_text`); `with_way_out` adds what somebody can do about it, `refused_for_now`
the same of what is tried again.
"""

from __future__ import annotations

import errno

_LOOK = "look at the disk and at the kernel's log"
_LOOK_AT_THE_DISK = f"{_LOOK}, then start the node again: what was confirmed is kept"
_TRIED_AGAIN = f"{_LOOK}; it is tried again by itself until it works: what was confirmed is kept"


class StorageError(Exception):
    """Base of everything that storage raises on purpose."""

    way_out = ""


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

    way_out = _LOOK_AT_THE_DISK


class WriteFailed(StorageError):
    """The file system refused a write; what was there before is unharmed."""

    way_out = _LOOK_AT_THE_DISK


class DiskFull(WriteFailed):
    """There is no room for a write; it may be tried again when there is."""

    way_out = "make room on that disk; a running node goes on by itself"


class NoDescriptors(DiskFull):
    """Too many files are open; nothing was tried on this one."""

    way_out = "raise the limit of open files (ulimit -n); a running node goes on by itself"


class DirectoryFailed(StorageError):
    """A name in `directory` could not be made durable or put in place: nobody knows which file a start will find."""

    way_out = _LOOK_AT_THE_DISK

    def __init__(self, text: str, directory: str) -> None:
        super().__init__(text)
        self.directory = directory


class SyncFailed(StorageError):
    """A sync failed: what the file holds on disk is unknown and the sync is never retried on it."""

    way_out = _LOOK_AT_THE_DISK


class SyncFull(SyncFailed):
    """A sync found no room: the file is given up all the same, and what it was for waits for room elsewhere."""

    way_out = DiskFull.way_out


def error_text(error: OSError, path: str = "") -> str:
    """Say which operation failed on which file, and how. `path` is for errors that do not know theirs."""
    operation = next(iter(getattr(error, "__notes__", ())), "an operation")
    name = errno.errorcode.get(error.errno or 0, "no errno")
    return f"{error.filename or path}: {operation} failed: {error.strerror or error} ({name})"


def with_way_out(error: StorageError) -> str:
    """Say what happened and what to do about it."""
    if isinstance(error.__cause__, PermissionError):
        return f"{error}; give the data directory and all in it to the user who runs the node"
    return f"{error}; {error.way_out}" if error.way_out else str(error)


def refused_for_now(error: StorageError) -> str:
    """Say what happened to what is tried again until it works, and what to do about it: nobody need start the node."""
    text = with_way_out(error)
    return (
        text
        if isinstance(error, DirectoryFailed)
        else text.replace(_LOOK_AT_THE_DISK, _TRIED_AGAIN)
    )
