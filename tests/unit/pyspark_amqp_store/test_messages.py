# ruff: noqa: E402 - without pyarrow the file is skipped before its imports
"""Messages out of store files that the real engine wrote.

Covers: pyspark_amqp_store/formats.py, pyspark_amqp_store/segments.py, pyspark_amqp_store/indexes.py, pyspark_amqp_store/files.py, pyspark_amqp_store/columns.py
"""

from __future__ import annotations

import random
import tarfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

pa = pytest.importorskip(
    "pyarrow", reason="pyarrow is not installed: pip install 'burrowmq[spark]'"
)

from pika.spec import BasicProperties

from pyspark_amqp_store.columns import MESSAGES, columns_of, view_schema
from pyspark_amqp_store.files import FILES_MAX, Store
from pyspark_amqp_store.formats import BadStore
from pyspark_amqp_store.messages import MessageReader, StoreLoss, Wanted, plan
from tests.support.store_on_disk import StoreOnDisk, message
from tests.support.store_record import changed
from tests.support.store_rows import bodies, damage, rows


def test_small_and_large_messages_of_two_queues(tmp_path: Path) -> None:
    disk = StoreOnDisk(tmp_path)
    sent = bodies(300)
    messages = [message(body) for body in sent]
    disk.publish("a", messages)
    disk.publish("b", messages)  # the large ones are shared
    disk.publish("a", [message(b"other")], vhost="v")
    disk.commit()
    found = rows(tmp_path, ["vhost", "queue", "seq", "body"])
    assert found == [
        *(("/", "a", seq, body) for seq, body in enumerate(sent)),
        *(("/", "b", seq, body) for seq, body in enumerate(sent)),
        ("v", "a", 0, b"other"),
    ]
    assert found == rows(tmp_path, ["vhost", "queue", "seq", "body"], part_bytes=1)
    disk.engine.close()
    assert found == rows(tmp_path, ["vhost", "queue", "seq", "body"])


def test_properties_headers_and_deaths(tmp_path: Path) -> None:
    disk = StoreOnDisk(tmp_path)
    stamp = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    properties = BasicProperties(
        content_type="text/plain",
        headers={"k": "v", "n": 7, "x-death": [{"queue": "q", "reason": "expired", "count": 2}]},
        delivery_mode=2,
        priority=5,
        message_id="m1",
        timestamp=int(stamp.timestamp()),
    )
    disk.publish("q", [message(b"x", properties, exchange="ex", key="rk")])
    disk.commit()
    names = [
        "exchange",
        "routing_key",
        "content_type",
        "headers",
        "priority",
        "message_id",
        "timestamp",
    ]
    assert rows(tmp_path, names) == [
        ("ex", "rk", "text/plain", [("k", "v"), ("n", "7")], 5, "m1", stamp)
    ]
    ((deaths, raw),) = rows(tmp_path, ["x_death", "headers_raw"])
    assert (deaths[0]["reason"], deaths[0]["count"]) == ("expired", 2)
    assert raw[:4] == (len(raw) - 4).to_bytes(4, "big")
    assert rows(tmp_path, view_schema(MESSAGES).names)[0][3] == b"x"


def test_what_the_broker_hides_behind_a_routing_key_is_not_shown(tmp_path: Path) -> None:
    disk = StoreOnDisk(tmp_path)
    sent = [message(body, exchange="ex", key="rk") for body in (b"x", b"y" * 5000)]
    for one in sent:
        one.address += b"\x00\x00\x00\x09\x03BCCA\x00\x00\x00\x00"
        one.flags |= 1 << 21
    disk.publish("q", [sent[0], message(b"z", exchange="ex", key="rk"), sent[1]])
    disk.commit()
    assert rows(tmp_path, ["exchange", "routing_key"]) == [("ex", "rk")] * 3


def test_a_body_in_several_frames_and_an_empty_one(tmp_path: Path) -> None:
    disk = StoreOnDisk(tmp_path)
    sent = [b"", b"x" * 4096, b"y" * 4097, random.Random(3).randbytes(50_000)]
    disk.publish("q", [message(body) for body in sent])
    disk.commit()
    assert [body for (body,) in rows(tmp_path, ["body"])] == sent
    assert rows(tmp_path, ["body_size"]) == [(len(body),) for body in sent]


