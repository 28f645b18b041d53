"""Basic: what settling costs. As many Python calls of the broker for 2,000 single settlements in one read as for 200."""

from __future__ import annotations

from typing import Any

import pytest
from pika import spec

from tests.support.bench.broker import BrokerBench
from tests.support.calls import calls
from tests.support.wire_client import method_bytes, publish_bytes

RUNS = (200, 2000)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (spec.Basic.Ack, {}),
        (spec.Basic.Nack, {"requeue": False}),
        (spec.Basic.Nack, {"requeue": True}),
        (spec.Basic.Reject, {"requeue": False}),
        (spec.Basic.Reject, {"requeue": True}),
    ],
)
def test_a_read_of_settlements(kind: type[Any], options: dict[str, bool]) -> None:
    counted = []
    for count in RUNS:
        bench = BrokerBench(default_mode="cached", is_verified=False)
        client = bench.connect(1)
        client.call(1, spec.Queue.Declare(queue="q"))
        client.call(1, spec.Basic.Consume(queue="q", consumer_tag="c"))
        client.send(publish_bytes(1, "", "q", b"x") * count)
        client.call(1, spec.Basic.Cancel(consumer_tag="c"))
        queue = bench.vhost.queues["q"]
        assert queue.unacked_count == count
        data = b"".join(method_bytes(1, kind(tag + 1, **options)) for tag in range(count))
        counted.append(calls(lambda data=data, client=client: client.send(data), "/broker/"))
        assert queue.unacked_count == 0
        assert queue.ready_count == (count if options.get("requeue") else 0)
    assert counted[0] == counted[1] <= 100
