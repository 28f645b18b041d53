from __future__ import annotations

import pytest
from pamqp import commands

from burrowmq.protocol import errors, methods
from burrowmq.protocol.codec import PublishRun, encode_ack
from burrowmq.protocol.connection.server import ProtocolOptions, ServerConnection
from burrowmq.protocol.events import ConnectionCloseReceived, Disconnect, LoginAttempt
from tests.support.amqp_frames import (
    PROTOCOL_HEADER,
    method,
    publish,
    raw_frame,
    running,
    sent,
    start_ok,
    tune_ok,
)

HEARTBEAT = b"\x08\x00\x00\x00\x00\x00\x00\xce"


def failure(octets: bytes, *channels: int, **options: object) -> errors.AmqpError:
    connection = running(*channels, **options)
    *_, error = connection.receive_data(octets)
    assert isinstance(error, errors.AmqpError)
    return error


@pytest.mark.parametrize(
    ("octets", "code", "text"),
    [
        (
            b"\x01\x00\x01\x00\x02\x00\x01",
            501,
            "type 1, all octets = <<>>: {frame_too_large,131073,131064}",
        ),
        (
            b"\x03\x00\x00\xff\xff\xff\xff",
            501,
            "type 3, all octets = <<>>: {frame_too_large,4294967295,131064}",
        ),
        (
            raw_frame(1, 1, b"\x00\x14", end=0),
            501,
            "type 1, all octets = <<0,20>>: {invalid_frame_end_marker,0}",
        ),
        (
            raw_frame(3, 1, b"a" * 20, end=65),
            501,
            'type 3, first 16 octets = <<"aaaaaaaaaaaaaaaa">>: {invalid_frame_end_marker,65}',
        ),
        (raw_frame(7, 0, b""), 501, "type 7, all octets = <<>>: unknown_frame"),
        (raw_frame(7, 3, b"ab"), 501, 'type 7, all octets = <<"ab">>: unknown_frame'),
        (raw_frame(8, 0, b"x"), 501, 'type 8, all octets = <<"x">>: unknown_frame'),
        (raw_frame(8, 1, b""), 505, "type 8, all octets = <<>>"),
        (raw_frame(8, 1, b"x"), 501, 'type 8, all octets = <<"x">>: unknown_frame'),
        (raw_frame(2, 0, b""), 501, "type 2, all octets = <<>>: unknown_frame"),
        (raw_frame(2, 0, bytes(12)), 505, "type 2, all octets = <<0,0,0,0,0,0,0,0,0,0,0,0>>"),
        (raw_frame(3, 0, b"\x01"), 505, "type 3, all octets = <<1>>"),
        (raw_frame(1, 0, b"\x00\x0a\x00\x32\x00"), 541, ""),
        (raw_frame(1, 0, b""), 501, "type 1, all octets = <<>>: unknown_frame"),
        (method(0, commands.Queue.Declare()), 504, "unexpected method in connection state running"),
        (
            method(0, commands.Channel.Close(200, "bye", 0, 0)),
            504,
            "unexpected method in connection state running",
        ),
        (publish(0), 504, "unexpected method in connection state running"),
        (encode_ack(0, 1, False), 504, "unexpected method in connection state running"),
        (
            method(0, commands.Connection.Open()),
            504,
            "unexpected method in connection state running",
        ),
        (
            method(0, commands.Connection.CloseOk()),
            504,
            "unexpected method in connection state running",
        ),
    ],
)
def test_errors_of_frames(octets: bytes, code: int, text: str) -> None:
    error = failure(octets, 1)
    assert (error.reply_code, error.text) == (code, text)


def test_an_undecodable_method_on_channel_0_has_a_bare_text() -> None:
    connection = running()
    (error,) = connection.receive_data(raw_frame(1, 0, b"\x00\x0a\x00\x32\x00"))
    connection.close_with(error)
    (close,) = sent(connection)
    assert (close.reply_code, close.reply_text) == (541, "INTERNAL_ERROR")
    assert (close.class_id, close.method_id) == (0, 0)


@pytest.mark.parametrize(
    ("method_id", "arguments"),
    [
        (50, b"\x00\xc8\x01\xff\x00\x00\x00\x00"),
        (70, b"\x00\x00\x00\x01x\x01\xff"),
    ],
)
def test_a_text_that_is_no_utf_8_on_channel_0_is_told_with_its_method(
    method_id: int, arguments: bytes
) -> None:
    error = failure(raw_frame(1, 0, b"\x00\x0a" + method_id.to_bytes(2, "big") + arguments))
    assert (error.reply_code, error.text) == (501, "Malformed UTF-8 in shortstr")
    assert (error.class_id, error.method_id) == (10, method_id)


def test_eight_octets_more_than_the_documented_limit_are_allowed() -> None:
    connection = running(1, frame_max=4096)
    sized = publish(1, b"x" * 4096)
    assert isinstance(connection.receive_data(sized)[0], PublishRun)
    error = failure(publish(1, b"x" * 4097), 1, frame_max=4096)
    assert error.text == "type 3, all octets = <<>>: {frame_too_large,4097,4088}"


def test_events_before_a_bad_frame_still_count() -> None:
    connection = running(1)
    run, error = connection.receive_data(publish(1) + raw_frame(1, 1, b"", end=1) + publish(1))
    assert isinstance(run, PublishRun)
    assert isinstance(error, errors.FrameError)
    assert connection.receive_data(publish(1)) == []
    connection.close_with(error)
    assert connection.close_timeout_s == 3.0
    assert connection.receive_data(method(0, commands.Connection.CloseOk())) == []


