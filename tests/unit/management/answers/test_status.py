"""The status document."""

from __future__ import annotations

from burrowmq.management.answers import status
from tests.support.fake_node import small_world


def test_document() -> None:
    node = small_world()
    document = status.document(node)
    assert document["totals"] == {"virtual_host_count": 1, "connection_count": 1, "queue_count": 2}
    assert document["memory"]["total"]["rss"] > 1_000_000
    assert document["memory"]["queue_procs"] == 20_480 + 4096
    assert document["burrowmq"]["codec"] == "interpreted"
    assert document["listeners"][0]["protocol"] == "amqp"
