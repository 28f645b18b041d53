"""Stream queues of RabbitMQ: where a read begins, the same rows each time, and a broker that is killed meanwhile."""

from __future__ import annotations

import pickle
import random
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="needs pyarrow: run by `make test-spark`")

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import StructType

from pyspark_amqp.columns import struct_of
from pyspark_amqp.convert import schema_of
from pyspark_amqp.options import read_batch_options
from pyspark_amqp.source.stream_queue import OffsetsGone, ReplayReader, StreamQueueReader
from pyspark_amqp.wire import Publisher, UnsuitableQueue, connect, declare_queue, message_octets
from tests.spark.applications import Application, check
from tests.spark.conftest import publish as publish_with_ids
from tests.support import rabbitmq_node

pytestmark = [pytest.mark.long, pytest.mark.differential, pytest.mark.timeout(600)]
COLUMNS: StructType = struct_of(schema_of(["body", "stream_offset"]))
Rows = list[tuple[int, bytes]]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[rabbitmq_node.RabbitNode]:
    if not rabbitmq_node.is_installed():
        pytest.skip("RabbitMQ is not installed: apt-get install rabbitmq-server")
    node = rabbitmq_node.RabbitNode(
        tmp_path_factory.mktemp("rabbitmq"), rabbitmq_node.free_node_port()
    )
    node.start()
    try:
        yield node
    finally:
        node.stop()


@pytest.fixture
def stream(node: rabbitmq_node.RabbitNode) -> str:
    """Return a stream of its own."""
    return declared(node)


def declared(node: rabbitmq_node.RabbitNode, **arguments: int) -> str:
    name = f"stream.{uuid.uuid4().hex[:12]}"
    given = {key.replace("_", "-"): value for key, value in arguments.items()}
    with connect(node.url) as connection:
        declare_queue(connection, name, arguments={"x-queue-type": "stream", **given})
    return name


def publish(url: str, stream: str, numbers: range, size: int = 0) -> None:
    """Publish numbers in order, confirmed before it returns."""
    with connect(url) as connection:
        publisher = Publisher(connection)
        publisher.send([message_octets("", stream, b"%0*d" % (size, n)) for n in numbers])
        publisher.flush()


def options(node: rabbitmq_node.RabbitNode, stream: str, **more: str) -> dict[str, str]:
    found = {"amqp.uri": node.url, "queue": stream, "startingOffsets": "first"}
    return {**found, "pollTimeoutMs": "2000", "retryTimeoutMs": "60000", **more}


def rows_of(reader: Any, partitions: Any) -> Rows:
    """Read partitions as executors do: with pickled copies."""
    found: Rows = []
    for partition in partitions:
        copy = pickle.loads(pickle.dumps(reader))
        for batch in copy.read(pickle.loads(pickle.dumps(partition))):
            found += zip(*(batch.column(i).to_pylist() for i in (1, 0)), strict=True)
    return found


def replayed(node: rabbitmq_node.RabbitNode, stream: str, **more: str) -> Rows:
    found = read_batch_options(options(node, stream, mode="replay", **more))
    reader = ReplayReader(found, COLUMNS)  # type: ignore[arg-type]
    return rows_of(reader, reader.partitions())


def numbers(rows: Rows) -> list[int]:
    return [int(body) for _, body in rows]


def test_where_a_read_begins(node: rabbitmq_node.RabbitNode, stream: str) -> None:
    publish(node.url, stream, range(100))
    time.sleep(1.1)  # a chunk's time is in milliseconds, AMQP's in seconds
    between = time.gmtime()
    time.sleep(1.1)
    publish(node.url, stream, range(100, 130))
    whole = list(range(130))
    assert numbers(replayed(node, stream)) == whole
    assert numbers(replayed(node, stream, startingOffsets="40")) == whole[40:]
    assert numbers(replayed(node, stream, startingOffsets="next")) == []
    last = numbers(replayed(node, stream, startingOffsets="last"))
    assert last == whole[-len(last) :]
    assert last
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", between)
    assert numbers(replayed(node, stream, startingOffsets=stamp)) == whole[100:]
    assert numbers(replayed(node, stream, startingOffsets="2100-01-01")) == []
    each = replayed(node, stream, startingOffsets=f'{{"{stream}": 120}}', endingOffsets="125")
    assert each == [(n, b"%d" % n) for n in range(120, 125)]
    parts = replayed(node, stream, consumersPerQueue="7", endingOffsets="50")
    assert numbers(parts) == whole[:50]


def test_batches_follow_each_other_and_are_the_same_each_time(
    node: rabbitmq_node.RabbitNode, stream: str
) -> None:
    publish(node.url, stream, range(25))
    reader = StreamQueueReader(options(node, stream, maxRecordsPerTrigger="10"), COLUMNS)
    start = reader.initialOffset()
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMaxRows(10)
    found: list[int] = []
    while (end := reader.latestOffset(start, limit)) != start:
        rows = rows_of(reader, reader.partitions(start, end))
        again = StreamQueueReader(options(node, stream), COLUMNS)
        # A first batch's start is made again after a crash: only the end counts.
        assert rows_of(again, again.partitions(again.initialOffset(), end)) == rows
        reader.commit(end)
        found += numbers(rows)
        start = end
    assert found == list(range(25))
    assert reader.reportLatestOffset() == {"end": {stream: 25}}
    publish(node.url, stream, range(25, 28))
    end = after(reader, start)
    assert numbers(rows_of(reader, reader.partitions(start, end))) == [25, 26, 27]
    reader.stop()


