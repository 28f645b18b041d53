# ruff: noqa: E402 - without Spark the file is skipped before its imports
"""Message ids: the same for the same rows, and a row's own before any other."""

from __future__ import annotations

import pytest

pa = pytest.importorskip("pyarrow", reason="needs pyarrow: run by `make test-spark`")

from pyspark_amqp.sink.identity import Identity, without_ids


def batch(**columns: list[object]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def ids(found: pa.RecordBatch) -> list[str]:
    return found.column("message_id").to_pylist()


def test_rows_are_numbered_through_all_batches() -> None:
    identity = Identity("q-7", 3)
    assert ids(identity.on(batch(body=["a", "b"]))) == ["q-7-3-0", "q-7-3-1"]
    assert ids(identity.on(batch(body=["c"]))) == ["q-7-3-2"]


def test_a_rows_own_id_stays() -> None:
    found = Identity("p", 0).on(batch(message_id=["own", None], body=["a", "b"]))
    assert found.schema.names == ["message_id", "body"]
    assert ids(found) == ["own", "p-0-1"]


def test_ids_of_all_rows_stay_as_they_are() -> None:
    given = batch(message_id=["a", "b"])
    assert Identity("p", 0).on(given) is given


def test_a_column_of_nulls_is_filled() -> None:
    given = pa.RecordBatch.from_arrays([pa.nulls(2)], names=["message_id"])
    assert ids(Identity("p", 0).on(given)) == ["p-0-0", "p-0-1"]


def test_ids_can_be_left_out() -> None:
    assert without_ids(batch(body=["a"], message_id=["m"])).schema.names == ["body"]
    assert without_ids(batch(body=["a"])).schema.names == ["body"]
