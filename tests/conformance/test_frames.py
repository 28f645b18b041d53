"""Frame-level rules: sizes, end octets, channels, content assembly.

Source: RabbitMQ's reader, assembler and framing modules, observed on a live 3.10 node.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable
from typing import Any

import pytest
from pika import spec

from tests.support.broker_process import Target
from tests.support.wire_client import (
    BODY,
    HEADER,
    HEARTBEAT,
    METHOD,
    Closed,
    WireClient,
    frame,
    header_bytes,
    method_bytes,
    publish_bytes,
)

Wire = Callable[[], WireClient]


def closed_with(client: WireClient, code: int, text: str) -> Any:
    """Assert that the next method is this connection.close; return it."""
    closing = client.expect(spec.Connection.Close)
    assert (closing.reply_code, closing.reply_text.partition(" - ")[2]) == (code, text)
    return closing


def publish_method(queue: str = "q") -> bytes:
    """Return a basic.publish method frame alone on channel 1."""
    return method_bytes(1, spec.Basic.Publish(exchange="", routing_key=queue))


@pytest.mark.parametrize("slack", [0, 8])
def test_frames_up_to_frame_max_are_taken(wire: Wire, slack: int) -> None:
    client = wire().open(frame_max=4096).channel(1)
    queue = client.declare(1, exclusive=True)
    body = b"x" * (4096 - 8 + slack)
    client.send(publish_method(queue), header_bytes(1, len(body)), frame(BODY, 1, body))
    client.send_method(1, spec.Basic.Get(queue=queue))
    assert client.read_content()[2] == body


def test_a_bigger_frame_is_501(wire: Wire) -> None:
    client = wire().open(frame_max=4096).channel(1)
    client.send(publish_method(), header_bytes(1, 9000), frame(BODY, 1, b"x" * 4097))
    closed_with(client, 501, "type 3, all octets = <<>>: {frame_too_large,4097,4088}")


def test_a_bigger_frame_is_refused_by_its_announced_size(wire: Wire) -> None:
    client = wire().open()
    client.send(struct.pack(">BHI", METHOD, 1, 0x7FFFFFFF))
    closed_with(client, 501, "type 1, all octets = <<>>: {frame_too_large,2147483647,131064}")


def test_deliveries_are_cut_to_the_consumers_frame_max(wire: Wire) -> None:
    publisher = wire().open().channel(1)
    queue = publisher.declare(1, auto_delete=True)
    consumer = wire().open(frame_max=4096).channel(1)
    body = bytes(range(256)) * 400
    publisher.send(publish_bytes(1, "", queue, body))
    consumer.send_method(1, spec.Basic.Consume(queue=queue, no_ack=True))
    consumer.expect(spec.Basic.ConsumeOk)
    consumer.expect(spec.Basic.Deliver)
    assert consumer.read_frame()[0] == HEADER
    received = b""
    while len(received) < len(body):
        kind, _, piece = consumer.read_frame()
        assert kind == BODY
        assert len(piece) <= 4088
        received += piece
    assert received == body


def test_a_wrong_end_octet_is_501(wire: Wire) -> None:
    client = wire().open().channel(1)
    client.send(frame(METHOD, 1, b"\x00\x3c\x00\x0a", end=7))
    closed_with(client, 501, "type 1, all octets = <<0,60,0,10>>: {invalid_frame_end_marker,7}")
    client.wait_closed()


def test_an_unknown_frame_type_is_501(wire: Wire) -> None:
    client = wire().open()
    client.send(frame(7, 0, b""))
    closed_with(client, 501, "type 7, all octets = <<>>: unknown_frame")


def test_a_heartbeat_on_a_channel_is_505(wire: Wire) -> None:
    client = wire().open()
    client.send(frame(HEARTBEAT, 1, b""))
    closed_with(client, 505, "type 8, all octets = <<>>")


@pytest.mark.parametrize("kind", [HEADER, BODY])
def test_content_on_channel_zero_is_505(wire: Wire, kind: int) -> None:
    client = wire().open()
    client.send(header_bytes(0, 1) if kind == HEADER else frame(BODY, 0, b"x"))
    assert client.expect(spec.Connection.Close).reply_code == 505


def test_undecodable_arguments_are_501(wire: Wire) -> None:
    client = wire().open().channel(1)
    client.send(frame(METHOD, 1, b"\x00\x32\x00\x0a\x00\x00\xff"))
    closing = closed_with(client, 501, "cannot decode <<0,0,255>>")
    assert (closing.class_id, closing.method_id) == (50, 10)


@pytest.mark.parametrize("ids", [(60, 999), (61, 10), (0, 0)])
def test_unknown_methods_end_the_connection(wire: Wire, ids: tuple[int, int]) -> None:
    client = wire().open().channel(1)
    client.send(frame(METHOD, 1, struct.pack(">HH", *ids)))
    # RabbitMQ crashes the connection and drops it; saying why before is kinder and allowed.
    with contextlib.suppress(Closed):
        assert client.expect(spec.Connection.Close, 5).reply_code in (501, 503, 540, 541)


def test_a_channel_method_on_channel_zero_is_504(wire: Wire) -> None:
    client = wire().open()
    client.send_method(0, spec.Basic.Qos())
    closed_with(client, 504, "unexpected method in connection state running")


def test_a_connection_method_on_a_channel_is_503(wire: Wire) -> None:
    client = wire().open().channel(1)
    client.send_method(1, spec.Connection.Close(200, "", 0, 0))
    closed_with(client, 503, "unimplemented method")


def test_a_server_method_from_the_client_is_503(wire: Wire) -> None:
    client = wire().open().channel(1)
    client.send_method(1, spec.Basic.GetEmpty())
    closed_with(client, 503, "unimplemented method")


def test_a_method_on_an_unopened_channel_is_504(wire: Wire) -> None:
    client = wire().open()
    client.send_method(5, spec.Basic.Qos())
    closed_with(client, 504, "expected 'channel.open'")


def test_publish_on_an_unopened_channel_is_504(wire: Wire) -> None:
    client = wire().open()
    client.send(publish_bytes(5, "", "q", b"x"))
    closed_with(client, 504, "expected 'channel.open'")


def test_a_second_open_is_504(wire: Wire) -> None:
    client = wire().open().channel(1)
    client.send_method(1, spec.Channel.Open())
    closed_with(client, 504, "second 'channel.open' seen")


@pytest.mark.parametrize("kind", [HEADER, BODY])
def test_content_without_a_method_is_505(wire: Wire, kind: int) -> None:
    client = wire().open().channel(1)
    client.send(frame(kind, 1, header_bytes(1, 0)[7:-1] if kind == HEADER else b"x"))
    closing = closed_with(client, 505, "expected method frame, got non method frame instead")
    assert (closing.class_id, closing.method_id) == (0, 0)


def test_a_body_instead_of_a_header_is_505(wire: Wire) -> None:
    client = wire().open().channel(1)
    client.send(publish_method(), frame(BODY, 1, b"x"))
    text = "expected content header for class 60, got non content header frame instead"
    closing = closed_with(client, 505, text)
    assert (closing.class_id, closing.method_id) == (60, 40)


def test_a_method_instead_of_a_header_is_505(wire: Wire) -> None:
    client = wire().open().channel(1)
    client.send(publish_method(), publish_method())
    text = "expected content header for class 60, got non content header frame instead"
    closed_with(client, 505, text)


def test_a_header_of_another_class_is_505(wire: Wire) -> None:
    client = wire().open().channel(1)
    client.send(publish_method(), frame(HEADER, 1, struct.pack(">HHQH", 50, 0, 1, 0)))
    text = "expected content header for class 60, got one for class 50 instead"
    closed_with(client, 505, text)


@pytest.mark.parametrize("next_frame", [publish_method(), header_bytes(1, 3)])
def test_another_frame_inside_a_body_is_505(wire: Wire, next_frame: bytes) -> None:
    client = wire().open().channel(1)
    client.send(publish_method(), header_bytes(1, 10), frame(BODY, 1, b"12345"), next_frame)
    closing = closed_with(client, 505, "expected content body, got non content body frame instead")
    assert (closing.class_id, closing.method_id) == (60, 40)


def test_zero_length_body_frames_are_allowed(wire: Wire) -> None:
    client = wire().open().channel(1)
    queue = client.declare(1, exclusive=True)
    client.send(
        publish_method(queue),
        header_bytes(1, 4),
        frame(BODY, 1, b""),
        frame(BODY, 1, b"ab"),
        frame(BODY, 1, b""),
        frame(BODY, 1, b"cd"),
    )
    client.send_method(1, spec.Basic.Get(queue=queue))
    assert client.read_content()[2] == b"abcd"


def test_an_empty_body_has_no_body_frame(wire: Wire) -> None:
    client = wire().open().channel(1)
    queue = client.declare(1, exclusive=True)
    client.send(publish_method(queue), header_bytes(1, 0))
    client.send_method(1, spec.Basic.Get(queue=queue))
    assert client.read_content()[2] == b""


def test_channels_interleave_inside_contents(wire: Wire) -> None:
    client = wire().open().channel(1).channel(2)
    queue = client.declare(1, exclusive=True)
    first = publish_bytes(1, "", queue, b"one")
    second = publish_bytes(2, "", queue, b"two")
    cut = len(publish_method(queue))
    client.send(first[:cut], second[:cut], first[cut:], second[cut:])
    client.send_method(1, spec.Basic.Get(queue=queue, no_ack=True))
    bodies = {client.read_content()[2]}
    client.send_method(1, spec.Basic.Get(queue=queue, no_ack=True))
    bodies.add(client.read_content()[2])
    assert bodies == {b"one", b"two"}


@pytest.mark.parametrize("step", [1, 3, 7])
def test_any_cut_of_the_byte_stream_means_the_same(wire: Wire, step: int) -> None:
    client = wire().open().channel(1)
    queue = client.declare(1, exclusive=True)
    stream = b"".join(publish_bytes(1, "", queue, b"m%d" % number) for number in range(5))
    for start in range(0, len(stream), step):
        client.send(stream[start : start + step])
    for number in range(5):
        client.send_method(1, spec.Basic.Get(queue=queue, no_ack=True))
        assert client.read_content()[2] == b"m%d" % number


def test_channel_max_limits_the_count_not_the_number(wire: Wire) -> None:
    client = wire().open(channel_max=2).channel(60000).channel(7)
    client.send_method(9, spec.Channel.Open())
    text = "number of channels opened (2) has reached the negotiated channel_max (2)"
    closed_with(client, 530, text)


def test_a_channel_number_is_free_after_close_ok(wire: Wire) -> None:
    client = wire().open(channel_max=1)
    for _ in range(3):
        client.channel(1)
        client.send_method(1, spec.Channel.Close(200, "", 0, 0))
        client.expect(spec.Channel.CloseOk)


def test_flow_true_is_answered_and_false_is_540(wire: Wire) -> None:
    client = wire().open().channel(1)
    client.send_method(1, spec.Channel.Flow(True))
    assert client.expect(spec.Channel.FlowOk).active is True
    client.send_method(1, spec.Channel.Flow(False))
    closed_with(client, 540, "active=false")


def test_frames_on_a_closing_channel_are_dropped_until_close_ok(wire: Wire) -> None:
    client = wire().open().channel(1).channel(2)
    queue = client.declare(2, exclusive=True)
    client.send(
        method_bytes(1, spec.Basic.Ack(99)),
        publish_bytes(1, "", queue, b"dropped"),
        method_bytes(1, spec.Queue.Declare(queue="never", passive=True)),
    )
    closing = client.expect(spec.Channel.Close)
    assert (closing.reply_code, closing.class_id, closing.method_id) == (406, 60, 80)
    assert closing.reply_text == "PRECONDITION_FAILED - unknown delivery tag 99"
    client.send_method(1, spec.Channel.CloseOk())
    client.channel(1)
    client.send_method(2, spec.Basic.Get(queue=queue))
    client.expect(spec.Basic.GetEmpty)


def test_a_client_close_crossing_ours_is_answered(wire: Wire) -> None:
    client = wire().open().channel(1)
    client.send(
        method_bytes(1, spec.Basic.Ack(99)), method_bytes(1, spec.Channel.Close(200, "", 0, 0))
    )
    client.expect(spec.Channel.Close)
    client.expect(spec.Channel.CloseOk)
    client.send_method(1, spec.Channel.CloseOk())
    client.channel(1)


def test_replies_come_in_order_also_before_a_close_that_was_sent_along(wire: Wire) -> None:
    client = wire().open().channel(1)
    client.send(
        method_bytes(1, spec.Queue.Declare(queue="", exclusive=True)),
        method_bytes(1, spec.Channel.Flow(active=True)),
        method_bytes(1, spec.Basic.Qos(prefetch_count=1)),
        method_bytes(1, spec.Channel.Close(200, "", 0, 0)),
    )
    client.expect(spec.Queue.DeclareOk)
    client.expect(spec.Channel.FlowOk)
    client.expect(spec.Basic.QosOk)
    client.expect(spec.Channel.CloseOk)


def test_an_error_comes_before_the_answer_to_what_follows(wire: Wire) -> None:
    client = wire().open().channel(1)
    client.send(
        publish_bytes(1, "no.such.exchange", "k", b""),
        method_bytes(1, spec.Channel.Flow(active=True)),
    )
    assert client.expect(spec.Channel.Close).reply_code == 404


def test_an_announced_body_above_the_limit_is_refused(broker: Target, wire: Wire) -> None:
    if broker.is_rabbitmq_3_10:
        pytest.skip("3.10 judges a body only when all of it has come")
    client = wire().open().channel(1)
    client.send(publish_method(), header_bytes(1, 2**63 - 1))
    closing = client.expect(spec.Channel.Close)
    assert (closing.reply_code, closing.class_id, closing.method_id) == (406, 60, 40)
    text = f"message size {2**63 - 1} is larger than configured max size 134217728"
    assert closing.reply_text.endswith(text)
    client.send(frame(BODY, 1, b"still coming"))
    client.send_method(1, spec.Channel.CloseOk())
    client.channel(1)


def test_a_body_that_goes_on_is_refused_at_the_first_frame_too_many(
    broker: Target, wire: Wire
) -> None:
    if broker.is_rabbitmq_3_10:
        pytest.skip("RabbitMQ waits for the next method, however much comes before it")
    client = wire().open().channel(1)
    client.send(publish_method(), header_bytes(1, 10), frame(BODY, 1, b"x" * 11))
    closed_with(client, 501, "content body of 11 octets or more, its header announced 10")


def test_malformed_utf8_in_a_short_string_ends_the_connection(wire: Wire) -> None:
    client = wire().open().channel(1)
    client.send(frame(METHOD, 1, b"\x00\x32\x00\x0a\x00\x00\x02\xff\xfe\x00\x00\x00\x00\x00"))
    closed_with(client, 501, "Malformed UTF-8 in shortstr")


def test_deep_tables_do_not_kill_the_broker(wire: Wire) -> None:
    table = b"\x01k" + b"V"
    for _ in range(400):
        table = b"\x01kF" + struct.pack(">I", len(table)) + table
    client = wire().open().channel(1)
    arguments = struct.pack(">I", len(table)) + table
    try:
        client.send(frame(METHOD, 1, b"\x00\x32\x00\x0a\x00\x00\x00\x08" + arguments))
        client.read_method()
    except Closed:
        pass
    wire().open().channel(1).close()
