"""Looking at queues and draining them, called as Spark calls it, without a JVM."""

from __future__ import annotations

import pickle
import uuid
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="needs Spark: run by `make test-spark`")

from pyspark.sql.datasource import InputPartition

from pyspark_amqp.columns import struct_of
from pyspark_amqp.convert import BadMessage
from pyspark_amqp.datasource import AmqpDataSource
from pyspark_amqp.options import read_batch_options
from pyspark_amqp.source.batch import DrainReader, PeekReader, forget
from pyspark_amqp.wire import (
    ChannelClosed,
    Publisher,
    connect,
    declare_queue,
    message_octets,
    purge_queue,
    queue_state,
)
from tests.support.broker_process import BrokerProcess


def publish(url: str, queue: str, count: int) -> None:
    with connect(url) as connection:
        publisher = Publisher(connection)
        publisher.send([message_octets("", queue, b"%d" % n) for n in range(count)])
        publisher.flush()


def bodies(reader: PeekReader | DrainReader) -> list[bytes]:
    found: list[bytes] = []
    for partition in reader.partitions() or [InputPartition(None)]:
        copy = pickle.loads(pickle.dumps(reader))
        for batch in copy.read(pickle.loads(pickle.dumps(partition))):
            found += batch.column("body").to_pylist()
    return found


def peek_reader(url: str, queue: str, **more: str) -> PeekReader:
    options = read_batch_options({"amqp.uri": url, "queue": queue, **more})
    return PeekReader(options, struct_of())


def drain_reader(url: str, queue: str, spool: Path, **more: str) -> DrainReader:
    options = read_batch_options(
        {
            "amqp.uri": url,
            "queue": queue,
            "mode": "drain",
            "drainId": "d",
            "spoolLocation": str(spool),
            "pollTimeoutMs": "300",
            **more,
        }
    )
    return DrainReader(options, struct_of())


def test_looking_takes_nothing(broker_url: str, queue: str) -> None:
    publish(broker_url, queue, 5)
    reader = peek_reader(broker_url, queue, limit="3")
    assert bodies(reader) == [b"0", b"1", b"2"]
    with connect(broker_url) as connection:
        assert queue_state(connection, queue).ready_count == 5


def test_looking_at_a_missing_queue(broker_url: str, queue: str) -> None:
    with pytest.raises(ChannelClosed, match="no queue 'nowhere'"):
        bodies(peek_reader(broker_url, "nowhere"))
    assert bodies(peek_reader(broker_url, "nowhere", failOnMissingQueue="false")) == []


def test_every_action_of_a_drain_sees_the_same_rows(
    broker_url: str, queue: str, tmp_path: Path
) -> None:
    publish(broker_url, queue, 40)
    how = {"prefetch": "15", "limit": "30"}
    first = bodies(drain_reader(broker_url, queue, tmp_path, **how))
    assert sorted(first) == sorted(b"%d" % n for n in range(30))
    with connect(broker_url) as connection:
        assert purge_queue(connection, queue) == 10
    publish(broker_url, queue, 7)
    assert bodies(drain_reader(broker_url, queue, tmp_path, **how)) == first
    another = drain_reader(broker_url, queue, tmp_path, drainId="e")
    assert len(bodies(another)) == 7


def test_a_drain_of_nothing_stays_empty(broker_url: str, queue: str, tmp_path: Path) -> None:
    assert bodies(drain_reader(broker_url, queue, tmp_path)) == []
    publish(broker_url, queue, 3)
    assert bodies(drain_reader(broker_url, queue, tmp_path)) == []


def test_a_drain_is_forgotten_when_its_rows_are_safe(
    broker_url: str, queue: str, tmp_path: Path
) -> None:
    publish(broker_url, queue, 3)
    assert len(bodies(drain_reader(broker_url, queue, tmp_path))) == 3
    assert forget(str(tmp_path), "d")
    assert not forget(str(tmp_path), "d")
    assert list(tmp_path.iterdir()) == []
    assert bodies(drain_reader(broker_url, queue, tmp_path)) == []


@pytest.mark.parametrize("mode", ["peek", "drain"])
def test_queues_by_a_pattern(node: BrokerProcess, tmp_path: Path, mode: str) -> None:
    start = uuid.uuid4().hex
    with connect(node.url) as connection:
        for name in (f"{start}.a", f"{start}.b", f"{start}.c"):
            declare_queue(connection, name)
    publish(node.url, f"{start}.a", 2)
    publish(node.url, f"{start}.b", 1)
    publish(node.url, f"{start}.c", 1)
    place = f"http://127.0.0.1:{node.management_port}"
    options = {"amqp.uri": node.url, "queuePattern": f"{start}.[ab]", "managementUri": place}
    more = {"mode": "drain", "drainId": "d", "spoolLocation": str(tmp_path)}
    source = AmqpDataSource({**options, **(more if mode == "drain" else {"mode": "peek"})})
    assert bodies(source.reader(struct_of())) == [b"0", b"1", b"0"]
    nothing = AmqpDataSource({**options, "queuePattern": "no such queue"})
    assert bodies(nothing.reader(struct_of())) == []


def test_looking_may_refuse_what_it_would_show_otherwise(broker_url: str, queue: str) -> None:
    block = b"\x00\x08\x01\xff"  # app_id
    with connect(broker_url) as connection:
        publisher = Publisher(connection)
        publisher.send([message_octets("", queue, b"x", properties=block)])
        publisher.flush()
    assert bodies(peek_reader(broker_url, queue, malformed="keep")) == [b"x"]
    with pytest.raises(BadMessage, match="app_id is no UTF-8"):
        bodies(peek_reader(broker_url, queue, malformed="fail"))