def after(reader: StreamQueueReader, start: dict[str, Any]) -> dict[str, Any]:
    """Return the next offset; a stream shows a message some milliseconds after it is confirmed."""
    deadline = time.monotonic() + 10
    while (end := reader.latestOffset(start, ReadAllAvailable())) == start:
        assert time.monotonic() < deadline
    return end


def test_what_comes_from_now_on_is_pinned_by_the_first_offset(
    node: rabbitmq_node.RabbitNode, stream: str
) -> None:
    publish(node.url, stream, range(10))
    reader = StreamQueueReader(options(node, stream, startingOffsets="next"), COLUMNS)
    first = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    assert first == {"v": 1, "from": {stream: 10}, "to": {stream: 10}}
    reader.stop()
    publish(node.url, stream, range(10, 15))
    later = StreamQueueReader(options(node, stream, startingOffsets="next"), COLUMNS)
    later.prepareForTriggerAvailableNow()
    publish(node.url, stream, range(15, 20))
    end = after(later, first)
    assert numbers(rows_of(later, later.partitions(first, end))) == [10, 11, 12, 13, 14]
    assert later.latestOffset(end, ReadAllAvailable()) == end
    later.stop()


def test_a_stream_that_has_nothing_yet(node: rabbitmq_node.RabbitNode, stream: str) -> None:
    reader = StreamQueueReader(options(node, stream), COLUMNS)
    start = reader.initialOffset()
    assert reader.latestOffset(start, ReadAllAvailable()) == start
    publish(node.url, stream, range(3))
    end = after(reader, start)
    assert numbers(rows_of(reader, reader.partitions(start, end))) == [0, 1, 2]
    reader.stop()


def test_what_retention_has_removed(node: rabbitmq_node.RabbitNode) -> None:
    small = {"x_max_length_bytes": 300_000, "x_stream_max_segment_size_bytes": 100_000}
    stream = declared(node, **small)
    first = 0
    for round_ in range(40):
        publish(node.url, stream, range(round_ * 50, round_ * 50 + 50), size=2000)
        first = replayed(node, stream)[0][0]
        if first:
            break
    assert first > 0
    with pytest.raises(OffsetsGone, match=f"offsets 0 to .* are gone; its first is {first} now"):
        replayed(node, stream, startingOffsets="0")
    rows = replayed(node, stream, startingOffsets="0", failOnDataLoss="false")
    assert rows[0][0] == first


def test_a_queue_that_is_no_stream_is_refused_by_name(node: rabbitmq_node.RabbitNode) -> None:
    name = f"classic.{uuid.uuid4().hex[:12]}"
    with connect(node.url) as connection:
        declare_queue(connection, name)
    with pytest.raises(UnsuitableQueue, match=f"reading '{name}': it is no stream"):
        replayed(node, name)


@pytest.mark.parametrize(
    "count", [50_000, pytest.param(1_000_000, marks=pytest.mark.timeout(3600))]
)
def test_a_broker_that_is_killed_while_a_range_is_read(
    node: rabbitmq_node.RabbitNode, stream: str, count: int, tell: Callable[[str], None]
) -> None:
    """Five kills (-9): each range comes whole, in order, each message once; and again the same."""
    for first in range(0, count, 10_000):
        publish(node.url, stream, range(first, min(first + 10_000, count)))
    tell(f"published {count}")
    found = read_batch_options(options(node, stream, mode="replay", endingOffsets=str(count)))
    reader = ReplayReader(found, COLUMNS)  # type: ignore[arg-type]
    (partition,) = reader.partitions()
    rows: Rows = []
    kills = 0
    for batch in reader.read(partition):
        rows += zip(*(batch.column(i).to_pylist() for i in (1, 0)), strict=True)
        if len(rows) > (kills + 1) * count // 6 and kills < 5:
            node.kill()
            node.start()
            kills += 1
            tell(f"killed after {len(rows)} of {count}")
    assert kills == 5
    assert numbers(rows) == list(range(count))
    assert replayed(node, stream, endingOffsets=str(count)) == rows
    part = {"startingOffsets": str(count // 4), "endingOffsets": str(3 * count // 4)}
    assert (
        replayed(node, stream, consumersPerQueue="3", **part) == rows[count // 4 : 3 * count // 4]
    )
    tell(f"replayed {count} and {count // 2}")


class StreamApplication(Application):
    """A stream's way to Parquet."""

    script = "stream_queue_application.py"


def test_a_query_whose_driver_and_broker_are_killed(
    node: rabbitmq_node.RabbitNode, stream: str, tmp_path: Path, tell: Callable[[str], None]
) -> None:
    """Each message is in the sink once, with its offset."""
    count, per_batch = 40_000, 1000
    for first in range(0, count, 10_000):
        publish_with_ids(node.url, stream, 10_000, first)
    seed = random.randrange(1 << 32)
    chosen = random.Random(seed)
    application = StreamApplication(node.url, stream, tmp_path / "a", per_batch, "first")
    for number in range(1, 6):
        delay_s = chosen.uniform(0.1, 3.0)
        assert application.die_after(delay_s), f"ended before kill {number}, seed {seed}"
        tell(f"driver killed after {len(application.offsets())} batches")
        if number % 2:
            node.kill()
            node.start()
            tell("broker killed")
    application.finish()
    tell(check(application, count, f"seed {seed}"))
    table = application.table("stream_offset", "body")
    found = sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))
    assert found == [(n, b"%d" % n) for n in range(count)]
