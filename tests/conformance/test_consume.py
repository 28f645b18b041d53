"""Consuming: dispatch, prefetch of both kinds, acks, requeue, recover, cancel, priorities.

Source: RabbitMQ's channel, queue consumer and limiter modules, observed on a live 3.10 node.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pika import spec
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection

from tests.support.black_box import (
    Taken,
    channel_error,
    connection_error,
    eventually,
    get_all,
    get_one,
    publish,
    queue_of,
    wait_ready,
)
from tests.support.wire_client import WireClient, publish_bytes

Connect = Callable[..., BlockingConnection]
Wire = Callable[[], WireClient]


@pytest.mark.parametrize("act", ["ack", "nack", "reject"])
def test_unknown_delivery_tags_are_406(channel: BlockingChannel, act: str) -> None:
    queue = queue_of(channel)
    with channel_error(406, "unknown delivery tag 7"):
        getattr(channel, f"basic_{act}")(7)
        channel.basic_get(queue)


def test_acking_twice_is_406(channel: BlockingChannel) -> None:
    queue = queue_of(channel)
    publish(channel, queue, b"1")
    tag = get_one(channel, queue)[0].delivery_tag
    channel.basic_ack(tag)
    with channel_error(406, f"unknown delivery tag {tag}"):
        channel.basic_ack(tag)
        channel.basic_get(queue)


def test_acking_a_no_ack_delivery_is_406(channel: BlockingChannel) -> None:
    queue = queue_of(channel)
    publish(channel, queue, b"1")
    method = eventually(lambda: channel.basic_get(queue, auto_ack=True)[0])
    with channel_error(406, f"unknown delivery tag {method.delivery_tag}"):
        channel.basic_ack(method.delivery_tag)
        channel.basic_get(queue)


def test_tag_zero_with_multiple_is_all_and_never_an_error(channel: BlockingChannel) -> None:
    queue = queue_of(channel)
    channel.basic_ack(0, multiple=True)
    publish(channel, queue, b"1", b"2")
    get_one(channel, queue)
    get_one(channel, queue)
    channel.basic_ack(0, multiple=True)
    channel.basic_recover(requeue=True)
    assert get_all(channel, queue) == []


def test_tag_zero_without_multiple_is_406(channel: BlockingChannel) -> None:
    queue = queue_of(channel)
    publish(channel, queue, b"1")
    get_one(channel, queue)
    with channel_error(406, "unknown delivery tag 0"):
        channel.basic_ack(0)
        channel.basic_get(queue)


def test_multiple_needs_its_own_tag_to_be_outstanding(channel: BlockingChannel) -> None:
    queue = queue_of(channel)
    publish(channel, queue, b"1", b"2", b"3")
    tags = [get_one(channel, queue)[0].delivery_tag for _ in range(3)]
    channel.basic_ack(tags[1])
    with channel_error(406, f"unknown delivery tag {tags[1]}"):
        channel.basic_ack(tags[1], multiple=True)
        channel.basic_get(queue)


def test_multiple_acks_everything_up_to_its_tag(channel: BlockingChannel) -> None:
    queue = queue_of(channel)
    publish(channel, queue, b"1", b"2", b"3")
    tags = [get_one(channel, queue)[0].delivery_tag for _ in range(3)]
    channel.basic_ack(tags[1], multiple=True)
    channel.basic_nack(tags[2])
    assert get_all(channel, queue) == [b"3"]


def test_requeued_messages_return_to_their_place(channel: BlockingChannel) -> None:
    queue = queue_of(channel)
    publish(channel, queue, *[b"%d" % n for n in range(6)])
    tags = [get_one(channel, queue)[0].delivery_tag for _ in range(4)]
    channel.basic_nack(tags[2])
    channel.basic_nack(tags[0])
    rest = [get_one(channel, queue) for _ in range(4)]
    assert [body for _, _, body in rest] == [b"0", b"2", b"4", b"5"]
    assert [method.redelivered for method, _, _ in rest] == [True, True, False, False]
    channel.basic_reject(tags[1])
    channel.basic_reject(tags[3])
    assert get_all(channel, queue) == [b"1", b"3"]


def test_unacked_messages_return_when_the_channel_closes(connect: Connect) -> None:
    connection = connect()
    other = connection.channel()
    queue = queue_of(other)
    publish(other, queue, b"1", b"2", b"3")
    channel = connection.channel()
    taken = Taken(channel, queue)
    taken.wait(3)
    channel.close()
    messages = [get_one(other, queue) for _ in range(3)]
    assert [body for _, _, body in messages] == [b"1", b"2", b"3"]
    assert all(method.redelivered for method, _, _ in messages)


def test_recover_requeues_everything(channel: BlockingChannel) -> None:
    queue = queue_of(channel)
    publish(channel, queue, b"1", b"2")
    get_one(channel, queue)
    get_one(channel, queue)
    channel.basic_recover(requeue=True)
    wait_ready(channel, queue, 2)
    method, _, body = get_one(channel, queue)
    assert (method.redelivered, body) == (True, b"1")


def test_recover_without_requeue_is_540(channel: BlockingChannel) -> None:
    with connection_error(540, "requeue=false"):
        channel.basic_recover(requeue=False)


def test_rejecting_without_requeue_drops(channel: BlockingChannel) -> None:
    queue = queue_of(channel)
    publish(channel, queue, b"1", b"2")
    channel.basic_reject(get_one(channel, queue)[0].delivery_tag, requeue=False)
    assert get_all(channel, queue) == [b"2"]


def test_get_ok_counts_what_is_left(channel: BlockingChannel) -> None:
    queue = queue_of(channel)
    publish(channel, queue, b"1", b"2", b"3")
    wait_ready(channel, queue, 3)
    assert [channel.basic_get(queue)[0].message_count for _ in range(3)] == [2, 1, 0]


def test_tags_are_counted_per_channel_and_over_all_deliveries(connect: Connect) -> None:
    connection = connect()
    channel, other = connection.channel(), connection.channel()
    queue = queue_of(channel)
    publish(channel, queue, b"1", b"2", b"3")
    tags = [
        eventually(lambda: channel.basic_get(queue, auto_ack=True)[0]).delivery_tag,
        get_one(channel, queue)[0].delivery_tag,
        get_one(other, queue)[0].delivery_tag,
    ]
    assert tags == [1, 2, 1]


def test_per_consumer_prefetch_limits_each_new_consumer(channel: BlockingChannel) -> None:
    queue = queue_of(channel)
    publish(channel, queue, *[b"%d" % n for n in range(20)])
    channel.basic_qos(prefetch_count=3)
    first = Taken(channel, queue)
    second = Taken(channel, queue)
    first.wait(3)
    second.wait(3)
    wait_ready(channel, queue, 14)
    channel.basic_ack(first.messages[0][0].delivery_tag)
    first.wait(4)
    wait_ready(channel, queue, 13)


def test_global_prefetch_is_shared_by_the_channel(channel: BlockingChannel) -> None:
    queue = queue_of(channel)
    publish(channel, queue, *[b"%d" % n for n in range(20)])
    channel.basic_qos(prefetch_count=5, global_qos=True)
    first, second = Taken(channel, queue), Taken(channel, queue)
    wait_ready(channel, queue, 15)
    eventually(
        lambda: (
            channel.connection.process_data_events(0.01)
            or len(first.messages) + len(second.messages) == 5
        )
    )
    channel.basic_qos(prefetch_count=8, global_qos=True)
    wait_ready(channel, queue, 12)
    channel.basic_qos(prefetch_count=0, global_qos=True)
    wait_ready(channel, queue, 0)


def test_no_ack_consumers_are_not_limited(channel: BlockingChannel) -> None:
    queue = queue_of(channel)
    channel.basic_qos(prefetch_count=1)
    publish(channel, queue, *[b"%d" % n for n in range(300)])
    taken = Taken(channel, queue, auto_ack=True)
    assert taken.wait(300) == [b"%d" % n for n in range(300)]


def test_get_ignores_prefetch(channel: BlockingChannel) -> None:
    queue = queue_of(channel)
    channel.basic_qos(prefetch_count=1)
    publish(channel, queue, b"1", b"2", b"3")
    assert [get_one(channel, queue)[2] for _ in range(3)] == [b"1", b"2", b"3"]


def test_prefetch_size_is_540(channel: BlockingChannel) -> None:
    with connection_error(540, "prefetch_size!=0 (10)"):
        channel.basic_qos(prefetch_size=10)


def test_round_robin_between_equal_consumers(channel: BlockingChannel) -> None:
    queue = queue_of(channel)
    consumers = [Taken(channel, queue) for _ in range(3)]
    publish(channel, queue, *[b"%d" % n for n in range(9)])
    for consumer in consumers:
        consumer.wait(3)
    assert sorted(consumer.bodies for consumer in consumers) == [
        [b"0", b"3", b"6"],
        [b"1", b"4", b"7"],
        [b"2", b"5", b"8"],
    ]


def test_the_highest_consumer_priority_is_served_first(channel: BlockingChannel) -> None:
    queue = queue_of(channel)
    channel.basic_qos(prefetch_count=2)
    low = Taken(channel, queue)
    high = Taken(channel, queue, arguments={"x-priority": 10})
    publish(channel, queue, b"1", b"2", b"3")
    assert high.wait(2) == [b"1", b"2"]
    assert low.wait(1) == [b"3"]


def test_exclusive_consumers(connect: Connect) -> None:
    connection = connect()
    channel = connection.channel()
    queue = queue_of(channel)
    text = f"queue '{queue}' in vhost '/' in exclusive use"
    Taken(channel, queue, exclusive=True)
    with channel_error(403, text):
        Taken(connection.channel(), queue)
    other = queue_of(channel)
    Taken(channel, other)
    with channel_error(403, f"queue '{other}' in vhost '/' in exclusive use"):
        Taken(connection.channel(), other, exclusive=True)


def test_single_active_consumer_and_its_successor(channel: BlockingChannel) -> None:
    queue = queue_of(channel, x_single_active_consumer=True)
    first, second = Taken(channel, queue, auto_ack=True), Taken(channel, queue, auto_ack=True)
    publish(channel, queue, b"1", b"2")
    assert first.wait(2) == [b"1", b"2"]
    channel.basic_cancel(first.tag)
    publish(channel, queue, b"3")
    assert second.wait(1) == [b"3"]


def test_cancel_leaves_unacked_messages_outstanding(connect: Connect) -> None:
    connection = connect()
    channel = connection.channel()
    queue = queue_of(channel)
    publish(channel, queue, b"1")
    taken = Taken(channel, queue)
    taken.wait(1)
    channel._impl.basic_cancel(taken.tag)
    wait_ready(channel, queue, 0)
    channel.basic_ack(taken.messages[0][0].delivery_tag)
    assert get_all(channel, queue) == []


def test_cancelling_an_unknown_tag_is_answered(wire: Wire) -> None:
    client = wire().open().channel(1)
    client.send_method(1, spec.Basic.Cancel(consumer_tag="nobody"))
    assert client.expect(spec.Basic.CancelOk).consumer_tag == "nobody"


def test_consume_ok_comes_before_the_first_delivery(wire: Wire) -> None:
    client = wire().open().channel(1)
    queue = client.declare(1, exclusive=True)
    client.send(publish_bytes(1, "", queue, b"x"))
    client.send_method(1, spec.Basic.Consume(queue=queue))
    tag = client.expect(spec.Basic.ConsumeOk).consumer_tag
    assert tag.startswith("amq.ctag-")
    assert len(tag) == len("amq.ctag-") + 22
    method, _, body = client.read_content()
    assert (method.consumer_tag, method.delivery_tag, body) == (tag, 1, b"x")


@pytest.mark.parametrize("capable", [True, False])
def test_a_deleted_queue_cancels_its_consumers_that_want_to_know(
    wire: Wire, name: str, capable: bool
) -> None:
    client = wire().open(capabilities={"consumer_cancel_notify": capable}).channel(1)
    client.declare(1, name)
    client.send(publish_bytes(1, "", name, b"x"))
    client.send_method(1, spec.Basic.Consume(queue=name, consumer_tag="t"))
    client.expect(spec.Basic.ConsumeOk)
    client.read_content()
    other = wire().open().channel(1)
    other.send_method(1, spec.Queue.Delete(queue=name))
    other.expect(spec.Queue.DeleteOk)
    if capable:
        cancel = client.expect(spec.Basic.Cancel)
        assert (cancel.consumer_tag, cancel.nowait) == ("t", True)
    client.send_method(1, spec.Basic.Ack(1))  # silently accepted
    client.send_method(1, spec.Basic.Qos())
    client.expect(spec.Basic.QosOk)


def test_consuming_a_missing_queue_is_404(channel: BlockingChannel, name: str) -> None:
    with channel_error(404, f"no queue '{name}' in vhost '/'"):
        channel.basic_consume(name, lambda *_: None)


def test_a_bad_consumer_priority_is_406(channel: BlockingChannel) -> None:
    queue = queue_of(channel)
    text = (
        f"invalid arg 'x-priority' for queue '{queue}' in vhost '/':"
        ' "expected integer, got longstr"'
    )
    with channel_error(406, text):
        channel.basic_consume(queue, lambda *_: None, arguments={"x-priority": "high"})
