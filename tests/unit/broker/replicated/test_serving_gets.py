"""basic.get of a quorum queue: channels that wait, each with another one behind it, do not answer inside one another.

Covers: broker/replicated/serving.py
"""

from __future__ import annotations

from pika import spec

from tests.support.cluster_bench import ClusterBench
from tests.support.wire_client import method_bytes, publish_bytes

CHANNELS = 200


def test_as_many_channels_as_wait_are_answered(bench: ClusterBench) -> None:
    """What a consumer has asked the cluster for arrives together, and they come first."""
    client, other = bench.connect(1), bench.connect(1)
    bench.declared(other)
    for number in range(2, CHANNELS + 1):
        client.call(number, spec.Channel.Open())
    gets = [method_bytes(number, spec.Basic.Get(queue="q")) for number in range(1, CHANNELS + 1)]
    other.call(1, spec.Basic.Consume(queue="q", consumer_tag="c"))
    client.send(*gets, *gets)
    other.send(publish_bytes(1, "", "q", b"x") * CHANNELS * 3)
    for _ in range(100):
        bench.settle()
    found = [type(method) for _, method in client.read()]
    assert len(found) == 2 * CHANNELS
    assert set(found) <= {spec.Basic.GetOk, spec.Basic.GetEmpty}
