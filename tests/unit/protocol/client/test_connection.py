"""The client's connection against the server's: both without a socket, octets carried by the test.

Covers: protocol/client/events.py
"""

from __future__ import annotations

import pytest

from burrowmq.protocol import methods
from burrowmq.protocol.client.connection import ClientConnection, ClientOptions, plain
from burrowmq.protocol.client.events import (
    Blocked,
    ChannelEnded,
    ClientEvent,
    ConnectionEnded,
    DeliveryRun,
    Opened,
    ReplyReceived,
    Unblocked,
)
from burrowmq.protocol.codec import PublishRun, encode_deliver, join_address
from burrowmq.protocol.connection.server import ProtocolOptions, ServerConnection
from burrowmq.protocol.errors import NotAllowed, NotFound
from burrowmq.protocol.events import (
    ChannelOpened,
    ConnectionCloseReceived,
    Event,
    LoginAttempt,
    OpenRequested,
)
from burrowmq.protocol.properties import Properties, build

MESSAGE = build(join_address(b"", b"q"), Properties(), b"hello")


class Pair:
    """A client and a server that accepts what it asks."""

    def __init__(self, client: ClientOptions | None = None, **server: object) -> None:
        self.client = ClientConnection(
            client or ClientOptions(vhost="v", mechanisms=(plain("u", "p"),))
        )
        self.server = ServerConnection(ProtocolOptions(**server))  # type: ignore[arg-type] - by name
        self.heard: list[Event] = []
        self.events: list[ClientEvent] = []

    def settle(self) -> list[ClientEvent]:
        """Carry octets until neither says anything; what the client has heard."""
        self.events = []
        while self.client.out or self.server.out:
            for event in self.server.receive_data(self.client.take_out()):
                self.heard.append(event)
                if isinstance(event, LoginAttempt):
                    self.server.accept_login()
                    self.server.receive_data(b"")
                elif isinstance(event, OpenRequested):
                    self.server.accept_open()
                    self.server.receive_data(b"")
                elif isinstance(event, ChannelOpened):
                    self.server.accept_channel(event.channel)
                elif isinstance(event, ConnectionCloseReceived):
                    self.server.connection_close_ok()
            self.events += self.client.receive_data(self.server.take_out())
        return self.events


def running() -> Pair:
    pair = Pair()
    pair.settle()
    pair.client.send(1, methods.Channel.Open())
    pair.settle()
    return pair


def test_logs_in_enters_and_agrees_on_the_smaller_limits() -> None:
    pair = Pair(frame_max=8192, channel_max=7, heartbeat_s=60)
    assert pair.settle() == [Opened()]
    attempt, opened = pair.heard
    assert isinstance(attempt, LoginAttempt)
    assert (attempt.mechanism, attempt.response) == ("PLAIN", b"\x00u\x00p")
    assert opened == OpenRequested("v")
    client = pair.client
    assert (client.frame_max, client.channel_max, client.heartbeat_s) == (8192, 7, 10)
    assert pair.server.has_capability("connection.blocked")


def test_no_limit_of_the_broker_s_leaves_ours() -> None:
    pair = Pair(frame_max=0, channel_max=0, heartbeat_s=0)
    pair.settle()
    assert (pair.client.frame_max, pair.client.heartbeat_s) == (131072, 10)


def test_without_a_mechanism_in_common_it_ends() -> None:
    pair = Pair(ClientOptions(mechanisms=(("EXTERNAL", b""),)))
    (ended,) = pair.settle()
    assert ended == ConnectionEnded(0, "no mechanism in common with the peer's PLAIN AMQPLAIN")


def test_publishes_arrive_and_deliveries_come_back() -> None:
    pair = running()
    assert pair.client.publish(1, MESSAGE.address, [MESSAGE, MESSAGE]) > 0
    pair.settle()
    run = pair.heard[-1]
    assert isinstance(run, PublishRun)
    assert [each.raw for each in run.messages] == [MESSAGE.raw] * 2
    pair.server.out.append(encode_deliver(1, b"c", 1, False, run.messages, 0))
    (delivered,) = pair.settle()
    assert isinstance(delivered, DeliveryRun)
    pair.client.ack(1, 2, multiple=True)
    pair.client.nack(1, 3, multiple=False, requeue=True)
    pair.settle()
    assert len(pair.heard) == 6


def test_replies_blocked_and_unblocked_are_events() -> None:
    pair = running()
    pair.server.send(1, methods.Queue.DeclareOk("q", 3, 0))
    pair.server.send(0, methods.Connection.Blocked("low on memory"))
    pair.server.send(0, methods.Connection.Unblocked())
    reply, blocked, unblocked = pair.settle()
    assert isinstance(reply, ReplyReceived)
    assert isinstance(reply.method, methods.Queue.DeclareOk)
    assert (blocked, unblocked) == (Blocked("low on memory"), Unblocked())


def test_a_channel_that_the_broker_closes_is_answered() -> None:
    pair = running()
    pair.server.close_channel(1, NotFound("no queue 'q' in vhost '/'"), 50, 10)
    (ended,) = pair.settle()
    assert ended == ChannelEnded(1, 404, "NOT_FOUND - no queue 'q' in vhost '/'")
    assert 1 not in pair.server.channels


def test_a_close_of_the_broker_s_is_answered_and_the_last_event() -> None:
    pair = running()
    pair.server.close_with(NotAllowed("no"))
    assert pair.settle() == [ConnectionEnded(530, "NOT_ALLOWED - no")]
    assert pair.server.state == "closed"
    pair.client.send(1, methods.Channel.Close(0, "", 0, 0))
    assert pair.client.publish(1, MESSAGE.address, [MESSAGE]) == 0
    assert pair.client.out == []


def test_our_close_waits_for_its_answer_and_drops_what_comes_before_it() -> None:
    pair = running()
    pair.server.out.append(encode_deliver(1, b"c", 1, False, [MESSAGE], 0))
    pair.client.close()
    assert pair.settle() == [ConnectionEnded(0, "closed")]
    assert pair.client.state == "closed"


NO_AMQP = "what answers there does not speak AMQP 0-9-1"


@pytest.mark.parametrize(
    ("octets", "text"),
    [
        (b"AMQP\x00\x01\x00\x00", "the peer speaks another version of AMQP (1.0.0)"),
        (b"HTTP/1.1 400 Bad Request", NO_AMQP),
        (b"220 mail.example ESMTP\r\n", NO_AMQP),
        (b"\x01\x00\x00\x00\x00\x00\x01xyz", NO_AMQP),
        (b"\x02\x00\x01\x00\x00\x00\x01x\xce", NO_AMQP),
        (
            b"\x01\x00\x00\x00\x00\x00\x04\x00\x0a\x00\x63\xce",
            "COMMAND_INVALID - unimplemented method",
        ),
    ],
)
def test_who_speaks_no_amqp_is_left(octets: bytes, text: str) -> None:
    client = ClientConnection(ClientOptions())
    (ended,) = client.receive_data(octets)
    assert isinstance(ended, ConnectionEnded)
    assert ended.reply_text == text
    assert client.receive_data(octets) == []