def test_what_the_index_tells_needs_no_body(tmp_path: Path) -> None:
    disk = StoreOnDisk(tmp_path)
    disk.publish(
        "q",
        [message(b"s"), message(b"t", is_persistent=False), message(b"L" * 5000)],
        expiries=[0, 1_700_000_000_500, 0],
    )
    disk.commit()
    disk.log("q").ack(0, 0, None)
    disk.upkeep()
    for path in (*tmp_path.rglob("*.qs"), *tmp_path.rglob("*.seg")):
        path.unlink()
    names = ["seq", "body_size", "persistent", "expires_at", "state", "store", "segment", "slot"]
    at = datetime(2023, 11, 14, 22, 13, 20, 500_000, tzinfo=UTC)
    assert rows(tmp_path, names, Wanted(is_acked_too=True)) == [
        (0, 1, True, None, "acked", "queue", 0, 0),
        (1, 1, False, at, "live", "queue", 0, 1),
        (2, 5000, True, None, "live", "shared", 0, 0),
    ]
    assert [row[0] for row in rows(tmp_path, names)] == [1, 2]


@pytest.mark.parametrize("seed", range(8))
def test_after_acks_compactions_and_rewrites(tmp_path: Path, seed: int) -> None:
    disk, source = StoreOnDisk(tmp_path), random.Random(seed)
    held: dict[str, dict[int, bytes]] = {"a": {}, "b": {}}
    for _ in range(30):
        name = source.choice(["a", "b"])
        log = disk.log(name)
        sent = bodies(source.randint(1, 40), seed=source.randint(0, 1 << 30))
        held[name].update(enumerate(sent, log.next_seq))
        disk.publish(name, [message(body) for body in sent])
        gone = source.sample(list(held[name]), int(len(held[name]) * source.choice([0, 0.3, 0.8])))
        disk.commit()
        if gone:
            log.ack_many(gone)
            for seq in gone:
                del held[name][seq]
        if source.random() < 0.5:
            disk.upkeep()
    disk.upkeep()
    expected = [(name, *row) for name in held for row in sorted(held[name].items())]
    assert rows(tmp_path, ["queue", "seq", "body"]) == expected
    job = disk.engine.start_backup(f"{tmp_path}-backup", {})
    disk.engine.hand_over()
    assert job.state == "done", job.reason
    for name, left in held.items():
        if left:
            disk.log(name).ack_many(list(left))
    disk.upkeep()
    assert rows(Path(f"{tmp_path}-backup"), ["queue", "seq", "body"]) == expected
    assert rows(tmp_path, ["queue"]) == []


def test_segments_that_are_compacted_behind_the_reader(tmp_path: Path) -> None:
    """It knows where their records lay, and has closed most of their files: those have other names now."""
    disk = StoreOnDisk(tmp_path)
    sent = bodies(FILES_MAX * 2 * 13, (5000,))
    for at in range(0, len(sent), 13):  # that fill a segment
        disk.publish("q", [message(body) for body in sent[at : at + 13]])
        disk.commit()
    store = Store(str(tmp_path))
    reader = MessageReader(store, columns_of(MESSAGES, ["seq", "body"]))
    (part,) = plan(store, Wanted())
    assert sum(batch.num_rows for batch in reader.batches(part)) == len(sent)
    left = range(0, len(sent), 3)
    disk.log("q").ack_many([seq for seq in range(len(sent)) if seq % 3])
    before = set(tmp_path.glob("vhosts/*/msg_store_persistent/*.seg"))
    for _ in range(FILES_MAX * 2):
        disk.upkeep()
    assert len(before - set(tmp_path.glob("vhosts/*/msg_store_persistent/*.seg"))) > FILES_MAX
    found = [tuple(row.values()) for one in reader.batches(part) for row in one.to_pylist()]
    assert found == [(seq, sent[seq]) for seq in left]
    reader.close()


