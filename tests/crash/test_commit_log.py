"""`store_commit_log` switched on and off between the starts of a node with many queues, after stops and kills."""

from __future__ import annotations

import random
from collections import defaultdict
from pathlib import Path

import pytest
from pika import spec

from tests.crash.journal import make_body
from tests.crash.load import drain, persistent_publish
from tests.support.broker_process import BrokerProcess, external_target
from tests.support.wire_client import WireClient

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(external_target() is not None, reason="kills a process of its own"),
]
QUEUES = [f"many.{number}" for number in range(200)]
GROWING = 5  # of them get many messages, and files of their own
SIZES = (14, 300, 3000, 5000)  # the last ones lie in the shared store
Sent = dict[str, list[tuple[int, int]]]


def publish(client: WireClient, phase: int, sent: Sent) -> None:
    """A message to each queue, and some more to those that grow; returns when all are confirmed."""
    source = random.Random(phase)
    client.send_method(1, spec.Confirm.Select())
    client.expect(spec.Confirm.SelectOk)
    names = [*QUEUES, *QUEUES[:GROWING] * 10]
    for number, name in enumerate(names):
        body = make_body(phase, number, source.choice(SIZES))
        client.send(persistent_publish("", name, body))
        sent[name].append((phase, number))
    confirmed = 0
    while confirmed < len(names):
        confirmed = max(confirmed, client.expect(spec.Basic.Ack).delivery_tag)


@pytest.mark.parametrize(
    "ways",
    [
        ("kill", "stop"),
        pytest.param(("kill",), marks=pytest.mark.long),
        pytest.param(("stop",), marks=pytest.mark.long),
    ],
    ids="-".join,
)
def test_it_may_come_and_go_with_each_start(tmp_path: Path, ways: tuple[str, ...]) -> None:
    sent: Sent = defaultdict(list)
    node = BrokerProcess(tmp_path / "data")
    try:
        for phase, commit_log in enumerate(("on", "off", "on", "off", "on")):
            node.settings = {"store_commit_log": commit_log}
            node.start()
            with WireClient("127.0.0.1", node.amqp_port) as client:
                client.open().channel(1)
                for name in QUEUES:
                    client.declare(1, name, durable=True)
                publish(client, phase, sent)
                if ways[phase % len(ways)] == "kill":
                    node.kill()
            if node.is_alive:
                assert node.stop() == 0
            assert (node.data_dir / "commit_log").exists() == (commit_log == "on")
            with_files = len(list(node.data_dir.glob("vhosts/*/queues/*")))
            assert with_files <= GROWING if phase == 0 else with_files == len(QUEUES)
        node.start()
        with WireClient("127.0.0.1", node.amqp_port) as client:
            client.open().channel(1)
            for name in QUEUES:
                assert [identity for identity, _ in drain(client, name)] == sent[name], name
            client.close()
        assert node.stop() == 0
        assert "Traceback" not in node.log_path.read_text()
    finally:
        node.kill()
