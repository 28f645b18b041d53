"""Confirms when queues refuse, die or go away, and what a publisher may rely on then.

Source: the classic cases of RabbitMQ's two suites on publisher confirms.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from pika import spec
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection
from pika.exceptions import ChannelClosedByBroker, NackError, UnroutableError

from tests.support.black_box import (
    PERSISTENT,
    get_all,
    get_one,
    publish,
    queue_of,
    ready,
    wait_ready,
)
from tests.support.broker_process import Target
from tests.support.wire_client import WireClient, publish_bytes

Connect = Callable[..., BlockingConnection]
Wire = Callable[[], WireClient]


def is_taken(channel: BlockingChannel, queue: str, body: bytes = b"x", exchange: str = "") -> bool:
    """Publish on a confirming channel; False when the broker nacked."""
    try:
        channel.basic_publish(exchange, queue, body)
    except NackError:
        return False
    return True


def test_select_is_answered_unless_told_not_to(wire: Wire) -> None:
    client = wire().open().channel(1)
    queue = client.declare(1, exclusive=True)
    client.send_method(1, spec.Confirm.Select(nowait=True))
    client.send(publish_bytes(1, "", queue, b"x"))
    assert client.expect(spec.Basic.Ack).delivery_tag == 1
    client.send_method(1, spec.Confirm.Select())
    client.expect(spec.Confirm.SelectOk)
    client.send(publish_bytes(1, "", queue, b"x"))
    assert client.expect(spec.Basic.Ack).delivery_tag == 2


@pytest.mark.parametrize("durable", [False, True])
def test_a_message_for_a_deleted_queue_is_confirmed(
    channel: BlockingChannel, name: str, durable: bool
) -> None:
    channel.queue_declare(name, durable=durable)
    channel.confirm_delivery()
    channel.basic_publish("", name, b"1", PERSISTENT)
    channel.queue_delete(name)
    channel.basic_publish("", name, b"2", PERSISTENT)


def test_confirms_outstanding_when_the_queue_is_deleted_are_acks(wire: Wire, name: str) -> None:
    client = wire().open().channel(1)
    client.declare(1, name, durable=True)
    client.send_method(1, spec.Confirm.Select())
    client.expect(spec.Confirm.SelectOk)
    one = publish_bytes(1, "", name, b"x" * 5000, properties=spec.BasicProperties(delivery_mode=2))
    client.send(one * 50)
    client.send_method(1, spec.Queue.Delete(queue=name))
    highest, deleted = 0, False
    while highest < 50 or not deleted:
        _, method = client.read_method(1)
        if isinstance(method, spec.Queue.DeleteOk):
            deleted = True
        else:
            assert isinstance(method, spec.Basic.Ack), method
            highest = max(highest, method.delivery_tag)


def test_a_mandatory_message_after_one_that_was_routed_is_confirmed_too(
    channel: BlockingChannel, name: str
) -> None:
    queue = queue_of(channel)
    channel.confirm_delivery()
    channel.basic_publish("", queue, b"1", mandatory=True)
    with pytest.raises(UnroutableError):
        channel.basic_publish("", f"{name}.none", b"2", mandatory=True)
    channel.basic_publish("", queue, b"3", mandatory=True)
    assert get_all(channel, queue) == [b"1", b"3"]


def test_a_queue_that_refuses_and_a_dead_letter_queue_that_is_full(
    channel: BlockingChannel,
) -> None:
    """The refused publish is nacked whatever becomes of its dead letter."""
    graveyard = queue_of(channel, x_max_length=1, x_overflow="reject-publish")
    queue = queue_of(
        channel,
        x_max_length=1,
        x_overflow="reject-publish-dlx",
        x_dead_letter_exchange="",
        x_dead_letter_routing_key=graveyard,
    )
    channel.confirm_delivery()
    assert [is_taken(channel, queue, b"%d" % n) for n in range(4)] == [True, False, False, False]
    assert get_all(channel, queue) == [b"0"]
    assert get_all(channel, graveyard) == [b"1"]


def test_a_refused_message_makes_no_conflict_with_the_confirm_of_another_queue(
    channel: BlockingChannel, exchange: Callable[..., str]
) -> None:
    """One answer for each publish, be the queues in memory, on disk, or refusing."""
    everywhere = exchange("fanout")
    full = queue_of(channel, x_max_length=0, x_overflow="reject-publish")
    lazy = queue_of(channel, x_queue_mode="lazy")
    for queue in (full, lazy):
        channel.queue_bind(queue, everywhere)
    channel.confirm_delivery()
    assert [is_taken(channel, "", b"%d" % n, everywhere) for n in range(20)] == [False] * 20
    assert get_all(channel, lazy) == [b"%d" % n for n in range(20)]


@pytest.mark.parametrize("overflow", ["reject-publish", "reject-publish-dlx"])
def test_without_its_policy_a_queue_drops_from_the_head_again(
    broker: Target, channel: BlockingChannel, name: str, overflow: str
) -> None:
    broker.ctl("set_policy", name, f"^{name}", json.dumps({"max-length": 1, "overflow": overflow}))
    try:
        queue = queue_of(channel, f"{name}.q")
        channel.confirm_delivery()
        assert [is_taken(channel, queue, body) for body in (b"1", b"2")] == [True, False]
        broker.ctl("set_policy", name, f"^{name}", json.dumps({"max-length": 1}))
        assert is_taken(channel, queue, b"3")
        assert get_all(channel, queue) == [b"3"]
    finally:
        broker.ctl("clear_policy", name)


def test_a_refusing_queue_that_was_emptied_accepts_again(channel: BlockingChannel) -> None:
    queue = queue_of(channel, x_max_length=1, x_overflow="reject-publish")
    channel.confirm_delivery()
    for body in (b"1", b"2", b"3"):
        assert is_taken(channel, queue, body)
        assert not is_taken(channel, queue, b"no")
        method, _, got = get_one(channel, queue)
        assert got == body
        channel.basic_ack(method.delivery_tag)


def test_an_error_behind_publishes_does_not_undo_them(
    connect: Connect, channel: BlockingChannel, name: str
) -> None:
    queue = queue_of(channel)
    other = connect().channel()
    publish(other, queue, b"1", b"2")
    with pytest.raises(ChannelClosedByBroker):
        other.queue_declare(f"{name}.none", passive=True)
    wait_ready(channel, queue, 2)


def test_transient_messages_are_confirmed_without_waiting_for_a_consumer(
    channel: BlockingChannel,
) -> None:
    queue = queue_of(channel)
    channel.confirm_delivery()
    assert is_taken(channel, queue)
    assert ready(channel, queue) == 1
