"""A damaged or missing file that names a queue costs nothing: the queue is found by its definition.

Source: docs/storage.md, "Damaged files".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pika
import pytest

from tests.support.black_box import PERSISTENT, get_all
from tests.support.broker_process import BrokerProcess
from tests.support.node_client import NodeClient

pytestmark = pytest.mark.slow


@pytest.fixture
def client(own_broker: Callable[..., BrokerProcess]) -> Iterator[NodeClient]:
    """Yield a client of a fresh node."""
    client = NodeClient(own_broker())
    yield client
    client.close()


def empty(path: Path) -> None:
    """Leave a file of no octets."""
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [empty, Path.unlink])
@pytest.mark.parametrize("is_clean", [True, False], ids=["sigterm", "kill"])
def test_a_queue_without_its_name_file_has_its_messages(
    client: NodeClient, damage: Callable[[Path], None], is_clean: bool
) -> None:
    node = client.process
    channel = client.channel()
    channel.confirm_delivery()
    channel.queue_declare("q", durable=True)
    channel.queue_declare("p", durable=True, arguments={"x-max-priority": 1})
    for number in range(10):
        channel.basic_publish("", "q", b"%d" % number, PERSISTENT)
        properties = pika.BasicProperties(delivery_mode=2, priority=1)
        channel.basic_publish("", "p", b"%d" % number, properties)
    client.disconnect()
    if is_clean:
        assert node.stop() == 0
    else:
        node.kill()
    for path in list(node.data_dir.rglob(".queue_name")):
        damage(path)
    node.start()
    channel = client.channel()
    for queue in ("q", "p"):
        assert get_all(channel, queue) == [b"%d" % number for number in range(10)]
