"""Spools of tests: a piece published by hand, stores of each kind, and stores that fail."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from pyspark_amqp.spool.files import Spool
from pyspark_amqp.spool.offset import Piece
from pyspark_amqp.spool.store import Entry, Store


def publish(spool: Spool, piece: Piece, write: Callable[[Path], object]) -> bool:
    """Let `write` fill a file and publish it; False: somebody else was first."""
    with spool.scratch(piece) as path:
        write(path)
        return spool.store.create(spool.key(piece), path)


def content(spool: Spool, piece: Piece) -> bytes:
    """Return a published piece's octets."""
    with spool.open(piece) as path:
        return path.read_bytes()


class CountedStore:
    """A store that counts what is asked of it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.is_path = store.is_path
        self.asked: list[str] = []

    def __str__(self) -> str:
        return str(self._store)

    def scratch(self, key: str) -> AbstractContextManager[Path]:
        """Give a local file: nothing is asked for that."""
        return self._store.scratch(key)

    def create(self, key: str, source: Path) -> bool:
        """Count and do it."""
        self.asked.append("create")
        return self._store.create(key, source)

    def put(self, key: str, content: bytes, *, is_durable: bool = True) -> None:
        """Count and do it."""
        self.asked.append("put")
        self._store.put(key, content, is_durable=is_durable)

    def get(self, key: str) -> bytes | None:
        """Count and do it."""
        self.asked.append("get")
        return self._store.get(key)

    def head(self, key: str) -> Entry | None:
        """Count and do it."""
        self.asked.append("head")
        return self._store.head(key)

    def list(self, prefix: str) -> Iterator[Entry]:
        """Count and do it."""
        self.asked.append("list")
        return self._store.list(prefix)

    def delete(self, keys: Iterable[str]) -> None:
        """Count and do it."""
        self.asked.append("delete")
        self._store.delete(keys)

    def open(self, key: str) -> AbstractContextManager[Path]:
        """Count and do it."""
        self.asked.append("open")
        return self._store.open(key)

    def tidy(self, prefix: str, age_s: float) -> int:
        """Do it."""
        return self._store.tidy(prefix, age_s)
