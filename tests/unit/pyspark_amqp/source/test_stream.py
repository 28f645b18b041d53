"""Spark's stream reader, called as Spark calls it, without a JVM.

Covers: pyspark_amqp/source/tasks.py
"""

from __future__ import annotations

import pickle
import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="needs Spark: run by `make test-spark`")

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import StructType

from pyspark_amqp.columns import struct_of
from pyspark_amqp.options import BadOptions
from pyspark_amqp.source import stream, tasks
from pyspark_amqp.source.stream import AmqpStreamReader
from pyspark_amqp.spool import Spool, SpoolError
from pyspark_amqp.spool.posix import PosixStore
from pyspark_amqp.wire import Publisher, connect, declare_queue, message_octets, queue_state
from pyspark_amqp.wire.properties import encode
from tests.support.broker_process import BrokerProcess
from tests.support.spools import CountedStore

OpenReader = Callable[..., AmqpStreamReader]
COLUMNS = StructType([struct_of()[name] for name in ("message_id", "body")])


def publish(url: str, queue: str, count: int, size: int = 1) -> None:
    with connect(url) as connection:
        publisher = Publisher(connection)
        publisher.send(
            [
                message_octets("", queue, b"x" * size, properties=encode({"message_id": f"m{n}"}))
                for n in range(count)
            ]
        )
        publisher.flush()


def ready(url: str, queue: str) -> int:
    with connect(url) as connection:
        return queue_state(connection, queue).ready_count


@pytest.fixture
def options(broker_url: str, queue: str, tmp_path: Path) -> dict[str, str]:
    return {
        "amqp.uri": broker_url,
        "queue": queue,
        "spoolLocation": str(tmp_path),
        "pollTimeoutMs": "300",
        "retryTimeoutMs": "0",
    }


@pytest.fixture
def open_reader(options: dict[str, str]) -> Iterator[Callable[..., AmqpStreamReader]]:
    made: list[AmqpStreamReader] = []

    def make(**more: str) -> AmqpStreamReader:
        made.append(AmqpStreamReader({**options, **more}, COLUMNS))
        return made[-1]

    yield make
    for reader in made:
        reader.stop()


