from __future__ import annotations

import pytest
from pamqp import commands

from burrowmq.protocol import errors
from burrowmq.protocol.codec import AckRun, PublishRun, encode_ack
from burrowmq.protocol.events import ChannelClosed, ChannelFailed, ChannelOpened, MethodReceived
from tests.support.amqp_frames import content, flat, method, publish, raw_frame, running, sent

OPEN = commands.Channel.Open()
CLOSE = commands.Channel.Close(200, "bye", 0, 0)
CLOSE_OK = commands.Channel.CloseOk()
DECLARE = commands.Queue.Declare(queue="q")


def failure(octets: bytes, *channels: int, **options: object) -> errors.AmqpError:
    connection = running(*channels, **options)
    *_, error = connection.receive_data(octets)
    assert isinstance(error, errors.AmqpError)
    assert connection.receive_data(method(1, DECLARE)) == []
    return error


def test_open() -> None:
    connection = running()
    assert connection.receive_data(method(60000, OPEN)) == [ChannelOpened(60000)]
    assert sent(connection) == []  # the session may be against it
    connection.accept_channel(60000)
    (open_ok,) = sent(connection)
    assert (open_ok.name, open_ok.channel_id) == ("Channel.OpenOk", "")
    assert connection.channels == {60000}


@pytest.mark.parametrize(
    ("octets", "ids"),
    [
        (method(1, DECLARE), (50, 10)),
        (publish(1), (60, 40)),
        (encode_ack(1, 1, False), (60, 80)),
        (method(1, CLOSE), (20, 40)),
        (method(1, CLOSE_OK), (20, 41)),
        (method(1, commands.Connection.Open()), (10, 40)),
        (method(1, commands.Connection.Close(200, "bye", 0, 0)), (10, 50)),
    ],
)
def test_the_first_method_must_be_open(octets: bytes, ids: tuple[int, int]) -> None:
    error = failure(octets)
    assert isinstance(error, errors.ChannelError)
    assert error.text == "expected 'channel.open'"
    assert (error.class_id, error.method_id) == ids


def test_a_close_of_the_connection_belongs_on_channel_0() -> None:
    error = failure(method(1, commands.Connection.Close(200, "bye", 50, 10)), 1)
    assert (error.reply_code, error.class_id, error.method_id) == (503, 10, 50)


def test_open_twice() -> None:
    error = failure(method(1, OPEN), 1)
    assert (error.reply_code, error.text) == (504, "second 'channel.open' seen")


def test_open_while_it_is_closing() -> None:
    """RabbitMQ: whoever does not wait for the answer opens it twice, whichever side closes."""
    for octets in (method(1, OPEN), method(1, DECLARE) + method(1, OPEN)):
        connection = running(1)
        connection.close_channel(1, errors.NotFound("x"))
        (error,) = connection.receive_data(octets)
        assert isinstance(error, errors.ChannelError)
        assert (error.text, error.class_id, error.method_id) == (
            "second 'channel.open' seen",
            20,
            10,
        )
    connection = running(1)
    left, error = connection.receive_data(method(1, CLOSE) + method(1, OPEN))
    assert left == ChannelClosed(1, by_client=True)
    assert (error.reply_code, error.text) == (504, "second 'channel.open' seen")
    connection = running(1)
    connection.close_channel(1, errors.NotFound("x"))
    octets = method(1, CLOSE_OK) + method(1, OPEN)
    assert connection.receive_data(octets) == [ChannelClosed(1, by_client=False), ChannelOpened(1)]


def test_the_count_of_channels_is_limited_not_the_number() -> None:
    error = failure(method(3, OPEN), 65535, 2, channel_max=2)
    assert isinstance(error, errors.NotAllowed)
    assert error.text == "number of channels opened (2) has reached the negotiated channel_max (2)"
    assert (error.class_id, error.method_id) == (0, 0)


def test_a_method() -> None:
    (event,) = running(1).receive_data(method(1, DECLARE))
    assert isinstance(event, MethodReceived)
    assert (event.channel, event.method.name) == (1, "Queue.Declare")


def test_the_client_closes() -> None:
    connection = running(1)
    events = connection.receive_data(method(1, CLOSE) + publish(1) + method(1, DECLARE))
    assert events == [ChannelClosed(1, by_client=True)]
    assert connection.take_out() == b""
    connection.channel_close_ok(1)
    assert [value.name for value in sent(connection)] == ["Channel.CloseOk"]
    assert connection.receive_data(method(1, OPEN)) == [ChannelOpened(1)]


