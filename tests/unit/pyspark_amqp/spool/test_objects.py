# ruff: noqa: E402 - without obstore the file is skipped before its imports
"""A spool on S3, whose answers are lost and forged."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

pa = pytest.importorskip("pyarrow", reason="needs pyarrow: run by `make test-spark`")
pytest.importorskip("obstore", reason="needs obstore: run by `make test-spark`")
pytest.importorskip("moto", reason="needs moto: run by `make test-spark`")

from pyspark_amqp.convert import schema_of
from pyspark_amqp.spool.content import Taken, attempt_of, writing
from pyspark_amqp.spool.files import Spool
from pyspark_amqp.spool.offset import Piece
from pyspark_amqp.spool.places import open_store
from pyspark_amqp.spool.publish import publish
from pyspark_amqp.spool.store import OutcomeUnknown, SpoolError, Store, check
from tests.support.object_stores import (
    BUCKET,
    CREDENTIALS,
    REGION,
    STALL_S,
    fault_proxy,
    s3_server,
)

pytestmark = pytest.mark.slow
SCHEMA = schema_of(["body"])
LOCATION = f"s3://{BUCKET}/spools/orders"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with s3_server() as url:
        yield url


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)


def store_at(url: str) -> Store:
    return open_store(LOCATION, endpoint=url, region=REGION, is_http_allowed=True)


def attempted(spool: Spool, piece: Piece, attempt: str) -> bool:
    with spool.scratch(piece) as path:
        with writing(path, piece, SCHEMA, attempt) as file:
            file.finish(Taken(0, is_cut=False))
        return publish(spool, piece, attempt, path)


def attempt_in(spool: Spool, piece: Piece) -> str:
    with spool.open(piece) as path:
        return attempt_of(path)


def test_a_server_that_keeps_the_contract_passes(server: str) -> None:
    store = store_at(server)
    check(store)
    assert list(store.list("check/")) == []


def test_names_of_all_kinds_come_back_as_they_were(server: str) -> None:
    spool = Spool(store_at(server))
    for queue in ("a/b", "%2F", "é.~", "a b+c&d"):
        piece = Piece("names", queue, 1, 0, 1)
        assert attempted(spool, piece, "one")
        assert not attempted(spool, piece, "two")
    assert sorted(found.queue for found in spool.pieces("names")) == [
        "%2F",
        "a b+c&d",
        "a/b",
        "é.~",
    ]
    assert spool.remove_stream("names")
    assert spool.pieces("names") == []


def test_a_server_that_is_away_is_named_without_credentials(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark_amqp.spool import objects

    monkeypatch.setattr(objects, "_RETRY", {"max_retries": 0})
    store = store_at("http://127.0.0.1:9")
    with pytest.raises(SpoolError, match=f"{LOCATION}/x: get failed") as found:
        store.get("x")
    assert CREDENTIALS["AWS_SECRET_ACCESS_KEY"] not in str(found.value).replace(LOCATION, "")


def test_a_large_piece_has_the_time_that_a_slow_link_takes(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark_amqp.spool import objects

    monkeypatch.setattr(objects, "_RETRY", {"max_retries": 0})
    monkeypatch.setattr(objects, "_TIMEOUT", timedelta(seconds=STALL_S / 2))
    monkeypatch.setattr(objects, "_SLOWEST_BYTES_S", 1000)
    with fault_proxy(server, seed=1, share=1.0, faults=("stall",)) as proxy:
        store, path = store_at(proxy.url), tmp_path / "piece"
        path.write_bytes(b"x" * 10_000)
        assert store.create("slow/large", path)
        with store.open("slow/large") as found:
            assert found.stat().st_size == 10_000
        path.write_bytes(b"x")
        with pytest.raises(OutcomeUnknown, match="slow/small: create failed"):
            store.create("slow/small", path)


def test_what_a_killed_task_left_on_its_disk_goes_by_age(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    old, young = tmp_path / "pyspark_amqp-old", tmp_path / "pyspark_amqp-young"
    for folder in (old, young, tmp_path / "other"):
        folder.mkdir()
        (folder / "piece").write_bytes(b"x")
    for path in (old, old / "piece", young, tmp_path / "other"):
        os.utime(path, (0, 0))
    with store_at(server).scratch("a/b") as path:
        assert path.parent.parent == tmp_path
        assert sorted(each.name for each in tmp_path.iterdir() if each != path.parent) == [
            "other",
            "pyspark_amqp-young",
        ]
