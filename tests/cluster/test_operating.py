"""What an operator of a front-end learns of its cluster, with real servers that are killed and suspended."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tests.support.broker_process import BrokerProcess
from tests.support.front_ends import Nodes, declare
from tests.support.patience import patient


def placement(process: BrokerProcess) -> dict[str, Any]:
    """Where the only queue is."""
    (row,) = json.loads(
        process.ctl("list_queues", "leader", "members", "online", "--formatter", "json")
    )
    return dict(row)


@pytest.mark.timeout(180)
@pytest.mark.parametrize("fault", ["kill", "pause"])
def test_a_server_that_is_gone_is_not_online(nodes: Nodes, fault: str) -> None:
    node = nodes.start()
    channel = nodes.channel(node)
    declare(channel, "q")
    until = time.monotonic() + patient(30)
    while not (row := placement(node))["leader"] and time.monotonic() < until:
        time.sleep(0.2)
    gone = next(each for each in row["members"] if each != row["leader"])
    getattr(nodes.cluster.by_name(gone), fault)()
    expected = [each for each in row["members"] if each != gone]
    while placement(node)["online"] != expected and time.monotonic() < until:
        time.sleep(0.5)
        declare(nodes.channel(node), "q")  # which asks the servers
    assert placement(node) == {**row, "online": expected}
