"""Levels of priority queues beside queues whose names end in a NUL and a number: each has files of its own.

Source: a level was once stored under the queue's name, a NUL and its number, which is a name that a queue may have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from burrowmq.offline.__main__ import main
from tests.support.black_box import get_all
from tests.support.broker_process import BrokerProcess
from tests.support.node_client import NodeClient

pytestmark = pytest.mark.slow

QUEUE, NAMESAKE = "orders", "orders\x001"
LEVELS = {"x-max-priority": 3}


@pytest.fixture
def node(own_broker: Callable[..., BrokerProcess]) -> Iterator[NodeClient]:
    """Yield a client of a fresh node."""
    client = NodeClient(own_broker())
    yield client
    client.close()


def fill(channel: BlockingChannel, queue: str, text: str, count: int = 30) -> list[bytes]:
    """Publish, and wait for the confirms; give the bodies in the order of delivery."""
    channel.confirm_delivery()
    for number in range(count):
        # Some above the embed threshold, priorities from 0 to 3.
        body = f"{text} {number}".encode().ljust(5000 if number % 5 == 0 else 50)
        properties = pika.BasicProperties(delivery_mode=2, priority=number % 4)
        channel.basic_publish("", queue, body, properties)
    return [
        f"{text} {number}".encode()
        for level in (3, 2, 1, 0)
        for number in range(count)
        if number % 4 == level
    ]


def taken(channel: BlockingChannel, queue: str) -> list[bytes]:
    """Take everything, without what pads it."""
    return [body.rstrip() for body in get_all(channel, queue)]


def restart(node: NodeClient, *, is_clean: bool) -> BlockingChannel:
    """End the process and start it again; give a channel of the next one."""
    node.disconnect()
    if is_clean:
        assert node.process.stop() == 0
    else:
        node.process.kill()
    node.process.start()
    return node.channel()


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("is_clean", [True, False], ids=["sigterm", "kill"])
def test_a_queue_named_like_a_level_is_another_queue(
    node: NodeClient, version: int, is_clean: bool
) -> None:
    channel = node.channel()
    kind = {"x-queue-version": version}
    channel.queue_declare(QUEUE, durable=True, arguments={**LEVELS, **kind})
    channel.queue_declare(NAMESAKE, durable=True, arguments=kind)
    by_priority = fill(channel, QUEUE, "an order")
    fill(channel, NAMESAKE, "another")
    channel = restart(node, is_clean=is_clean)
    assert sorted(taken(channel, NAMESAKE)) == sorted(
        b"another %d" % number for number in range(30)
    )
    fill(channel, NAMESAKE, "later", 3)
    channel.queue_delete(NAMESAKE)
    channel = restart(node, is_clean=is_clean)
    assert taken(channel, QUEUE) == by_priority


@pytest.mark.parametrize("is_clean", [True, False], ids=["sigterm", "kill"])
def test_a_right_on_such_a_name_gives_no_access_to_the_queue(
    node: NodeClient, is_clean: bool
) -> None:
    owner = node.channel()
    owner.queue_declare(QUEUE, durable=True, arguments=LEVELS)
    by_priority = fill(owner, QUEUE, "an order")
    node.user("mallory")
    node.permit("mallory", "/", "^orders.[0-9]$", "^orders.[0-9]$", "^orders.[0-9]$")
    for _ in range(2):
        other = node.channel("mallory")
        for level in (1, 2, 3):
            assert other.queue_declare(f"orders\x00{level}", durable=True).method.message_count == 0
        restart(node, is_clean=is_clean)
        other = node.channel("mallory")
        for level in (1, 2, 3):
            assert get_all(other, f"orders\x00{level}") == []
            other.queue_delete(f"orders\x00{level}")
    owner = restart(node, is_clean=is_clean)
    assert taken(owner, QUEUE) == by_priority


@pytest.mark.parametrize("version", [1, 2])
def test_a_backup_brings_levels_and_such_queues_back(
    node: NodeClient, tmp_path: Path, version: int, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = node.channel()
    kind = {"x-queue-version": version}
    channel.queue_declare(QUEUE, durable=True, arguments={**LEVELS, **kind})
    channel.queue_declare(NAMESAKE, durable=True, arguments=kind)
    by_priority = fill(channel, QUEUE, "an order")
    other = fill(channel, NAMESAKE, "another")
    node.ctl("backup", str(tmp_path / "backup"))
    assert node.process.stop() == 0
    restored = tmp_path / "restored"
    assert main(["--data-dir", str(restored), "restore", str(tmp_path / "backup")]) == 0
    assert main(["--data-dir", str(restored), "check"]) == 0
    report = capsys.readouterr().out
    assert "queue 'orders' level 3 in vhost '/'" in report
    assert f"queue {NAMESAKE!r} in vhost '/'" in report
    node.process.data_dir = restored
    channel = restart(node, is_clean=False)
    assert taken(channel, QUEUE) == by_priority
    assert sorted(taken(channel, NAMESAKE)) == sorted(other)
