"""A policy may want a stream to keep more than the servers have room for: then it is as it was, and there.

Covers: broker/replicated/retained_stream.py
"""

from __future__ import annotations

from typing import Any

import pytest
from pika import spec

from burrowmq.broker.rules.policy import Policy
from tests.support.cluster_bench import ClusterBench

DECLARE = spec.Queue.Declare(queue="s", durable=True, arguments={"x-queue-type": "stream"})


@pytest.mark.parametrize(
    ("error", "answer"), [(10047, "Queue.DeclareOk"), (10023, "Queue.DeclareOk"), (10008, "")]
)
def test_a_stream_whose_limits_are_refused_is_there_all_the_same(
    bench: ClusterBench, monkeypatch: pytest.MonkeyPatch, error: int, answer: str
) -> None:
    """What the servers cannot do now, as while they elect, is an answer to nothing."""
    client = bench.connect(1)
    client.call(1, DECLARE)
    bench.settle()
    assert client.names() == ["Queue.DeclareOk"]
    asked = bench.world._asked

    def refused(words: list[str], body: bytes) -> dict[str, Any]:
        if words[:2] == ["STREAM", "UPDATE"]:
            return {"error": {"code": 500, "err_code": error, "description": "no"}}
        return asked(words, body)

    monkeypatch.setattr(bench.world, "_asked", refused)
    definition = {"max-length-bytes": 50_000_000_000}
    bench.vhost.policies.policies["p"] = Policy(name="p", pattern="", definition=definition)
    bench.vhost.policies.changed()
    bench.vhost.policies_changed()
    bench.settle()
    client.call(1, DECLARE)
    bench.settle()
    assert client.names() == [answer or "Channel.Close"]
    monkeypatch.setattr(bench.world, "_asked", asked)
    bench.settle(6.0)
    assert bench.stream().config["max_bytes"] == 50_000_000_000
