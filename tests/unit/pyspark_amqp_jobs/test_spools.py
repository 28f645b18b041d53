"""What lies in a spool, and getting it out."""

from __future__ import annotations

import argparse
import io
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'burrowmq[spark]'")

import pyarrow.parquet as pq

from pyspark_amqp.convert import Reader, schema_of
from pyspark_amqp.spool import Piece, Spool
from pyspark_amqp.spool.content import write_batches
from pyspark_amqp.wire.deliveries import Deliveries, Delivery
from pyspark_amqp_jobs import spools
from pyspark_amqp_jobs.arguments import BadArguments
from tests.support.spools import publish


def run(*words: str) -> str:
    parser = argparse.ArgumentParser()
    spools.add_arguments(parser)
    out = io.StringIO()
    assert spools.run(None, parser.parse_args(list(words)), out) == 0
    return out.getvalue()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Three batches, of which the first is committed and in doubt, the others are not committed."""
    spool = Spool(tmp_path / "spool")
    schema = schema_of(has_headers_raw=True)
    for seq in range(3):
        piece = Piece(stream="s.1", queue="my queue", seq=seq, part=0, count=2)
        found = Deliveries("my queue")
        for at in range(2):
            found.append(at, Delivery(b"\0\1k", b"\0\0", b"%d-%d" % (seq, at), False))
        batches = list(Reader(schema).batches(found))
        publish(spool, piece, lambda path, p=piece, b=batches: write_batches(path, p, schema, b))
        if seq == 1:
            spool.mark_acked(piece)
    spool.commit("s.1", 0)
    return tmp_path / "spool"


def test_listing(root: Path) -> None:
    line = run("list", "--spool", str(root)).splitlines()[2].split()
    assert line == ["s.1", "my", "queue", "0", "3", "2", "4", "2"]


def test_recovering(root: Path, tmp_path: Path) -> None:
    said = run(
        "recover", "--spool", str(root), "--stream", "s.1", "--to", str(tmp_path / "out.parquet")
    )
    assert said.startswith("recovered 4 messages of stream s.1")
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.column("body").to_pylist() == [b"1-0", b"1-1", b"2-0", b"2-1"]
    run(
        "recover",
        "--spool",
        str(root),
        "--stream",
        "s.1",
        "--to",
        str(tmp_path / "all.parquet"),
        "--all",
    )
    assert pq.read_table(tmp_path / "all.parquet").num_rows == 6


def test_refusals(root: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.touch()
    for words, text in (
        (["list", "--spool", str(tmp_path / "none")], "is no folder"),
        (["list", "--spool", f"file:{tmp_path}/none"], "is no folder"),
        (["recover", "--spool", str(root)], "needs --stream and --to"),
        (
            ["recover", "--spool", str(root), "--stream", "x", "--to", str(tmp_path / "o")],
            "no stream 'x'",
        ),
        (
            ["recover", "--spool", str(root), "--stream", "s.1", "--to", str(there)],
            "is there already",
        ),
    ):
        with pytest.raises(BadArguments, match=text):
            run(*words)
    empty = tmp_path / "empty"
    empty.mkdir()
    for place in (str(empty), f"file:{empty}", f"file://{empty}"):
        assert run("list", "--spool", place) == "the spool is empty\n"
