"""Queues that RabbitMQ has and that must not be read as classic ones are."""

from __future__ import annotations

from collections.abc import Iterator

import pika
import pytest

pytest.importorskip("pyarrow", reason="needs pyarrow: run by `make test-spark`")

from pyspark.sql.types import StructType

from pyspark_amqp.options import read_stream_options
from pyspark_amqp.options.source import read_batch_options
from pyspark_amqp.source.batch import PeekReader, QueuePartition
from pyspark_amqp.source.listing import Listing
from pyspark_amqp.source.planning import Counts
from pyspark_amqp.wire import UnsuitableQueue, connect, queue_state, queue_type
from tests.support import rabbitmq_node

pytestmark = [pytest.mark.long, pytest.mark.differential, pytest.mark.timeout(300)]
SCHEMA = StructType().add("body", "binary")
LIMIT = 3


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if not rabbitmq_node.is_installed():
        pytest.skip("RabbitMQ is not installed: apt-get install rabbitmq-server")
    node = rabbitmq_node.RabbitNode(
        tmp_path_factory.mktemp("rabbitmq"), rabbitmq_node.free_node_port()
    )
    node.start()
    try:
        connection = pika.BlockingConnection(pika.URLParameters(node.url))
        channel = connection.channel()
        channel.confirm_delivery()
        quorum = {"x-queue-type": "quorum", "x-delivery-limit": LIMIT}
        channel.queue_declare("quorum", durable=True, arguments=quorum)
        channel.queue_declare("stream", durable=True, arguments={"x-queue-type": "stream"})
        channel.queue_declare("classic", durable=True)
        for queue in ("quorum", "stream", "classic"):
            for number in range(5):
                channel.basic_publish("", queue, b"%d" % number)
        connection.close()
        yield node.url
    finally:
        node.stop()


def looked(url: str, queue: str, **options: str) -> list[bytes]:
    found = read_batch_options({"amqp.uri": url, "queue": queue, **options})
    reader = PeekReader(found, SCHEMA)  # type: ignore[arg-type]
    return [
        body
        for batch in reader.read(QueuePartition(queue))
        for body in batch.column("body").to_pylist()
    ]


def test_the_type_is_told_and_nothing_is_declared(url: str) -> None:
    found = []
    for queue in ("quorum", "stream", "classic", "missing"):
        with connect(url) as connection:
            found.append(queue_type(connection, queue))
    assert found == ["quorum", "stream", None, None]
    with connect(url) as connection, pytest.raises(Exception, match="404 NOT_FOUND"):
        queue_state(connection, "missing")


def test_looking_into_a_quorum_queue_is_refused_and_costs_nothing(url: str) -> None:
    for _ in range(25):
        with pytest.raises(UnsuitableQueue, match=r"quorum queue.*allowRedelivery=true"):
            looked(url, "quorum")
    with connect(url) as connection:
        assert queue_state(connection, "quorum").ready_count == 5
    assert looked(url, "quorum", allowRedelivery="true") == [b"%d" % n for n in range(5)]
    assert looked(url, "classic") == [b"%d" % n for n in range(5)]


def test_a_stream_is_refused_by_name(url: str) -> None:
    with pytest.raises(UnsuitableQueue, match="looking into 'stream': it is a stream: mode=replay"):
        looked(url, "stream")
    options = read_stream_options(
        {"amqp.uri": url, "queue": "classic,stream", "spoolLocation": "/x"}
    )
    addresses = options.task.addresses
    counts = Counts(addresses, Listing(addresses, options.queues), retry_timeout_s=0.0)
    with pytest.raises(
        UnsuitableQueue, match="reading 'stream': it is a stream: startingOffsets=first"
    ):
        counts()
    counts.close()