def rows(reader: AmqpStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[str]:
    """Read a batch as executors do: with pickled copies."""
    found: list[str] = []
    for partition in reader.partitions(start, end):
        copy = pickle.loads(pickle.dumps(reader))
        for batch in copy.read(pickle.loads(pickle.dumps(partition))):
            found += batch.column("message_id").to_pylist()
    return found


def test_batches_follow_each_other(
    broker_url: str, queue: str, options: dict[str, str], open_reader: OpenReader
) -> None:
    publish(broker_url, queue, 25)
    reader = open_reader(maxRecordsPerTrigger="10")
    assert reader.getDefaultReadLimit() == ReadMaxRows(10)
    start = reader.initialOffset()
    assert reader.initialOffset() == start
    found = []
    sizes = []
    while (end := reader.latestOffset(start, reader.getDefaultReadLimit())) != start:
        got = rows(reader, start, end)
        assert rows(reader, start, end) == got
        found += got
        sizes.append(len(got))
        reader.commit(end)
        start = end
    assert found == [f"m{n}" for n in range(25)]
    assert sizes == [10, 10, 5]
    assert reader.partitions(start, start) == []
    assert not list(Path(options["spoolLocation"]).rglob("*.arrow"))


def test_a_batch_is_read_again_by_a_new_process(
    broker_url: str, queue: str, options: dict[str, str], open_reader: OpenReader
) -> None:
    publish(broker_url, queue, 5)
    reader = open_reader()
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    first = rows(reader, start, end)
    publish(broker_url, queue, 1)
    again = open_reader()
    # A first batch's start is made again after a crash: only the end counts.
    assert rows(again, again.initialOffset(), end) == first


def test_octets_for_a_trigger_are_shared_by_its_tasks(
    broker_url: str, queue: str, options: dict[str, str], open_reader: OpenReader
) -> None:
    publish(broker_url, queue, 100, size=1000)
    reader = open_reader(maxBytesPerTrigger="20k")
    reader.prepareForTriggerAvailableNow()
    start = reader.initialOffset()
    sizes = []
    while (end := reader.latestOffset(start, reader.getDefaultReadLimit())) != start:
        sizes.append(len(rows(reader, start, end)))
        start = end
    assert sum(sizes) == 100
    assert max(sizes) <= 21


def test_a_query_that_waits_asks_nothing_of_the_store(
    broker_url: str, queue: str, options: dict[str, str], open_reader: OpenReader
) -> None:
    """Spark asks for an offset a hundred times a second while nothing comes."""
    store = CountedStore(PosixStore(options["spoolLocation"]))
    reader = open_reader()
    reader._spool_once = Spool(store)
    start = reader.initialOffset()
    for _ in range(3):
        assert reader.latestOffset(start, ReadAllAvailable()) == start
        counted, store.asked = store.asked, []
    assert counted == []
    publish(broker_url, queue, 2)
    end = reader.latestOffset(start, ReadAllAvailable())
    rows(reader, start, end)
    reader.latestOffset(end, ReadAllAvailable())
    store.asked.clear()
    assert reader.latestOffset(end, ReadAllAvailable()) == end
    assert store.asked == []


def test_a_batch_on_another_machine_s_store_costs_few_requests(
    broker_url: str,
    queue: str,
    options: dict[str, str],
    open_reader: OpenReader,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Driver and task; the task does not fetch what it sent itself, who reads it again does."""
    store = CountedStore(PosixStore(options["spoolLocation"]))
    store.is_path = False
    monkeypatch.setattr(tasks, "spool_at", lambda place: Spool(store))
    reader = open_reader()
    reader._spool_once = Spool(store)
    at = reader.initialOffset()
    for seq in range(3):
        publish(broker_url, queue, 2)
        store.asked.clear()
        end = reader.latestOffset(at, ReadAllAvailable())
        if seq:
            assert store.asked == ["list"]
            reader.commit(at)
            assert store.asked == ["list", "get", "list", "put", "delete"]
        store.asked.clear()
        assert rows(reader, at, end) == ["m0", "m1"]
        assert store.asked == ["list", "head", "create", "get", "put"]
        store.asked.clear()
        assert rows(reader, at, end) == ["m0", "m1"]
        assert store.asked == ["list", "head", "open"]
        at = end


def test_what_is_published_meanwhile_waits_for_the_next_run(
    broker_url: str, queue: str, options: dict[str, str], open_reader: OpenReader
) -> None:
    publish(broker_url, queue, 10)
    reader = open_reader()
    reader.prepareForTriggerAvailableNow()
    start = reader.initialOffset()
    publish(broker_url, queue, 7)
    end = reader.latestOffset(start, ReadAllAvailable())
    assert len(rows(reader, start, end)) == 10
    assert reader.latestOffset(end, ReadAllAvailable()) == end
    assert ready(broker_url, queue) == 7


def test_a_spool_that_is_not_the_checkpoints(
    broker_url: str, queue: str, options: dict[str, str], open_reader: OpenReader, tmp_path: Path
) -> None:
    publish(broker_url, queue, 3)
    reader = open_reader()
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    other = str(tmp_path / "other")
    for call, argument in (("partitions", end), ("latestOffset", ReadAllAvailable())):
        with pytest.raises(SpoolError, match="no folder of this checkpoint's stream"):
            getattr(open_reader(spoolLocation=other), call)(end | {"seq": 9}, argument)
    lenient = open_reader(spoolLocation=other, failOnDataLoss="false")
    assert len(rows(lenient, start, end)) == 3


def test_an_executor_that_does_not_see_the_drivers_spool(
    broker_url: str, queue: str, options: dict[str, str], open_reader: OpenReader
) -> None:
    publish(broker_url, queue, 3)
    reader = open_reader()
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    (partition,) = reader.partitions(start, end)
    shutil.rmtree(Path(options["spoolLocation"]) / start["stream"])
    with pytest.raises(SpoolError, match="must be the same place on driver and executors"):
        list(reader.read(partition))
    assert ready(broker_url, queue) == 3


def test_old_leftovers_are_swept_when_a_query_goes_on(
    broker_url: str, queue: str, options: dict[str, str], open_reader: OpenReader
) -> None:
    publish(broker_url, queue, 3)
    reader = open_reader()
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    rows(reader, start, end)
    (path,) = Path(options["spoolLocation"]).rglob("*.arrow")
    path.with_suffix(".acked").unlink()
    Spool(options["spoolLocation"]).commit(end["stream"], end["seq"])
    open_reader(inDoubtRetention="1d").latestOffset(end, ReadAllAvailable())
    assert path.exists()
    open_reader(inDoubtRetention="0").latestOffset(end, ReadAllAvailable())
    assert not path.exists()


def test_old_leftovers_are_swept_while_a_query_runs(
    broker_url: str,
    queue: str,
    open_reader: OpenReader,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may do so for a year, in which executors are killed."""
    publish(broker_url, queue, 3)
    reader = open_reader(inDoubtRetention="0")
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    rows(reader, start, end)
    (path,) = tmp_path.rglob("*.arrow")
    path.with_suffix(".acked").unlink()
    reader.commit(end)
    assert path.exists(), "an hour is not over"
    monkeypatch.setattr(stream, "SWEEP_EVERY_S", 0.0)
    reader.commit(end)
    assert not path.exists()


def test_wrong_options_are_told_by_the_first_call() -> None:
    reader = AmqpStreamReader({"queu": "q"}, COLUMNS)
    for call in (reader.initialOffset, reader.getDefaultReadLimit):
        with pytest.raises(BadOptions, match="'queu' is not known here; did you mean 'queue'"):
            call()


def test_a_stream_finds_queues_by_a_pattern(node: BrokerProcess, tmp_path: Path) -> None:
    start = uuid.uuid4().hex
    with connect(node.url) as connection:
        for name in (f"{start}.1", f"{start}.2", f"{start}.dead"):
            declare_queue(connection, name)
            publish(node.url, name, 3)
    options = {
        "amqp.uri": node.url,
        "queuePattern": rf"{start}\.\d",
        "managementUri": f"http://127.0.0.1:{node.management_port}",
        "spoolLocation": str(tmp_path),
        "pollTimeoutMs": "300",
    }
    reader = AmqpStreamReader(options, COLUMNS)
    first = reader.initialOffset()
    end = reader.latestOffset(first, ReadAllAvailable())
    assert rows(reader, first, end) == ["m0", "m1", "m2"] * 2
    assert reader.latestOffset(end, ReadAllAvailable()) == end
    reader.stop()
