"""Priority queues: order, settling, limits, and what a restart keeps.

Source: the cases of RabbitMQ's two priority queue suites that a client can see.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection
from pika.exceptions import NackError

from tests.support.black_box import (
    Taken,
    channel_error,
    drop,
    get_all,
    get_one,
    queue_of,
    ready,
    wait_ready,
)
from tests.support.broker_process import BrokerProcess, Target

Connect = Callable[..., BlockingConnection]


def put(channel: BlockingChannel, queue: str, *priorities: int, mode: int = 1) -> None:
    """Publish one message of each priority; its body is the priority and its place."""
    for place, priority in enumerate(priorities):
        properties = pika.BasicProperties(priority=priority, delivery_mode=mode)
        channel.basic_publish("", queue, b"%d.%d" % (priority, place), properties)


def levels(bodies: list[bytes]) -> list[int]:
    return [int(body.partition(b".")[0]) for body in bodies]


def test_every_level_comes_before_the_lower_ones(channel: BlockingChannel) -> None:
    queue = queue_of(channel, x_max_priority=5)
    put(channel, queue, *[number % 6 for number in range(60)])
    wait_ready(channel, queue, 60)
    assert levels(get_all(channel, queue)) == [n for n in range(5, -1, -1) for _ in range(10)]


def test_what_is_above_the_maximum_counts_as_the_maximum(channel: BlockingChannel) -> None:
    queue = queue_of(channel, x_max_priority=3)
    put(channel, queue, 3, 200, 0, 255, 3)
    assert levels(get_all(channel, queue)) == [3, 200, 255, 3, 0], "the octet itself is relayed"


def test_messages_for_waiting_consumers_go_straight_through(channel: BlockingChannel) -> None:
    queue = queue_of(channel, x_max_priority=5)
    taken = Taken(channel, queue, auto_ack=True)
    for priority in (1, 5, 3):
        put(channel, queue, priority)
        taken.wait(len(taken.bodies) + 1)
    assert levels(taken.bodies) == [1, 5, 3]


@pytest.mark.parametrize(
    ("value", "text"),
    [(256, "{max_value_exceeded,256}"), (-1, "{value_negative,-1}")],
)
def test_maxima_out_of_range_are_refused(
    channel: BlockingChannel, name: str, value: int, text: str
) -> None:
    with channel_error(
        406, f"invalid arg 'x-max-priority' for queue '{name}' in vhost '/': {text}"
    ):
        queue_of(channel, name, x_max_priority=value)


def test_a_maximum_of_255_has_all_levels(channel: BlockingChannel) -> None:
    queue = queue_of(channel, x_max_priority=255)
    put(channel, queue, 0, 255, 128)
    assert levels(get_all(channel, queue)) == [255, 128, 0]


def test_the_maximum_is_an_argument_that_is_compared(channel: BlockingChannel, name: str) -> None:
    queue_of(channel, name, x_max_priority=5)
    with channel_error(
        406,
        f"inequivalent arg 'x-max-priority' for queue '{name}' in vhost '/':"
        " received '6' but current is '5'",
    ):
        queue_of(channel, name, x_max_priority=6)


def test_all_that_was_given_back_is_in_order_again(connect: Connect) -> None:
    channel = connect().channel()
    queue = queue_of(channel, x_max_priority=5)
    put(channel, queue, 1, 5, 3, 5, 1)
    tags = [get_one(channel, queue)[0].delivery_tag for _ in range(5)]
    channel.basic_nack(tags[-1], multiple=True)
    wait_ready(channel, queue, 5)
    assert get_all(channel, queue) == [b"5.1", b"5.3", b"3.2", b"1.0", b"1.4"]


def test_what_is_held_does_not_keep_a_higher_one_waiting(channel: BlockingChannel) -> None:
    queue = queue_of(channel, x_max_priority=5)
    channel.basic_qos(prefetch_count=1)
    taken = Taken(channel, queue)
    put(channel, queue, 1)
    taken.wait(1)
    put(channel, queue, 1, 5)
    wait_ready(channel, queue, 2)
    channel.basic_ack(taken.messages[0][0].delivery_tag)
    assert levels(taken.wait(2)) == [1, 5]


def test_dropped_from_consumption_by_auto_ack(channel: BlockingChannel) -> None:
    queue = queue_of(channel, x_max_priority=2)
    put(channel, queue, 0, 1, 2)
    assert levels(get_all(channel, queue)) == [2, 1, 0]
    assert ready(channel, queue) == 0


def test_purge_empties_every_level(channel: BlockingChannel) -> None:
    queue = queue_of(channel, x_max_priority=5)
    put(channel, queue, *range(6))
    wait_ready(channel, queue, 6)
    assert channel.queue_purge(queue).method.message_count == 6
    assert get_all(channel, queue) == []


@pytest.mark.parametrize("overflow", ["reject-publish", "reject-publish-dlx"])
def test_a_full_queue_refuses_higher_priorities_as_well(
    channel: BlockingChannel, overflow: str
) -> None:
    graveyard = queue_of(channel)
    queue = queue_of(
        channel,
        x_max_priority=5,
        x_max_length=1,
        x_overflow=overflow,
        x_dead_letter_exchange="",
        x_dead_letter_routing_key=graveyard,
    )
    channel.confirm_delivery()
    put(channel, queue, 1)
    with pytest.raises(NackError):
        put(channel, queue, 5)
    assert levels(get_all(channel, queue)) == [1]
    assert levels(get_all(channel, graveyard)) == ([5] if overflow.endswith("dlx") else [])


def test_dead_letters_of_a_limit_are_the_heads_of_the_highest_level(
    channel: BlockingChannel,
) -> None:
    graveyard = queue_of(channel)
    queue = queue_of(
        channel,
        x_max_priority=5,
        x_max_length=2,
        x_dead_letter_exchange="",
        x_dead_letter_routing_key=graveyard,
    )
    put(channel, queue, 1, 5, 1, 3)
    wait_ready(channel, graveyard, 2)
    assert get_all(channel, graveyard) == [b"5.1", b"3.3"]
    assert get_all(channel, queue) == [b"1.0", b"1.2"]


def test_the_timestamp_of_the_head_is_told(broker: Target, channel: BlockingChannel) -> None:
    queue = queue_of(channel, x_max_priority=5)
    for priority, timestamp in ((1, 1000), (5, 2000)):
        properties = pika.BasicProperties(priority=priority, timestamp=timestamp)
        channel.basic_publish("", queue, b"x", properties)
    wait_ready(channel, queue, 2)
    rows = json.loads(
        broker.ctl("list_queues", "name", "head_message_timestamp", "--formatter", "json")
    )
    (row,) = [row for row in rows if row["name"] == queue]
    assert row["head_message_timestamp"] == 2000, "of what will be delivered next"


def test_a_column_that_does_not_exist_is_refused(broker: Target) -> None:
    with pytest.raises(Exception, match=r"unknown_info_key|non-zero exit status"):
        broker.ctl("list_queues", "name", "unknown_info_key")


@pytest.mark.slow
@pytest.mark.parametrize("end", ["stop", "kill"])
def test_levels_and_order_come_back_after_a_restart(
    own_broker: Callable[..., BrokerProcess], end: str
) -> None:
    node = own_broker()
    parameters = pika.ConnectionParameters("127.0.0.1", node.amqp_port, heartbeat=0)
    connection = BlockingConnection(parameters)
    channel = connection.channel()
    channel.queue_declare("q", durable=True, arguments={"x-max-priority": 3})
    channel.confirm_delivery()
    put(channel, "q", 1, 3, 0, 2, 3, 1, mode=2)
    getattr(node, end)()
    drop(connection)
    node.start()
    connection = BlockingConnection(parameters)
    channel = connection.channel()
    assert get_all(channel, "q") == [b"3.1", b"3.4", b"2.3", b"1.0", b"1.5", b"0.2"]
    put(channel, "q", 0, 3)
    assert levels(get_all(channel, "q")) == [3, 0]
    drop(connection)
