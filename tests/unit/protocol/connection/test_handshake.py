from __future__ import annotations

import pytest
from pamqp import commands

from burrowmq.protocol import methods
from burrowmq.protocol.connection.handshake import Handshake
from burrowmq.protocol.connection.server import ProtocolOptions, ServerConnection
from burrowmq.protocol.errors import AmqpError, ChannelError, UnexpectedFrame
from burrowmq.protocol.events import Disconnect, LoginAttempt, OpenRequested
from tests.support.amqp_frames import PROTOCOL_HEADER, method, raw_frame, sent, start_ok, tune_ok

OPEN = method(0, commands.Connection.Open("/v"))


def fresh(**options: object) -> ServerConnection:
    return ServerConnection(ProtocolOptions(**options))


def started(**options: object) -> ServerConnection:
    connection = fresh(**options)
    connection.receive_data(PROTOCOL_HEADER)
    connection.take_out()
    return connection


def tuned(**options: object) -> ServerConnection:
    connection = started(**options)
    connection.receive_data(start_ok())
    connection.accept_login()
    connection.take_out()
    return connection


def test_the_whole_start() -> None:
    connection = fresh(server_properties={"product": "RabbitMQ", "capabilities": {"x": True}})
    assert connection.state == "starting"
    assert connection.receive_data(PROTOCOL_HEADER) == []
    (start,) = sent(connection)
    assert dict(start) == {
        "version_major": 0,
        "version_minor": 9,
        "server_properties": {"product": "RabbitMQ", "capabilities": {"x": True}},
        "mechanisms": "PLAIN AMQPLAIN",
        "locales": "en_US",
    }
    (login,) = connection.receive_data(start_ok())
    assert isinstance(login, LoginAttempt)
    assert (login.mechanism, login.response, login.locale) == ("PLAIN", b"\0guest\0guest", "en_US")
    assert connection.client_properties["product"] == "test"
    assert connection.has_capability("authentication_failure_close")
    assert not connection.has_capability("connection.blocked")
    connection.accept_login()
    assert connection.state == "tuning"
    (tune,) = sent(connection)
    assert dict(tune) == {"channel_max": 2047, "frame_max": 131072, "heartbeat": 60}
    assert connection.receive_data(tune_ok(100, 8192, 10)) == []
    assert connection.state == "opening"
    negotiated = (connection.channel_max, connection.frame_max, connection.heartbeat_s)
    assert negotiated == (100, 8192, 10)
    assert connection.receive_data(OPEN) == [OpenRequested("/v")]
    connection.accept_open()
    assert connection.state == "running"
    (open_ok,) = sent(connection)
    assert dict(open_ok) == {"known_hosts": ""}


def test_a_client_that_does_not_wait() -> None:
    connection = fresh()
    declare = method(1, commands.Queue.Declare(queue="q"))
    everything = PROTOCOL_HEADER + start_ok() + tune_ok() + OPEN
    everything += method(1, commands.Channel.Open()) + declare
    assert [type(event).__name__ for event in connection.receive_data(everything)] == [
        "LoginAttempt"
    ]
    connection.accept_login()
    assert connection.receive_data(b"") == [OpenRequested("/v")]
    assert connection.receive_data(b"") == []
    connection.accept_open()
    events = connection.receive_data(b"")
    assert [type(event).__name__ for event in events] == ["ChannelOpened", "MethodReceived"]
    assert [value.name for value in sent(connection)] == [
        "Connection.Start",
        "Connection.Tune",
        "Connection.OpenOk",
    ]


def test_the_start_octet_by_octet() -> None:
    connection = fresh()
    seen = []
    for octet in PROTOCOL_HEADER + start_ok():
        seen += connection.receive_data(bytes((octet,)))
    connection.accept_login()
    for octet in tune_ok() + OPEN:
        seen += connection.receive_data(bytes((octet,)))
    assert [type(event).__name__ for event in seen] == ["LoginAttempt", "OpenRequested"]


def test_the_older_header_is_taken() -> None:
    connection = fresh()
    assert connection.receive_data(b"AMQP\x01\x01\x00\x09") == []
    assert sent(connection)[0].name == "Connection.Start"


@pytest.mark.parametrize(
    "header",
    [
        b"AMQP\x00\x01\x00\x00",
        b"AMQP\x03\x01\x00\x00",
        b"GET / HT",
        b"\x16\x03\x01\x02\x00\x01\x00\x01",
    ],
)
def test_other_protocols_are_told_ours(header: bytes) -> None:
    connection = fresh()
    (event,) = connection.receive_data(header + b"more")
    assert isinstance(event, Disconnect)
    assert event.delay_s == 0.0
    assert connection.take_out() == PROTOCOL_HEADER
    assert connection.receive_data(PROTOCOL_HEADER) == []


def test_a_refused_login_is_told_to_who_understands() -> None:
    connection = started()
    connection.receive_data(start_ok())
    event = connection.refuse_login()
    assert event.delay_s == 3.0
    (close,) = sent(connection)
    assert dict(close) == {
        "reply_code": 403,
        "reply_text": "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. "
        "For details see the broker logfile.",
        "class_id": 0,
        "method_id": 0,
    }
    (dropped,) = connection.receive_data(method(0, commands.Connection.CloseOk()))
    assert isinstance(dropped, Disconnect)
    assert dropped.delay_s == 0.0


