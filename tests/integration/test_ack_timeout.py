"""A consumer that does not acknowledge in time loses its channel, on a whole node."""

from __future__ import annotations

from collections.abc import Callable

import pika
import pytest

from tests.support.black_box import drop, get_one
from tests.support.broker_process import BrokerProcess

pytestmark = pytest.mark.slow


def test_the_channel_is_closed_and_the_message_comes_back(
    own_broker: Callable[..., BrokerProcess],
) -> None:
    node = own_broker(consumer_timeout="1000")
    connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", node.amqp_port))
    channel = connection.channel()
    channel.queue_declare("q")
    channel.queue_declare("patient", arguments={"x-consumer-timeout": 60_000})
    patient = connection.channel()
    for queue in ("q", "patient"):
        channel.basic_publish("", queue, b"x")
    get_one(patient, "patient")
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as caught:
        for _ in channel.consume("q"):
            pass
    assert caught.value.reply_code == 406
    assert caught.value.reply_text == (
        "PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out. Timeout value used:"
        " 1000 ms. This timeout value can be configured, see consumers doc guide to learn more"
    )
    assert patient.is_open
    assert get_one(patient, "q")[0].redelivered
    assert "consumer_timed_out" in node.log_of_this_start()
    drop(connection)
