"""ServerProcess: the configuration's word about memory comes before the machine's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from burrowmq.broker.node.server_process import ServerProcess
from burrowmq.config.schema import NodeConfig
from tests.support.bench.observer import RecordingObserver

CONFIG = NodeConfig(node_name="rabbit@test", data_dir="d")


def test_memory_is_what_the_configuration_says_else_what_there_is() -> None:
    observer: Any = RecordingObserver()
    found = ServerProcess(config=CONFIG, observer=observer)
    assert found.name == "rabbit@test"
    assert found.memory_total_bytes > 1 << 20
    stated = replace(CONFIG, resources=replace(CONFIG.resources, memory_total_bytes=1 << 40))
    assert ServerProcess(config=stated, observer=observer).memory_total_bytes == 1 << 40
