"""Exchanges: declaration checks, the four types, alternates, exchange-to-exchange, reply-to.

Source: RabbitMQ's exchange modules, observed on a live 3.10 node; 3.13 differences are marked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pika import spec
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection
from pika.exceptions import ChannelClosedByBroker, ConnectionClosedByBroker

from tests.support.black_box import (
    channel_error,
    get_all,
    publish,
    queue_of,
    wait_ready,
)
from tests.support.broker_process import Target
from tests.support.wire_client import WireClient, publish_bytes

Connect = Callable[..., BlockingConnection]
Declare = Callable[..., str]
Wire = Callable[[], WireClient]


def test_unknown_exchange_types(broker: Target, channel: BlockingChannel, name: str) -> None:
    with pytest.raises((ChannelClosedByBroker, ConnectionClosedByBroker)) as caught:
        channel.exchange_declare(name, "no-such-type-here")
    expected = (503, "COMMAND_INVALID") if broker.is_rabbitmq_3_10 else (406, "PRECONDITION_FAILED")
    assert caught.value.reply_code == expected[0]
    assert caught.value.reply_text == f"{expected[1]} - unknown exchange type 'no-such-type-here'"


@pytest.mark.parametrize(
    "act",
    [
        lambda channel: channel.exchange_declare("", "direct"),
        lambda channel: channel.exchange_delete(""),
        lambda channel: channel.queue_bind(queue_of(channel), "", "k"),
    ],
    ids=["declare", "delete", "bind"],
)
def test_the_default_exchange_is_untouchable(
    channel: BlockingChannel, act: Callable[[BlockingChannel], Any]
) -> None:
    with channel_error(403, "operation not permitted on the default exchange"):
        act(channel)


def test_reserved_names(connect: Connect) -> None:
    connection = connect()
    connection.channel().exchange_declare("amq.direct", "direct", durable=True)
    with channel_error(403, "exchange name 'amq.foo' contains reserved prefix 'amq.*'"):
        connection.channel().exchange_declare("amq.foo", "direct")
    with channel_error(403, "deletion of system exchange 'amq.direct' in vhost '/' not allowed"):
        connection.channel().exchange_delete("amq.direct")


@pytest.mark.parametrize(
    "exchange", ["direct", "fanout", "topic", "headers", "match", "rabbitmq.trace"]
)
def test_predeclared_exchanges(channel: BlockingChannel, exchange: str) -> None:
    channel.exchange_declare(f"amq.{exchange}", passive=True)


def test_inequivalent_exchanges(connect: Connect, exchange: Declare) -> None:
    one = exchange("direct", durable=True)
    connection = connect()
    connection.channel().exchange_declare(one, "direct", durable=True, arguments={"x-other": 1})
    for options, text in (
        (
            {"exchange_type": "fanout", "durable": True},
            "inequivalent arg 'type' for exchange '{}' in vhost '/':"
            " received 'fanout' but current is 'direct'",
        ),
        (
            {"exchange_type": "direct"},
            "inequivalent arg 'durable' for exchange '{}' in vhost '/':"
            " received 'false' but current is 'true'",
        ),
        (
            {"exchange_type": "direct", "durable": True, "auto_delete": True},
            "inequivalent arg 'auto_delete' for exchange '{}' in vhost '/':"
            " received 'true' but current is 'false'",
        ),
        (
            {"exchange_type": "direct", "durable": True, "arguments": {"alternate-exchange": "a"}},
            "inequivalent arg 'alternate-exchange' for exchange '{}' in vhost '/':"
            " received the value 'a' of type 'longstr' but current is none",
        ),
    ):
        with channel_error(406, text.format(one)):
            connection.channel().exchange_declare(one, **options)


def test_deleting_exchanges(connect: Connect, channel: BlockingChannel, name: str) -> None:
    channel.exchange_delete(name)  # a missing one is no error
    channel.exchange_declare(name, "direct")
    channel.queue_bind(queue_of(channel), name, "k")
    with channel_error(406, f"exchange '{name}' in vhost '/' in use"):
        connect().channel().exchange_delete(name, if_unused=True)
    channel.exchange_delete(name)
    with channel_error(404, f"no exchange '{name}' in vhost '/'"):
        channel.exchange_declare(name, passive=True)


def test_auto_delete_exchange_goes_with_its_last_binding(
    connect: Connect, channel: BlockingChannel, name: str
) -> None:
    channel.exchange_declare(name, "direct", auto_delete=True)
    queue = queue_of(channel)
    channel.queue_bind(queue, name, "a")
    channel.queue_bind(queue, name, "b")
    channel.queue_unbind(queue, name, "a")
    connect().channel().exchange_declare(name, passive=True)
    channel.queue_unbind(queue, name, "b")
    with channel_error(404, f"no exchange '{name}' in vhost '/'"):
        connect().channel().exchange_declare(name, passive=True)


def test_binding_names_the_missing_source_first(connect: Connect, name: str) -> None:
    connection = connect()
    with channel_error(404, f"no exchange '{name}.x' in vhost '/'"):
        connection.channel().queue_bind(f"{name}.q", f"{name}.x", "k")
    with channel_error(404, f"no queue '{name}.q' in vhost '/'"):
        connection.channel().queue_bind(f"{name}.q", "amq.direct", "k")


def test_unbinding_what_is_not_bound_is_ok(channel: BlockingChannel, name: str) -> None:
    queue = queue_of(channel)
    channel.queue_unbind(queue, "amq.direct", "never")
    channel.queue_unbind(queue, f"{name}.x", "never")
    channel.queue_unbind(f"{name}.q", "amq.direct", "never")


def test_direct_and_fanout_deliver_once(channel: BlockingChannel, exchange: Declare) -> None:
    queue = queue_of(channel)
    direct, fanout = exchange("direct"), exchange("fanout")
    for key in ("a", "b", "b"):
        channel.queue_bind(queue, direct, key)
        channel.queue_bind(queue, fanout, key)
    channel.basic_publish(direct, "a", b"1")
    channel.basic_publish(direct, "c", b"2")
    channel.basic_publish(fanout, "anything", b"3")
    assert get_all(channel, queue) == [b"1", b"3"]


TOPICS = [
    ("#", "", True),
    ("", "", True),
    ("*", "", False),
    ("*", ".", False),
    ("*.*", ".", True),
    ("a.*", "a.", True),
    ("a.#", "a", True),
    ("#.a", "a", True),
    ("*.#", "", False),
    ("a.*.b", "a..b", True),
    ("#.#", "x", True),
    ("a.*", "a.b.c", False),
    ("a.#", "a.b.c", True),
    ("a.#.d", "a.b.c.d", True),
    ("*.b", "a.b", True),
    ("A", "a", False),
    ("#.b.#", "a.b.c", True),
    ("a*", "ab", False),
    ("#", "any.thing", True),
]


def test_topic_patterns(channel: BlockingChannel, exchange: Declare) -> None:
    topic = exchange("topic")
    for pattern, key, matches in TOPICS:
        queue = queue_of(channel)
        channel.queue_bind(queue, topic, pattern)
        channel.basic_publish(topic, key, b"x")
        assert get_all(channel, queue) == ([b"x"] if matches else []), (pattern, key)
        channel.queue_delete(queue)


HEADERS: list[tuple[dict[str, Any], dict[str, Any], bool]] = [
    ({"x-match": "all", "a": 1, "b": "two"}, {"a": 1, "b": "two", "c": 3}, True),
    ({"x-match": "all", "a": 1, "b": "two"}, {"a": 1}, False),
    ({"a": 1}, {"a": 1}, True),
    ({"x-match": "any", "a": 1, "b": 2}, {"b": 2}, True),
    ({"x-match": "any", "a": 1, "b": 2}, {"b": 3}, False),
    ({"x-match": "all"}, {}, True),
    ({"x-match": "any"}, {"a": 1}, False),
    ({"x-match": "all", "a": None}, {"a": "whatever"}, True),
    ({"x-match": "all", "a": 1}, {"a": 2**40}, False),
    ({"x-match": "all", "a": True}, {"a": 1}, False),
    ({"x-match": "all", "x-ray": 1}, {}, True),
    ({"x-match": "all-with-x", "x-ray": 1}, {}, False),
    ({"x-match": "all-with-x", "x-ray": 1}, {"x-ray": 1}, True),
    ({"x-match": "any-with-x", "x-ray": 1, "b": 2}, {"x-ray": 1}, True),
]


def test_headers_matching(channel: BlockingChannel, exchange: Declare) -> None:
    by_headers = exchange("headers")
    for arguments, headers, matches in HEADERS:
        queue = queue_of(channel)
        channel.queue_bind(queue, by_headers, "", arguments)
        channel.basic_publish(by_headers, "k", b"x", spec.BasicProperties(headers=headers))
        assert get_all(channel, queue) == ([b"x"] if matches else []), (arguments, headers)
        channel.queue_delete(queue)


def test_bad_x_match_is_406(broker: Target, connect: Connect, channel: BlockingChannel) -> None:
    queue = queue_of(channel)
    text = 'Invalid x-match field value <<"foo">>; expected all, any, all-with-x, or any-with-x'
    with channel_error(406, text):
        connection = channel.connection.channel()
        connection.queue_bind(queue, "amq.headers", "", {"x-match": "foo"})
    with channel_error(406, "Invalid x-match field type signedint (value 1); expected longstr"):
        connection = channel.connection.channel()
        connection.queue_bind(queue, "amq.headers", "", {"x-match": 1})


def test_alternate_exchanges_take_what_found_no_queue(
    channel: BlockingChannel, exchange: Declare
) -> None:
    last = exchange("fanout")
    middle = exchange("direct", arguments={"alternate-exchange": last})
    first = exchange("direct", arguments={"alternate-exchange": middle})
    routed, caught = queue_of(channel), queue_of(channel)
    channel.queue_bind(routed, first, "known")
    channel.queue_bind(caught, last)
    channel.basic_publish(first, "known", b"1")
    channel.basic_publish(first, "unknown", b"2")
    assert get_all(channel, routed) == [b"1"]
    wait_ready(channel, caught, 1)
    method, _, body = channel.basic_get(caught)
    assert (method.exchange, method.routing_key, body) == (first, "unknown", b"2")


def test_exchange_to_exchange_bindings_with_a_cycle(
    channel: BlockingChannel, exchange: Declare
) -> None:
    first, second = exchange("topic"), exchange("fanout")
    queue = queue_of(channel)
    channel.exchange_bind(second, first, "a.#")
    channel.exchange_bind(first, second)
    channel.queue_bind(queue, second)
    channel.basic_publish(first, "a.b", b"1")
    channel.basic_publish(first, "c", b"2")
    assert get_all(channel, queue) == [b"1"]
    channel.exchange_unbind(second, first, "a.#")
    channel.basic_publish(first, "a.b", b"3")
    assert get_all(channel, queue) == []


def test_direct_reply_to(wire: Wire) -> None:
    asker, answerer = wire().open().channel(1), wire().open().channel(1)
    queue = answerer.declare(1, exclusive=True)
    asker.send_method(
        1, spec.Basic.Consume(queue="amq.rabbitmq.reply-to", no_ack=True, consumer_tag="r")
    )
    asker.expect(spec.Basic.ConsumeOk)
    properties = spec.BasicProperties(reply_to="amq.rabbitmq.reply-to", correlation_id="7")
    asker.send(publish_bytes(1, "", queue, b"question", properties=properties))
    answerer.send_method(1, spec.Basic.Consume(queue=queue, no_ack=True))
    answerer.expect(spec.Basic.ConsumeOk)
    _, asked, _ = answerer.read_content()
    assert asked.reply_to.startswith("amq.rabbitmq.reply-to.")
    answerer.send_method(1, spec.Queue.Declare(queue=asked.reply_to, passive=True))
    probe = answerer.expect(spec.Queue.DeclareOk)
    assert (probe.message_count, probe.consumer_count) == (0, 1)
    for answer in (b"one", b"two"):
        answerer.send(publish_bytes(1, "", asked.reply_to, answer))
        deliver, _, body = asker.read_content()
        assert (deliver.consumer_tag, deliver.delivery_tag, deliver.exchange) == ("r", 1, "")
        assert (deliver.routing_key, body) == (asked.reply_to, answer)
    answerer.send(publish_bytes(1, "", asked.reply_to, b"three", mandatory=True))
    assert answerer.read_content()[0].reply_code == 312
    assert asker.read_content()[2] == b"three"
    asker.close()
    answerer.send_method(1, spec.Queue.Declare(queue=asked.reply_to, passive=True))
    closing = answerer.expect(spec.Channel.Close)
    assert closing.reply_text == f"NOT_FOUND - no queue '{asked.reply_to}' in vhost '/'"


def test_reply_to_refusals(connect: Connect) -> None:
    connection = connect()
    with channel_error(406, "reply consumer cannot acknowledge"):
        connection.channel().basic_consume("amq.rabbitmq.reply-to", lambda *_: None)
    channel = connection.channel()
    channel.basic_consume("amq.rabbitmq.reply-to", lambda *_: None, auto_ack=True)
    with channel_error(406, "reply consumer already set"):
        channel.basic_consume("amq.rabbitmq.reply-to", lambda *_: None, auto_ack=True)


def test_mandatory_with_an_alternate_that_matches_is_not_returned(
    channel: BlockingChannel, exchange: Declare
) -> None:
    spare = exchange("fanout")
    first = exchange("direct", arguments={"alternate-exchange": spare})
    queue = queue_of(channel)
    channel.queue_bind(queue, spare)
    returned: list[bytes] = []
    channel.add_on_return_callback(lambda _c, _m, _p, body: returned.append(body))
    channel.basic_publish(first, "k", b"x", mandatory=True)
    assert get_all(channel, queue) == [b"x"]
    publish(channel, queue, b"barrier")
    assert get_all(channel, queue) == [b"barrier"]
    assert returned == []
