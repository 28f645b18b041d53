"""Two brokers side by side: a private RabbitMQ node and one process of ours."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.broker_process import BrokerProcess, free_port
from tests.support.rabbitmq_node import RabbitNode, is_installed


@pytest.fixture(scope="session")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RabbitNode, BrokerProcess]]:
    """Yield RabbitMQ and ours, both running."""
    if not is_installed():
        pytest.skip("rabbitmq-server is not installed")
    rabbit = RabbitNode(tmp_path_factory.mktemp("rabbit"), free_port())
    ours = BrokerProcess(tmp_path_factory.mktemp("ours") / "data")
    rabbit.start()
    try:
        ours.start()
        yield rabbit, ours
    finally:
        ours.kill()
        rabbit.stop()


@pytest.fixture(scope="session")
def brokers(nodes: tuple[RabbitNode, BrokerProcess]) -> tuple[int, int]:
    """Return the AMQP ports of RabbitMQ and of ours."""
    rabbit, ours = nodes
    return rabbit.amqp_port, ours.amqp_port
