"""BURROWMQ_VERIFY=1 in a node of its own: a broken rule ends the process loudly, and without the switch nobody looks."""

from __future__ import annotations

import re
from pathlib import Path

import pika
import pytest
from pika.exceptions import AMQPError

from tests.support.broker_process import PYTHON, BrokerProcess

# A broker with two mistakes: a purge forgets a figure, in the queue, and an ack does, in an index segment.
BROKEN = """
import sys
from burrowmq.broker.__main__ import main
from burrowmq.broker.queue.queue import Queue
from burrowmq.storage.queue.segment import Segment

def purge(queue, original=Queue.purge):
    queue.counts.unacked_bytes = -1
    return original(queue)

def remove(segment, first, last, original=Segment.remove):
    segment.live += 1
    return original(segment, first, last)

Queue.purge, Segment.remove = purge, remove
sys.exit(main(sys.argv[1:]))
"""


def broken_node(folder: Path, *, verify: str) -> BrokerProcess:
    return BrokerProcess(
        folder / "data",
        settings={"log.file": str(folder / "node.log"), "log.console": "true"},
        program=(PYTHON, "-c", BROKEN),
        environment={"BURROWMQ_VERIFY": verify},
    )


def use(node: BrokerProcess, *, is_purged: bool) -> None:
    """A durable message comes, is on disk, and goes."""
    parameters = pika.ConnectionParameters("127.0.0.1", node.amqp_port, heartbeat=0)
    with pika.BlockingConnection(parameters) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("q", durable=True)
        for _ in range(2):
            channel.basic_publish("", "q", b"x", pika.BasicProperties(delivery_mode=2))
        if is_purged:
            channel.queue_purge("q")
        else:
            channel.basic_get("q", auto_ack=True)
        channel.queue_declare("q", passive=True)
        connection.sleep(0.5)


@pytest.mark.parametrize(
    ("is_purged", "sentence"),
    [
        (True, "queue 'q': 0 unacked messages of -1 bytes"),
        (False, r"name='q', level=0\), segment 0: 1 places are live, 2 are counted"),
    ],
)
def test_a_broken_rule_is_logged_and_ends_the_process(tmp_path, is_purged, sentence):
    node = broken_node(tmp_path, verify="1")
    node.start()
    try:
        with pytest.raises(AMQPError):
            use(node, is_purged=is_purged)
        assert node.running().wait(10) == 70
    finally:
        node.kill()
    for log in (node.log_of_this_start(), (tmp_path / "node.log").read_text()):
        assert re.search(f"invariant_broken.*{sentence}", log)


def test_without_the_switch_nobody_looks(tmp_path):
    node = broken_node(tmp_path, verify="0")
    node.start()
    try:
        use(node, is_purged=True)
        assert node.is_alive
    finally:
        node.kill()
    assert "invariant_broken" not in node.log_of_this_start()
