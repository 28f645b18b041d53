"""Brokers that run, for the two moments at which somebody else has to think of them: a fork, and the interpreter's end.

In a forked child each lets go of what came along of sockets and locks, so that the parent alone decides when the port
and the directory are free again. Its objects are kept there until the child ends: most own descriptors by number, and
would close at some later time what has the same number by then. At the interpreter's end those that were left running
are stopped, and directories go of which no broker runs any more. State owned: the brokers that run, in the order of
their starts.
"""

from __future__ import annotations

import atexit
import contextlib
import os
from typing import Protocol

from burrowmq.embedded.directory import OWN


class Running(Protocol):
    """What is asked of a broker."""

    def end(self) -> None:
        """End at the interpreter's end."""

    def forget(self) -> None:
        """Let go of what came along into a forked child."""


class LeftOver:
    """The brokers of this process."""

    def __init__(self) -> None:
        self._running: dict[Running, None] = {}
        self._parents: list[Running] = []

    def add(self, broker: Running) -> None:
        """One runs."""
        self._running[broker] = None

    def discard(self, broker: Running) -> None:
        """One does not run any more."""
        self._running.pop(broker, None)

    def forget_all(self) -> None:
        """This is a child of a fork."""
        self._parents += self._running
        self._running = {}
        for broker in self._parents:
            with contextlib.suppress(OSError):
                broker.forget()

    def end_all(self) -> None:
        """The interpreter ends. What goes wrong with one does not keep the others from ending."""
        for broker in list(self._running):
            with contextlib.suppress(Exception):
                broker.end()
        for directory in list(OWN):
            directory.remove()


LEFT = LeftOver()
os.register_at_fork(after_in_child=LEFT.forget_all)
atexit.register(LEFT.end_all)
