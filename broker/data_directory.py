"""The lock on the data directory: one node at a time.

An advisory lock on the file LOCK, which the kernel releases when the process ends however it ends; the file holds the
process id of its owner for the message that a second node gets. Taken and released by `broker.node`.
"""

from __future__ import annotations

import fcntl
import os
from typing import IO


class DataDirectoryLocked(Exception):
    """Another node uses the data directory."""


class DataDirectory:
    """A data directory and, between `lock` and `unlock`, its lock."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._lock: IO[str] | None = None

    def lock(self) -> None:
        """Make the directory if need be and take its lock. Raises DataDirectoryLocked."""
        os.makedirs(self.path, mode=0o700, exist_ok=True)
        lock = open(os.path.join(self.path, "LOCK"), "a+", encoding="ascii")  # noqa: SIM115 - held until unlock
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            lock.seek(0)
            owner = lock.read().strip() or "unknown"
            lock.close()
            raise DataDirectoryLocked(
                f"data directory {self.path} is in use by process {owner}; "
                "stop it or choose another with --data-dir"
            ) from error
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        self._lock = lock

    def unlock(self) -> None:
        """Let another node have it; harmless when it was not locked."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None
