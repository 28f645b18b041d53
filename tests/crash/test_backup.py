"""Backups of a node under load, restored elsewhere; and a node that is killed while it makes one."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from pika import spec

from tests.crash.journal import QueueLedger, Verdict, judge
from tests.crash.load import Client, Consumer, Publisher, drain, stop_all
from tests.support.broker_process import ROOT, BrokerProcess, external_target
from tests.support.wire_client import WireClient

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(external_target() is not None, reason="backs up a process of its own"),
]
QUEUES = ("kept", "consumed")
SIZES = (14, 1000, 3000, 5000, 20_000)
SETTINGS = {"msg_store_file_size_limit": "1000000", "queue_index_segment_entry_count": "1024"}


def declare(node: BrokerProcess) -> None:
    with WireClient("127.0.0.1", node.amqp_port) as client:
        client.open().channel(1)
        client.send_method(1, spec.Exchange.Declare(exchange="load", type="fanout", durable=True))
        client.expect(spec.Exchange.DeclareOk)
        for queue in QUEUES:
            client.declare(1, queue, durable=True, arguments={"x-queue-mode": "lazy"})
            client.send_method(1, spec.Queue.Bind(queue=queue, exchange="load", routing_key=""))
            client.expect(spec.Queue.BindOk)
        client.close()


def wait_for(publishers: list[Publisher], count: int) -> set[tuple[int, int]]:
    """What is confirmed once that many messages are."""
    until = time.monotonic() + 60
    while sum(len(one.confirmed) for one in publishers) < count and time.monotonic() < until:
        time.sleep(0.01)
    return set[tuple[int, int]]().union(*(set(one.confirmed) for one in publishers))


def compare(
    node: BrokerProcess, confirmed: set[tuple[int, int]], ledger: QueueLedger
) -> list[Verdict]:
    """Drain both queues and judge them."""
    verdicts = []
    with WireClient("127.0.0.1", node.amqp_port) as client:
        client.open().channel(1)
        for queue, known in zip(QUEUES, (QueueLedger(), ledger), strict=True):
            drained = drain(client, queue)
            verdicts.append(judge(known, confirmed, drained, expect_redelivered=True))
        client.close()
    return verdicts


def store_tool(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "burrowmq.offline", *arguments]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("commit_log", ["off", "on"])
def test_what_was_confirmed_before_the_cut_is_in_the_backup(
    tmp_path: Path, commit_log: str
) -> None:
    node = BrokerProcess(tmp_path / "data", {**SETTINGS, "store_commit_log": commit_log})
    node.start()
    other = BrokerProcess(tmp_path / "restored", SETTINGS)
    try:
        declare(node)
        ledger = QueueLedger()
        publishers = [Publisher(node.amqp_port, number, "load", SIZES) for number in (1, 2)]
        clients: list[Client] = [*publishers, Consumer(node.amqp_port, "consumed", ledger)]
        for client in clients:
            client.start()
        before = wait_for(publishers, 3000)
        said = node.ctl("backup", str(tmp_path / "backup"))
        assert "Backed up " in said
        wait_for(publishers, len(before) + 1500)  # compactions and deletions after the backup
        assert stop_all(clients) == []
        node.kill()
        restored = store_tool(
            "--data-dir", str(other.data_dir), "restore", str(tmp_path / "backup")
        )
        assert restored.returncode == 0, restored.stderr
        other.start()
        kept, consumed = compare(other, before, ledger)
        assert kept.is_clean, kept
        assert consumed.is_clean, consumed
        assert kept.drained >= 3000
        assert other.stop() == 0
    finally:
        node.kill()
        other.kill()


@pytest.mark.parametrize("commit_log", ["off", "on"])
def test_a_node_killed_while_it_makes_a_backup_has_everything(
    tmp_path: Path, commit_log: str
) -> None:
    node = BrokerProcess(tmp_path / "data", {**SETTINGS, "store_commit_log": commit_log})
    node.start()
    try:
        declare(node)
        ledger = QueueLedger()
        publishers = [Publisher(node.amqp_port, 1, "load", SIZES)]
        for client in publishers:
            client.start()
        wait_for(publishers, 1500)
        node.ctl("backup", "--no-wait", str(tmp_path / "backup"))
        node.kill()
        assert stop_all(publishers) == []
        confirmed = set(publishers[0].confirmed)
        node.start()
        assert not (node.data_dir / ".backup").exists()
        if (tmp_path / "backup" / "INCOMPLETE").exists():
            refused = store_tool(
                "--data-dir", str(tmp_path / "x"), "restore", str(tmp_path / "backup")
            )
            assert (refused.returncode, "was not finished" in refused.stderr) == (69, True)
            node.ctl("backup", str(tmp_path / "backup"))
        kept, consumed = compare(node, confirmed, ledger)
        assert (kept.is_clean, consumed.is_clean) == (True, True), (kept, consumed)
        assert node.stop() == 0
    finally:
        node.kill()
