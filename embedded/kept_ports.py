"""A broker's ports between its end and its next start: nobody else gets them meanwhile.

A system gives free ports to whoever connects somewhere, so a port that is left for a moment may be gone. These are
bound and do not listen: who connects is refused, as where nobody is, and the next start listens beside them, since
both say SO_REUSEADDR. State owned: those sockets. Called by `embedded.base`, which keeps them from `restart` or `kill`
to the next `start` or `stop`; they go with the last reference, too, as the directory does. A forked child has them to
its end.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable
from contextlib import suppress


class KeptPorts:
    """See the module."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._pid = os.getpid()
        self._bound: list[int] = []  # descriptors: nothing warns of them when they go with this

    def keep(self, ports: Iterable[int]) -> None:
        """Keep these, as far as they can be had; 0 is none."""
        for port in filter(None, ports):
            with (
                suppress(OSError),
                socket.socket() as bound,
            ):  # no descriptor: it may be had again all the same
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                bound.bind((self._host, port))
                self._bound.append(bound.detach())

    def release(self) -> None:
        """Leave them to whoever wants them; harmless twice."""
        while self._bound and self._pid == os.getpid():
            os.close(self._bound.pop())

    def __del__(self) -> None:
        self.release()
