"""Addresses and limits from the configuration."""

from __future__ import annotations

import os

from burrowmq.config.schema import NodeConfig
from burrowmq.management import settings


def test_the_real_configuration_has_these_names() -> None:
    config = NodeConfig(node_name="n@h", data_dir="d")
    assert ("127.0.0.1", 15672) in settings.management_addresses(config)
    assert ("127.0.0.1", 15692) in settings.prometheus_addresses(config)
    assert ("127.0.0.1", 5672) in settings.amqp_addresses(config)
    assert settings.log_files(config) == ["<stderr>"]
    assert (settings.metrics_path(config), settings.metrics_per_object(config)) == (
        "/metrics",
        False,
    )


def test_a_path_too_long_for_a_socket() -> None:
    assert settings.bindable("/short/control.sock", 7) == "/short/control.sock"
    assert settings.bindable("/" + "x" * 120 + "/control.sock", 7) == "/proc/self/fd/7/control.sock"
    config = NodeConfig(node_name="n@h", data_dir="d")
    assert settings.control_socket(config) == os.path.abspath("d/control.sock")
    assert settings.control_socket(NodeConfig(node_name="n@h", data_dir="")) == ""