def test_transient_messages_of_a_durable_queue(tmp_path: Path) -> None:
    """A node that runs has them, small and large; a backup has not, as they end with the node: that is no loss."""
    disk = StoreOnDisk(tmp_path / "data")
    sent = bodies(90)
    for name in ("a", "b"):  # which share the large ones
        disk.log(name)
    messages = [message(body, is_persistent=at % 3 != 0) for at, body in enumerate(sent)]
    disk.publish("a", messages)
    disk.publish("b", messages)
    disk.commit()
    found = rows(tmp_path / "data", ["queue", "body", "persistent"])
    assert found == [
        (name, body, at % 3 != 0) for name in ("a", "b") for at, body in enumerate(sent)
    ]
    job = disk.engine.start_backup(str(tmp_path / "backup"), {})
    disk.commit()
    assert job.state == "done"
    assert rows(tmp_path / "backup", ["queue", "body", "persistent"]) == [
        row for row in found if row[2]
    ]


def test_filters_leave_whole_index_segments_alone(tmp_path: Path) -> None:
    disk = StoreOnDisk(tmp_path)
    for name in ("a", "b"):
        disk.publish(name, [message(b"x") for _ in range(200)])
        disk.publish(name, [message(b"x")], vhost="v")
    disk.commit()
    wanted = Wanted(vhosts=frozenset({"/"}), queues=frozenset({"b"}), seq_from=100, seq_to=130)
    assert [part.numbers for part in plan(Store(str(tmp_path)), wanted)] == [(1, 2)]
    assert rows(tmp_path, ["queue", "seq"], wanted) == [("b", seq) for seq in range(100, 131)]


@pytest.mark.parametrize("suffix", ["qs", "seg", "qi"])
def test_a_bad_byte_costs_one_message(tmp_path: Path, suffix: str) -> None:
    disk = StoreOnDisk(tmp_path)
    disk.publish("q", [message(body) for body in bodies(20, (20, 5000))])
    disk.commit()
    (path,) = tmp_path.rglob(f"*.{suffix}")
    damage(path, 64 + 2 * (32 + 8) + 5 * 32 + 9 if suffix == "qi" else 64 + 24 + 12 + 30)
    with pytest.raises(StoreLoss, match=r"failOnDataLoss=false leaves such messages out"):
        rows(tmp_path, ["body"])
    assert len(rows(tmp_path, ["body"], fails_on_loss=False)) == 19
    if suffix == "qs":  # a segment without a seal is scanned, which goes by the checks
        assert len(rows(tmp_path, ["body"], is_checked=False)) == 20
    if suffix != "qi":
        assert len(rows(tmp_path, ["seq"])) == 20  # no body is looked at


def test_what_went_from_a_live_directory_is_left_out_and_missed_in_a_backup(tmp_path: Path) -> None:
    disk = StoreOnDisk(tmp_path)
    disk.publish("q", [message(body) for body in bodies(20, (5000,))])
    disk.commit()
    next(tmp_path.rglob("0.g0.seg")).unlink()
    assert 0 < len(rows(tmp_path, ["body"])) < 20
    (tmp_path / "BACKUP.json").write_text("{}")
    with pytest.raises(StoreLoss, match="segment 0 is gone"):
        rows(tmp_path, ["body"])


@pytest.mark.parametrize("suffix", ["seg", "qs"])
def test_what_is_not_there_after_a_clean_stop_is_a_loss(tmp_path: Path, suffix: str) -> None:
    disk = StoreOnDisk(tmp_path)
    disk.publish("q", [message(body) for body in bodies(20, (5000 if suffix == "seg" else 50,))])
    disk.commit()
    read_while_it_ran = Store(str(tmp_path))
    disk.engine.close()
    next(tmp_path.rglob(f"*.{suffix}")).unlink()
    with pytest.raises(StoreLoss, match=r"is gone|is missing"):
        rows(tmp_path, ["body"])
    assert len(rows(tmp_path, ["body"], fails_on_loss=False)) < 20
    assert len(rows(tmp_path, ["body"], store=read_while_it_ran)) < 20, (
        "it may have been acknowledged since"
    )
    (tmp_path / "CLEAN").unlink()  # as a start does
    assert len(rows(tmp_path, ["body"])) < 20


def test_what_nobody_kept_over_a_clean_stop_is_no_loss(tmp_path: Path) -> None:
    disk = StoreOnDisk(tmp_path)
    transient = [message(body, is_persistent=False) for body in bodies(20, (5000, 50))]
    disk.publish("q", [message(b"kept"), *transient])
    disk.commit()
    disk.engine.close()
    assert (tmp_path / "CLEAN").exists()
    assert (b"kept",) in rows(tmp_path, ["body"])


