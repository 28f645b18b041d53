"""Where an embedded broker's files lie: a directory that somebody names, or one of its own that goes when it ends.

A directory of its own lies in memory where there is a tmpfs (/dev/shm), so that a sync costs nothing, else where
temporary files do. It goes with `remove`, with the last reference to this, or with the interpreter (`left_over`),
whichever is first: also that of a broker which could not start, or was killed and never started again. State: the path,
and whether it is to go. A forked child leaves it to the parent. The directory of a program that was killed stays, as
any temporary file does.
"""

from __future__ import annotations

import os
import weakref

from burrowmq.embedded.errors import BrokerError
from burrowmq.storage.files.filesystem import remove_tree

IN_MEMORY = "/dev/shm"  # noqa: S108 - not a name in it: each broker makes one that nobody can foresee
OWN: weakref.WeakSet[Directory] = weakref.WeakSet()
"""Those of this process that are to go."""


class Directory:
    """A data directory."""

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self.is_own = path is None
        """Whether it goes with the broker."""
        if path is None:
            try:
                within = IN_MEMORY if os.access(IN_MEMORY, os.W_OK | os.X_OK) else _temporary()
                path = f"{within}/burrowmq-{os.urandom(8).hex()}"
                os.mkdir(path, 0o700)
            except OSError as error:
                raise BrokerError(f"no directory can be made for the broker: {error}") from error
        self.path = _absolute(path)
        if self.is_own:
            self._pid = os.getpid()
            self._last = weakref.finalize(self, _remove, self.path, self._pid)
            self._last.atexit = False  # brokers that are left running end first
            OWN.add(self)

    def remove(self) -> None:
        """Remove it if it is the broker's own; harmless twice."""
        if self.is_own and self._last.detach() is not None:
            _remove(self.path, self._pid)


def _remove(path: str, pid: int) -> None:
    if pid == os.getpid():
        remove_tree(path, is_lenient=True)


def _absolute(path: str | os.PathLike[str]) -> str:
    """The same wherever the program goes later. Raises BrokerError."""
    name = os.fsdecode(path)
    if not name:
        raise BrokerError("data_dir is empty: name a directory, or leave it out")
    try:
        return os.path.abspath(name)
    except OSError as error:
        raise BrokerError(f"data_dir is {name!r}, and the working directory is no more") from error


def _temporary() -> str:
    """Where temporary files go. Raises OSError."""
    import tempfile  # noqa: PLC0415 - for systems without memory that is a directory

    return tempfile.gettempdir()
