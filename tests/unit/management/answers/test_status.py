"""The status document."""

from __future__ import annotations

import time

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


def test_a_clock_that_is_set_does_not_change_how_long_the_node_is_up(bench: NodeBench) -> None:
    process = bench.node.process
    for ahead_s in (-86_400, 86_400):
        object.__setattr__(process, "started_at", time.time() + ahead_s)  # it is frozen
        assert 0 < status.uptime_s(bench.node) < 3600
