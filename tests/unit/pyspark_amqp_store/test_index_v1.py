"""Messages out of version 1 files that the real engine wrote, and of queues half converted."""

from __future__ import annotations

import random
from array import array
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'burrowmq[spark]'")

from burrowmq.storage.queue.v1 import blocks
from pyspark_amqp_store.columns import MESSAGES, RECORDS, columns_of, view_schema
from pyspark_amqp_store.files import Store
from pyspark_amqp_store.messages import MessageReader, StoreLoss, Wanted, plan
from pyspark_amqp_store.records import batches, files_of
from tests.support.store_on_disk import OPTIONS, StoreOnDisk, message
from tests.support.store_rows import bodies, damage, rows

SIZES = (20, 700, 5000)


def store_of(path: Path, count: int) -> tuple[StoreOnDisk, list[bytes]]:
    """A version 1 queue, flushed to its segment files once and with the rest in its journal."""
    disk = StoreOnDisk(path)
    disk.log("q", version=1)
    sent = bodies(count, SIZES)
    disk.publish("q", [message(body) for body in sent[: count // 2]])
    for _ in range(4):
        disk.upkeep()
    for start in range(count // 2, count, 10):  # a large run goes past the journal
        disk.publish("q", [message(body) for body in sent[start : min(start + 10, count)]])
        disk.commit()
    return disk, sent


def suffixes(path: Path) -> set[str]:
    (directory,) = (found.parent for found in path.rglob(".queue_name"))
    return {found.suffix for found in directory.iterdir()} & {".qi", ".qs", ".idx", ".jif"}


def test_journal_and_segment_files(tmp_path: Path) -> None:
    disk, sent = store_of(tmp_path, 300)
    assert suffixes(tmp_path) == {".idx", ".jif"}
    assert next(tmp_path.rglob("*.jif")).stat().st_size > 10_000
    expected = [("q", seq, body) for seq, body in enumerate(sent)]
    assert rows(tmp_path, ["queue", "seq", "body"]) == expected
    assert rows(tmp_path, ["queue", "seq", "body"], part_bytes=1) == expected
    disk.log("q").ack_many([0, 3, 299])
    disk.upkeep()
    assert [seq for (seq,) in rows(tmp_path, ["seq"])] == [
        seq for seq in range(300) if seq not in (0, 3, 299)
    ]
    wanted = Wanted(seq_from=290, is_acked_too=True)
    assert [state for (state,) in rows(tmp_path, ["state"], wanted)] == [*["live"] * 9, "acked"]


def test_a_queue_half_converted(tmp_path: Path) -> None:
    disk, sent = store_of(tmp_path, 300)
    disk.engine.close()
    disk = StoreOnDisk(tmp_path, replace(OPTIONS, convert_slice=1))
    log = disk.log("q", version=2)
    expected = list(enumerate(sent))
    seen = set()
    for at in range(20):
        log.ack_many([at])
        disk.commit()  # a batch, and behind it a slice of the conversion
        expected = rows(tmp_path, ["seq", "body"])
        assert expected[-(300 - at - 1) :] == list(enumerate(sent))[at + 1 :]
        seen.add(frozenset(suffixes(tmp_path)))
        assert rows(tmp_path, ["seq", "body"]) == expected
    assert any({".idx", ".qi"} <= found for found in seen), seen
    disk.upkeep()
    assert suffixes(tmp_path) == {".qi", ".qs"}


def test_of_two_files_for_a_segment_the_newer_one_counts_if_its_store_is_there(
    tmp_path: Path,
) -> None:
    disk = StoreOnDisk(tmp_path)
    disk.log("q", version=1)
    disk.publish("q", [message(b"x"), message(b"y")])
    for _ in range(4):
        disk.upkeep()
    disk.engine.close()
    (old,) = tmp_path.rglob("0.idx")
    kept = old.read_bytes()
    disk = StoreOnDisk(tmp_path)
    disk.log("q", version=2)
    for _ in range(6):
        disk.upkeep()
    disk.engine.close()
    (store,) = tmp_path.rglob("*.qs")
    old.write_bytes(kept)
    assert rows(tmp_path, ["body"]) == [(b"x",), (b"y",)]
    store.unlink()
    assert rows(tmp_path, ["body"]) == [(b"x",), (b"y",)]


@pytest.mark.parametrize("seed", range(6))
def test_whatever_was_acked_and_flushed(tmp_path: Path, seed: int) -> None:
    disk, source = StoreOnDisk(tmp_path), random.Random(seed)
    log = disk.log("q", version=1)
    held: dict[int, bytes] = {}
    for _ in range(30):
        sent = bodies(source.randint(1, 40), SIZES, seed=source.randint(0, 1 << 30))
        held.update(enumerate(sent, log.next_seq))
        disk.publish("q", [message(body) for body in sent])
        disk.commit()
        gone = source.sample(list(held), int(len(held) * source.choice([0, 0.3, 0.8])))
        if gone:
            log.ack_many(gone)
            for seq in gone:
                del held[seq]
        if source.random() < 0.5:
            disk.upkeep()
    disk.upkeep()
    expected = sorted(held.items())
    assert rows(tmp_path, ["seq", "body"]) == expected
    job = disk.engine.start_backup(f"{tmp_path}-backup", {})
    disk.engine.hand_over()
    assert job.state == "done", job.reason
    assert rows(Path(f"{tmp_path}-backup"), ["seq", "body"]) == expected


@pytest.mark.parametrize("suffix", ["jif", "idx"])
def test_a_bad_byte_in_a_body_costs_one_message(tmp_path: Path, suffix: str) -> None:
    _, sent = store_of(tmp_path, 20)
    path = next(tmp_path.rglob(f"*.{suffix}"))
    small = next(
        body for body in reversed(sent if suffix == "jif" else sent[:10]) if len(body) < 99
    )
    damage(path, path.read_bytes().index(small))
    with pytest.raises(StoreLoss, match=r"damaged .*failOnDataLoss=false"):
        rows(tmp_path, ["body"])
    assert len(rows(tmp_path, ["body"], fails_on_loss=False)) == 19
    assert len(rows(tmp_path, ["body"], is_checked=False)) == 20
    assert len(rows(tmp_path, ["seq"])) == 20


def test_a_bad_byte_in_an_entry_is_noticed(tmp_path: Path) -> None:
    store_of(tmp_path, 20)
    damage(next(tmp_path.rglob("*.idx")), 64 + 48 + 3 * 32 + 9)
    with pytest.raises(StoreLoss, match="index segment 0 has 1 bad entries"):
        rows(tmp_path, ["seq"])
    assert len(rows(tmp_path, ["seq"], fails_on_loss=False)) == 19


def test_the_end_of_a_journal_that_is_being_written_is_left_out_and_missed_in_a_backup(
    tmp_path: Path,
) -> None:
    disk = StoreOnDisk(tmp_path)
    disk.log("q", version=1)
    disk.publish("q", [message(b"x"), message(b"y" * 90)])
    disk.commit()
    (path,) = tmp_path.rglob("*.jif")
    path.write_bytes(path.read_bytes()[:-10])
    assert rows(tmp_path, ["body"]) == [(b"x",)]
    (tmp_path / "BACKUP.json").write_text("{}")
    with pytest.raises(StoreLoss):
        rows(tmp_path, ["body"])


def test_the_end_of_a_large_run_that_is_being_written_is_left_out_and_missed_in_a_backup(
    tmp_path: Path,
) -> None:
    disk = StoreOnDisk(tmp_path)
    disk.log("q", version=1)
    disk.publish("q", [message(b"x" * 3000) for _ in range(10)])
    disk.commit()
    assert len(rows(tmp_path, ["body"])) == 10
    (path,) = tmp_path.rglob("*.idx")
    path.write_bytes(path.read_bytes()[:-4000])
    assert len(rows(tmp_path, ["body"])) == 8
    (tmp_path / "BACKUP.json").write_text("{}")
    with pytest.raises(StoreLoss):
        rows(tmp_path, ["body"])


@pytest.mark.parametrize("whole", [0, 7])
def test_a_torn_copy_hides_none_of_the_whole_messages_before_it(tmp_path: Path, whole: int) -> None:
    """A start that moved a journal's messages once more was cut short, and that journal went with the power."""
    disk = StoreOnDisk(tmp_path)
    disk.log("q", version=1)
    sent = bodies(10, (3000,))
    disk.publish("q", [message(body) for body in sent])
    disk.commit()
    (path,) = tmp_path.rglob("*.idx")
    data = path.read_bytes()
    store = Store(str(tmp_path))
    seed = store.queue_seed(next(iter(store.queues())))
    (block,) = blocks.blocks_of(data, seed)
    entries = blocks.entries_in(data, block, seed)
    body_at = len(data) + block.body_at - block.table_at + blocks.BLOCK_SIZE
    moved = entries._replace(
        locations=array("Q", (at - block.body_at + body_at for at in entries.locations))
    )
    journals = (block.journal, block.durable)
    table = blocks.pack_messages((0, 0, 0), moved, len(data) - block.body_at, journals, seed)
    kept = data[block.body_at : block.body_at + sum(entries.sizes[:whole])]
    rest = bytes(len(data) - block.body_at - len(kept))
    path.write_bytes(data + table + kept + rest)
    assert rows(tmp_path, ["seq", "body"]) == list(enumerate(sent))


def test_a_journal_that_was_flushed_after_the_look_at_it(tmp_path: Path) -> None:
    disk, sent = store_of(tmp_path, 100)
    store = Store(str(tmp_path))
    reader = MessageReader(store, columns_of(MESSAGES, ["seq", "body"]))
    found = []
    for part in plan(store, Wanted()):
        for batch in reader.batches(part):
            found += [tuple(row.values()) for row in batch.to_pylist()]
            for _ in range(4):
                disk.upkeep()
    reader.close()
    assert suffixes(tmp_path) == {".idx"}
    assert found == list(enumerate(sent))


def test_each_message_names_the_one_file_that_its_record_is_in(tmp_path: Path) -> None:
    disk = StoreOnDisk(tmp_path)
    disk.log("q", version=1)
    sizes = (20, 30, 5000)
    disk.publish("q", [message(b"x" * size) for size in sizes])
    for _ in range(4):
        disk.upkeep()
    disk.publish("q", [message(b"y" * size) for size in sizes])
    disk.commit()
    (journal,) = tmp_path.rglob("*.jif")
    segment = journal.with_name("0.idx")
    expected = [segment, segment, None, journal, journal, None]

    def files() -> list[Path | None]:
        return [file and tmp_path / file for (file,) in rows(tmp_path, ["file"])]

    assert files() == expected
    kept = journal.read_bytes()
    for _ in range(4):
        disk.upkeep()
    assert files() == [segment, segment, None] * 2
    journal.write_bytes(kept)  # a crash: the flush was durable, the journal's going was not
    assert files() == expected


def test_the_records_of_a_file_make_up_its_length(tmp_path: Path) -> None:
    store_of(tmp_path, 100)
    store = Store(str(tmp_path))
    found = []
    for file in files_of(store, Wanted(queues=frozenset({"q"}))):
        records = [
            row for batch in batches(store, file, view_schema(RECORDS)) for row in batch.to_pylist()
        ]
        assert sum(row["size"] for row in records) == Path(file.path).stat().st_size
        assert {row["state"] for row in records} == {"good", "header"}
        found += [(row["segment"], row["slot"]) for row in records if row["state"] == "good"]
    own = rows(tmp_path, ["segment", "slot", "store"])
    assert sorted(found) == [(segment, slot) for segment, slot, kind in own if kind == "queue"]
