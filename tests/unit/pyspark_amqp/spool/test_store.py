"""One contract for a folder and for object stores.

Covers: pyspark_amqp/spool/posix.py, pyspark_amqp/spool/objects.py
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="needs pyarrow: run by `make test-spark`")

from pyspark_amqp.spool.objects import ObjectStore
from pyspark_amqp.spool.posix import PosixStore
from pyspark_amqp.spool.store import FileGone, SpoolError, Store, check
from tests.support.spools import CountedStore

KEY = "s/q-%2Fa%7Eb/000000000001-0000.arrow"


@pytest.fixture(params=["folder", "objects"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "folder":
        return PosixStore(tmp_path / "spool")
    memory = pytest.importorskip("obstore.store", reason="obstore is not installed").MemoryStore()
    return ObjectStore("memory://", memory)


def create(store: Store, key: str, content: bytes) -> bool:
    with store.scratch(key) as path:
        path.write_bytes(content)
        return store.create(key, path)


def keys(found: Iterator[object]) -> list[str]:
    return [entry.key for entry in found]  # type: ignore[attr-defined]


def test_the_first_who_creates_wins(store: Store) -> None:
    assert store.head(KEY) is None
    assert store.get(KEY) is None
    assert create(store, KEY, b"first")
    assert not create(store, KEY, b"second")
    assert store.get(KEY) == b"first"
    entry = store.head(KEY)
    assert entry is not None
    assert (entry.key, entry.size) == (KEY, 5)
    with store.open(KEY) as path:
        assert path.read_bytes() == b"first"


def test_of_eight_at_once_one_wins(store: Store) -> None:
    start = threading.Barrier(8)
    won: list[int] = []

    def attempt(number: int) -> None:
        with store.scratch(KEY) as path:
            path.write_bytes(b"%d" % number)
            start.wait()
            if store.create(KEY, path):
                won.append(number)

    threads = [threading.Thread(target=attempt, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.get(KEY) == b"%d" % won[0]
    assert len(won) == 1


def test_small_files_are_replaced_listed_and_removed(store: Store) -> None:
    for key in ("s/b/2", "s/b/1", "s/c", "t/x"):
        store.put(key, b"old")
    store.put("s/c", b"new", is_durable=False)
    assert store.get("s/c") == b"new"
    assert keys(store.list("s/")) == ["s/b/1", "s/b/2", "s/c"]
    assert keys(store.list("s/b")) == ["s/b/1", "s/b/2"]
    assert keys(store.list("s/b/2")) == ["s/b/2"]
    assert keys(store.list("")) == ["s/b/1", "s/b/2", "s/c", "t/x"]
    assert keys(store.list("nobody/")) == []
    store.delete(["s/b/1", "s/b/2", "not there"])
    store.delete([])
    assert keys(store.list("")) == ["s/c", "t/x"]


def test_what_is_gone_is_said_to_be(store: Store) -> None:
    with pytest.raises(FileGone, match="x/y: is not there"), store.open("x/y"):
        pass


def test_a_store_that_keeps_the_contract_passes(store: Store) -> None:
    check(store)
    assert keys(store.list("")) == []


class BothWin(CountedStore):
    def create(self, key: str, source: Path) -> bool:
        self.put(key, source.read_bytes())
        return True


class NobodyWins(CountedStore):
    def create(self, key: str, source: Path) -> bool:
        return False


class ListsLag(CountedStore):
    def list(self, prefix: str) -> Iterator[object]:  # type: ignore[override]
        return iter(())


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (BothWin, "lets two writers make the same file"),
        (NobodyWins, "a new name is said to be taken"),
        (ListsLag, "does not list a file that was just made"),
    ],
)
def test_a_store_that_does_not_is_refused(store: Store, kind: type, text: str) -> None:
    with pytest.raises(SpoolError, match=text):
        check(kind(store))
    assert keys(store.list("")) == []
