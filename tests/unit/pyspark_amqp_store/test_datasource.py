"""The readers that Spark gets, without a session."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'burrowmq[spark]'")

from pyspark.sql.datasource import (
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
    StringContains,
)
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

import pyspark_amqp_store
from pyspark_amqp.columns import struct_of
from pyspark_amqp_store.columns import RECORDS, view_schema
from pyspark_amqp_store.datasource import (
    MessagesReader,
    PushingReader,
    RecordsReader,
    StoreDataSource,
    narrow,
)
from pyspark_amqp_store.messages import Wanted
from tests.support.store_on_disk import StoreOnDisk, message

SEQ = StructType([StructField("queue", StringType()), StructField("seq", LongType())])


@pytest.fixture
def path(tmp_path: Path) -> str:
    disk = StoreOnDisk(tmp_path)
    for name in ("a", "b"):
        disk.publish(name, [message(b"x" * (5000 if at % 2 else 9)) for at in range(100)])
    disk.commit()
    return str(tmp_path)


def read(reader) -> list[dict]:
    reader = pickle.loads(pickle.dumps(reader))
    partitions = pickle.loads(pickle.dumps(list(reader.partitions())))
    return [row for part in partitions for batch in reader.read(part) for row in batch.to_pylist()]


def test_columns_that_the_query_gives(path: str) -> None:
    source = StoreDataSource({"path": path})
    assert read(source.reader(SEQ)) == [
        {"queue": name, "seq": seq} for name in ("a", "b") for seq in range(100)
    ]
    whole = read(source.reader(source.schema()))
    assert [row["body_size"] for row in whole] == [len(row["body"]) for row in whole]


def test_records(path: str) -> None:
    source = StoreDataSource({"path": path, "view": "records"})
    assert source.schema() == struct_of(view_schema(RECORDS))
    reader = source.reader(source.schema())
    assert isinstance(reader, RecordsReader)
    # The large ones were published twice, as different messages.
    assert sum(row["state"] == "good" for row in read(reader)) == 200


def test_filters_are_taken_over_only_when_asked(path: str) -> None:
    assert type(StoreDataSource({"path": path}).reader(SEQ)) is MessagesReader
    reader = StoreDataSource({"path": path, "pushFilters": "true"}).reader(SEQ)
    assert isinstance(reader, PushingReader)
    contains = StringContains(("queue",), "b")
    left = list(reader.pushFilters([EqualTo(("queue",), "b"), contains, LessThan(("seq",), 3)]))
    assert left == [contains]
    assert read(reader) == [{"queue": "b", "seq": seq} for seq in range(3)]


def test_each_filter() -> None:
    seq = ("seq",)
    wanted = Wanted(seq_from=5, seq_to=50)
    for one, ends in (
        (EqualTo(seq, 7), (7, 7)),
        (GreaterThan(seq, 7), (8, 50)),
        (GreaterThanOrEqual(seq, 3), (5, 50)),
        (LessThan(seq, 7), (5, 6)),
        (LessThanOrEqual(seq, 99), (5, 50)),
    ):
        found = narrow(wanted, one)
        assert found is not None
        assert (found.seq_from, found.seq_to) == ends
    found = narrow(wanted, In(("vhost",), ("/", "v")))
    assert found is not None
    assert found.vhosts == {"/", "v"}
    again = narrow(found, EqualTo(("vhost",), "v"))
    assert again is not None
    assert again.vhosts == {"v"}
    assert narrow(wanted, EqualTo(("body",), b"x")) is None
    assert narrow(wanted, GreaterThan(("queue",), "x")) is None


def test_filters_that_exclude_each_other_leave_nothing() -> None:
    wanted: Wanted | None = Wanted()
    for name in ("a", "b", "c"):
        assert wanted is not None
        wanted = narrow(wanted, EqualTo(("queue",), name))
    assert wanted is not None
    assert wanted.queues == frozenset()
    found = narrow(Wanted(), In(("queue",), ("a", None)))
    assert found is not None
    assert found.queues == {"a"}  # and not a queue that is called None


def test_columns_that_cannot_be(path: str) -> None:
    source = StoreDataSource({"path": path})
    with pytest.raises(ValueError, match="messages have no column colour"):
        source.reader(StructType([StructField("colour", StringType())]))
    with pytest.raises(ValueError, match="column seq is bigint, not int"):
        source.reader(StructType([StructField("seq", IntegerType())]))


def test_an_empty_store_has_one_empty_partition(tmp_path: Path) -> None:
    StoreOnDisk(tmp_path).engine.close()
    for view in ("messages", "records"):
        source = StoreDataSource({"path": str(tmp_path), "view": view})
        reader = source.reader(source.schema())
        assert list(reader.partitions()) == []
        assert list(reader.read(InputPartition(None))) == []


def test_it_registers_itself() -> None:
    assert pyspark_amqp_store.DefaultSource is StoreDataSource
    assert StoreDataSource.name() == "amqp-store"
    with pytest.raises(AttributeError):
        pyspark_amqp_store.nothing
