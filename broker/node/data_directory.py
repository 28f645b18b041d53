"""The lock on the data directory: one node at a time.

An advisory lock on the file LOCK, which the kernel releases when the process ends however it ends; the file holds the
process id of its owner for the message that a second node gets. Taken and released by `broker.node.node`.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from typing import IO, Final

from burrowmq.storage.files.filesystem import make_directory


class DataDirectoryLocked(Exception):
    """Another node uses the data directory."""


class DataDirectoryUnusable(Exception):
    """The data directory cannot be made, or nothing can be written to it."""


LONGEST: Final = 504 - len("/definitions.db")
"""Octets of a directory's whole path: SQLite takes 512 for a file beside its database, whose names are longer by 8."""


class DataDirectory:
    """A data directory and, between `lock` and `unlock`, its lock."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._lock: IO[str] | None = None

    def lock(self) -> None:
        """Make the directory if need be and take its lock. Raises DataDirectoryLocked, DataDirectoryUnusable."""
        try:
            make_directory(self.path, 0o700)
            if len(os.fsencode(os.path.realpath(self.path))) > LONGEST:
                raise DataDirectoryUnusable(
                    f"data directory {self.path} cannot be used: its path has more than the {LONGEST} octets that"
                    " SQLite takes; choose another with --data-dir"
                )
            lock = open(os.path.join(self.path, "LOCK"), "a+", encoding="ascii")  # noqa: SIM115 - held until unlock
        except OSError as error:
            raise self._unusable(error) from error
        self._take(lock, fcntl.LOCK_EX)
        # Whose it is only somebody reads who is refused: a full disk is none of a start's reasons to fail.
        with contextlib.suppress(OSError):
            lock.truncate(0)
            os.write(lock.fileno(), f"{os.getpid()}\n".encode())

    def lock_to_read(self) -> None:
        """Keep nodes away without writing anything, for who may only read there. Raises as `lock` does.

        Where there is no lock file, no node has been there since the directory was copied: there is nobody to keep
        away.
        """
        try:
            lock = open(os.path.join(self.path, "LOCK"), encoding="ascii")  # noqa: SIM115 - held until unlock
        except FileNotFoundError:
            return
        except OSError as error:
            raise self._unusable(error) from error
        self._take(lock, fcntl.LOCK_SH)

    def _take(self, lock: IO[str], how: int) -> None:
        try:
            fcntl.flock(lock, how | fcntl.LOCK_NB)
        except BlockingIOError as error:
            lock.seek(0)
            owner = lock.read().strip() or "unknown"
            lock.close()
            raise DataDirectoryLocked(
                f"data directory {self.path} is in use by process {owner}; "
                "stop it or choose another with --data-dir"
            ) from error
        except (
            OSError
        ) as error:  # nobody has it: the file system has no locks to give, or the disk fails
            lock.close()
            refused = OSError(error.errno, error.strerror, lock.name)
            raise self._unusable(refused) from error
        self._lock = lock

    def _unusable(self, error: OSError) -> DataDirectoryUnusable:
        if isinstance(error, PermissionError):
            way_out = f"give it to the user who runs the node (user id {os.geteuid()})"
        elif isinstance(error, FileExistsError | NotADirectoryError):
            way_out = "move the file in its way"
        else:
            way_out = "look at that disk"
        return DataDirectoryUnusable(
            f"data directory {self.path} cannot be used: {error.strerror}: {error.filename};"
            f" {way_out}, or choose another with --data-dir"
        )

    def unlock(self) -> None:
        """Let another node have it; harmless when it was not locked."""
        if self._lock is not None:
            # A child that was forked meanwhile has the file open, too, and would keep the lock. Where the disk fails,
            # the reason of the end is told by who ends: the lock goes with this process at the latest.
            with contextlib.suppress(OSError):
                fcntl.flock(self._lock, fcntl.LOCK_UN)
        self.forget()

    def forget(self) -> None:
        """Close the file and leave the lock as it is: in a forked child it is the parent's."""
        lock, self._lock = self._lock, None
        if lock is not None:
            with contextlib.suppress(OSError):  # it is closed all the same
                lock.close()
