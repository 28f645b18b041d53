"""Publish: what a property costs. As many Python calls of the broker for 2,000 messages of one read as for 200.

Whatever the rules of a queue look at is noted when the octets pass: no message has its header decoded for it.
"""

from __future__ import annotations

from typing import Any

import pytest
from pika import spec

from tests.support.bench.broker import BrokerBench
from tests.support.calls import calls
from tests.support.wire_client import publish_bytes

RUNS = (200, 2000)
HEADERS = {"task": "add", "id": 7, "retries": 0}
PROPERTIES: dict[str, dict[str, Any]] = {
    "none": {},
    "expiration": {"expiration": "60000"},
    "expiration and headers": {"expiration": "60000", "headers": HEADERS},
    "priority": {"priority": 3},
    "reply_to": {"reply_to": "amq.gen-1", "correlation_id": "9"},
    "user_id": {"user_id": "guest"},
    "user_id and headers": {"user_id": "guest", "headers": HEADERS},
    "as Celery": {"reply_to": "r", "headers": HEADERS, "priority": 0, "correlation_id": "9"},
}


def wire(count: int, properties: dict[str, Any]) -> bytes:
    one = publish_bytes(1, "", "q", b"x", properties=spec.BasicProperties(**properties))
    return one * count


@pytest.mark.parametrize("arguments", [{}, {"x-max-priority": 4}, {"x-message-ttl": 1000}])
@pytest.mark.parametrize("kind", PROPERTIES)
def test_a_read_costs_as_many_calls_however_many_messages_it_has(
    kind: str, arguments: dict[str, Any]
) -> None:
    counted = []
    for count in RUNS:
        bench = BrokerBench(default_mode="cached", is_verified=False)
        client = bench.connect(1)
        client.call(1, spec.Queue.Declare(queue="q", arguments=arguments))
        data = wire(count, PROPERTIES[kind])
        counted.append(calls(lambda data=data, client=client: client.send(data), "/broker/"))
        assert bench.vhost.queues["q"].ready_count == count
    assert counted[0] == counted[1] <= 200  # a dormant queue wakes with it


def test_a_header_of_further_keys_is_decoded_once() -> None:
    counted = []
    for count in RUNS:
        bench = BrokerBench(default_mode="cached", is_verified=False)
        client = bench.connect(1)
        for queue in ("q", "copy", "other"):
            client.call(1, spec.Queue.Declare(queue=queue))
        headers = ({**HEADERS, "CC": ["copy"]}, {"CC": ["other", "copy"]}, HEADERS)
        data = b"".join(wire(1, {"headers": each}) for each in headers) * (count // 2)
        counted.append(
            calls(lambda data=data, client=client: client.send(data), "/broker/", "/properties.py")
        )
        assert bench.vhost.queues["copy"].ready_count == count // 2 * 2
        assert bench.vhost.queues["q"].ready_count == count // 2 * 3
    assert counted[0] == counted[1]


def test_one_message_that_needs_a_look_costs_the_others_nothing() -> None:
    counted = []
    odd = wire(1, {"expiration": "+60000"})
    for count in RUNS:
        bench = BrokerBench(default_mode="cached", is_verified=False)
        client = bench.connect(1)
        client.call(1, spec.Queue.Declare(queue="q"))
        data = wire(count, {}) + odd + wire(count, {"expiration": "60000"})
        counted.append(calls(lambda data=data, client=client: client.send(data), "/broker/queue/"))
        assert bench.vhost.queues["q"].ready_count == 2 * count + 1
    assert counted[0] == counted[1]
