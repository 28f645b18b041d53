"""ServerProcess: the configuration's word about memory comes before the machine's, and which machine that is."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import pytest

from burrowmq.broker.machine import resources
from burrowmq.broker.node.server_process import Machine, ServerProcess, end_if_verified
from burrowmq.config.schema import NodeConfig
from burrowmq.storage.engine import Engine
from burrowmq.storage.files.filesystem import OsFileSystem
from tests.support.bench.observer import RecordingObserver
from tests.support.counting_entropy import CountingEntropy

CONFIG = NodeConfig(node_name="rabbit@test", data_dir="d")


def test_memory_is_what_the_configuration_says_else_what_there_is() -> None:
    observer: Any = RecordingObserver()
    found = ServerProcess(config=CONFIG, observer=observer)
    assert found.name == "rabbit@test"
    assert found.memory_total_bytes > 1 << 20
    stated = replace(CONFIG, resources=replace(CONFIG.resources, memory_total_bytes=1 << 40))
    assert ServerProcess(config=stated, observer=observer).memory_total_bytes == 1 << 40


def test_it_stands_on_this_machine_unless_another_is_given() -> None:
    observer: Any = RecordingObserver()
    found = ServerProcess(config=CONFIG, observer=observer).machine
    assert isinstance(found.filesystem, OsFileSystem)
    assert (found.start_store, found.measure) == (Engine.start, resources.measure)
    assert found.definitions_at is None, "SQLite's"
    assert len({found.entropy.token(16) for _ in range(10)}) == 10
    other = Machine(entropy=CountingEntropy())
    process = ServerProcess(config=CONFIG, observer=observer, machine=other)
    assert process.machine.entropy.token(2) == b"\0\x01"


@pytest.mark.parametrize("value", [None, "", "0"])
def test_without_the_switch_nothing_ends_a_process_that_is_wrong(value: str | None) -> None:
    environment = {} if value is None else {"BURROWMQ_VERIFY": value}
    assert end_if_verified(environment) is None


def test_with_the_switch_it_ends_at_once() -> None:
    assert end_if_verified({"BURROWMQ_VERIFY": "1"}) is os._exit
