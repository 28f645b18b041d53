"""Queues and their life: declaration checks and texts, names, exclusivity, auto-delete, expiry.

Source: RabbitMQ's channel and queue modules; texts observed on live 3.10 unless a test says 3.13.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pika
import pytest
from pika import spec
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection

from tests.support.black_box import (
    channel_error,
    eventually,
    get_all,
    publish,
    queue_of,
    wait_ready,
)
from tests.support.broker_process import Target
from tests.support.wire_client import WireClient

Connect = Callable[..., BlockingConnection]
LOCKED = (
    "cannot obtain exclusive access to locked queue '{}' in vhost '/'. It could be originally"
    " declared on another connection or the exclusive property value does not match that of the"
    " original declaration."
)


def exists(connection: BlockingConnection, queue: str) -> bool:
    """Say whether the queue is there."""
    try:
        connection.channel().queue_declare(queue, passive=True)
    except pika.exceptions.ChannelClosedByBroker as error:
        if error.reply_code != 404:
            raise
        return False
    return True


BAD_ARGUMENTS = [
    ("x-message-ttl", -1, "{value_negative,-1}"),
    ("x-message-ttl", 315360000001, "{value_too_large,315360000001}"),
    ("x-message-ttl", "1", '"expected integer, got longstr"'),
    ("x-expires", 0, "{value_zero,0}"),
    ("x-expires", -5, "{value_negative,-5}"),
    ("x-max-priority", 256, "{max_value_exceeded,256}"),
    ("x-max-priority", -1, "{value_negative,-1}"),
    ("x-max-length", -1, "{value_negative,-1}"),
    ("x-max-length-bytes", -1, "{value_negative,-1}"),
    ("x-overflow", "foo", "invalid_overflow"),
    ("x-overflow", 1, "{unacceptable_type,signedint}"),
    ("x-dead-letter-routing-key", "k", "routing_key_but_no_dlx_defined"),
    ("x-queue-mode", "foo", "\"unsupported queue mode 'foo'\""),
    ("x-queue-mode", 1, "{unacceptable_type,signedint}"),
    ("x-single-active-consumer", 1, "{unacceptable_type,signedint}"),
]


@pytest.mark.parametrize(("key", "value", "reason"), BAD_ARGUMENTS)
def test_bad_arguments_are_refused(
    channel: BlockingChannel, name: str, key: str, value: Any, reason: str
) -> None:
    with channel_error(406, f"invalid arg '{key}' for queue '{name}' in vhost '/': {reason}"):
        channel.queue_declare(name, exclusive=True, arguments={key: value})


def test_a_dead_letter_exchange_must_be_a_string(channel: BlockingChannel, name: str) -> None:
    text = (
        f"invalid type 'signedint' for arg 'x-dead-letter-exchange' in queue '{name}' in vhost '/'"
    )
    with channel_error(406, text):
        channel.queue_declare(name, exclusive=True, arguments={"x-dead-letter-exchange": 1})


def test_stream_arguments_are_refused_on_classic(channel: BlockingChannel, name: str) -> None:
    text = f"invalid arg 'x-max-age' for queue '{name}' in vhost '/' of queue type rabbit_classic_queue"
    with channel_error(406, text):
        channel.queue_declare(name, exclusive=True, arguments={"x-max-age": "1D"})


def test_unknown_arguments_are_accepted_and_ignored(channel: BlockingChannel, name: str) -> None:
    channel.queue_declare(name, exclusive=True, arguments={"x-foo": 1, "plain": "text"})
    channel.queue_declare(name, exclusive=True, arguments={"x-foo": 2})


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        ({"x-max-length": 10}, {"x-max-length": 20}, "received '20' but current is '10'"),
        (
            {"x-max-length": 10},
            {},
            "received none but current is the value '10' of type 'signedint'",
        ),
        (
            {},
            {"x-max-length": 10},
            "received the value '10' of type 'signedint' but current is none",
        ),
    ],
)
def test_inequivalent_arguments(
    channel: BlockingChannel, name: str, first: dict[str, Any], second: dict[str, Any], text: str
) -> None:
    channel.queue_declare(name, exclusive=True, arguments=first)
    with channel_error(
        406, f"inequivalent arg 'x-max-length' for queue '{name}' in vhost '/': {text}"
    ):
        channel.queue_declare(name, exclusive=True, arguments=second)


def test_integer_width_does_not_matter_to_equivalence(channel: BlockingChannel, name: str) -> None:
    channel.queue_declare(name, exclusive=True, arguments={"x-max-length": 10})
    wide = pika.compat.long(10)
    channel.queue_declare(name, exclusive=True, arguments={"x-max-length": wide})


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"durable": True}, "inequivalent arg 'durable'"),
        ({"auto_delete": True}, "inequivalent arg 'auto_delete'"),
    ],
)
def test_inequivalent_flags(
    connect: Connect, name: str, changed: dict[str, bool], text: str
) -> None:
    connection = connect()
    connection.channel().queue_declare(name)
    whole = f"{text} for queue '{name}' in vhost '/': received 'true' but current is 'false'"
    with channel_error(406, whole):
        connection.channel().queue_declare(name, **changed)
    connection.channel().queue_delete(name)


def test_declare_ok_counts_ready_messages_and_consumers(connect: Connect, name: str) -> None:
    connection = connect()
    channel = connection.channel()
    queue_of(channel, name)
    publish(channel, name, b"1", b"2", b"3")
    wait_ready(channel, name, 3)
    channel.basic_get(name)
    wait_ready(channel, name, 2)
    channel.basic_qos(prefetch_count=1)
    channel.basic_consume(name, lambda *_: None)
    answer = eventually(lambda: _counts(channel, name) == (1, 1))
    assert answer


def _counts(channel: BlockingChannel, queue: str) -> tuple[int, int]:
    method = channel.queue_declare(queue, passive=True).method
    return method.message_count, method.consumer_count


def test_passive_declare_of_a_missing_queue_is_404(channel: BlockingChannel, name: str) -> None:
    with channel_error(404, f"no queue '{name}' in vhost '/'"):
        channel.queue_declare(name, passive=True)


def test_server_names_have_a_fixed_form_and_cannot_be_redeclared(connect: Connect) -> None:
    connection = connect()
    channel = connection.channel()
    queue = channel.queue_declare("", exclusive=True).method.queue
    assert queue.startswith("amq.gen-")
    assert len(queue) == len("amq.gen-") + 22
    channel.queue_declare(queue, passive=True)
    with channel_error(403, f"queue name '{queue}' contains reserved prefix 'amq.*'"):
        channel.queue_declare(queue, exclusive=True)


def test_line_breaks_are_stripped_from_names(wire: Callable[[], WireClient], name: str) -> None:
    client = wire().open().channel(1)
    assert client.declare(1, f"{name}\r\n", exclusive=True) == name


def test_an_empty_name_means_the_last_declared_queue(channel: BlockingChannel) -> None:
    queue = queue_of(channel)
    channel.queue_bind("", "amq.direct", queue)
    channel.basic_publish("amq.direct", queue, b"1")
    wait_ready(channel, queue, 1)
    assert channel.basic_get("", auto_ack=True)[2] == b"1"
    assert channel.queue_purge("").method.message_count == 0


def test_an_empty_name_without_a_declared_queue_is_404(channel: BlockingChannel) -> None:
    with channel_error(404, "no previously declared queue"):
        channel.basic_get("")


@pytest.mark.parametrize(
    "act",
    [
        lambda channel, queue: channel.queue_declare(queue, exclusive=True),
        lambda channel, queue: channel.queue_declare(queue, passive=True),
        lambda channel, queue: channel.queue_bind(queue, "amq.direct", "k"),
        lambda channel, queue: channel.queue_unbind(queue, "amq.direct", "k"),
        lambda channel, queue: channel.basic_consume(queue, lambda *_: None),
        lambda channel, queue: channel.basic_get(queue),
        lambda channel, queue: channel.queue_purge(queue),
        lambda channel, queue: channel.queue_delete(queue),
    ],
    ids=["declare", "passive", "bind", "unbind", "consume", "get", "purge", "delete"],
)
def test_exclusive_queues_are_locked_to_their_connection(
    connect: Connect, name: str, act: Callable[[BlockingChannel, str], None]
) -> None:
    owner = connect().channel()
    queue_of(owner, name)
    owner.queue_bind(name, "amq.direct", "k")  # unbinding what is not bound is ok for anyone
    with channel_error(405, LOCKED.format(name)):
        act(connect().channel(), name)


def test_publishing_to_an_exclusive_queue_is_free(connect: Connect, name: str) -> None:
    owner = connect().channel()
    queue_of(owner, name)
    publish(connect().channel(), name, b"1")
    wait_ready(owner, name, 1)


def test_exclusive_mismatch_is_405_both_ways(connect: Connect, name: str) -> None:
    connection = connect()
    queue_of(connection.channel(), name)
    with channel_error(405, LOCKED.format(name)):
        connection.channel().queue_declare(name)
    open_name = f"{name}.open"
    connection.channel().queue_declare(open_name)
    with channel_error(405, LOCKED.format(open_name)):
        connection.channel().queue_declare(open_name, exclusive=True)
    connection.channel().queue_delete(open_name)


def test_durable_and_exclusive_stays_equivalent(channel: BlockingChannel, name: str) -> None:
    channel.queue_declare(name, durable=True, exclusive=True)
    channel.queue_declare(name, durable=True, exclusive=True)
    channel.queue_declare(name, exclusive=True)


def test_exclusive_queues_end_with_their_connection_not_their_channel(
    connect: Connect, name: str
) -> None:
    owner, other = connect(), connect()
    channel = owner.channel()
    queue_of(channel, name)
    channel.close()
    owner.channel().queue_declare(name, passive=True)
    owner.close()
    assert not exists(other, name)


def test_auto_delete_waits_for_the_last_consumer(connect: Connect, name: str) -> None:
    connection = connect()
    channel = connection.channel()
    channel.queue_declare(name, auto_delete=True)
    channel.basic_get(name)
    tags = [channel.basic_consume(name, lambda *_: None) for _ in range(2)]
    channel.basic_cancel(tags[0])
    assert exists(connection, name)
    channel.basic_cancel(tags[1])
    eventually(lambda: not exists(connection, name))


def test_auto_delete_happens_before_channel_close_ok(connect: Connect, name: str) -> None:
    connection = connect()
    channel = connection.channel()
    channel.queue_declare(name, auto_delete=True)
    channel.basic_consume(name, lambda *_: None)
    channel.close()
    assert not exists(connection, name)


def test_purge_removes_ready_messages_only(channel: BlockingChannel) -> None:
    queue = queue_of(channel)
    publish(channel, queue, b"1", b"2", b"3")
    tag = channel.basic_get(queue)[0].delivery_tag
    assert channel.queue_purge(queue).method.message_count == 2
    channel.basic_nack(tag, requeue=True)
    assert get_all(channel, queue) == [b"1"]


def test_delete_answers_with_the_ready_count_and_0_when_missing(
    channel: BlockingChannel, name: str
) -> None:
    channel.queue_declare(name)
    publish(channel, name, b"1", b"2")
    wait_ready(channel, name, 2)
    assert channel.queue_delete(name).method.message_count == 2
    assert channel.queue_delete(name).method.message_count == 0


def test_delete_if_empty_and_if_unused(connect: Connect, name: str) -> None:
    connection = connect()
    channel = connection.channel()
    queue_of(channel, name)
    publish(channel, name, b"1")
    wait_ready(channel, name, 1)
    with channel_error(406, f"queue '{name}' in vhost '/' not empty"):
        connection.channel().queue_delete(name, if_empty=True)
    channel.basic_consume(name, lambda *_: None)
    with channel_error(406, f"queue '{name}' in vhost '/' in use"):
        connection.channel().queue_delete(name, if_unused=True)


def test_purge_of_a_missing_queue_is_404(channel: BlockingChannel, name: str) -> None:
    with channel_error(404, f"no queue '{name}' in vhost '/'"):
        channel.queue_purge(name)


def test_an_unused_queue_expires(connect: Connect, name: str) -> None:
    connection = connect()
    connection.channel().queue_declare(name, arguments={"x-expires": 300})
    publish(connection.channel(), name, b"publishing is no use")
    eventually(lambda: not exists_quietly(connection, name, 0.4), 5)


def exists_quietly(connection: BlockingConnection, queue: str, pause_s: float) -> bool:
    """Ask for the queue after a pause in which nobody used it."""
    time.sleep(pause_s)  # asking is a use, so the lease has to run out before the question
    return exists(connection, queue)


def test_passive_declare_and_get_renew_the_lease(connect: Connect, name: str) -> None:
    channel = connect().channel()
    channel.queue_declare(name, arguments={"x-expires": 500})
    until = time.monotonic() + 1.2
    while time.monotonic() < until:
        time.sleep(0.15)
        channel.queue_declare(name, passive=True)
        time.sleep(0.15)
        channel.basic_get(name)
    channel.queue_delete(name)


def test_a_consumer_keeps_the_lease(connect: Connect, name: str) -> None:
    connection = connect()
    channel = connection.channel()
    channel.queue_declare(name, arguments={"x-expires": 200})
    tag = channel.basic_consume(name, lambda *_: None)
    time.sleep(0.5)
    channel.basic_cancel(tag)
    eventually(lambda: not exists_quietly(connection, name, 0.3), 5)


def test_reused_consumer_tags_are_530(wire: Callable[[], WireClient]) -> None:
    client = wire().open().channel(1)
    consume = spec.Basic.Consume(queue=client.declare(1, exclusive=True), consumer_tag="t")
    client.send_method(1, consume)
    client.expect(spec.Basic.ConsumeOk)
    client.send_method(1, consume)
    closing = client.expect(spec.Connection.Close)
    assert (closing.reply_code, closing.reply_text) == (
        530,
        "NOT_ALLOWED - attempt to reuse consumer tag 't'",
    )


def test_delete_ok_comes_before_the_cancel_of_the_same_channels_consumer(
    broker: Target, wire: Callable[[], WireClient], name: str
) -> None:
    if broker.is_rabbitmq_3_10:
        pytest.skip("RabbitMQ's order is a race; kombu's tests want delete-ok first")
    client = wire().open(capabilities={"consumer_cancel_notify": True}).channel(1)
    client.declare(1, name, durable=True)
    client.send_method(1, spec.Basic.Consume(queue=name))
    client.expect(spec.Basic.ConsumeOk)
    client.send_method(1, spec.Queue.Delete(queue=name))
    client.expect(spec.Queue.DeleteOk)
    client.expect(spec.Basic.Cancel)
