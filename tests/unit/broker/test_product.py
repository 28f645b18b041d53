"""What connection.start tells."""

from __future__ import annotations

from typing import Any

from burrowmq.broker.product import RABBITMQ_VERSION, VERSION, server_properties


def test_what_clients_branch_on() -> None:
    properties: Any = server_properties("rabbit@test")
    assert (properties["product"], properties["version"]) == ("RabbitMQ", RABBITMQ_VERSION)
    assert (properties["burrowmq_version"], properties["cluster_name"]) == (VERSION, "rabbit@test")
    assert properties["capabilities"]["basic.nack"] is True


def test_the_platform_is_what_it_is() -> None:
    properties: Any = server_properties("rabbit@test")
    assert properties["platform"].startswith("Python ")
    assert "BurrowMQ" in properties["information"]