def test_the_server_closes() -> None:
    connection = running(1, 2)
    connection.close_channel(1, errors.NotFound("no queue 'q' in vhost '/'"), 50, 10)
    (close,) = sent(connection)
    assert dict(close) == {
        "reply_code": 404,
        "reply_text": "NOT_FOUND - no queue 'q' in vhost '/'",
        "class_id": 50,
        "method_id": 10,
    }
    assert connection.channels == {2}
    dropped = publish(1) + encode_ack(1, 1, False) + method(1, DECLARE) + raw_frame(3, 1, b"x")
    assert connection.receive_data(dropped) == []
    connection.send(1, close_method())
    assert connection.take_out() == b""
    assert connection.receive_data(method(1, CLOSE)) == []
    assert [value.name for value in sent(connection)] == ["Channel.CloseOk"]
    assert connection.receive_data(method(1, CLOSE_OK)) == [ChannelClosed(1, by_client=False)]
    assert connection.receive_data(method(1, OPEN)) == [ChannelOpened(1)]


def close_method() -> object:
    from burrowmq.protocol.methods import Basic

    return Basic.GetEmpty()


def test_a_stray_frame_after_close_ok_is_a_new_channel() -> None:
    connection = running(1)
    connection.close_channel(1, errors.NotFound("x"))
    connection.receive_data(method(1, CLOSE_OK))
    (error,) = connection.receive_data(method(1, CLOSE_OK))
    assert isinstance(error, errors.ChannelError)


def test_closing_takes_part_in_the_count() -> None:
    connection = running(1, channel_max=1)
    connection.close_channel(1, errors.NotFound("x"))
    (error,) = connection.receive_data(method(2, OPEN))
    assert isinstance(error, errors.NotAllowed)


def test_the_ids_of_the_error_count_when_none_are_given() -> None:
    connection = running(1)
    connection.close_channel(1, errors.NotFound("x", 60, 70))
    (close,) = sent(connection)
    assert (close.class_id, close.method_id) == (60, 70)


def test_flow_and_access_are_served_in_their_turn() -> None:
    connection = running(1)
    access = raw_frame(1, 1, b"\x00\x1e\x00\x0a\x05/data\x1f")
    octets = method(1, commands.Channel.Flow(True)) + access
    names = [event.method.name for event in connection.receive_data(octets)]
    assert names == ["Channel.Flow", "Access.Request"]
    assert connection.take_out() == b""


def test_replies_to_what_came_before_a_close_are_sent() -> None:
    connection = running(1)
    assert len(connection.receive_data(method(1, DECLARE) + method(1, CLOSE))) == 2
    connection.send(1, _declare_ok())
    connection.channel_close_ok(1)
    connection.send(1, _declare_ok())
    assert [value.name for value in sent(connection)] == ["Queue.DeclareOk", "Channel.CloseOk"]


def test_replies_to_what_came_before_a_failure_are_sent() -> None:
    connection = running(1, max_message_size=10)
    octets = method(1, DECLARE) + publish(1, b"x" * 11) + method(1, DECLARE) + method(1, CLOSE)
    _, failed, closed = connection.receive_data(octets)
    assert isinstance(failed, ChannelFailed)
    assert closed == ChannelClosed(1, by_client=True)
    connection.send(1, _declare_ok())
    connection.close_channel(1, failed.error)
    connection.send(1, _declare_ok())
    connection.channel_close_ok(1)
    names = [value.name for value in sent(connection)]
    assert names == ["Queue.DeclareOk", "Channel.Close", "Channel.CloseOk"]
    assert connection.receive_data(method(1, CLOSE_OK)) == [ChannelClosed(1, by_client=False)]


def _declare_ok() -> object:
    from burrowmq.protocol.methods import Queue

    return Queue.DeclareOk("q", 0, 0)


@pytest.mark.parametrize("kind", [1, 2])
@pytest.mark.parametrize("number", [0, 1])
def test_frames_too_short_for_their_type_are_unknown(kind: int, number: int) -> None:
    error = failure(raw_frame(kind, number, b"ab"), 1)
    assert (error.reply_code, error.text) == (
        501,
        f'type {kind}, all octets = <<"ab">>: unknown_frame',
    )


@pytest.mark.parametrize(
    "command",
    [
        commands.Connection.Open(),
        commands.Connection.Close(200, "bye", 0, 0),
        commands.Queue.DeclareOk("q", 0, 0),
        commands.Basic.Deliver("c", 1, False, "", "q"),
        commands.Channel.CloseOk(),
        commands.Channel.OpenOk(),
    ],
    ids=lambda command: command.name,
)
def test_methods_that_the_server_does_not_serve(command: object) -> None:
    error = failure(method(1, command), 1)
    assert (error.reply_code, error.text) == (503, "unimplemented method")


