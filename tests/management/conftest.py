"""Shares the black-box fixtures with the tests of this folder, and one node that most of them use."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.black_box import name, own_broker
from tests.support.broker_process import BrokerProcess
from tests.support.node_client import NodeClient

__all__ = ["name", "own_broker"]


@pytest.fixture(scope="session")
def shared_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Yield one node for the whole run; it must have logged no bug when it stops."""
    node = BrokerProcess(tmp_path_factory.mktemp("node") / "data", is_from_nothing=True)
    node.start()
    yield node
    assert node.stop() == 0
    assert "Traceback" not in node.log_of_this_start(), node.log_of_this_start()[-4000:]


@pytest.fixture
def node(shared_node: BrokerProcess) -> Iterator[NodeClient]:
    """Yield the shared node with connections that are cut after the test."""
    client = NodeClient(shared_node)
    yield client
    client.close()
