"""Objects over a socket between two processes of ours: each is pickled, with its length before it.

State: the socket, and what was read of the next object, so that a read that is interrupted (Ctrl-C) goes on where it
was. Any thread may send; one at a time receives. It is a socket, not a descriptor, so that it gives way to other
greenlets where gevent has replaced sockets. Used by `in_process` alone, at both ends.
"""

from __future__ import annotations

import contextlib
import pickle
import socket
import struct
import threading

_LENGTH = struct.Struct("!Q")
_READ_BYTES = 1 << 16


class Pipe:
    """One end."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._sending = threading.Lock()
        self._read = bytearray()
        self.patience_s: float | None = None
        """How long each wait for the other end may take; None for ever."""

    def wait_no_longer(self, patience_s: float) -> None:
        """From now on; who waits already goes on."""
        self.patience_s = patience_s
        self._end.settimeout(patience_s)

    def send(self, value: object) -> None:
        """Send an object. Raises OSError when the other end is gone."""
        data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        with self._sending:
            self._end.sendall(_LENGTH.pack(len(data)) + data)

    def receive(self) -> object:
        """Wait for an object. Raises EOFError or OSError when the other end is gone."""
        self._fill(_LENGTH.size)
        (length,) = _LENGTH.unpack_from(self._read)
        self._fill(_LENGTH.size + length)
        data = bytes(self._read[_LENGTH.size : _LENGTH.size + length])
        del self._read[: _LENGTH.size + length]
        return pickle.loads(data)  # noqa: S301 - who sends it is the process that we started, or that started us

    def _fill(self, size: int) -> None:
        while len(self._read) < size:
            data = self._end.recv(max(_READ_BYTES, size - len(self._read)))
            if not data:
                raise EOFError
            self._read += data

    def close(self) -> None:
        """End it, for both sides and for whoever waits in `receive`."""
        with contextlib.suppress(OSError):  # the other side was first
            self._end.shutdown(socket.SHUT_RDWR)
        self._end.close()

    def forget(self) -> None:
        """In a forked child: close our descriptor of it, and leave it to the parent."""
        self._end.close()
