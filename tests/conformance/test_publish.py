"""Publishing: returns, confirms, nacks and their order, CC and BCC, refusals, transactions.

Source: RabbitMQ's channel module, observed on a live 3.10 node.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pika
import pytest
from pika import spec
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection

from tests.support.black_box import (
    channel_error,
    connection_error,
    eventually,
    get_all,
    get_one,
    publish,
    queue_of,
    wait_ready,
)
from tests.support.broker_process import Target
from tests.support.wire_client import (
    BODY,
    HEADER,
    METHOD,
    WireClient,
    frame,
    header_bytes,
    method_bytes,
    publish_bytes,
)

Connect = Callable[..., BlockingConnection]
Wire = Callable[[], WireClient]
PERSISTENT = pika.BasicProperties(delivery_mode=2)


def nested(depth: int) -> dict[str, Any]:
    """Tables in each other, the outermost counted."""
    return {"k": nested(depth - 1)} if depth > 1 else {}


def confirming(wire: Wire) -> WireClient:
    """Return a raw client with channel 1 in confirm mode."""
    client = wire().open().channel(1)
    client.send_method(1, spec.Confirm.Select())
    client.expect(spec.Confirm.SelectOk)
    return client


def collect_confirms(client: WireClient, last: int) -> dict[int, str]:
    """Return {number: ack or nack}; a multiple means all still unanswered up to it."""
    waiting = set(range(1, last + 1))
    answers: dict[int, str] = {}
    while waiting:
        _, method = client.read_method()
        kind = "ack" if isinstance(method, spec.Basic.Ack) else "nack"
        covered = (
            [n for n in waiting if n <= method.delivery_tag]
            if method.multiple
            else [method.delivery_tag]
        )
        for number in covered:
            waiting.remove(number)
            answers[number] = kind
    return answers


def test_an_unroutable_mandatory_message_is_returned_before_its_ack(wire: Wire, name: str) -> None:
    client = confirming(wire)
    properties = pika.BasicProperties(correlation_id="c", headers={"h": 1})
    client.send(publish_bytes(1, "", name, b"body", mandatory=True, properties=properties))
    returned, got, body = client.read_content()
    assert isinstance(returned, spec.Basic.Return)
    assert (returned.reply_code, returned.reply_text) == (312, "NO_ROUTE")
    assert (returned.exchange, returned.routing_key, body) == ("", name, b"body")
    assert (got.correlation_id, got.headers) == ("c", {"h": 1})
    assert client.expect(spec.Basic.Ack).delivery_tag == 1


def test_an_unroutable_message_is_confirmed(wire: Wire, name: str) -> None:
    client = confirming(wire)
    client.send(publish_bytes(1, "", name, b""))
    ack = client.expect(spec.Basic.Ack)
    assert (ack.delivery_tag, ack.multiple) == (1, False)


def test_a_single_ack_is_sent_without_multiple(wire: Wire) -> None:
    client = confirming(wire)
    queue = client.declare(1, exclusive=True)
    for number in (1, 2):
        client.send(publish_bytes(1, "", queue, b"x"))
        ack = client.expect(spec.Basic.Ack)
        assert (ack.delivery_tag, ack.multiple) == (number, False)


def test_a_nack_carries_multiple_and_requeue(wire: Wire) -> None:
    client = confirming(wire)
    queue = client.declare(
        1, exclusive=True, arguments={"x-max-length": 0, "x-overflow": "reject-publish"}
    )
    client.send(publish_bytes(1, "", queue, b"x"))
    while True:
        kind, _, payload = client.read_frame()
        if kind == METHOD:
            break
    assert payload == b"\x00\x3c\x00\x78" + (1).to_bytes(8, "big") + b"\x03"


@pytest.mark.parametrize("durable", [True, False])
def test_every_publish_of_a_burst_is_confirmed_once(wire: Wire, name: str, durable: bool) -> None:
    client = confirming(wire)
    client.declare(1, name, durable=durable)
    body = publish_bytes(1, "", name, b"x" * 50, properties=PERSISTENT)
    client.send(body * 500)
    assert collect_confirms(client, 500) == dict.fromkeys(range(1, 501), "ack")
    client.send_method(1, spec.Queue.Delete(queue=name))
    assert client.expect(spec.Queue.DeleteOk).message_count == 500


def test_a_burst_over_a_limit_is_acked_up_to_it_and_nacked_above(wire: Wire) -> None:
    client = confirming(wire)
    queue = client.declare(
        1, exclusive=True, arguments={"x-max-length": 7, "x-overflow": "reject-publish"}
    )
    client.send(publish_bytes(1, "", queue, b"x") * 20)
    answers = collect_confirms(client, 20)
    assert answers == {n: "ack" if n <= 7 else "nack" for n in range(1, 21)}


def test_confirms_count_from_the_select(wire: Wire) -> None:
    client = wire().open().channel(1)
    queue = client.declare(1, exclusive=True)
    client.send(publish_bytes(1, "", queue, b"before"))
    client.send_method(1, spec.Confirm.Select())
    client.expect(spec.Confirm.SelectOk)
    client.send(publish_bytes(1, "", queue, b"after"))
    assert client.expect(spec.Basic.Ack).delivery_tag == 1


def test_immediate_is_540(channel: BlockingChannel) -> None:
    with connection_error(540, "immediate=true"):
        _publish_immediate(channel)


def _publish_immediate(channel: BlockingChannel) -> None:
    publish_method = spec.Basic.Publish(exchange="", routing_key="q", immediate=True)
    channel._impl._send_method(publish_method, (pika.BasicProperties(), b"x"))
    while True:
        channel.connection.process_data_events(0.1)


BAD_PUBLISHES = [
    ({"expiration": "abc"}, "invalid expiration 'abc': no_integer"),
    ({"expiration": "1x"}, "invalid expiration '1x': {leftover_string,\"x\"}"),
    ({"expiration": "-1"}, "invalid expiration '-1': {value_negative,-1}"),
    ({"user_id": "bob"}, "user_id property set to 'bob' but authenticated user was 'guest'"),
    ({"headers": {"CC": "text"}}, 'invalid message: {unacceptable_type_in_header,"CC",longstr}'),
    ({"reply_to": "amq.rabbitmq.reply-to"}, "fast reply consumer does not exist"),
]


@pytest.mark.parametrize(("properties", "text"), BAD_PUBLISHES)
def test_bad_properties_close_the_channel(
    channel: BlockingChannel, properties: dict[str, Any], text: str
) -> None:
    queue = queue_of(channel)
    with channel_error(406, text):
        publish(channel, queue, b"x", **properties)
        channel.basic_get(queue)


def test_publishing_to_a_missing_exchange_is_404(channel: BlockingChannel, name: str) -> None:
    with channel_error(404, f"no exchange '{name}' in vhost '/'"):
        channel.basic_publish(name, "k", b"x")
        channel.basic_qos(prefetch_count=1)


def test_publishing_to_an_internal_exchange_is_403(
    channel: BlockingChannel, exchange: Callable[..., str]
) -> None:
    inside = exchange("direct", internal=True)
    with channel_error(403, f"cannot publish to internal exchange '{inside}' in vhost '/'"):
        channel.basic_publish(inside, "k", b"x")
        channel.basic_qos(prefetch_count=1)


def test_what_came_before_a_soft_error_took_effect(connect: Connect) -> None:
    connection = connect()
    queue = queue_of(connection.channel())
    channel = connection.channel()
    publish(channel, queue, b"1", b"2")
    with contextlib.suppress(pika.exceptions.ChannelClosedByBroker):
        publish(channel, queue, b"bad", expiration="x")
        publish(channel, queue, b"after")
    other = connection.channel()
    wait_ready(other, queue, 2)
    assert get_all(other, queue) == [b"1", b"2"]


def test_delivery_mode_3(broker: Target, channel: BlockingChannel) -> None:
    if broker.is_rabbitmq_3_10:
        pytest.skip("3.13 takes every mode but 2 as transient, 3.10 refuses it")
    queue = queue_of(channel)
    publish(channel, queue, b"x", delivery_mode=3)
    assert get_one(channel, queue)[1].delivery_mode == 3


def test_cc_and_bcc_are_more_routing_keys_and_bcc_is_removed(channel: BlockingChannel) -> None:
    first, second, third = queue_of(channel), queue_of(channel), queue_of(channel)
    publish(channel, first, b"x", headers={"CC": [second, first], "BCC": [third], "k": 1})
    for queue in (first, second, third):
        method, properties, _ = get_one(channel, queue)
        assert method.routing_key == first
        assert properties.headers == {"CC": [second, first], "k": 1}
        assert get_all(channel, queue) == []


@pytest.mark.parametrize(
    "headers",
    [
        {"many": [{"b": 1}] * 1000},
        {f"{number:x}": True for number in range(8000)},
        nested(60),
    ],
    ids=["tables", "fields", "depth"],
)
def test_headers_may_have_what_a_frame_holds(
    channel: BlockingChannel, headers: dict[str, Any]
) -> None:
    queue = queue_of(channel)
    publish(channel, queue, b"x", headers=headers)
    assert get_one(channel, queue)[1].headers == headers


def test_a_message_may_have_as_many_keys_as_a_frame_holds(channel: BlockingChannel) -> None:
    queue = queue_of(channel)
    publish(
        channel, "none", b"x", headers={"CC": [*(f"r{number}" for number in range(8000)), queue]}
    )
    assert get_one(channel, queue)[2] == b"x"


def test_properties_and_header_types_are_relayed(channel: BlockingChannel) -> None:
    queue = queue_of(channel)
    sent = pika.BasicProperties(
        content_type="text/plain",
        content_encoding="utf-8",
        delivery_mode=1,
        priority=5,
        correlation_id="c",
        reply_to="r",
        expiration="60000",
        message_id="m",
        timestamp=1234567890,
        type="t",
        user_id="guest",
        app_id="a",
        cluster_id="cl",
        headers={
            "int": 1,
            "big": 2**40,
            "negative": -5,
            "text": "ä",
            "bytes": b"\xff\x00",
            "yes": True,
            "none": None,
            "list": [1, "two", {"three": 3}],
            "table": {"a": {"b": 1}},
        },
    )
    channel.basic_publish("", queue, b"x", sent)
    assert get_one(channel, queue)[1] == sent


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 131064, 131065, 300_000, 3_000_000])
def test_bodies_of_any_size_come_back(channel: BlockingChannel, size: int) -> None:
    queue = queue_of(channel)
    body = (bytes(range(256)) * (size // 256 + 1))[:size]
    channel.basic_publish("", queue, body)
    assert get_one(channel, queue)[2] == body


def test_commit_publishes_and_returns_rollback_does_neither(connect: Connect) -> None:
    connection = connect()
    other = connection.channel()
    queue = queue_of(other)
    channel = connection.channel()
    channel.tx_select()
    returned: list[bytes] = []
    channel.add_on_return_callback(lambda _c, _m, _p, body: returned.append(body))
    channel.basic_publish("", queue, b"lost")
    channel.tx_rollback()
    channel.basic_publish("", queue, b"kept")
    channel.basic_publish("", f"{queue}.none", b"back", mandatory=True)
    assert get_all(other, queue) == []
    channel.tx_commit()
    assert get_all(other, queue) == [b"kept"]
    eventually(lambda: connection.process_data_events(0.01) or returned)
    assert returned == [b"back"]


def test_the_route_of_a_transaction_is_chosen_at_publish(channel: BlockingChannel) -> None:
    queue = queue_of(channel)
    channel.tx_select()
    channel.basic_publish("amq.direct", queue, b"too early")
    channel.queue_bind(queue, "amq.direct", queue)
    channel.tx_commit()
    assert get_all(channel, queue) == []


def test_acks_in_a_transaction_count_at_commit(connect: Connect) -> None:
    connection = connect()
    other = connection.channel()
    queue = queue_of(other)
    publish(other, queue, b"1", b"2")
    channel = connection.channel()
    channel.tx_select()
    first = get_one(channel, queue)[0].delivery_tag
    channel.basic_ack(first)
    channel.tx_rollback()
    channel.basic_ack(first)
    channel.tx_commit()
    second = get_one(channel, queue)[0].delivery_tag
    channel.basic_ack(second)
    channel.close()
    assert [get_one(other, queue)[2]] == [b"2"]


def test_partial_tx_completion(channel: BlockingChannel) -> None:
    queue = queue_of(channel, x_max_length=1, x_overflow="reject-publish")
    channel.tx_select()
    publish(channel, queue, b"1", b"2")
    with channel_error(406, "partial tx completion"):
        channel.tx_commit()


def test_tx_and_confirm_exclude_each_other(connect: Connect) -> None:
    connection = connect()
    channel = connection.channel()
    channel.tx_select()
    with channel_error(406, "cannot switch from tx to confirm mode"):
        channel.confirm_delivery()
    channel = connection.channel()
    channel.confirm_delivery()
    with channel_error(406, "cannot switch from confirm to tx mode"):
        channel.tx_select()
    with channel_error(406, "channel is not transactional"):
        connection.channel().tx_commit()


LATIN = b"caf\xe9"


def publish_to_octets(exchange: bytes, key: bytes, body: bytes) -> bytes:
    """Return a mandatory publish on channel 1 whose names are octets."""
    names = b"".join((bytes((len(exchange),)), exchange, bytes((len(key),)), key))
    method = frame(METHOD, 1, b"\x00\x3c\x00\x28\x00\x00" + names + b"\x01")
    return method + header_bytes(1, len(body)) + frame(BODY, 1, body)


@pytest.mark.parametrize("exchange", ["amq.fanout", "amq.topic"])
def test_a_routing_key_need_not_be_utf_8(wire: Wire, exchange: str) -> None:
    client = wire().open().channel(1)
    queue = client.declare(1, exclusive=True)
    client.send_method(1, spec.Queue.Bind(queue=queue, exchange=exchange, routing_key="#"))
    client.expect(spec.Queue.BindOk)
    client.send(publish_to_octets(exchange.encode(), LATIN, b"1") * 3)
    for left in (2, 1, 0):
        client.send_method(1, spec.Basic.Get(queue=queue, no_ack=True))
        _, _, payload = client.read_frame()
        names = b"".join((bytes((len(exchange),)), exchange.encode(), b"\x04", LATIN))
        assert payload.endswith(names + left.to_bytes(4, "big"))
        assert client.read_frame()[0] == HEADER
        assert client.read_frame()[0] == BODY


def test_a_mandatory_publish_to_a_key_that_is_not_utf_8_comes_back(wire: Wire) -> None:
    client = wire().open().channel(1)
    client.send(publish_to_octets(b"", LATIN, b"1"))
    _, _, payload = client.read_frame()
    assert payload.endswith(b"\x08NO_ROUTE\x00\x04" + LATIN)


def test_an_exchange_whose_name_is_not_utf_8_is_not_there(wire: Wire) -> None:
    client = wire().open().channel(1)
    client.send(publish_to_octets(LATIN, b"", b"1"))
    _, _, payload = client.read_frame()
    assert b"NOT_FOUND - no exchange 'caf\xe9' in vhost '/'" in payload


def test_pipelined_commands_are_answered_in_order(wire: Wire) -> None:
    client = wire().open().channel(1)
    queue = client.declare(1, exclusive=True)
    client.send(
        publish_bytes(1, "", queue, b"1"),
        method_bytes(1, spec.Basic.Get(queue=queue, no_ack=True)),
        publish_bytes(1, "", queue, b"2"),
        method_bytes(1, spec.Basic.Get(queue=queue, no_ack=True)),
        method_bytes(1, spec.Basic.Get(queue=queue)),
    )
    assert client.read_content()[2] == b"1"
    assert client.read_content()[2] == b"2"
    client.expect(spec.Basic.GetEmpty)
