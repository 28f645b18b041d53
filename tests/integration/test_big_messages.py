"""Messages far larger than any buffer limit of a connection, with a real client."""

from __future__ import annotations

import hashlib

import pytest
from pika.adapters.blocking_connection import BlockingChannel

from tests.support.black_box import eventually, ready

BODY = bytes(range(256)) * (40 << 12)


@pytest.mark.parametrize("arguments", [{}, {"x-queue-mode": "lazy"}], ids=["default", "lazy"])
def test_a_message_of_40_mb_goes_in_and_out(
    channel: BlockingChannel, arguments: dict[str, str]
) -> None:
    queue = channel.queue_declare("", exclusive=True, arguments=arguments).method.queue
    for _ in range(2):
        channel.basic_publish("", queue, BODY)
    eventually(lambda: ready(channel, queue) == 2)
    for _ in range(2):
        _, _, body = channel.basic_get(queue, auto_ack=True)
        assert hashlib.sha256(body).digest() == hashlib.sha256(BODY).digest()
