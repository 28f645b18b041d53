"""Every byte of store files, as rows."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'burrowmq[spark]'")

from pyspark_amqp_store.columns import RECORDS, columns_of, view_schema
from pyspark_amqp_store.files import Store
from pyspark_amqp_store.messages import Wanted
from pyspark_amqp_store.records import batches, files_of
from tests.support.store_on_disk import StoreOnDisk, message
from tests.support.store_rows import bodies, damage


def rows(path: Path, wanted: Wanted | None = None) -> list[dict]:
    store = Store(str(path))
    found = []
    for file in files_of(store, wanted or Wanted()):
        for batch in batches(store, file, view_schema(RECORDS)):
            found += batch.to_pylist()
    return found


def made(path: Path) -> StoreOnDisk:
    disk = StoreOnDisk(path)
    disk.publish("q", [message(body) for body in bodies(40, (20, 5000))])
    disk.commit()
    return disk


def test_rows_make_up_the_files(tmp_path: Path) -> None:
    made(tmp_path)
    found = rows(tmp_path)
    for path in (*tmp_path.rglob("*.qs"), *tmp_path.rglob("*.seg")):
        name = path.relative_to(tmp_path).as_posix()
        own = [row for row in found if row["file"] == name]
        assert sum(row["size"] for row in own) == path.stat().st_size
        assert own[0]["state"] == "header"
        ends = [row["offset"] + row["size"] for row in own]
        assert [row["offset"] for row in own] == [0, *ends[:-1]]
    assert sum(row["state"] == "good" for row in found) == 40
    assert {row["store"] for row in found} == {"queue", "shared"}
    assert {row["queue"] for row in found if row["store"] == "shared"} == {None}


def test_damage_and_torn_ends_are_rows(tmp_path: Path) -> None:
    made(tmp_path)
    (store,) = tmp_path.rglob("*.qs")
    damage(store, 64 + 24 + 12)
    newest = max(tmp_path.rglob("*.seg"), key=lambda path: int(path.name.partition(".")[0]))
    newest.write_bytes(newest.read_bytes() + b"half a record")
    states = [(row["store"], row["state"]) for row in rows(tmp_path)]
    assert states.count(("queue", "damaged")) == 1
    assert states.count(("shared", "torn")) == 1
    assert states.count(("shared", "damaged")) == 0
    damage(store, 5)
    (head,) = [row for row in rows(tmp_path) if row["store"] == "queue" and row["offset"] == 0]
    assert head["state"] == "damaged"


def test_one_queue_has_only_its_own_files(tmp_path: Path) -> None:
    disk = made(tmp_path)
    disk.publish("other", [message(b"x")], vhost="v")
    disk.commit()
    found = rows(tmp_path, Wanted(queues=frozenset({"q"})))
    assert {(row["vhost"], row["queue"]) for row in found} == {("/", "q")}
    assert {row["vhost"] for row in rows(tmp_path, Wanted(vhosts=frozenset({"v"})))} == {"v"}


def test_a_file_that_went_has_no_rows(tmp_path: Path) -> None:
    made(tmp_path)
    store = Store(str(tmp_path))
    chosen = files_of(store, Wanted())
    for path in tmp_path.rglob("*.seg"):
        path.unlink()
    schema = columns_of(RECORDS, ["state"])
    found = [batch for file in chosen for batch in batches(store, file, schema)]
    assert sum(batch.num_rows for batch in found) > 10
    with pytest.raises(ValueError, match="records have no column body"):
        columns_of(RECORDS, ["body"])
