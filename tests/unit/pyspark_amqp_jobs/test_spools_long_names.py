# ruff: noqa: E402 - without pyarrow the file is skipped before its imports
"""A stream whose name is too long for a folder: what `list` shows of it can be recovered."""

from __future__ import annotations

from pathlib import Path

import pytest

pa = pytest.importorskip(
    "pyarrow", reason="pyarrow is not installed: pip install 'burrowmq[spark]'"
)

from pyspark_amqp.spool import Piece, Spool
from pyspark_amqp.spool.content import write_batches
from pyspark_amqp_jobs import spools
from tests.support.spools import publish


@pytest.mark.parametrize("name", ["drain " + "é" * 60, "drain " + "x" * 300])
def test_it_is_listed_and_recovered(tmp_path: Path, name: str) -> None:
    spool = Spool(tmp_path / "spool")
    spool.open_stream(name)
    piece = Piece(name, "work", 1, 0, 2)
    batch = pa.record_batch([pa.array([b"a", b"b"])], names=["body"])
    assert publish(spool, piece, lambda path: write_batches(path, piece, batch.schema, [batch]))
    ((shown, queue, _, pieces, *_),) = spools.listing(spool)
    assert (queue, pieces) == ("work", 1)
    for each in (shown, name):
        assert spool.has_stream(each)
        assert len(spool.pieces(each)) == 1
    assert spools.recover(spool, shown, tmp_path / "found.parquet", is_all=False) == 2
    assert spool.remove_stream(shown)
    assert spool.streams() == []
