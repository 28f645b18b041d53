"""`format("amqp")` in a session: found by itself, read as a stream and as a batch, written."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pyspark_amqp.spool import Spool, open_store
from pyspark_amqp.wire import connect, declare_queue
from tests.spark.conftest import publish, ready_count
from tests.support import object_stores
from tests.support.broker_process import ROOT

pytestmark = [pytest.mark.needs_server, pytest.mark.slow, pytest.mark.timeout(300)]

WAIT_S = 240


def options(url: str, queue: str, tmp_path: Path, **more: str) -> dict[str, str]:
    return {
        "amqp.uri": url,
        "queue": queue,
        "spoolLocation": str(tmp_path / "spool"),
        "pollTimeoutMs": "500",
        **more,
    }


def run_to_the_end(frame: Any, tmp_path: Path) -> None:
    query = (
        frame.writeStream.format("parquet")
        .option("path", str(tmp_path / "out"))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(WAIT_S)


def ids(frame: Any) -> list[str]:
    return sorted(row.message_id for row in frame.select("message_id").collect())


def expected(*numbers: int) -> list[str]:
    return sorted(f"m{n}" for n in numbers)


def test_a_stream_of_two_queues_to_parquet(
    spark: Any, url: str, queue: str, tmp_path: Path
) -> None:
    other = f"{queue}.other"
    with connect(url) as connection:
        declare_queue(connection, other)
    publish(url, queue, 250)
    publish(url, other, 70, first=1000)
    wanted = options(url, f"{queue},{other}", tmp_path, maxRecordsPerTrigger="100")
    frame = spark.readStream.format("amqp").options(**wanted).load()
    run_to_the_end(frame, tmp_path)
    found = spark.read.parquet(str(tmp_path / "out"))
    assert ids(found) == expected(*range(250), *range(1000, 1070))
    assert found.where(f"queue = '{other}'").count() == 70
    # The checkpoint goes on: only what is new comes, from the same folder of the spool.
    publish(url, queue, 5, first=5000)
    run_to_the_end(frame, tmp_path)
    again = spark.read.parquet(str(tmp_path / "out"))
    assert ids(again.where("message_id like 'm500_'")) == expected(*range(5000, 5005))
    assert again.count() == 325
    assert ready_count(url, queue) == ready_count(url, other) == 0


def test_a_spool_on_object_storage(spark: Any, url: str, queue: str, tmp_path: Path) -> None:
    """Batches in pieces, a run that goes on, and a drain."""
    publish(url, queue, 300)
    with object_stores.s3_server() as server:
        place = {
            "spoolLocation": f"s3://{object_stores.BUCKET}/spool",
            "spool.endpoint": server,
            "spool.region": object_stores.REGION,
            "spool.allowHttp": "true",
        }
        wanted = options(url, queue, tmp_path, maxRecordsPerTrigger="100", **place)
        frame = spark.readStream.format("amqp").options(**wanted, consumersPerQueue="2").load()
        run_to_the_end(frame, tmp_path)
        publish(url, queue, 20, first=1000)
        run_to_the_end(frame, tmp_path)
        found = spark.read.parquet(str(tmp_path / "out"))
        assert ids(found) == expected(*range(300), *range(1000, 1020))
        publish(url, queue, 30, first=2000)
        drain = {"mode": "drain", "drainId": "d"}
        again = spark.read.format("amqp").options(**options(url, queue, tmp_path, **place), **drain)
        assert again.load().count() == again.load().count() == 30
        store = open_store(
            place["spoolLocation"],
            endpoint=server,
            region=object_stores.REGION,
            is_http_allowed=True,
        )
        assert len(Spool(store).pieces("drain d")) == 1
        assert ready_count(url, queue) == 0


def test_a_query_that_keeps_running(spark: Any, url: str, queue: str, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "spark-watching.md").read_text()
    (code,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    said: list[str] = []
    names: dict[str, Any] = {"spark": spark, "print": said.append}
    exec(code, names)
    batches: list[tuple[int, int]] = []

    def keep(frame: Any, number: int) -> None:
        assert frame.count() == frame.count()  # every action sees the same rows
        batches.append((number, frame.count()))

    publish(url, queue, 20)
    query = (
        spark.readStream.format("amqp")
        .options(**options(url, queue, tmp_path, maxRecordsPerTrigger="15"))
        .load()
        .writeStream.foreachBatch(keep)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(processingTime="100 milliseconds")
        .start()
    )
    try:
        query.processAllAvailable()
        publish(url, queue, 10, first=100)
        query.processAllAvailable()
        last = json.loads(query.lastProgress["sources"][0]["latestOffset"])
    finally:
        query.stop()
        for listener in [each for each in names.values() if isinstance(each, names["Lag"])]:
            spark.streams.removeListener(listener)
    assert last["ready"] == {queue: 10}  # when the batch was planned
    assert last["batch"]["pieces"] == 1
    assert last["batch"]["spool_bytes"] > 0
    assert any("B in the spool" in line for line in said)
    assert batches[:2] == [(0, 15), (1, 5)]
    assert sum(count for _, count in batches) == 30
    assert ready_count(url, queue) == 0


@pytest.mark.long
@pytest.mark.timeout(300)
def test_two_hundred_queues_in_one_query(spark: Any, url: str, queue: str, tmp_path: Path) -> None:
    shards = [f"{queue}.{n}" for n in range(200)]
    with connect(url) as connection:
        for shard in shards:
            declare_queue(connection, shard)
    for n, shard in enumerate(shards):
        publish(url, shard, 10 + n % 7, first=n * 1000)
    total = sum(10 + n % 7 for n in range(200))
    wanted = options(url, ",".join(shards), tmp_path, maxRecordsPerTrigger="2000")
    run_to_the_end(spark.readStream.format("amqp").options(**wanted).load(), tmp_path)
    found = spark.read.parquet(str(tmp_path / "out"))
    assert found.count() == found.select("message_id").distinct().count() == total
    assert found.select("queue").distinct().count() == 200


def test_looking_with_a_schema_of_some_columns(
    spark: Any, url: str, queue: str, tmp_path: Path
) -> None:
    publish(url, queue, 10)
    frame = (
        spark.read.schema("message_id string, body binary")
        .format("amqp")
        .options(**{"amqp.uri": url, "queue": queue, "limit": "4"})
        .load()
    )
    assert frame.columns == ["message_id", "body"]
    assert [(row.message_id, bytes(row.body)) for row in frame.collect()] == [
        (f"m{n}", b"%d" % n) for n in range(4)
    ]
    assert ready_count(url, queue) == 10


def test_a_drain_counts_and_writes_the_same_rows(
    spark: Any, url: str, queue: str, tmp_path: Path
) -> None:
    publish(url, queue, 40)
    wanted = options(url, queue, tmp_path, mode="drain", drainId="one", prefetch="15")
    frame = spark.read.format("amqp").options(**wanted).load()
    assert frame.count() == 40
    publish(url, queue, 3, first=100)
    frame.write.parquet(str(tmp_path / "out"))
    assert ids(spark.read.parquet(str(tmp_path / "out"))) == expected(*range(40))
    assert ready_count(url, queue) == 3


def test_rows_are_published_and_read_back(spark: Any, url: str, queue: str, tmp_path: Path) -> None:
    frame = spark.range(100).selectExpr(
        "cast(id as string) as body",
        f"'{queue}' as routing_key",
        "map('n', cast(id as string)) as headers",
    )
    frame.write.format("amqp").option("amqp.uri", url).mode("append").save()
    assert ready_count(url, queue) == 100
    peek = spark.read.format("amqp").options(**{"amqp.uri": url, "queue": queue}).load()
    rows = peek.selectExpr("cast(body as string) as body", "headers['n'] as n", "message_id")
    found = rows.collect()
    assert sorted(int(row.body) for row in found) == list(range(100))
    assert all(row.body == row.n for row in found)
    assert len({row.message_id for row in found}) == 100


def test_a_stream_from_queue_to_queue(spark: Any, url: str, queue: str, tmp_path: Path) -> None:
    target = f"{queue}.target"
    publish(url, queue, 30)
    query = (
        spark.readStream.format("amqp")
        .options(**options(url, queue, tmp_path))
        .load()
        .selectExpr("body", "message_id")
        .writeStream.format("amqp")
        .options(**{"amqp.uri": url, "routingKey": target, "declareQueue": "true"})
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(WAIT_S)
    peek = spark.read.format("amqp").options(**{"amqp.uri": url, "queue": target}).load()
    assert ids(peek) == expected(*range(30))


def refusal(run: Callable[[], object]) -> str:
    with pytest.raises(Exception) as raised:
        run()
    return str(raised.value)


def test_wrong_options_are_told_together(spark: Any, url: str, tmp_path: Path) -> None:
    read = spark.read.format("amqp").options(queu="q", limit="many")
    text = refusal(read.load)
    assert "option 'limit': 'many' is no whole number" in text
    assert "did you mean 'queue'?" in text
    stream = spark.readStream.format("amqp").options(queue="q").load()  # good for looking
    query = stream.writeStream.format("noop")
    query = query.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
    text = refusal(lambda: query.start().awaitTermination())
    assert "option 'spoolLocation' is missing" in text
    assert "UnboundLocalError" not in text


def test_messages_that_no_queue_takes_fail_the_write(spark: Any, url: str) -> None:
    frame = spark.range(3).selectExpr("cast(id as string) as body")
    nowhere = f"nowhere.{uuid.uuid4().hex}"
    write = frame.write.format("amqp").options(**{"amqp.uri": url, "routingKey": nowhere})
    text = refusal(write.mode("append").save)
    assert "came back unrouted" in text
    assert nowhere in text
    assert "cannot be overwritten" in refusal(write.mode("overwrite").save)
