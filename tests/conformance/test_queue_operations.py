"""Every way to take a message and to settle it, on queues of each kind.

Source: the cases of RabbitMQ's queue suite that all queue types share; the same cases run on a durable queue, a transient
one and a lazy one, with messages in memory and messages on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection

from tests.support.black_box import (
    PERSISTENT,
    Taken,
    channel_error,
    drop,
    eventually,
    get_all,
    get_one,
    queue_of,
    ready,
    wait_ready,
)

Connect = Callable[..., BlockingConnection]
Filled = Callable[[int], str]
KINDS = {
    "durable, version 2": (True, {"x-queue-version": 2}),
    "transient": (False, {}),
    "lazy": (True, {"x-queue-mode": "lazy"}),
    "version 1": (True, {"x-queue-version": 1}),
}


@pytest.fixture(params=KINDS)
def filled(
    request: pytest.FixtureRequest, connect: Connect, name: str
) -> Iterator[Callable[[int], str]]:
    """Yield a maker of one queue of the kind with so many numbered messages, half of them transient."""
    durable, arguments = KINDS[request.param]
    channel = connect().channel()

    def fill(count: int) -> str:
        channel.queue_declare(name, durable=durable, arguments=arguments)
        for number in range(count):
            properties = PERSISTENT if number % 2 else None
            channel.basic_publish("", name, b"%d" % number, properties)
        wait_ready(channel, name, count)
        return name

    yield fill
    channel.queue_delete(name)


def numbered(*numbers: int) -> list[bytes]:
    return [b"%d" % number for number in numbers]


def tags_of(channel: BlockingChannel, queue: str, count: int) -> list[int]:
    """Fetch so many messages and return their delivery tags."""
    return [get_one(channel, queue)[0].delivery_tag for _ in range(count)]


def settled(connect: Connect, queue: str, left: list[bytes]) -> None:
    """Nothing but these is there for somebody else, and none of it is held back."""
    other = connect().channel()
    wait_ready(other, queue, len(left))
    assert get_all(other, queue) == left


# -- by basic.get ------------------------------------------------------------------------------------------------


def test_get_takes_the_oldest_and_says_when_there_is_none(
    channel: BlockingChannel, filled: Filled
) -> None:
    queue = filled(3)
    assert [get_one(channel, queue)[2] for _ in range(3)] == numbered(0, 1, 2)
    assert channel.basic_get(queue)[0] is None


def test_get_from_a_queue_that_was_always_empty(channel: BlockingChannel, filled: Filled) -> None:
    assert channel.basic_get(filled(0)) == (None, None, None)


def test_get_with_auto_ack_leaves_nothing_to_settle(
    connect: Connect, channel: BlockingChannel, filled: Filled
) -> None:
    queue = filled(2)
    assert get_all(channel, queue) == numbered(0, 1)
    channel.connection.close()
    settled(connect, queue, [])


@pytest.mark.parametrize(
    ("act", "options", "left"),
    [
        ("ack", {}, (0, 1, 3)),
        ("ack", {"multiple": True}, (3,)),
        ("nack", {"requeue": False}, (0, 1, 3)),
        ("nack", {"requeue": False, "multiple": True}, (3,)),
        ("nack", {"requeue": True}, (0, 1, 2, 3)),
        ("nack", {"requeue": True, "multiple": True}, (0, 1, 2, 3)),
        ("reject", {"requeue": False}, (0, 1, 3)),
        ("reject", {"requeue": True}, (0, 1, 2, 3)),
    ],
    ids=str,
)
@pytest.mark.parametrize("way", ["get", "consume"])
def test_the_third_of_four_is_settled(
    connect: Connect,
    filled: Filled,
    way: str,
    act: str,
    options: dict[str, Any],
    left: tuple[int, ...],
) -> None:
    """What was not settled comes back when the channel ends; nothing else does."""
    queue = filled(4)
    connection = connect()
    channel = connection.channel()
    if way == "get":
        tags = tags_of(channel, queue, 3)
    else:
        channel.basic_qos(prefetch_count=3)
        taken = Taken(channel, queue)
        taken.wait(3)
        tags = [method.delivery_tag for method, _ in taken.messages]
    getattr(channel, f"basic_{act}")(tags[2], **options)
    channel.basic_qos(prefetch_count=3)  # answered: the broker has read what was sent before
    drop(connection)
    settled(connect, queue, numbered(*left))


# -- by basic.consume --------------------------------------------------------------------------------------------


def test_a_consumer_gets_everything_in_order(channel: BlockingChannel, filled: Filled) -> None:
    queue = filled(50)
    assert Taken(channel, queue).wait(50) == numbered(*range(50))


def test_a_consumer_with_auto_ack_leaves_nothing(
    connect: Connect, channel: BlockingChannel, filled: Filled
) -> None:
    queue = filled(20)
    assert Taken(channel, queue, auto_ack=True).wait(20) == numbered(*range(20))
    channel.connection.close()
    settled(connect, queue, [])


def test_a_consumer_waits_for_what_is_published_later(
    channel: BlockingChannel, filled: Filled
) -> None:
    queue = filled(0)
    taken = Taken(channel, queue)
    for number in range(20):
        channel.basic_publish("", queue, b"%d" % number)
    assert taken.wait(20) == numbered(*range(20))


def test_the_number_of_consumers_is_told(connect: Connect, filled: Filled) -> None:
    queue = filled(0)
    channels = [connect().channel() for _ in range(3)]
    consumers = [Taken(channel, queue) for channel in channels]
    declared = channels[0].queue_declare(queue, passive=True).method
    assert declared.consumer_count == 3
    channels[0].basic_cancel(consumers[0].tag)
    assert channels[0].queue_declare(queue, passive=True).method.consumer_count == 2
    channels[1].connection.close()
    eventually(lambda: channels[0].queue_declare(queue, passive=True).method.consumer_count == 1)


def test_nothing_comes_after_the_consumer_was_cancelled(
    channel: BlockingChannel, filled: Filled
) -> None:
    queue = filled(1)
    taken = Taken(channel, queue, auto_ack=True)
    taken.wait(1)
    channel.basic_cancel(taken.tag)
    channel.basic_publish("", queue, b"later")
    wait_ready(channel, queue, 1)
    assert taken.bodies == numbered(0)


@pytest.mark.parametrize("multiple", [False, True])
def test_what_a_consumer_gives_back_is_delivered_again_and_flagged(
    channel: BlockingChannel, filled: Filled, multiple: bool
) -> None:
    queue = filled(3)
    channel.basic_qos(prefetch_count=3)
    taken = Taken(channel, queue)
    taken.wait(3)
    assert [method.redelivered for method, _ in taken.messages] == [False] * 3
    tags = [method.delivery_tag for method, _ in taken.messages]
    for tag in tags[-1:] if multiple else tags:
        channel.basic_nack(tag, multiple=multiple)
    assert sorted(taken.wait(6)[3:]) == numbered(0, 1, 2)
    assert [method.redelivered for method, _ in taken.messages[3:]] == [True] * 3


def test_recover_delivers_what_is_unacked_again(channel: BlockingChannel, filled: Filled) -> None:
    queue = filled(3)
    channel.basic_qos(prefetch_count=3)
    taken = Taken(channel, queue)
    taken.wait(3)
    channel.basic_recover(requeue=True)
    assert taken.wait(6)[3:] == numbered(0, 1, 2)
    assert all(method.redelivered for method, _ in taken.messages[3:])


# -- purge -------------------------------------------------------------------------------------------------------


def test_purge_leaves_what_consumers_hold(
    connect: Connect, channel: BlockingChannel, filled: Filled
) -> None:
    queue = filled(5)
    connection = connect()
    tags_of(connection.channel(), queue, 2)
    assert channel.queue_purge(queue).method.message_count == 3
    assert ready(channel, queue) == 0
    connection.close()
    settled(connect, queue, numbered(0, 1))


def test_purge_without_consumers_empties_the_queue(
    channel: BlockingChannel, filled: Filled
) -> None:
    queue = filled(100)
    assert channel.queue_purge(queue).method.message_count == 100
    assert get_all(channel, queue) == []
    channel.basic_publish("", queue, b"next")
    assert get_one(channel, queue)[2] == b"next"


# -- arguments that do not fit together --------------------------------------------------------------------------


def test_a_consumer_tag_is_its_channels_own(connect: Connect) -> None:
    """The same tag on two channels names two consumers."""
    connection = connect()
    first, second = connection.channel(), connection.channel()
    queue = queue_of(first)
    one = Taken(first, queue, consumer_tag="t", auto_ack=True)
    two = Taken(second, queue, consumer_tag="t", auto_ack=True)
    for number in range(4):
        first.basic_publish("", queue, b"%d" % number)
    eventually(
        lambda: connection.process_data_events(0.01) or len(one.bodies) + len(two.bodies) == 4
    )
    assert sorted(one.bodies + two.bodies) == numbered(0, 1, 2, 3)


def test_a_consumer_on_another_connections_exclusive_queue_is_405(connect: Connect) -> None:
    queue = queue_of(connect().channel())
    text = (
        f"cannot obtain exclusive access to locked queue '{queue}' in vhost '/'. It could be originally declared on"
        " another connection or the exclusive property value does not match that of the original declaration."
    )
    with channel_error(405, text):
        Taken(connect().channel(), queue)
