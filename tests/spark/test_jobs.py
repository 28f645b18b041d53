"""The jobs in a session, on a real broker and on stores that the real engine wrote."""

from __future__ import annotations

import argparse
import io
from pathlib import Path
from types import ModuleType
from typing import Any

import pika
import pytest

from pyspark_amqp.wire import connect, queue_state
from pyspark_amqp_jobs import archive, audit, dead_letters, replay, traffic
from tests.spark.conftest import ready_count
from tests.spark.round_trip import differences, fill, session_free_name
from tests.support.store_on_disk import StoreOnDisk, message

pytestmark = [pytest.mark.needs_server, pytest.mark.slow]


def run(spark: Any, job: ModuleType, *words: str) -> tuple[int, str]:
    parser = argparse.ArgumentParser()
    job.add_arguments(parser)
    out = io.StringIO()
    return job.run(spark, parser.parse_args(list(words)), out), out.getvalue()


def test_a_round_trip_keeps_everything(spark: Any, url: str, tmp_path: Path) -> None:
    """The order, too: the second batch makes the largest file, which Spark reads first."""
    source, target = session_free_name(url), session_free_name(url)
    fill(url, source, 3000)
    code, said = run(
        spark,
        archive,
        "--queue",
        source,
        "--to",
        str(tmp_path / "a"),
        "--uri",
        url,
        "--batch-rows",
        "1000",
    )
    assert (code, said.startswith("archived 3,000 messages")) == (0, True)
    assert ready_count(url, source) == 0
    code, said = run(
        spark, replay, "--from", str(tmp_path / "a"), "--to-queue", target, "--uri", url
    )
    assert (code, said.startswith("replayed 3,000 messages")) == (0, True)
    assert differences(url, target, 3000) == []


def test_a_part_of_an_archive_with_other_headers(spark: Any, url: str, tmp_path: Path) -> None:
    source, target = session_free_name(url), session_free_name(url)
    fill(url, source, 50)
    run(spark, archive, "--queue", source, "--to", str(tmp_path / "a"), "--uri", url)
    words = ["--from", str(tmp_path / "a"), "--to-queue", target, "--uri", url, "--rate", "1000"]
    run(
        spark,
        replay,
        *words,
        "--where",
        "priority = 3",
        "--limit",
        "4",
        "--mark",
        "test",
        "--drop",
        "expiration,message_id",
    )
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        channel = connection.channel()
        seen = []
        while (got := channel.basic_get(target, auto_ack=True))[0] is not None:
            seen.append(got[1])
    assert [one.headers["n"] for one in seen] == [3, 13, 23, 33]
    assert {(one.priority, one.message_id, one.expiration) for one in seen} == {(3, None, None)}
    assert {one.headers["x-replayed-from"] for one in seen} == {"test"}


def test_a_dead_letter_without_headers_of_its_own_comes_back_without_any(
    spark: Any, url: str, tmp_path: Path
) -> None:
    dead = session_free_name(url)
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        channel = connection.channel()
        route = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
        channel.queue_declare(f"{dead}.ttl", arguments={**route, "x-message-ttl": 1})
        channel.basic_publish("", f"{dead}.ttl", b"x", pika.BasicProperties(message_id="a"))
        while not channel.queue_declare(dead, passive=True).method.message_count:
            connection.sleep(0.02)
    kept, back = str(tmp_path / "a"), session_free_name(url)
    run(spark, archive, "--queue", dead, "--to", kept, "--uri", url)
    run(spark, replay, "--from", kept, "--to-queue", back, "--strip-deaths", "--uri", url)
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        _, properties, body = connection.channel().basic_get(back, auto_ack=True)
    assert (properties.message_id, properties.headers, body) == ("a", None, b"x")


def test_dead_letters_of_three_kinds(spark: Any, url: str, tmp_path: Path) -> None:
    dead = session_free_name(url)
    names = [f"{dead}.{kind}" for kind in ("ttl", "max", "rej")]
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        channel = connection.channel()
        channel.queue_declare(dead, durable=True)
        route = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
        for name, more in zip(names, ({"x-message-ttl": 1}, {"x-max-length": 2}, {}), strict=True):
            channel.queue_declare(name, arguments={**route, **more})
            for _ in range(10):
                channel.basic_publish("", name, b"x")
        for _ in range(4):
            method = None
            while method is None:
                method, _, _ = channel.basic_get(names[2])
            channel.basic_reject(method.delivery_tag, requeue=False)
        while channel.queue_declare(dead, passive=True).method.message_count < 22:
            connection.sleep(0.02)
    page = tmp_path / "dead.html"
    code, said = run(spark, dead_letters, "--queue", dead, "--uri", url, "--html", str(page))
    found = {tuple(line.split()[:2]): int(line.split()[-2]) for line in said.splitlines()[2:5]}
    assert found == {(names[0], "expired"): 10, (names[1], "maxlen"): 8, (names[2], "rejected"): 4}
    assert (code, "22 messages" in said) == (0, True)
    assert names[0] in page.read_text()
    with connect(url) as connection:
        assert queue_state(connection, dead).ready_count == 22


