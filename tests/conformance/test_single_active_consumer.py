"""Single active consumer: one gets everything, and who comes after it.

Source: the classic queue cases of RabbitMQ's suite of that name.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection

from tests.support.black_box import (
    Taken,
    channel_error,
    drop,
    eventually,
    get_one,
    publish,
    queue_of,
    wait_ready,
)
from tests.support.broker_process import Target

Connect = Callable[..., BlockingConnection]


def shared_queue(channel: BlockingChannel) -> str:
    return queue_of(channel, x_single_active_consumer=True)


def skip_where_the_queue_crashes(broker: Target) -> None:
    if broker.is_rabbitmq_3_10:
        pytest.skip(
            "3.10.8 elects the next one, gives it nothing, and crashes the queue at the next publish"
        )


def numbered(first: int, last: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, last)]


def test_all_messages_go_to_the_first_consumer(connect: Connect) -> None:
    connection = connect()
    channel = connection.channel()
    queue = shared_queue(channel)
    consumers = [Taken(connection.channel(), queue, auto_ack=True) for _ in range(3)]
    publish(channel, queue, *numbered(0, 30))
    assert consumers[0].wait(30) == numbered(0, 30)
    assert consumers[1].bodies == consumers[2].bodies == []


def test_consumers_follow_each_other_in_the_order_in_which_they_came(connect: Connect) -> None:
    connection = connect()
    channel = connection.channel()
    queue = shared_queue(channel)
    consumers = [Taken(channel, queue, auto_ack=True) for _ in range(3)]
    for number, consumer in enumerate(consumers):
        publish(channel, queue, b"%d" % number)
        assert consumer.wait(1) == [b"%d" % number]
        channel.basic_cancel(consumer.tag)
    publish(channel, queue, b"nobody")
    assert get_one(channel, queue)[2] == b"nobody"


def test_what_the_cancelled_one_holds_stays_its_own_until_acked(
    broker: Target, connect: Connect
) -> None:
    skip_where_the_queue_crashes(broker)
    channel = connect().channel()
    queue = shared_queue(channel)
    channel.basic_qos(prefetch_count=2)
    first, second = Taken(channel, queue), Taken(channel, queue)
    publish(channel, queue, *numbered(0, 4))
    assert first.wait(2) == numbered(0, 2)
    channel._impl.basic_cancel(first.tag)
    assert second.wait(2) == numbered(2, 4), "it goes on with what was not handed out"
    for method, _ in first.messages:
        channel.basic_ack(method.delivery_tag)


def test_with_a_prefetch_of_one_the_next_starts_behind_what_is_unacked(
    broker: Target, connect: Connect
) -> None:
    skip_where_the_queue_crashes(broker)
    connection = connect()
    channel = connection.channel()
    queue = shared_queue(channel)
    channel.basic_qos(prefetch_count=1)
    first, second = Taken(channel, queue), Taken(channel, queue)
    publish(channel, queue, *numbered(0, 3))
    first.wait(1)
    channel._impl.basic_cancel(first.tag)
    assert second.wait(1) == [b"1"]
    channel.basic_ack(second.messages[0][0].delivery_tag)
    assert second.wait(2) == [b"1", b"2"]


def test_an_active_consumer_that_may_take_no_more_is_not_passed_over(connect: Connect) -> None:
    connection = connect()
    channel = connection.channel()
    queue = shared_queue(channel)
    channel.basic_qos(prefetch_count=1)
    first, second = Taken(channel, queue), Taken(channel, queue)
    publish(channel, queue, b"1", b"2")
    first.wait(1)
    wait_ready(channel, queue, 1)
    assert second.bodies == []
    channel.basic_ack(first.messages[0][0].delivery_tag)
    assert first.wait(2) == [b"1", b"2"]


def test_the_channel_of_the_active_one_ends_and_its_messages_go_to_the_next(
    connect: Connect,
) -> None:
    connection = connect()
    channel = connection.channel()
    queue = shared_queue(channel)
    leaving = connection.channel()
    first = Taken(leaving, queue)
    second = Taken(channel, queue)
    publish(channel, queue, *numbered(0, 3))
    first.wait(3)
    leaving.close()
    assert second.wait(3) == numbered(0, 3)
    assert all(method.redelivered for method, _ in second.messages)


def test_the_connection_of_the_active_one_is_cut_and_the_next_goes_on(
    connect: Connect, name: str
) -> None:
    channel = connect().channel()
    channel.queue_declare(name, auto_delete=True, arguments={"x-single-active-consumer": True})
    leaving = connect()
    first = Taken(leaving.channel(), name)
    second = Taken(channel, name)
    publish(channel, name, b"1")
    first.wait(1)
    drop(leaving)
    assert second.wait(1) == [b"1"]


def test_a_newcomer_of_higher_priority_waits_but_is_elected_first(connect: Connect) -> None:
    connection = connect()
    channel = connection.channel()
    queue = shared_queue(channel)
    first, second = Taken(channel, queue, auto_ack=True), Taken(channel, queue, auto_ack=True)
    high = Taken(channel, queue, auto_ack=True, arguments={"x-priority": 9})
    publish(channel, queue, b"1")
    assert first.wait(1) == [b"1"]
    channel.basic_cancel(first.tag)
    publish(channel, queue, b"2")
    assert high.wait(1) == [b"2"]
    assert second.bodies == []


def test_an_exclusive_consumer_is_refused_whether_first_or_second(connect: Connect) -> None:
    connection = connect()
    channel = connection.channel()
    queue = shared_queue(channel)
    text = f"queue '{queue}' in vhost '/' in exclusive use"
    with channel_error(403, text):
        Taken(connection.channel(), queue, exclusive=True)
    taken = Taken(channel, queue, auto_ack=True)
    with channel_error(403, text):
        Taken(connection.channel(), queue, exclusive=True)
    publish(channel, queue, b"1")
    assert taken.wait(1) == [b"1"]


def test_fetching_is_not_bound_to_the_active_consumer(connect: Connect) -> None:
    connection = connect()
    channel = connection.channel()
    queue = shared_queue(channel)
    channel.basic_qos(prefetch_count=1)
    active = Taken(channel, queue)
    publish(channel, queue, b"1", b"2")
    active.wait(1)
    assert get_one(connection.channel(), queue)[2] == b"2"
    eventually(lambda: active.bodies == [b"1"])


def hand_over(
    leaving: BlockingConnection, staying: BlockingConnection, times: int, *, is_exclusive: bool
) -> list[list[bytes]]:
    """So often a consumer holds the first of four and closes its channel; what the next one got each time."""
    channel = staying.channel()
    outcomes = []
    for _ in range(times):
        queue = f"handed-over-{uuid.uuid4()}"
        channel.queue_declare(queue, arguments={"x-single-active-consumer": not is_exclusive})
        first_channel, second_channel = leaving.channel(), staying.channel()
        first_channel.basic_qos(prefetch_count=1)
        first = Taken(first_channel, queue, exclusive=is_exclusive)
        second = None if is_exclusive else Taken(second_channel, queue)
        publish(channel, queue, *numbered(0, 4))
        first.wait(1)
        wait_ready(channel, queue, 3)
        first_channel.close()
        second = second or Taken(second_channel, queue)
        outcomes.append(second.wait(4))
        second_channel.close()
        channel.queue_delete(queue)
    return outcomes


@pytest.mark.parametrize("is_exclusive", [False, True])
def test_pika_closes_a_channel_and_the_next_begins_with_what_it_held(
    connect: Connect, is_exclusive: bool
) -> None:
    """pika cancels the channel's consumers and waits for the answers before it sends channel.close."""
    outcomes = hand_over(connect(), connect(), 50, is_exclusive=is_exclusive)
    assert outcomes == [numbered(0, 4)] * 50


@pytest.mark.long
def test_pika_closes_a_channel_a_thousand_times(connect: Connect) -> None:
    outcomes = hand_over(connect(), connect(), 1000, is_exclusive=False)
    assert outcomes == [numbered(0, 4)] * 1000


def test_a_connection_is_closed_and_the_next_begins_with_what_it_held(connect: Connect) -> None:
    staying = connect()
    channel = staying.channel()
    outcomes = []
    for _ in range(10):
        other = connect()
        mine = other.channel()
        mine.basic_qos(prefetch_count=1)
        queue = f"handed-over-{uuid.uuid4()}"
        channel.queue_declare(queue, arguments={"x-single-active-consumer": True})
        first, second = Taken(mine, queue), Taken(channel, queue)
        publish(channel, queue, *numbered(0, 4))
        first.wait(1)
        wait_ready(channel, queue, 3)
        other.close()
        outcomes.append(second.wait(4))
        channel.queue_delete(queue)
    assert outcomes == [numbered(0, 4)] * 10
