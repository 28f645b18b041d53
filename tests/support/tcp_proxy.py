"""A TCP proxy on loopback whose connections a test breaks, or makes bad.

State: a thread for each direction of each connection; what the network does, in each direction. Callers: tests of
links, `tests.crash.bad_network`. Invariant: `cut` ends every connection with a reset, as a cable or a firewall may; new
ones are taken as before. The target may change its process, not its port.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from typing import NamedTuple

from tests.support.ports import free_port

_RESET = struct.pack("ii", 1, 0)


class Network(NamedTuple):
    """What it does to octets of one direction."""

    delay_s: float = 0.0
    rate: int = 0
    """Octets a second; 0: as many as there are."""
    piece: int = 65536
    """Octets of a segment at most."""
    is_dead: bool = False
    """Nothing arrives any more, and nobody is told."""


class TcpProxy:
    """Listens on a port of its own and passes octets on."""

    def __init__(self, target_port: int) -> None:
        self.port = free_port()
        self.up = self.down = Network()
        self._target_port = target_port
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> int:
        """Break every connection; how many there were."""
        with self._lock:
            sockets, self._sockets = self._sockets, set()
        for each in sockets:
            with contextlib.suppress(OSError):
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                each.shutdown(socket.SHUT_RD)  # wakes the thread that reads it
            each.close()
        return len(sockets) // 2

    def close(self) -> None:
        """Take no more connections, and break those that there are."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self._target_port), 5)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            for each in (client, server):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._sockets |= {client, server}
            for ends in ((client, server), (server, client)):
                is_up = ends[0] is client
                threading.Thread(target=self._pass_on, args=(*ends, is_up), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, is_up: bool) -> None:
        with contextlib.suppress(OSError, ValueError):
            while data := source.recv(65536):
                self._deliver(data, target, is_up)
        if (self.up if is_up else self.down).is_dead:
            return  # the end does not arrive either; `cut` closes both
        with self._lock:
            self._sockets -= {source, target}
        for each in (source, target):
            # A close alone would wait for the thread that reads it.
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _deliver(self, data: bytes, target: socket.socket, is_up: bool) -> None:
        network = self.up if is_up else self.down
        time.sleep(network.delay_s)
        piece = max(1, min(network.piece, network.rate // 10 or network.piece))
        for start in range(0, len(data), piece):
            if (self.up if is_up else self.down).is_dead:
                return
            part = data[start : start + piece]
            target.sendall(part)
            if network.rate:
                time.sleep(len(part) / network.rate)
