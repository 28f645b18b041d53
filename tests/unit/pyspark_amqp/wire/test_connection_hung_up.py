"""A broker that says why it closes and hangs up at once is quoted; waits of any length are waits."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from pyspark_amqp.wire import ChannelClosed, ConnectionClosed, WireError, connect
from pyspark_amqp.wire import framing as f
from tests.support.amqp_peer import close_octets, greet, peer

FORCED = close_octets(f.CONNECTION_CLOSE, 320, "CONNECTION_FORCED - by an operator", 0)
FAILED = close_octets(f.CHANNEL_CLOSE, 406, "PRECONDITION_FAILED - timeout", 1)
TOO_LONG_S = 1e15


@pytest.mark.parametrize("verb", ["send", "read"])
@pytest.mark.parametrize(
    ("octets", "error", "text"),
    [(FORCED, ConnectionClosed, "320 CONNECTION"), (FAILED, ChannelClosed, "406 PRECONDITION")],
)
def test_a_close_is_quoted_though_nobody_hears_the_answer(
    octets: bytes, error: type[WireError], text: str, verb: str
) -> None:
    has_gone = threading.Event()

    def serve(accepted: socket.socket) -> None:
        greet(accepted)
        accepted.sendall(octets)
        accepted.shutdown(socket.SHUT_RDWR)
        accepted.close()
        has_gone.set()

    with peer(serve) as address:
        connection = connect(address)
        assert has_gone.wait(10)
        connection.transport.send(b"\x00", 5, "what the peer answers with a reset")
        with pytest.raises(error, match=text):
            while verb == "send":
                connection.send(f.HEARTBEAT_FRAME, "sending")
            connection.next_frame(time.monotonic() + 5, "reading")
        assert not connection.is_open


def test_a_wait_may_be_longer_than_poll_takes() -> None:
    def serve(accepted: socket.socket) -> None:
        greet(accepted)
        accepted.sendall(FORCED)

    with peer(serve) as address, connect(address) as connection:
        with pytest.raises(ConnectionClosed):
            connection.next_frame(time.monotonic() + TOO_LONG_S, "reading")
