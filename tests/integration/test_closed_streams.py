"""A node whose launcher has closed its standard streams: no socket gets their numbers, and it ends as any other."""

from __future__ import annotations

from pathlib import Path

import pika
import pytest

from tests.support.broker_process import PROGRAM, BrokerProcess


@pytest.mark.parametrize("closed", ["<&-", "2>&-", "<&- >&- 2>&-"])
def test_a_node_runs_without_standard_streams(tmp_path: Path, closed: str) -> None:
    """libuv ended the process with SIGABRT when it closed a socket with such a number: before the start, or after."""
    node = BrokerProcess(
        tmp_path / "data", program=("sh", "-c", f'exec "$0" "$@" {closed}', *PROGRAM)
    )
    node.settings = {"log.file": str(node.log_path)}
    node.start()
    with pika.BlockingConnection(pika.URLParameters(node.url)) as connection:
        connection.channel().queue_declare("q")
    assert node.stop() == 0


def test_a_bad_configuration_ends_it_without_standard_streams(tmp_path: Path) -> None:
    node = BrokerProcess(
        tmp_path / "data",
        settings={"heartbeat": "often"},
        program=("sh", "-c", 'exec "$0" "$@" <&- >&- 2>&-', *PROGRAM),
    )
    node.spawn()
    assert node.running().wait() == 78
