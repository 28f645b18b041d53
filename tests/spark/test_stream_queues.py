"""Stream queues of both brokers: where a read begins, the same rows each time, and a broker that is killed meanwhile.

RabbitMQ's offsets are consecutive, BurrowMQ's have gaps: what is expected is said in rows, and offsets are taken from them.
"""

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
from pyspark_amqp.options import read_batch_options, read_stream_options
from pyspark_amqp.source.listing import Listing
from pyspark_amqp.source.planning import Counts
from pyspark_amqp.source.stream_queue import OffsetsGone, ReplayReader, StreamQueueReader
from pyspark_amqp.wire import (
    ChannelClosed,
    Publisher,
    UnsuitableQueue,
    connect,
    declare_queue,
    delete_queue,
    message_octets,
)
from tests.spark.applications import Application, check
from tests.spark.conftest import publish as publish_with_ids
from tests.spark.stream_brokers import RabbitStreams, StreamBroker, broker
from tests.support.patience import patient

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]
COLUMNS: StructType = struct_of(schema_of(["body", "stream_offset"]))
Rows = list[tuple[int, bytes]]


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("rabbitmq", marks=pytest.mark.differential),
        pytest.param("burrowmq", marks=pytest.mark.needs_server),
    ],
)
def node(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StreamBroker]:
    node = broker(request.param, tmp_path_factory.mktemp(request.param))
    try:
        node.start()
        yield node
    finally:
        node.stop()


@pytest.fixture
def stream(node: StreamBroker) -> str:
    """Return a stream of its own."""
    return declared(node)


def declared(node: StreamBroker, name: str = "", **arguments: int | str) -> str:
    """Declare a stream, as soon as servers that have just begun have elected who makes it."""
    name = name or f"stream.{uuid.uuid4().hex[:12]}"
    given = {key.replace("_", "-"): value for key, value in arguments.items()}
    deadline = time.monotonic() + patient(60)
    while True:
        try:
            with connect(node.url) as connection:
                declare_queue(connection, name, arguments={"x-queue-type": "stream", **given})
        except ChannelClosed as refused:
            if refused.reply_code != 404 or time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return name


def publish(url: str, stream: str, numbers: range, size: int = 0) -> None:
    """Publish numbers in order, confirmed before it returns."""
    with connect(url) as connection:
        publisher = Publisher(connection)
        publisher.send([message_octets("", stream, b"%0*d" % (size, n)) for n in numbers])
        publisher.flush()


def options(node: StreamBroker, stream: str, **more: str) -> dict[str, str]:
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


def replayed(node: StreamBroker, stream: str, **more: str) -> Rows:
    found = read_batch_options(options(node, stream, mode="replay", **more))
    reader = ReplayReader(found, COLUMNS)  # type: ignore[arg-type]
    return rows_of(reader, reader.partitions())


def numbers(rows: Rows) -> list[int]:
    return [int(body) for _, body in rows]


def test_where_a_read_begins(node: StreamBroker, stream: str) -> None:
    publish(node.url, stream, range(100))
    time.sleep(1.1)  # a chunk's time is in milliseconds, AMQP's in seconds
    between = time.gmtime()
    time.sleep(1.1)
    publish(node.url, stream, range(100, 130))
    whole = list(range(130))
    every = replayed(node, stream)
    assert numbers(every) == whole
    offsets = [offset for offset, _ in every]
    assert offsets == sorted(set(offsets))
    assert numbers(replayed(node, stream, startingOffsets=str(offsets[40]))) == whole[40:]
    assert numbers(replayed(node, stream, startingOffsets=str(offsets[39] + 1))) == whole[40:]
    assert numbers(replayed(node, stream, startingOffsets="next")) == []
    last = numbers(replayed(node, stream, startingOffsets="last"))
    assert last == whole[-len(last) :]
    assert last
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", between)
    assert numbers(replayed(node, stream, startingOffsets=stamp)) == whole[100:]
    assert numbers(replayed(node, stream, endingOffsets=stamp)) == whole[:100]
    assert numbers(replayed(node, stream, startingOffsets="2100-01-01")) == []
    assert numbers(replayed(node, stream, endingOffsets="2100-01-01")) == whole
    begin = f'{{"{stream}": {offsets[120]}}}'
    each = replayed(node, stream, startingOffsets=begin, endingOffsets=str(offsets[125]))
    assert each == every[120:125]
    parts = replayed(node, stream, consumersPerQueue="7", endingOffsets=str(offsets[50]))
    assert parts == every[:50]


def test_a_range_up_to_the_end_waits_for_nothing(node: StreamBroker, stream: str) -> None:
    """No message comes after the last one: `pollTimeoutMs` is for a broker that does not answer."""
    for first in range(0, 25, 5):
        publish(node.url, stream, range(first, first + 5))
    began = time.monotonic()
    assert len(replayed(node, stream, pollTimeoutMs="60000")) == 25
    assert time.monotonic() - began < 30


