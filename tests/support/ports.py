"""Ports for what tests start.

State: the block of ports that this process has, and the mark that keeps other processes of tests off it. Callers:
whatever starts a listener. Invariant: test runs beside each other (`make test` has four, `make quick` two) never give
out the same port, and none is of those that the system gives to whoever connects.
"""

from __future__ import annotations

import errno
import socket
from collections import deque

PORTS_IN_BLOCK = 200
FIRST, END = 12_000, 32_700

_ports: deque[int] = deque()
_marks: list[socket.socket] = []


def free_port() -> int:
    """A TCP port that was free on loopback a moment ago, and that was not given out for the longest time."""
    for _ in range(len(_ports)):
        _ports.rotate(-1)
        if is_free(_ports[-1]):
            return _ports[-1]
    _ports.extend(_next_block())
    return free_port()


def free_ports(count: int) -> list[int]:
    """Several, all different."""
    return [free_port() for _ in range(count)]


def is_free(port: int) -> bool:
    """Whether nobody has it on loopback."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _next_block() -> range:
    """Ports that no other process of these tests has; its name is held until this process ends."""
    for first in range(FIRST, END - PORTS_IN_BLOCK, PORTS_IN_BLOCK):
        mark = socket.socket(socket.AF_UNIX)
        try:
            mark.bind(f"\0burrowmq-tests-ports-{first}")  # Linux: a name without a file
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                mark.close()
                continue
        _marks.append(mark)
        return range(first, first + PORTS_IN_BLOCK)
    raise RuntimeError(f"no free port between {FIRST} and {END}")
