"""What a spoolLocation names."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="needs pyarrow: run by `make test-spark`")

from pyspark_amqp.spool.objects import ObjectStore
from pyspark_amqp.spool.places import open_store
from pyspark_amqp.spool.posix import PosixStore
from pyspark_amqp.spool.store import SpoolError


@pytest.mark.parametrize("location", ["/spool", "file:///spool", "file:/spool", "FILE:/spool"])
def test_a_path_is_a_folder(location: str) -> None:
    store = open_store(location)
    assert isinstance(store, PosixStore)
    assert store.root == Path("/spool")


def test_a_file_of_another_machine_is_none() -> None:
    with pytest.raises(SpoolError, match="file://host/spool: no file:///path"):
        open_store("file://host/spool")


def test_without_obstore_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with pytest.raises(SpoolError, match=r"pip install 'pyspark-amqp\[spark-cloud\]'"):
        open_store("s3://bucket/spool")


@pytest.mark.parametrize(
    "location",
    [
        "s3://bucket/spool/",
        "s3a://bucket/spool",
        "abfss://container@account.dfs.core.windows.net/spool",
    ],
)
def test_a_url_is_an_object_store(location: str) -> None:
    pytest.importorskip("obstore", reason="obstore is not installed")
    store = open_store(location, region="eu-1" if location.startswith("s3") else None)
    assert isinstance(store, ObjectStore)
    assert str(store) == location.rstrip("/")