def test_a_damaged_segment_without_a_seal_is_scanned(tmp_path: Path) -> None:
    disk = StoreOnDisk(tmp_path)
    sent = bodies(10, (5000,))
    disk.publish("q", [message(body) for body in sent])
    disk.commit()
    (path,) = tmp_path.rglob("*.seg")
    damage(path, 64 + 5100 * 4)
    found = rows(tmp_path, ["seq", "body"], fails_on_loss=False)
    assert len(found) == 9
    assert all(sent[seq] == body for seq, body in found)


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadStore, match=r"no STORE\.json"):
        Store(str(tmp_path))
    (tmp_path / "STORE.json").write_text("{}")
    with pytest.raises(BadStore, match="cannot be read"):
        Store(str(tmp_path))
    (tmp_path / "INCOMPLETE").touch()
    with pytest.raises(BadStore, match="not finished"):
        Store(str(tmp_path))


def test_files_of_another_store_are_refused(tmp_path: Path) -> None:
    disk = StoreOnDisk(tmp_path / "one")
    disk.publish("q", [message(b"x"), message(b"y" * 5000)])
    disk.commit()
    other = StoreOnDisk(tmp_path / "two")
    other.engine.close()
    (tmp_path / "one" / "STORE.json").write_bytes((tmp_path / "two" / "STORE.json").read_bytes())
    with pytest.raises(BadStore, match="belongs to another store"):
        rows(tmp_path / "one", ["body"])


def test_columns_that_there_are_not(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="messages have no column colour; known: vhost, queue"):
        columns_of(MESSAGES, ["queue", "colour"])


@pytest.mark.parametrize("version", [1, 2])
def test_levels_of_a_queue_with_priorities(tmp_path: Path, version: int) -> None:
    disk = StoreOnDisk(tmp_path)
    sent = {level: bodies(70, seed=level) for level in (0, 1, 12)}
    for level, texts in sent.items():
        log = disk.engine.open_queue("/", "q", durable=True, version=version, level=level)
        messages = [message(body) for body in texts]
        log.append(0, messages, None, sum(one.size for one in messages))
    disk.publish("q\x001", [message(b"of another queue")])
    disk.commit()
    names = ["queue", "level", "seq", "body"]
    expected = [("q", level, seq, body) for level in sent for seq, body in enumerate(sent[level])]
    assert rows(tmp_path, names) == [*expected, ("q\x001", 0, 0, b"of another queue")]
    assert rows(tmp_path, names, Wanted(queues=frozenset({"q"}))) == expected
    disk.engine.close()
    (named,) = (path for path in tmp_path.rglob("*-12/.queue_name"))
    named.write_bytes(b"?")
    found = rows(tmp_path, ["queue", "level"])
    assert (named.parent.name, 12) in found
    assert rows(tmp_path, names, Wanted(queues=frozenset({"q"}))) == expected


@pytest.mark.parametrize("stopped", ["clean", "killed"])
def test_a_store_of_version_0_1(tmp_path: Path, stopped: str) -> None:
    archive = Path(__file__).parents[2] / "data" / f"store-format-1-{stopped}.tar.xz"
    with tarfile.open(archive) as files:
        files.extractall(tmp_path, filter="data")
    found = rows(tmp_path, ["queue", "level", "priority", "body"])
    assert len(found) == 60
    orders = [row for row in found if row[0] == "orders"]
    assert (
        [row[1] for row in orders]
        == [row[2] for row in orders]
        == [0] * 5 + [1] * 5 + [2] * 5 + [3] * 5
    )
    assert {row[3].rstrip() for row in orders} == {b"orders %d" % at for at in range(20)}
    assert {row[:2] for row in found if row[0] == "old"} == {("old", 0), ("old", 1), ("old", 2)}


def test_a_store_of_a_format_to_come_is_refused(tmp_path: Path) -> None:
    StoreOnDisk(tmp_path)
    path = tmp_path / "STORE.json"
    path.write_bytes(changed(path.read_bytes(), format=4))
    with pytest.raises(BadStore, match="format 4"):
        Store(str(tmp_path))
