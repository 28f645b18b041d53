"""The broker killed (-9) in the middle of a streaming query, and started again: nothing lost, and nothing twice."""

from __future__ import annotations

import collections
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pyspark_amqp.wire import connect, declare_queue
from tests.spark.conftest import publish, ready_count
from tests.support.broker_process import BrokerProcess, external_target

pytestmark = [
    pytest.mark.needs_server,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(external_target() is not None, reason="kills the broker"),
]

COUNT = 3000
DEADLINE_S = 200


@pytest.fixture
def node(tmp_path: Path) -> Iterator[BrokerProcess]:
    process = BrokerProcess(tmp_path / "node" / "data")
    process.start()
    yield process
    process.close()


def test_a_query_outlives_its_broker(spark: Any, node: BrokerProcess, tmp_path: Path) -> None:
    with connect(node.url) as connection:
        declare_queue(connection, "work")
    publish(node.url, "work", COUNT)
    found: collections.Counter[str] = collections.Counter()
    kills: list[int] = []

    def keep(frame: Any, number: int) -> None:
        found.update(row.message_id for row in frame.collect())
        if number in {1, 3}:  # with a batch acknowledged a moment ago, and more to come
            node.kill()
            kills.append(number)
            node.start()

    query = (
        spark.readStream.schema("message_id string")
        .format("amqp")
        .options(
            **{"amqp.uri": node.url, "queue": "work", "spoolLocation": str(tmp_path / "spool")}
        )
        .options(maxRecordsPerTrigger=500, pollTimeoutMs=500, dedupeRetention="1h")
        .load()
        .writeStream.foreachBatch(keep)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(processingTime="100 milliseconds")
        .start()
    )
    try:
        deadline = time.monotonic() + DEADLINE_S
        while len(found) < COUNT and query.isActive and time.monotonic() < deadline:
            time.sleep(0.1)
        query.processAllAvailable()
    finally:
        query.stop()
    assert query.exception() is None
    assert kills == [1, 3]
    assert set(found) == {f"m{n}" for n in range(COUNT)}
    assert [one for one, times in found.items() if times > 1] == []
    assert ready_count(node.url, "work") == 0


def test_a_broker_that_dies_while_tasks_take(
    spark: Any, node: BrokerProcess, tmp_path: Path
) -> None:
    """The plan is made, then the broker goes: the tasks wait for it and take what the plan says."""
    with connect(node.url) as connection:
        declare_queue(connection, "work")
    publish(node.url, "work", 400)
    frame = (
        spark.read.schema("message_id string")
        .format("amqp")
        .options(
            **{"amqp.uri": node.url, "queue": "work", "spoolLocation": str(tmp_path / "spool")}
        )
        .options(mode="drain", drainId="d", pollTimeoutMs=500, prefetch=100)
        .load()
    )
    assert frame.limit(1).count() == 1  # plans all four pieces, takes the first
    node.kill()
    node.spawn()
    ids = [row.message_id for row in frame.collect()]
    assert len(set(ids)) == len(ids) == 400
