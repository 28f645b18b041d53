"""A life in data directories with names that few have: served, backed up, checked, restored and resegmented there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pika
import pytest

from burrowmq.offline.__main__ import main
from tests.support.broker_process import BrokerProcess
from tests.support.node_client import NodeClient

pytestmark = pytest.mark.slow

ODD = os.fsdecode(b"sp ace %41?#&+'\" \n\xff\xfe \xc3\xbc " + b"x" * 100)
"""What addresses and shells are escaped for, what is no UTF-8, and more than the path of a socket may be."""


@pytest.fixture
def process(tmp_path: Path) -> Iterator[BrokerProcess]:
    process = BrokerProcess(tmp_path / ODD)
    yield process
    process.kill()


def test_a_data_directory_may_have_any_name(tmp_path: Path, process: BrokerProcess) -> None:
    process.start()
    client = NodeClient(process)
    channel = client.channel()
    channel.queue_declare("q", durable=True)
    channel.confirm_delivery()
    channel.basic_publish("", "q", b"kept", pika.BasicProperties(delivery_mode=2))
    backup = tmp_path / f"backup {ODD}"
    process.ctl("-q", "backup", str(backup))
    client.disconnect()
    assert process.stop() == 0
    assert main(["--data-dir", str(process.data_dir), "check"]) == 0
    restored = tmp_path / f"restored {ODD}"
    assert main(["--data-dir", str(restored), "restore", str(backup)]) == 0
    assert main(["--data-dir", str(restored), "resegment", "--entries", "256"]) == 0
    again = BrokerProcess(restored, {"queue_index_segment_entry_count": "256"})
    again.start()
    client = NodeClient(again)
    try:
        assert client.channel().basic_get("q", auto_ack=True)[2] == b"kept"
    finally:
        client.disconnect()
        again.kill()