def test_an_audit_of_a_store(spark: Any, tmp_path: Path) -> None:
    disk = StoreOnDisk(tmp_path / "store")
    small = [message(b"s%d" % at) for at in range(100)]
    large = [message(b"L" * 5000) for _ in range(30)]
    disk.publish("a", [*small, *large])
    disk.publish("b", large)  # the same: a record has two owners
    disk.commit()
    disk.log("a").ack(0, 49, None)
    disk.log("a").ack(100, 129, None)
    disk.log("b").ack(0, 9, None)
    disk.commit()
    disk.engine.close()
    found = audit.audit(spark, str(tmp_path / "store"))
    assert found.is_sound
    assert [(row.queue, row.messages, row.shared) for row in found.queues] == [
        ("a", 50, 0),
        ("b", 20, 20),
    ]
    for row in found.files:
        assert row.size == (tmp_path / "store" / row.file).stat().st_size
    shared = [row for row in found.files if row.file.endswith(".seg")]
    assert sum(row.live_records for row in shared) == 20
    (path,) = [tmp_path / "store" / row.file for row in shared if row.live_records][:1]
    data = bytearray(path.read_bytes())
    data[64 + 100] ^= 1
    path.write_bytes(data)
    page = tmp_path / "audit.html"
    code, said = run(
        spark, audit, "--store", str(tmp_path / "store"), "--html", str(page), "--problems"
    )
    assert code == 1
    assert path.name in said
    assert '<tr class="bad">' in page.read_text()


def test_an_audit_counts_copies_that_a_crash_left_once(spark: Any, tmp_path: Path) -> None:
    disk = StoreOnDisk(tmp_path / "store")
    disk.log("old", version=1)
    disk.publish("old", [message(b"x" * size) for size in (20, 30, 5000)])
    disk.commit()
    (journal,) = (tmp_path / "store").rglob("*.jif")
    kept = journal.read_bytes()
    for _ in range(4):
        disk.upkeep()
    segments = [path for path in (tmp_path / "store").rglob("*.seg") if path.stat().st_size > 5000]
    (segment,) = segments
    cut_short = segment.read_bytes()
    disk.engine.close()
    assert not journal.exists()
    journal.write_bytes(kept)  # the flush was durable, the journal's going was not
    segment.with_name("0.g1.seg").write_bytes(cut_short)  # a compaction without its seal
    found = audit.audit(spark, str(tmp_path / "store"))
    assert [tuple(row)[1:5] for row in found.queues] == [("old", 3, 5050, 1)]
    assert found.unreadable == 0
    live = {row.file.rpartition("/")[2]: row.live_records for row in found.files}
    assert live == {journal.name: 2, "0.idx": 0, segment.name: 1, "0.g1.seg": 0}
    assert found.queues[0].stored_bytes == sum(row.live_bytes for row in found.files)


def test_filters_are_pushed_to_the_store_source(spark: Any, tmp_path: Path) -> None:
    disk = StoreOnDisk(tmp_path)
    for name in ("a", "b"):
        disk.publish(name, [message(b"x") for _ in range(10)])
    disk.commit()
    name = "spark.sql.python.filterPushdown.enabled"
    spark.conf.set(name, "true")
    try:
        frame = spark.read.format("amqp-store").option("pushFilters", "true").load(str(tmp_path))
        rows = frame.where("queue = 'b' and seq >= 7").select("queue", "seq").collect()
    finally:
        spark.conf.unset(name)
    assert [tuple(row) for row in rows] == [("b", 7), ("b", 8), ("b", 9)]


def test_traffic_out_of_the_firehose(spark: Any, url: str) -> None:
    trace = session_free_name(url)
    copies = [
        (
            "publish.",
            {"exchange_name": "", "routing_keys": ["k"], "user": "guest", "routed_queues": ["k"]},
        ),
        (
            "publish.ex",
            {"exchange_name": "ex", "routing_keys": ["k"], "user": "guest", "routed_queues": []},
        ),
        (
            "deliver.k",
            {"exchange_name": "", "routing_keys": ["k"], "user": "bob", "redelivered": 0},
        ),
    ]
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        channel = connection.channel()
        channel.exchange_declare(f"{trace}.x", "topic", auto_delete=True)
        channel.queue_bind(trace, f"{trace}.x", "#")
        for key, headers in copies * 3:
            channel.basic_publish(f"{trace}.x", key, b"body", pika.BasicProperties(headers=headers))
    _, said = run(spark, traffic, "--queue", trace, "--uri", url)
    lines = [line.split() for line in said.splitlines()[2:]]
    assert ["publish", "ex", "3", "12"] in lines
    _, said = run(spark, traffic, "--queue", trace, "--uri", url, "--by", "user")
    lines = [line.split() for line in said.splitlines()[2:]]
    assert lines == [["deliver", "bob", "3", "12"], ["publish", "guest", "6", "24"]]
