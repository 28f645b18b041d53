from __future__ import annotations

import struct

import pytest
from pamqp import commands

from burrowmq.protocol import constants, errors
from burrowmq.protocol.codec import Frame, PublishRun
from burrowmq.protocol.connection.content import Content
from burrowmq.protocol.methods import Basic
from burrowmq.protocol.table import encode_table
from tests.support.amqp_frames import content, method, publish, raw_frame, running

PUBLISH = method(1, commands.Basic.Publish(routing_key="q"))
HEADER = content(1, b"x" * 10)[0]
BODY = raw_frame(3, 1, b"x" * 10)


def failure(*frames: bytes) -> errors.AmqpError:
    connection = running(1)
    events = connection.receive_data(b"".join(frames))
    assert len(events) == 1, events
    assert isinstance(events[0], errors.AmqpError)
    return events[0]


def header(class_id: int = 60, weight: int = 0, size: int = 10, flags: int = 0, rest: bytes = b""):
    return raw_frame(2, 1, struct.pack(">HHQH", class_id, weight, size, flags) + rest)


@pytest.mark.parametrize("cut", [0, 20, 40, 60])
def test_a_key_that_is_no_utf_8_is_kept_as_it_came(cut: int) -> None:
    arguments = b"\x00\x3c\x00\x28\x00\x00\x01e\x03a\xe9b\x00"
    octets = raw_frame(1, 1, arguments) + HEADER + BODY
    connection = running(1)
    events = connection.receive_data(octets[:cut]) + connection.receive_data(octets[cut:])
    (run,) = events
    assert isinstance(run, PublishRun)
    assert run.address == b"\x01e\x03a\xe9b"


@pytest.mark.parametrize("octets", [HEADER, BODY])
def test_content_without_a_method(octets: bytes) -> None:
    error = failure(octets)
    assert isinstance(error, errors.UnexpectedFrame)
    assert error.text == "expected method frame, got non method frame instead"
    assert (error.class_id, error.method_id) == (0, 0)


@pytest.mark.parametrize(
    "second", [PUBLISH, publish(1), BODY, header(weight=1), method(1, commands.Basic.Qos())]
)
def test_something_else_than_the_header(second: bytes) -> None:
    error = failure(PUBLISH, second)
    assert (error.reply_code, error.class_id, error.method_id) == (505, 60, 40)
    assert (
        error.text == "expected content header for class 60, got non content header frame instead"
    )


def test_a_header_of_another_class() -> None:
    error = failure(PUBLISH, header(class_id=50))
    assert error.text == "expected content header for class 60, got one for class 50 instead"


@pytest.mark.parametrize("third", [PUBLISH, publish(1), HEADER, method(1, commands.Basic.Qos())])
def test_something_else_than_the_body(third: bytes) -> None:
    error = failure(PUBLISH, HEADER, third)
    assert (error.reply_code, error.class_id, error.method_id) == (505, 60, 40)
    assert error.text == "expected content body, got non content body frame instead"


@pytest.mark.parametrize(
    "octets",
    [
        header(flags=1, rest=b"\x00\x00"),
        header(flags=2),
        header(rest=b"x"),
        header(flags=constants.PROP_CONTENT_TYPE, rest=b"\x05x"),
        header(flags=constants.PROP_HEADERS, rest=b"\x00\x00\x00\x03\x01kz"),
        header(flags=constants.PROP_TIMESTAMP, rest=b"\x00"),
    ],
)
def test_malformed_headers(octets: bytes) -> None:
    error = failure(PUBLISH, octets)
    assert isinstance(error, errors.FrameError)
    assert error.text.startswith("cannot decode <<")
    assert len(error.reply_text) <= 255


def test_headers_beyond_a_limit_name_it() -> None:
    table: dict[str, object] = {}
    for _ in range(constants.TABLE_DEPTH_MAX):
        table = {"k": table}
    rest = encode_table(table)
    error = failure(PUBLISH, header(flags=constants.PROP_HEADERS, rest=rest))
    assert isinstance(error, errors.FrameError)
    assert error.text == "field table nested deeper than 128 levels"
    assert (error.class_id, error.method_id) == (60, 40)


def test_empty_body_frames_are_allowed() -> None:
    empty = raw_frame(3, 1, b"")
    (run,) = running(1).receive_data(PUBLISH + HEADER + empty + BODY)
    assert run.messages[0].raw == HEADER + BODY
    error = failure(PUBLISH, HEADER, empty, empty, PUBLISH)
    assert error.text == "expected content body, got non content body frame instead"


def test_an_empty_body_frame_after_the_content() -> None:
    connection = running(1)
    run, error = connection.receive_data(publish(1) + raw_frame(3, 1, b""))
    assert isinstance(run, PublishRun)
    assert error.text == "expected method frame, got non method frame instead"


@pytest.mark.parametrize("together", [True, False])
def test_a_body_that_goes_on_fails_at_the_first_frame_too_many(together: bool) -> None:
    connection = running(1)
    frames = [PUBLISH, HEADER, raw_frame(3, 1, b"x" * 9), raw_frame(3, 1, b"yy"), BODY]
    given = [b"".join(frames)] if together else frames
    (error,) = [event for each in given for event in connection.receive_data(each)]
    assert (error.reply_code, error.class_id, error.method_id) == (501, 60, 40)
    assert error.text == "content body of 11 octets or more, its header announced 10"


def test_what_goes_beyond_is_not_kept() -> None:
    assembled = Content(1, Basic.Publish(routing_key="q"), 1 << 20)
    assembled.accept(Frame(2, 1, HEADER[7:-1]))
    with pytest.raises(errors.FrameError):
        assembled.accept(Frame(3, 1, bytes(4096)))
    assert len(assembled._raw) == len(HEADER)


def test_a_body_in_many_frames() -> None:
    frames = content(
        1, b"abc" * 20000, commands.Basic.Properties(delivery_mode=2), [1, 131064 // 4]
    )
    connection = running(1)
    events = [event for one in (PUBLISH, *frames) for event in connection.receive_data(one)]
    (run,) = events
    (message,) = run.messages
    assert message.raw == b"".join(frames)
    assert (message.size, run.size) == (60000, 60000)
    assert message.frame_max == max(map(len, frames))
    assert message.flags & constants.PERSISTENT
    assert run.flags == message.flags


def test_flags_and_routing_of_the_slow_path() -> None:
    command = commands.Basic.Publish(exchange="e", routing_key="k", mandatory=True)
    frames = content(1, b"", commands.Basic.Properties(headers={"CC": ["a"]}))
    (run,) = running(1, 2).receive_data(
        b"".join([method(1, command), publish(2)[:0], b"\x08\0\0\0\0\0\0\xce", *frames])
    )
    assert run.address == b"\x01e\x01k"
    assert run.flags == constants.PROP_HEADERS | constants.MANDATORY | constants.MAYBE_CC
