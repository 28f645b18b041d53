"""What one read brings is done as if each command came alone: what came before has its effect on who consumes.

Covers: broker/queue/queue.py, broker/queue/serve/serving.py, broker/channel/methods/basic.py
"""

from __future__ import annotations

from typing import Any

import pytest
from pika import spec

from tests.support.bench.broker import BrokerBench
from tests.support.bench.client import Client
from tests.support.wire_client import method_bytes, publish_bytes

LIMITS: list[dict[str, Any]] = [
    {"x-max-length": 1},
    {"x-max-length-bytes": 2},
    {"x-max-length": 1, "x-overflow": "reject-publish"},
    {"x-max-length": 1, "x-overflow": "reject-publish-dlx"},
]


def with_a_queue(arguments: dict[str, Any], prefetch: int = 1) -> Client:
    client = BrokerBench().connect(1)
    client.call(1, spec.Queue.Declare(queue="q", arguments=arguments))
    client.call(1, spec.Basic.Qos(prefetch_count=prefetch))
    client.call(1, spec.Confirm.Select())
    return client


def delivered(client: Client) -> list[bytes]:
    return [each.body for _, each in client.read() if each.NAME == "Basic.Deliver"]


@pytest.mark.parametrize("arguments", LIMITS)
@pytest.mark.parametrize(
    "settled", [spec.Basic.Ack(1), spec.Basic.Reject(1, requeue=False)], ids=["ack", "reject"]
)
def test_who_has_room_again_is_served_before_a_publish_finds_the_queue_full(
    arguments: dict[str, Any], settled: Any
) -> None:
    client = with_a_queue(arguments)
    client.call(1, spec.Basic.Consume(queue="q"))
    client.send(publish_bytes(1, "", "q", b"m1"), publish_bytes(1, "", "q", b"m2"))
    assert delivered(client) == [b"m1"]
    client.send(method_bytes(1, settled) + publish_bytes(1, "", "q", b"m3"))
    found = client.read()
    assert [each.body for _, each in found if each.NAME == "Basic.Deliver"] == [b"m2"]
    assert [each.NAME for _, each in found if each.NAME != "Basic.Deliver"] == ["Basic.Ack"]
    client.send(method_bytes(1, spec.Basic.Ack(2)))
    assert delivered(client) == [b"m3"]


@pytest.mark.parametrize("arguments", LIMITS)
def test_who_consumes_is_served_before_a_publish_finds_the_queue_full(
    arguments: dict[str, Any],
) -> None:
    client = with_a_queue(arguments)
    client.send(publish_bytes(1, "", "q", b"m1"))
    client.read()
    consume = method_bytes(1, spec.Basic.Consume(queue="q", consumer_tag="c"))
    client.send(consume + publish_bytes(1, "", "q", b"m3"))
    assert delivered(client) == [b"m1"]
    client.send(method_bytes(1, spec.Basic.Ack(1)))
    assert delivered(client) == [b"m3"]


def with_a_consumer_that_has_one(*, more: int = 1) -> Client:
    """Its prefetch is used up by m1, and so many more are ready."""
    client = with_a_queue({})
    client.call(1, spec.Basic.Consume(queue="q", consumer_tag="c"))
    for number in range(1 + more):
        client.send(publish_bytes(1, "", "q", b"m%d" % (1 + number)))
    assert delivered(client) == [b"m1"]
    return client


ACK = method_bytes(1, spec.Basic.Ack(1))


@pytest.mark.parametrize(
    "settled", [ACK, method_bytes(1, spec.Basic.Nack(1, requeue=False))], ids=["ack", "nack"]
)
def test_who_has_room_again_is_served_before_a_purge(settled: bytes) -> None:
    client = with_a_consumer_that_has_one(more=2)
    client.send(settled + method_bytes(1, spec.Queue.Purge(queue="q")))
    found = [each for _, each in client.read()]
    assert [each.NAME for each in found] == ["Basic.Deliver", "Queue.PurgeOk"]
    assert found[0].body == b"m2"
    assert found[1].message_count == 1


def test_who_has_room_again_is_served_before_basic_get() -> None:
    client = with_a_consumer_that_has_one(more=2)
    client.send(ACK + method_bytes(1, spec.Basic.Get(queue="q")))
    found = [each for _, each in client.read()]
    assert [each.NAME for each in found] == ["Basic.Deliver", "Basic.GetOk"]
    assert [each.body for each in found] == [b"m2", b"m3"]


def test_who_has_room_again_is_served_before_a_delete_finds_the_queue_empty() -> None:
    client = with_a_consumer_that_has_one()
    client.send(ACK + method_bytes(1, spec.Queue.Delete(queue="q", if_empty=True)))
    assert [each.NAME for _, each in client.read()] == ["Basic.Deliver", "Queue.DeleteOk"]


def test_who_has_room_again_is_served_before_it_leaves() -> None:
    client = with_a_consumer_that_has_one()
    client.send(ACK + method_bytes(1, spec.Basic.Cancel(consumer_tag="c")))
    assert [each.NAME for _, each in client.read()] == ["Basic.Deliver", "Basic.CancelOk"]


def test_whoever_waited_for_basic_get_may_delete_what_is_to_be_purged() -> None:
    client = with_a_queue({})
    queue = client.bench.vhost.queues["q"]

    def delete(*_: object) -> None:
        client.bench.vhost.delete_queue(queue)

    queue.getters.add(delete)
    queue.wake_waiting()
    assert client.refused(1, spec.Queue.Purge(queue="q")) == (
        404,
        "NOT_FOUND - no queue 'q' in vhost '/'",
    )


def test_who_consumes_is_served_before_a_purge() -> None:
    client = with_a_queue({})
    client.send(publish_bytes(1, "", "q", b"m1"))
    client.read()
    consume = method_bytes(1, spec.Basic.Consume(queue="q", consumer_tag="c"))
    client.send(consume + method_bytes(1, spec.Queue.Purge(queue="q")))
    found = [each.NAME for _, each in client.read()]
    assert found == ["Basic.ConsumeOk", "Basic.Deliver", "Queue.PurgeOk"]


@pytest.mark.parametrize("no_ack", [True, False])
def test_consumers_of_one_channel_have_a_queues_messages_in_their_order(*, no_ack: bool) -> None:
    client = with_a_queue({}, prefetch=0)
    for tag in "ab":
        client.call(1, spec.Basic.Consume(queue="q", consumer_tag=tag, no_ack=no_ack))
    other = client.bench.connect(1)
    other.send(b"".join(publish_bytes(1, "", "q", b"%d" % number) for number in range(16)))
    found = [each for _, each in client.read() if each.NAME == "Basic.Deliver"]
    assert [int(each.body) for each in found] == list(range(16))
    assert [each.consumer_tag for each in found] == ["a", "b"] * 8


@pytest.mark.parametrize("name", ["\n", "\r", "\r\n"])
def test_a_name_of_line_ends_is_not_that_of_the_last_queue(name: str) -> None:
    client = with_a_queue({})
    client.call(1, spec.Queue.Delete(queue=name))
    assert "q" in client.bench.vhost.queues
    refused = spec.Queue.Bind(queue=name, exchange="amq.direct", routing_key="k")
    assert client.refused(1, refused) == (404, "NOT_FOUND - no queue '' in vhost '/'")
