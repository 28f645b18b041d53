"""A peer that speaks the broker's side of a connection as far as a test says. Callers: tests of the bulk client.

State: one listener and one thread, until the context ends.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator

from pyspark_amqp.wire import Address
from pyspark_amqp.wire import framing as f

START = struct.pack(">BB", 0, 9) + bytes(4) + f.longstr(b"PLAIN") + f.longstr(b"en_US")
TUNE = struct.pack(">HIH", 2047, 131072, 60)


@contextlib.contextmanager
def peer(serve: Callable[[socket.socket], None]) -> Iterator[Address]:
    """Yield the address of a peer that treats one connection as told."""
    listener = socket.create_server(("127.0.0.1", 0))

    def run() -> None:
        with contextlib.suppress(OSError):
            accepted, _ = listener.accept()
            with accepted:
                serve(accepted)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield Address(host="127.0.0.1", port=listener.getsockname()[1], connect_timeout_s=5)
    finally:
        listener.close()
        thread.join(10)


def greet(accepted: socket.socket) -> None:
    """Play a broker's side of the handshake."""
    accepted.recv(8)
    for waited_for, reply in (
        (None, f.method(f.CONNECTION_START, START, 0)),
        (f.CONNECTION_START_OK, f.method(f.CONNECTION_TUNE, TUNE, 0)),
        (f.CONNECTION_OPEN, f.method(f.CONNECTION_OPEN_OK, b"\x00", 0)),
        (f.CHANNEL_OPEN, f.method(f.CHANNEL_OPEN_OK, bytes(4))),
    ):
        octets = b""
        while waited_for and f.METHOD_IDS.pack(*waited_for) not in octets:
            octets += accepted.recv(65536)
        accepted.sendall(reply)


def close_octets(ids: f.MethodId, code: int, text: str, channel: int) -> bytes:
    return f.method(ids, code.to_bytes(2, "big") + f.shortstr(text) + bytes(4), channel)
