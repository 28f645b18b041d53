"""Messages far larger than any buffer limit of a connection, with a real client."""

from __future__ import annotations

import hashlib

import pytest
from pika import spec
from pika.adapters.blocking_connection import BlockingChannel

from tests.support.black_box import eventually, ready
from tests.support.broker_process import Target
from tests.support.wire_client import HEADER, WireClient, publish_bytes

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


def test_who_takes_a_large_message_slowly_is_read_and_answered_meanwhile(
    broker: Target, channel: BlockingChannel
) -> None:
    small = channel.queue_declare("", exclusive=True).method.queue
    with WireClient(broker.host, broker.port) as slow:
        slow.open().channel(1).channel(2)
        large = slow.declare(1, exclusive=True)
        slow.send_method(2, spec.Confirm.Select())
        slow.expect(spec.Confirm.SelectOk)
        slow.send_method(1, spec.Basic.Consume(queue=large, no_ack=True))
        slow.expect(spec.Basic.ConsumeOk)
        channel.basic_publish("", large, BODY)
        slow.expect(spec.Basic.Deliver)
        for count in range(1, 6):
            slow.send(publish_bytes(2, "", small, b"x"))
            eventually(lambda count=count: ready(channel, small) == count)
        assert slow.read_frame()[0] == HEADER
        size = 0
        while size < len(BODY):
            size += len(slow.read_frame()[2])
        for count in range(1, 6):
            assert slow.expect(spec.Basic.Ack).delivery_tag == count
