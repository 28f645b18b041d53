"""Limits: as many Python calls of the broker for 2,000 messages too many as for 200, whatever becomes of them."""

from __future__ import annotations

from typing import Any

import pytest
from pika import spec

from tests.support.bench.broker import BrokerBench
from tests.support.calls import calls
from tests.support.wire_client import publish_bytes

RUNS = (200, 2000)
# All but the clock: whether a timer is set again depends on how far it has moved since the last message.
COUNTED = ("/broker/session/", "/broker/channel/", "/broker/vhost/", "/broker/queue/")
TO_DEAD = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
LIMITS: dict[str, dict[str, Any]] = {
    "drop-head": {"x-max-length": 10},
    "drop-head by bytes": {"x-max-length-bytes": 10},
    "drop-head by both": {"x-max-length": 10, "x-max-length-bytes": 5},
    "drop-head of all": {"x-max-length": 0},
    "drop-head with a time to live": {"x-max-length": 10, "x-message-ttl": 60_000},
    "drop-head with priorities": {"x-max-length": 10, "x-max-priority": 4},
    "drop-head, lazy": {"x-max-length": 10, "x-queue-mode": "lazy"},
    "reject-publish": {"x-max-length": 10, "x-overflow": "reject-publish"},
    "reject-publish by bytes": {"x-max-length-bytes": 10, "x-overflow": "reject-publish"},
    "reject-publish-dlx": {"x-max-length": 10, "x-overflow": "reject-publish-dlx"},
}


@pytest.mark.parametrize("mode", ["bounded", "cached"])
@pytest.mark.parametrize("delivery_mode", [1, 2])
@pytest.mark.parametrize("dead_letter", [{}, TO_DEAD])
@pytest.mark.parametrize("limit", LIMITS)
def test_a_read_with_more_than_there_is_room_for(
    limit: str, dead_letter: dict[str, Any], delivery_mode: int, mode: str
) -> None:
    counted = []
    for count in RUNS:
        bench = BrokerBench(default_mode=mode, is_verified=False)
        client = bench.connect(1)
        for queue, given in (("q", {**LIMITS[limit], **dead_letter}), ("dead", {})):
            client.call(1, spec.Queue.Declare(queue=queue, arguments=given))
        client.call(1, spec.Confirm.Select())
        properties = spec.BasicProperties(delivery_mode=delivery_mode)
        one = publish_bytes(1, "", "q", b"x", properties=properties)
        client.send(one * 20)
        data = one * count
        counted.append(calls(lambda data=data, client=client: client.send(data), *COUNTED))
        assert bench.vhost.queues["q"].ready_count <= 10
    assert counted[0] == counted[1]