def test_a_refused_login_is_silent_to_others() -> None:
    connection = started()
    connection.receive_data(start_ok(closes=False))
    assert connection.refuse_login().delay_s == 3.0
    assert connection.take_out() == b""
    assert connection.state == "closed"
    assert connection.receive_data(tune_ok()) == []


def silent_drop(connection: ServerConnection, octets: bytes) -> str:
    (event,) = connection.receive_data(octets)
    assert isinstance(event, Disconnect)
    assert event.delay_s == 3.0
    assert connection.take_out() == b""
    assert connection.receive_data(start_ok() + tune_ok() + OPEN) == []
    return event.reason


def test_unoffered_mechanism() -> None:
    assert "EXTERNAL" in silent_drop(started(), start_ok("EXTERNAL"))


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ((2047, 100, 0), "frame_max = 100 is lower than the minimum allowed value (4096)"),
        ((2047, 0, 0), "frame_max = 0 is higher than the maximum allowed value (131072)"),
        ((2047, 131073, 0), "frame_max = 131073 is higher than the maximum allowed value (131072)"),
        (
            (0, 131072, 0),
            "channel_max = 0 (no limit) is higher than the maximum allowed value (2047)",
        ),
        ((2048, 131072, 0), "channel_max = 2048 is higher than the maximum allowed value (2047)"),
    ],
)
def test_limits_that_cannot_be_negotiated(values: tuple[int, int, int], reason: str) -> None:
    told = silent_drop(tuned(), tune_ok(*values))
    assert told == f"failed to negotiate connection parameters: negotiated {reason}"


@pytest.mark.parametrize("values", [(1, 4096, 0), (2047, 131072, 65535)])
def test_limits_that_can_be_negotiated(values: tuple[int, int, int]) -> None:
    connection = tuned()
    assert connection.receive_data(tune_ok(*values)) == []
    assert (connection.channel_max, connection.frame_max, connection.heartbeat_s) == values


def test_no_limit_needs_a_server_without_limits() -> None:
    connection = tuned(frame_max=0, channel_max=0)
    assert connection.receive_data(tune_ok(0, 0, 0)) == []
    assert connection.state == "opening"


@pytest.mark.parametrize(
    "octets",
    [
        tune_ok(),
        OPEN,
        method(0, commands.Connection.Close(200, "bye", 0, 0)),
        method(1, commands.Channel.Open()),
        raw_frame(1, 0, b"\x00\x0a\x00\x0b\x00"),
        raw_frame(1, 0, b"\x00\x0a\x00\xff"),
        raw_frame(2, 0, b""),
        raw_frame(9, 0, b""),
        raw_frame(1, 0, b"\x00\x0a\x00\x0b", end=0),
        b"\x01\x00\x00\x00\x00\x10\x01",
        b"\x01\x00\x00\xff\xff\xff\xff",
        b"\x08\x00\x01\x00\x00\x00\x00\xce",
        raw_frame(1, 5, b"\x00\x3c\x00\x50" + bytes(9)),
    ],
)
def test_errors_before_the_login_are_silent(octets: bytes) -> None:
    silent_drop(started(), octets)


def test_start_ok_is_limited_before_the_login() -> None:
    padding = "x" * 4096
    octets = method(0, commands.Connection.StartOk({"padding": padding}))
    assert "frame_too_large" in silent_drop(started(), octets)


def test_methods_out_of_order_are_told_once_opening() -> None:
    connection = tuned()
    connection.receive_data(tune_ok())
    (error,) = connection.receive_data(tune_ok())
    assert isinstance(error, ChannelError)
    assert error.text == "unexpected method in connection state opening"
    assert (error.class_id, error.method_id) == (10, 31)
    connection.close_with(error)
    assert connection.state == "closing"
    (close,) = sent(connection)
    assert close.reply_code == 504


def test_a_channel_before_the_connection_is_open() -> None:
    connection = tuned()
    connection.receive_data(tune_ok())
    (error,) = connection.receive_data(method(1, commands.Channel.Open()))
    assert isinstance(error, UnexpectedFrame)
    assert error.text == "type 1, all octets = <<0,20,0,10,1,48>>"


def test_heartbeats_are_taken_at_any_time() -> None:
    connection = tuned()
    beat = b"\x08\x00\x00\x00\x00\x00\x00\xce"
    assert connection.receive_data(beat + tune_ok() + beat) == []
    assert connection.state == "opening"


def test_a_close_before_the_connection_is_open() -> None:
    connection = tuned()
    connection.receive_data(tune_ok())
    (error,) = connection.receive_data(method(0, commands.Connection.Close(200, "bye", 0, 0)))
    assert isinstance(error, ChannelError)
    assert error.text == "unexpected method in connection state opening"
    assert (error.class_id, error.method_id) == (10, 50)


def test_what_is_sent_while_an_answer_is_owed_is_limited() -> None:
    connection = started()
    connection.receive_data(start_ok())
    events = []
    for _ in range(20):
        events += connection.receive_data(bytes(65536))
    assert [type(event).__name__ for event in events] == ["Disconnect"]


def test_it_raises_for_its_own_states_only() -> None:
    handshake = Handshake(ProtocolOptions(), [])
    with pytest.raises(AmqpError):
        handshake.take_method(methods.Connection.OpenOk())
