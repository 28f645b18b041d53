"""Dead letters: as many Python calls of the broker for 2,000 first deaths as for 200."""

from __future__ import annotations

from typing import Any

import pytest
from pika import spec

from tests.support.bench.broker import BrokerBench
from tests.support.calls import calls
from tests.support.wire_client import method_bytes, publish_bytes

RUNS = (200, 2000)
TO_DEAD = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
PROPERTIES = {"expiration": "60000", "headers": {"task": "add"}, "reply_to": "r"}


@pytest.mark.parametrize("properties", [{}, PROPERTIES])
@pytest.mark.parametrize("own_key", [True, False])
def test_rejections(own_key: bool, properties: dict[str, Any]) -> None:
    counted = []
    for count in RUNS:
        bench = BrokerBench(default_mode="cached", is_verified=False)
        client = bench.connect(1)
        arguments = TO_DEAD if own_key else {"x-dead-letter-exchange": "amq.fanout"}
        for queue, given in (("q", arguments), ("dead", {})):
            client.call(1, spec.Queue.Declare(queue=queue, arguments=given))
        client.call(1, spec.Queue.Bind(queue="dead", exchange="amq.fanout"))
        client.call(1, spec.Basic.Consume(queue="q"))
        one = publish_bytes(1, "", "q", b"x", properties=spec.BasicProperties(**properties))
        client.send(one * count)
        data = b"".join(
            method_bytes(1, spec.Basic.Reject(tag + 1, requeue=False)) for tag in range(count)
        )
        counted.append(calls(lambda data=data, client=client: client.send(data), "/broker/"))
        assert bench.vhost.queues["dead"].ready_count == count
    assert counted[0] == counted[1]
