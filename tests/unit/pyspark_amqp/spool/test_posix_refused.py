# ruff: noqa: E402 - without pyarrow the file is skipped before its imports
"""A disk that refuses any call of a spool in a folder: the error names the place, and nothing half-written has a name.

Covers: pyspark_amqp/spool/content.py
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

pa = pytest.importorskip(
    "pyarrow", reason="pyarrow is not installed: pip install 'burrowmq[spark]'"
)

from pyspark_amqp.spool.content import Taken, writing
from pyspark_amqp.spool.files import Spool
from pyspark_amqp.spool.offset import Offset, Piece
from pyspark_amqp.spool.posix import PosixStore
from pyspark_amqp.spool.store import SpoolError, check

KEY = "s/q-work/000000000001-0000.arrow"


def create(store: PosixStore) -> object:
    with store.scratch("s/new") as path:
        path.write_bytes(b"1")
        return store.create("s/new", path)


def opened(store: PosixStore) -> object:
    with store.open(KEY) as path:
        return path


def refuse(monkeypatch: pytest.MonkeyPatch, owner: object, name: str, code: int) -> None:
    def refused(*_: object, **__: object) -> object:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(owner, name, refused)


@pytest.mark.parametrize(
    ("owner", "call", "code", "step"),
    [
        (os, "fsync", errno.EIO, create),
        (os, "open", errno.EMFILE, create),
        (os, "link", errno.ENOSPC, create),
        (Path, "touch", errno.EMFILE, create),
        (Path, "mkdir", errno.EROFS, lambda store: store.put("t/new", b"1")),
        (Path, "write_bytes", errno.ENOSPC, lambda store: store.put("s/new", b"1")),
        (Path, "replace", errno.EIO, lambda store: store.put("s/new", b"1")),
        (Path, "write_bytes", errno.ENOSPC, check),
        (Path, "write_text", errno.ENOSPC, lambda store: Spool(store).plan("t", Offset.first)),
        (Path, "read_bytes", errno.EIO, lambda store: store.get(KEY)),
        (Path, "stat", errno.EACCES, lambda store: store.head(KEY)),
        (Path, "stat", errno.ESTALE, opened),
        (Path, "stat", errno.EACCES, lambda store: list(store.list("s/"))),
        (os, "listdir", errno.EIO, lambda store: list(store.list("s/"))),
        (Path, "unlink", errno.EROFS, lambda store: store.delete([KEY])),
    ],
)
def test_the_error_names_the_place(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    owner: object,
    call: str,
    code: int,
    step: Callable[[PosixStore], object],
) -> None:
    store = PosixStore(tmp_path / "spool")
    store.put(KEY, b"1")
    with monkeypatch.context() as patch:
        refuse(patch, owner, call, code)
        with pytest.raises(SpoolError, match=f"{tmp_path}.*{os.strerror(code)}") as caught:
            step(store)
        assert (
            type(caught.value) is SpoolError
        )  # neither gone, nor an outcome that is found out by reading
    assert [entry.key for entry in store.list("s/")] == [KEY]


def test_a_full_disk_names_the_file_and_leaves_none_open(tmp_path: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("there is no /dev/full")
    schema = pa.schema([("body", pa.binary())])
    batch = pa.record_batch([pa.array([bytes(1 << 20)])], schema=schema)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(SpoolError, match=r"/dev/full: cannot be written .*No space left"):
        with writing(full, Piece("s", "work", 1, 0, 1), schema) as file:
            file.write(batch)
            file.finish(Taken(1, is_cut=False))
    assert len(os.listdir("/proc/self/fd")) == before


def test_what_went_wrong_first_is_what_is_told(tmp_path: Path) -> None:
    schema = pa.schema([("body", pa.binary())])
    with pytest.raises(ConnectionResetError):
        with writing(Path("/dev/full"), Piece("s", "work", 1, 0, 1), schema):
            raise ConnectionResetError
