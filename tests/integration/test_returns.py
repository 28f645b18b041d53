"""Mandatory messages that come back faster than their publisher reads."""

from __future__ import annotations

from collections.abc import Callable

import pika
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection

COUNT = 2000
BODY = b"x" * 20_000


def test_a_publisher_of_forty_megabytes_of_returns_is_slowed_and_not_dropped(
    connect: Callable[..., BlockingConnection],
) -> None:
    channel: BlockingChannel = connect().channel()
    returned: list[int] = []
    channel.add_on_return_callback(lambda *_: returned.append(1))
    for _ in range(COUNT):
        channel.basic_publish("", "nobody.there", BODY, pika.BasicProperties(), mandatory=True)
    while len(returned) < COUNT:
        channel.connection.process_data_events(1)
    assert len(returned) == COUNT