def test_batches_follow_each_other_and_are_the_same_each_time(
    node: StreamBroker, stream: str
) -> None:
    for first in range(0, 25, 5):  # in chunks of their own, or nearly
        publish(node.url, stream, range(first, first + 5))
    reader = StreamQueueReader(options(node, stream, maxRecordsPerTrigger="10"), COLUMNS)
    start = reader.initialOffset()
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMaxRows(10)
    found: list[int] = []
    sizes = []
    while (end := reader.latestOffset(start, limit)) != start:
        rows = rows_of(reader, reader.partitions(start, end))
        again = StreamQueueReader(options(node, stream), COLUMNS)
        # A first batch's start is made again after a crash: only the end counts.
        assert rows_of(again, again.partitions(again.initialOffset(), end)) == rows
        reader.commit(end)
        found += numbers(rows)
        sizes.append(len(rows))
        start = end
    assert found == list(range(25))
    assert sizes == [10, 10, 5]
    last = rows[-1][0]
    assert reader.reportLatestOffset() == {"end": {stream: last + 1}}
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
    node: StreamBroker, stream: str
) -> None:
    publish(node.url, stream, range(10))
    end = replayed(node, stream)[-1][0] + 1
    reader = StreamQueueReader(options(node, stream, startingOffsets="next"), COLUMNS)
    first = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    assert first == {"v": 1, "from": {stream: end}, "to": {stream: end}}
    reader.stop()
    publish(node.url, stream, range(10, 15))
    later = StreamQueueReader(options(node, stream, startingOffsets="next"), COLUMNS)
    later.prepareForTriggerAvailableNow()
    publish(node.url, stream, range(15, 20))
    end = after(later, first)
    assert numbers(rows_of(later, later.partitions(first, end))) == [10, 11, 12, 13, 14]
    assert later.latestOffset(end, ReadAllAvailable()) == end
    later.stop()


@pytest.mark.parametrize("position", ["first", "next", "last", "2100-01-01"])
def test_a_stream_that_has_nothing_yet(node: StreamBroker, stream: str, position: str) -> None:
    """Its first message is the first one that comes after the query began, wherever that begins."""
    reader = StreamQueueReader(options(node, stream, startingOffsets=position), COLUMNS)
    start = reader.initialOffset()
    assert reader.latestOffset(start, ReadAllAvailable()) == start
    for number in range(3):
        publish(node.url, stream, range(number, number + 1))
    end = after(reader, start)
    found: list[int] = []
    while len(found) < 3:
        found += numbers(rows_of(reader, reader.partitions(start, end)))
        if len(found) < 3:
            start, end = end, after(reader, end)
    assert found == [0, 1, 2]
    reader.stop()


def test_what_retention_has_removed(node: StreamBroker) -> None:
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


def test_a_batch_of_which_retention_has_left_nothing(node: StreamBroker) -> None:
    """Tried again after a pause that was too long, as after a night."""
    stream = declared(node, x_max_age="2s", x_stream_max_segment_size_bytes=1000)
    publish(node.url, stream, range(50), size=2000)
    quick = {"pollTimeoutMs": "500", "retryTimeoutMs": "1000"}
    reader = StreamQueueReader(options(node, stream, **quick), COLUMNS)
    start = reader.initialOffset()
    end = after(reader, start)
    reader.stop()
    deadline = time.monotonic() + patient(30)
    number = 50
    while replayed(node, stream, failOnDataLoss="false")[:1] and time.monotonic() < deadline:
        time.sleep(1.0)
        if isinstance(
            node, RabbitStreams
        ):  # removes segments, when another one begins, never the last
            publish(node.url, stream, range(number, number + 1), size=2000)
            number += 1
            if numbers(replayed(node, stream))[0] >= 50:
                break
    again = StreamQueueReader(options(node, stream, **quick), COLUMNS)
    with pytest.raises(OffsetsGone, match=r"offsets 0 to .* are gone; its? "):
        rows_of(again, again.partitions(start, end))
    careless = StreamQueueReader(options(node, stream, failOnDataLoss="false", **quick), COLUMNS)
    assert rows_of(careless, careless.partitions(start, end)) == []


def test_a_stream_that_is_deleted_under_a_query(node: StreamBroker, stream: str) -> None:
    publish(node.url, stream, range(3))
    reader = StreamQueueReader(options(node, stream), COLUMNS)
    end = after(reader, reader.initialOffset())
    with connect(node.url) as connection:
        delete_queue(connection, stream)
    deadline = time.monotonic() + patient(20)
    with pytest.raises(ChannelClosed, match="404 NOT_FOUND"):
        while time.monotonic() < deadline:
            reader.latestOffset(end, ReadAllAvailable())
    reader.stop()