def test_unknown_and_undecodable_methods() -> None:
    assert failure(raw_frame(1, 1, b"\x00\x3c\x00\xee"), 1).reply_code == 503
    error = failure(raw_frame(1, 1, b"\x00\x32\x00\x0a\x00"), 1)
    assert (error.reply_code, error.text) == (501, "cannot decode <<0>>")
    assert (error.class_id, error.method_id) == (50, 10)


def test_an_unusual_ack_is_still_an_ack() -> None:
    connection = running(1)
    octets = encode_ack(1, 1, False) + encode_ack(1, 2, False) + encode_ack(1, 9, True)
    first, second = connection.receive_data(octets)
    assert isinstance(first, AckRun)
    assert (first.first_tag, first.last_tag, first.multiple) == (1, 2, False)
    assert (second.first_tag, second.last_tag, second.multiple) == (9, 9, True)


def test_too_large_messages_fail_the_channel_at_the_header() -> None:
    connection = running(1, 2, max_message_size=100)
    command = method(1, commands.Basic.Publish(routing_key="q"))
    octets = command + content(1, b"x" * 40000)[0]
    (event,) = connection.receive_data(octets)
    assert isinstance(event, ChannelFailed)
    assert event.error.text == "message size 40000 is larger than configured max size 100"
    assert (event.error.class_id, event.error.method_id) == (60, 40)
    rest = raw_frame(3, 1, b"x" * 40000) + publish(1) + publish(2)
    (run,) = connection.receive_data(rest)
    assert isinstance(run, PublishRun)
    assert run.channel == 2
    connection.close_channel(1, event.error)
    (close,) = sent(connection)
    assert close.reply_code == 406


def test_too_large_messages_of_a_run() -> None:
    connection = running(1, max_message_size=100)
    octets = publish(1, b"a") + publish(1, b"b") + publish(1, b"x" * 101) + publish(1, b"c")
    run, failed = connection.receive_data(octets)
    assert isinstance(run, PublishRun)
    assert [message.size for message in run.messages] == [1, 1]
    assert run.size == 2
    assert isinstance(failed, ChannelFailed)
    fine = running(1, max_message_size=100)
    (whole,) = fine.receive_data(publish(1, b"x" * 60) * 2)
    assert len(whole.messages) == 2


def test_contents_of_two_channels_interleave() -> None:
    connection = running(1, 2)
    lanes = []
    for number in (1, 2):
        command = method(number, commands.Basic.Publish(routing_key=f"q{number}"))
        lanes.append([command, *content(number, b"%d" % number * 10, None, [5])])
    octets = b"".join(one for pair in zip(*lanes, strict=True) for one in pair)
    events = connection.receive_data(octets)
    assert [event.channel for event in events] == [1, 2]
    whole = running(1, 2).receive_data(b"".join(lanes[0] + lanes[1]))
    assert flat(events) == flat(whole)


def test_closing_a_channel_that_is_gone_does_nothing() -> None:
    connection = running(1)
    connection.close_channel(7, errors.NotFound("x"))
    connection.channel_close_ok(7)
    assert connection.take_out() == b""


def test_an_error_of_what_came_just_before_the_clients_close() -> None:
    connection = running(1)
    connection.receive_data(publish(1) + method(1, CLOSE))
    connection.close_channel(1, errors.NotFound("no exchange 'x' in vhost '/'"))
    connection.channel_close_ok(1)
    assert [value.name for value in sent(connection)] == ["Channel.Close", "Channel.CloseOk"]
    assert connection.receive_data(method(1, CLOSE_OK)) == [ChannelClosed(1, by_client=False)]


def test_content_on_a_channel_that_was_never_opened() -> None:
    error = failure(raw_frame(3, 9, b"x"))
    assert isinstance(error, errors.UnexpectedFrame)
    assert error.text == "expected method frame, got non method frame instead"


def test_an_ack_in_the_middle_of_a_content() -> None:
    command = method(1, commands.Basic.Publish(routing_key="q"))
    header = content(1, b"x" * 40000)[0]
    error = failure(command + header + encode_ack(1, 1, False), 1)
    assert error.text == "expected content body, got non content body frame instead"


def test_nothing_but_a_too_large_message() -> None:
    connection = running(1, max_message_size=10)
    (event,) = connection.receive_data(publish(1, b"x" * 11))
    assert isinstance(event, ChannelFailed)
