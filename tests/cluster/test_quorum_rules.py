"""What arguments ask of a quorum queue, on three real servers and from two front-ends: time to live, limits, one consumer."""

from __future__ import annotations

import time

import pytest
from pika.exceptions import ChannelClosedByBroker

from tests.support.front_ends import Nodes, declare, publish
from tests.support.patience import patient


@pytest.mark.timeout(180)
def test_a_queue_that_no_front_end_uses_expires_at_all_of_them(nodes: Nodes) -> None:
    one, two = (nodes.channel(nodes.start(name)) for name in ("one", "two"))
    for channel in (one, two):
        declare(channel, "q", **{"x-expires": 3_000})
    one, two = (nodes.channel(process) for process in nodes.processes)
    publish(one, "q", 5)
    tag = two.basic_consume("q", lambda *_: None)
    two.connection.process_data_events(0.1)
    until = time.monotonic() + 9
    while time.monotonic() < until:
        one.connection.process_data_events(0.2)
    tags = [
        row
        for row in nodes.processes[0].ctl("list_queues", "name", "--quiet").split()
        if row == "q"
    ]
    assert tags == ["q"]
    two.basic_cancel(tag)
    until = time.monotonic() + patient(60)
    names = ["q"]
    while names and time.monotonic() < until:
        time.sleep(0.5)
        names = [
            each.ctl("list_queues", "name", "--quiet", "--no-table-headers").strip()
            for each in nodes.processes
        ]
        names = [name for name in names if name]
    assert not names
    with pytest.raises(ChannelClosedByBroker, match="no queue 'q'"):
        one.queue_declare("q", passive=True)
    one = nodes.channel(nodes.processes[0])
    assert declare(one, "q") == 0  # the messages went with it
