"""A queue that is deleted at one front-end while another one's clients consume, on real servers."""

from __future__ import annotations

import time

import pytest

from burrowmq.broker.replicated.stream import MISSING_S
from burrowmq.cluster.api import Request
from tests.cluster.scene import ask
from tests.support.front_ends import Nodes, declare


@pytest.mark.timeout(180)
def test_a_deleted_queue_leaves_no_stream_whoever_consumes(nodes: Nodes) -> None:
    one, two = nodes.start("one"), nodes.start("two")
    names = [f"q{number}" for number in range(5)]
    for name in names:
        declare(nodes.channel(one), name)
        declare(nodes.channel(two), name)
        channel = nodes.channel(two)
        channel.basic_consume(name, lambda *_: None)
        channel.connection.process_data_events(0.2)
    for name in names:
        nodes.channel(one).queue_delete(name)
    time.sleep(MISSING_S + 2.0)  # for longer than a stream is missed before it is made anew
    (found,) = ask(nodes.cluster, [Request(b"$JS.API.STREAM.NAMES", b"")])
    assert found["streams"] == ["KV_burrowmq"]
