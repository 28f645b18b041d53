"""Consumer tags that are in use, of reply consumers among others; what an alternate exchange without a name does.

As RabbitMQ 3.10.8 answers. Covers: broker/channel/methods/basic.py
"""

from __future__ import annotations

from typing import Any

from pika import spec

from burrowmq.broker.channel.reply import PSEUDO_QUEUE
from tests.support.bench.broker import BrokerBench
from tests.support.bench.client import Client
from tests.support.wire_client import publish_bytes


def consuming() -> Client:
    client = BrokerBench().connect(1)
    client.call(1, spec.Queue.Declare(queue="q"), spec.Basic.Consume(queue="q", consumer_tag="t"))
    return client


def code(found: list[tuple[int, Any]]) -> int:
    ((_, close),) = found
    return int(close.reply_code)


def test_a_tag_in_use_comes_before_the_queue_that_is_missing() -> None:
    found = consuming().call(1, spec.Basic.Consume(queue="missing", consumer_tag="t"))
    assert code(found) == 530


def test_a_tag_in_use_comes_before_what_is_wrong_with_a_reply_consumer() -> None:
    again = spec.Basic.Consume(queue=PSEUDO_QUEUE, consumer_tag="t", no_ack=False)
    assert code(consuming().call(1, again)) == 530


def test_a_second_reply_consumer_that_would_acknowledge_is_told_that_first() -> None:
    client = BrokerBench().connect(1)
    client.call(1, spec.Basic.Consume(queue=PSEUDO_QUEUE, consumer_tag="t", no_ack=True))
    again = spec.Basic.Consume(queue=PSEUDO_QUEUE, consumer_tag="u", no_ack=False)
    _, text = client.refused(1, again)
    assert text == "PRECONDITION_FAILED - reply consumer cannot acknowledge"


def test_a_reply_consumers_tag_is_free_for_a_queue_and_its_cancel_takes_that_alone() -> None:
    client = BrokerBench().connect(1)
    client.call(1, spec.Queue.Declare(queue="q"))
    client.call(1, spec.Basic.Consume(queue=PSEUDO_QUEUE, consumer_tag="t", no_ack=True))
    ((_, ok),) = client.call(1, spec.Basic.Consume(queue="q", consumer_tag="t"))
    assert isinstance(ok, spec.Basic.ConsumeOk)
    client.call(1, spec.Basic.Cancel(consumer_tag="t"))
    assert set(client.session.channels[1].consumers) == {"t"}
    assert client.session.channels[1].reply_target is None


def test_an_alternate_exchange_without_a_name_leads_nowhere() -> None:
    client = BrokerBench().connect(1)
    client.call(
        1,
        spec.Queue.Declare(queue="q"),
        spec.Exchange.Declare(exchange="e", arguments={"alternate-exchange": ""}),
    )
    client.send(publish_bytes(1, "e", "q", b"1", mandatory=True))
    assert [type(method).__name__ for _, method in client.read()] == ["Return"]
