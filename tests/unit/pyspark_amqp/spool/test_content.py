# ruff: noqa: E402 - without pyarrow the file is skipped before its imports
from __future__ import annotations

from pathlib import Path

import pytest

pa = pytest.importorskip(
    "pyarrow", reason="pyarrow is not installed: pip install 'burrowmq[spark]'"
)

from pyspark_amqp.convert.schema import VERSION_KEY, schema_of
from pyspark_amqp.spool.content import (
    CUT_KEY,
    TAKEN_KEY,
    PieceWriter,
    Taken,
    attempt_of,
    how_much,
    keep_ids,
    message_ids,
    read_batches,
    write_batches,
)
from pyspark_amqp.spool.offset import Piece
from pyspark_amqp.spool.store import SpoolError

PIECE = Piece("stream", "q", 1, 0, 5)
SCHEMA = schema_of(["message_id", "body"])


def rows(*ids: str | None) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"message_id": one, "body": b"x"} for one in ids], SCHEMA)


def test_what_is_written_is_read_by_name(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_batches(path, PIECE, SCHEMA, [rows("a", None), rows("b")])
    assert pa.Table.from_batches(read_batches(path, SCHEMA)).to_pylist() == [
        {"message_id": one, "body": b"x"} for one in ("a", None, "b")
    ]
    other = schema_of(["body", "priority"])
    (first, _) = read_batches(path, other)
    assert first.schema.equals(other)
    assert first.to_pylist() == [{"body": b"x", "priority": None}] * 2
    assert message_ids(path).to_pylist() == ["a", "b"]
    (tmp_path / "kept").write_bytes(keep_ids(path))
    assert message_ids(tmp_path / "kept").to_pylist() == ["a", "b"]
    assert how_much(path) == (3, False)


def test_an_empty_piece_stays_empty(tmp_path: Path) -> None:
    write_batches(tmp_path / "a", PIECE, SCHEMA, [])
    assert list(read_batches(tmp_path / "a", SCHEMA)) == []
    assert message_ids(tmp_path / "a").to_pylist() == []


def test_what_is_no_spool_file_of_this_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no arrow")
    with pytest.raises(SpoolError, match="text: cannot be read"):
        list(read_batches(tmp_path / "text", SCHEMA))
    with pytest.raises(SpoolError, match="none: cannot be read"):
        list(read_batches(tmp_path / "none", SCHEMA))
    newer = SCHEMA.with_metadata({VERSION_KEY: b"2"})
    with pa.ipc.new_file(str(tmp_path / "newer"), newer):
        pass
    with pytest.raises(SpoolError, match="version 2; this is version 1"):
        list(read_batches(tmp_path / "newer", SCHEMA))


def test_how_much_a_task_took_is_told(tmp_path: Path) -> None:
    write_batches(tmp_path / "a", PIECE, SCHEMA, [rows("a")], Taken(7, is_cut=True))
    assert how_much(tmp_path / "a") == (7, True)
    with pa.ipc.new_file(str(tmp_path / "old"), SCHEMA):
        pass
    assert how_much(tmp_path / "old") is None
    first = SCHEMA.with_metadata({TAKEN_KEY: b"5", CUT_KEY: b"1"})  # as version 0.1.0 wrote it
    with pa.ipc.new_file(str(tmp_path / "0.1.0"), first):
        pass
    assert how_much(tmp_path / "0.1.0") == (5, True)
    with pytest.raises(SpoolError, match="none: cannot be read"):
        how_much(tmp_path / "none")


def test_a_file_says_which_attempt_wrote_it(tmp_path: Path) -> None:
    writer = PieceWriter(tmp_path / "a", PIECE, SCHEMA, "one")
    writer.write(rows("a"))
    writer.finish(Taken(1, is_cut=False))
    writer.close()
    assert attempt_of(tmp_path / "a") == "one"
    write_batches(tmp_path / "b", PIECE, SCHEMA, [])
    assert attempt_of(tmp_path / "b") == ""
