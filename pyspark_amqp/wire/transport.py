"""A socket, plain or TLS, that reads while it writes.

State: the socket, the octets received but not yet taken (`data` from `pos` on) and those that came while
something was sent (joined to `data` by the next `fill`). Owned and called by one Connection; the bulk
consumer parses `data` in place and moves `pos`.

Invariants: the socket never blocks; every wait has an end. `send` reads all there is between any two
pieces, because a broker that returns messages stops reading (RabbitMQ) or hangs up (BurrowMQ, at 16 MB
unread) when nobody reads what it sends. `data` is bytes, so that slices of it are the messages' own.
"""

from __future__ import annotations

import select
import socket
import ssl
import time
from typing import Final

from pyspark_amqp.wire.address import Address
from pyspark_amqp.wire.errors import ConnectFailed, ConnectionLost, StepTimeout

_READ_SIZE: Final = 1 << 18
_PIECE_SIZE: Final = 1 << 18
_WAIT_MAX_S: Final = 86_400.0
_KEEPALIVE: Final = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 6))


class Transport:
    """One open TCP connection, with or without TLS."""

    __slots__ = ("_arrived", "_place", "_socket", "data", "heard_at_s", "pos", "spoke_at_s")

    def __init__(self, address: Address) -> None:
        """Connect; raises ConnectFailed."""
        self._place = address.place
        self._socket = _connect(address)
        self._arrived: list[bytes] = []
        self.data = b""
        self.pos = 0
        self.heard_at_s = self.spoke_at_s = time.monotonic()

    def send(self, octets: bytes, timeout_s: float, step: str) -> None:
        """Hand everything to the operating system.

        `timeout_s` counts from the last octet that the peer took. Raises: ConnectionLost, StepTimeout.
        """
        left = memoryview(octets)
        deadline = time.monotonic() + timeout_s
        while left:
            try:
                sent = self._socket.send(left[:_PIECE_SIZE])
            except (BlockingIOError, ssl.SSLWantWriteError):
                self._await_writable(deadline, step)
                continue
            except ssl.SSLWantReadError:
                self._await_readable(deadline)
                continue
            except OSError as error:
                raise ConnectionLost(self._place, step, str(error)) from error
            left = left[sent:]
            self.spoke_at_s = time.monotonic()
            deadline = self.spoke_at_s + timeout_s
            while left and self._receive(step):
                continue

    def fill(self, deadline: float, step: str) -> bool:
        """Receive what there is into `data`, waiting until `deadline`; False if nothing came.

        Raises: ConnectionLost.
        """
        while not self._arrived and not self._receive(step):
            if not self._await_readable(deadline):
                return False
        if self.pos < len(self.data):
            self._arrived.insert(0, self.data[self.pos :])
        self.data, self.pos = b"".join(self._arrived), 0
        self._arrived.clear()
        return True

    def close(self) -> None:
        """Drop the connection."""
        self._socket.close()

    def _receive(self, step: str) -> bool:
        try:
            octets = self._socket.recv(_READ_SIZE)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return False
        except OSError as error:
            raise ConnectionLost(self._place, step, str(error)) from error
        if not octets:
            raise ConnectionLost(self._place, step, "the broker hung up")
        self._arrived.append(octets)
        self.heard_at_s = time.monotonic()
        return True

    def _await_readable(self, deadline: float) -> bool:
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(_wait_ms(deadline)))

    def _await_writable(self, deadline: float, step: str) -> None:
        poll = select.poll()
        poll.register(self._socket, select.POLLIN | select.POLLOUT)
        found = poll.poll(_wait_ms(deadline))
        if not found:
            if time.monotonic() < deadline:
                return
            raise StepTimeout(
                self._place, step, "the broker takes no more octets (it is blocking?)"
            )
        if found[0][1] & ~select.POLLOUT:
            self._receive(step)


def _wait_ms(deadline: float) -> float:
    """Return how long to wait at once: poll takes no more than 24 days, and who calls asks again."""
    return min(max(0.0, deadline - time.monotonic()), _WAIT_MAX_S) * 1000


def _connect(address: Address) -> socket.socket:
    """Return a connected socket that does not block."""
    place, step = address.place, "connecting"
    try:
        plain = socket.create_connection((address.host, address.port), address.connect_timeout_s)
    except (OSError, UnicodeError) as error:
        raise ConnectFailed(place, step, str(error)) from error
    try:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEPALIVE:
            if hasattr(socket, name):
                plain.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        if address.tls is not None:
            step = "TLS handshake"
            name = address.tls.server_name or address.host
            plain = address.tls.context(place).wrap_socket(plain, server_hostname=name)
        plain.setblocking(False)
    except OSError as error:
        plain.close()
        raise ConnectFailed(place, step, str(error)) from error
    except BaseException:
        plain.close()
        raise
    return plain