@pytest.mark.parametrize("is_running", [True, False], ids=["running", "checkpoint"])
def test_a_stream_that_is_declared_anew_under_a_query(
    node: StreamBroker, stream: str, is_running: bool
) -> None:
    """It has fewer messages than were read of the former one: nothing would come, and nothing was said."""
    for first in range(0, 50, 10):  # in chunks of their own, or nearly
        publish(node.url, stream, range(first, first + 10))
    quick = {"pollTimeoutMs": "500", "retryTimeoutMs": "1000"}
    reader = StreamQueueReader(options(node, stream, **quick), COLUMNS)
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    assert numbers(rows_of(reader, reader.partitions(start, end))) == list(range(50))
    with connect(node.url) as connection:
        delete_queue(connection, stream)
    declared(node, name=stream)
    publish(node.url, stream, range(100, 105))
    again = StreamQueueReader(options(node, stream, **quick), COLUMNS)
    with pytest.raises(
        OffsetsGone, match=rf"stream '{stream}' ends before \d+ now, and did before"
    ):
        after(reader if is_running else again, end)
    with pytest.raises(OffsetsGone, match=r"offsets \d+ to \d+ are gone; it ends before \d+ now"):
        rows_of(again, again.partitions(start, end))
    again.stop()
    reader.stop()
    careless = StreamQueueReader(options(node, stream, failOnDataLoss="false", **quick), COLUMNS)
    careless.prepareForTriggerAvailableNow()
    following = after(careless, end)
    rows = rows_of(careless, careless.partitions(end, following))
    assert numbers(rows) == list(range(100, 105))
    assert careless.latestOffset(following, ReadAllAvailable()) == following
    careless.stop()


def test_a_queue_that_is_no_stream_is_refused_by_name(node: StreamBroker) -> None:
    name = f"classic.{uuid.uuid4().hex[:12]}"
    with connect(node.url) as connection:
        declare_queue(connection, name)
    with pytest.raises(UnsuitableQueue, match=f"reading '{name}': it is no stream"):
        replayed(node, name)


def test_a_query_of_queues_refuses_a_stream_that_has_messages(
    node: StreamBroker, stream: str
) -> None:
    """BurrowMQ says how many it keeps: they would be planned for ever, and none would come."""
    publish(node.url, stream, range(5))
    spooled = {"amqp.uri": node.url, "queue": stream, "spoolLocation": "/nowhere"}
    found = read_stream_options(spooled)
    addresses = found.task.addresses
    counts = Counts(addresses, Listing(addresses, found.queues), retry_timeout_s=0.0)
    with pytest.raises(
        UnsuitableQueue, match=f"reading '{stream}': it is a stream: startingOffsets=first"
    ):
        counts()
    counts.close()


@pytest.mark.parametrize(
    "count", [50_000, pytest.param(1_000_000, marks=pytest.mark.timeout(3600))]
)
def test_a_broker_that_is_killed_while_a_range_is_read(
    node: StreamBroker, stream: str, count: int, tell: Callable[[str], None]
) -> None:
    """Five kills (-9): each range comes whole, in order, each message once; and again the same."""
    for first in range(0, count, 10_000):
        publish(node.url, stream, range(first, min(first + 10_000, count)))
    tell(f"published {count}")
    found = read_batch_options(options(node, stream, mode="replay"))
    reader = ReplayReader(found, COLUMNS)  # type: ignore[arg-type]
    (partition,) = reader.partitions()
    rows: Rows = []
    kills = 0
    for batch in reader.read(partition):
        rows += zip(*(batch.column(i).to_pylist() for i in (1, 0)), strict=True)
        if len(rows) > (kills + 1) * count // 6 and kills < 5:
            node.restart_killed()
            kills += 1
            tell(f"killed after {len(rows)} of {count}")
    assert kills == 5
    assert numbers(rows) == list(range(count))
    assert replayed(node, stream) == rows
    quarter, rest = (str(rows[place][0]) for place in (count // 4, 3 * count // 4))
    part = {"startingOffsets": quarter, "endingOffsets": rest}
    assert (
        replayed(node, stream, consumersPerQueue="3", **part) == rows[count // 4 : 3 * count // 4]
    )
    tell(f"replayed {count} and {count // 2}")


class StreamApplication(Application):
    """A stream's way to Parquet."""

    script = "stream_queue_application.py"


@pytest.mark.parametrize(
    ("count", "kills_broker"),
    [(30_000, False), (40_000, True)],
    ids=["driver", "driver and broker"],
)
def test_a_query_that_is_killed(
    node: StreamBroker,
    stream: str,
    tmp_path: Path,
    tell: Callable[[str], None],
    count: int,
    kills_broker: bool,
) -> None:
    """Five kills (-9): each message is in the sink once, with its offset; there is no spool."""
    for first in range(0, count, 1000):
        publish_with_ids(node.url, stream, 1000, first)
    seed = random.randrange(1 << 32)
    chosen = random.Random(seed)
    application = StreamApplication(node.url, stream, tmp_path / "a", 1000, "first")
    for number in range(1, 6):
        delay_s = chosen.uniform(0.1, 3.0)
        assert application.die_after(delay_s), f"ended before kill {number}, seed {seed}"
        tell(f"driver killed after {len(application.offsets())} batches")
        if kills_broker and number % 2:
            node.restart_killed()
            tell("broker killed")
    application.finish()
    tell(check(application, count, f"seed {seed}, {len(application.offsets())} batches"))
    table = application.table("stream_offset", "body")
    found = sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))
    assert numbers(found) == list(range(count))
    assert found == replayed(node, stream)
    assert not list(tmp_path.rglob("*.arrow"))
    assert not (application.folder / "spool").exists()