def test_the_server_closes() -> None:
    connection = running(1)
    connection.close_with(errors.NotAllowed("vhost v not found", 10, 40))
    (close,) = sent(connection)
    assert dict(close) == {
        "reply_code": 530,
        "reply_text": "NOT_ALLOWED - vhost v not found",
        "class_id": 10,
        "method_id": 40,
    }
    assert (connection.state, connection.channels) == ("closing", frozenset())
    assert connection.close_timeout_s == 30.0
    connection.close_with(errors.InternalError("again"))
    connection.send(0, methods.Connection.Blocked("x"))
    assert connection.take_out() == b""
    dropped = publish(1) + method(1, commands.Channel.Open()) + HEARTBEAT + publish(0)
    assert connection.receive_data(dropped) == []
    assert connection.receive_data(method(0, commands.Connection.Close(200, "bye", 0, 0))) == []
    assert [value.name for value in sent(connection)] == ["Connection.CloseOk"]
    (event,) = connection.receive_data(method(0, commands.Connection.CloseOk()) + publish(1))
    assert event == Disconnect("", 0.0)
    assert connection.state == "closed"
    assert connection.receive_data(publish(1)) == []


def test_the_client_closes() -> None:
    connection = running(1)
    close = method(0, commands.Connection.Close(200, "bye", 0, 0))
    run, event = connection.receive_data(publish(1) + close + publish(1))
    assert isinstance(run, PublishRun)
    assert event == ConnectionCloseReceived(200, "bye")
    # Replies to what came before the close may still go out.
    connection.send(1, methods.Basic.GetEmpty())
    connection.connection_close_ok()
    assert [value.name for value in sent(connection)] == ["Basic.GetEmpty", "Connection.CloseOk"]
    assert connection.state == "closed"
    connection.close_with(errors.ConnectionForced("late"))
    assert connection.take_out() == b""


def test_a_new_secret_is_welcome() -> None:
    connection = running()
    assert connection.receive_data(method(0, commands.Connection.UpdateSecret("s", "r"))) == []
    assert [value.name for value in sent(connection)] == ["Connection.UpdateSecretOk"]


def test_heartbeats_are_no_events() -> None:
    assert running(1).receive_data(HEARTBEAT * 3) == []


def test_what_is_sent_waits_to_be_taken() -> None:
    connection = running(1)
    connection.send(1, methods.Basic.GetEmpty())
    connection.out.append(b"raw")
    connection.send(7, methods.Basic.GetEmpty())
    assert connection.take_out() == method(1, commands.Basic.GetEmpty()) + b"raw"
    assert connection.take_out() == b""


def test_a_small_publish_is_waited_for_and_a_large_one_is_not() -> None:
    for size in (100, 32768, 32769, 200000):
        data = publish(1, b"x" * min(size, 131072))
        if size > 131072:
            pieces = [b"x" * 131072, b"x" * (size - 131072)]
            head = publish(1, b"x" * 10)
            header = head[head.index(b"\x02\x00\x01") :][:7]
            assert header
            data = data[: -131072 - 8].replace(
                (131072).to_bytes(8, "big"), size.to_bytes(8, "big")
            ) + b"".join(raw_frame(3, 1, piece) for piece in pieces)
        connection = running(1)
        events = [
            event
            for start in range(0, len(data), 1000)
            for event in connection.receive_data(data[start : start + 1000])
        ]
        (run,) = events
        assert run.messages[0].size == size


def test_a_close_before_the_client_may_see_one_is_silent() -> None:
    connection = ServerConnection(ProtocolOptions())
    connection.close_with(errors.ConnectionForced("going down"))
    assert (connection.take_out(), connection.state) == (b"", "closed")


def test_a_publish_before_the_connection_is_open() -> None:
    connection = ServerConnection(ProtocolOptions())
    connection.receive_data(PROTOCOL_HEADER + start_ok())
    connection.accept_login()
    connection.receive_data(tune_ok())
    (error,) = connection.receive_data(publish(1))
    assert isinstance(error, errors.UnexpectedFrame)
    assert error.text.startswith("type 1, all octets = <<0,60,0,40,")


class Copied(bytes):
    """Octets that count how many of them are copied."""

    count = 0

    def __radd__(self, other: bytes) -> Copied:
        return Copied(bytes(other) + bytes(self))

    def __getitem__(self, place: slice | int) -> bytes | int:  # type: ignore[override]
        found = super().__getitem__(place)
        if isinstance(found, int):
            return found
        Copied.count += len(found)
        # What is left goes on being counted; a frame is the codec's, which takes plain octets.
        return Copied(found) if isinstance(place, slice) and place.stop is None else found


def test_small_frames_before_the_login_are_copied_once_whatever_their_number() -> None:
    connection = ServerConnection(ProtocolOptions())
    connection.receive_data(PROTOCOL_HEADER)
    Copied.count = 0
    octets = Copied(HEARTBEAT * 1000 + HEARTBEAT[:3])
    assert connection.receive_data(octets) == []
    assert len(octets) <= Copied.count < 3 * len(octets)
    (login,) = connection.receive_data(HEARTBEAT[3:] + start_ok())
    assert isinstance(login, LoginAttempt)
