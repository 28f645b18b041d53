"""The status document."""

from __future__ import annotations

from burrowmq.management.answers import status
from burrowmq.protocol.codec import NAME
from tests.support.bench.node import NodeBench


def test_document(bench: NodeBench) -> None:
    document = status.document(bench.node)
    assert document["totals"] == {"virtual_host_count": 1, "connection_count": 1, "queue_count": 2}
    assert document["memory"]["total"]["rss"] > 1_000_000
    assert document["memory"]["queue_procs"] == sum(
        queue.memory_bytes for queue in bench.node.vhosts["/"].queues.values()
    )
    assert document["burrowmq"]["codec"] == NAME
    assert document["listeners"][0]["protocol"] == "amqp"
