"""Octets straight to a socket and from it, past the loop and its buffers.

Free functions on a descriptor that does not block. What goes wrong here goes wrong again when the loop reads or writes
itself, and that tells whoever has to know.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence

from burrowmq.protocol.connection.server import ServerConnection

IOV_MAX = 1024
"""Parts that the system takes at a time."""

WORTH_BYTES = 128 * 1024
"""Room below which the loop may as well read itself: it makes an object of what it has read, which is one copy more."""


def write(descriptor: int, parts: Sequence[bytes | memoryview]) -> Sequence[bytes | memoryview]:
    """Write what the socket takes at once; what is left of it."""
    with contextlib.suppress(OSError):
        return _behind(parts, os.writev(descriptor, parts[:IOV_MAX]))
    return parts


def _behind(parts: Sequence[bytes | memoryview], written: int) -> list[bytes | memoryview]:
    """What is left of these when so many octets of them have gone."""
    for index, part in enumerate(parts):
        if written < len(part):
            return [memoryview(part)[written:], *parts[index + 1 :]]
        written -= len(part)
    return []


def read_in_place(descriptor: int, connection: ServerConnection, most: int) -> int:
    """Read what has come of a large content to where it belongs, at most so much; how many octets that were."""
    room = connection.room(most)
    if room is None:
        return 0
    with room, contextlib.suppress(OSError):
        if len(room) >= WORTH_BYTES:
            return os.readv(descriptor, (room,))
    return 0
