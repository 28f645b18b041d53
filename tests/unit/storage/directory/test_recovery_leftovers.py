"""A start goes on where the disk removes nothing of what nobody needs (docs/storage.md, a full or failing disk).

Covers: storage/directory/recovery.py, storage/directory/swap.py, storage/directory/context.py
"""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from burrowmq.storage.engine import Engine
from burrowmq.storage.errors import WriteFailed
from burrowmq.storage.files.filesystem import OsFileSystem
from tests.simulation.store_world import SilentObserver
from tests.support import offline_store
from tests.support.stored_message import FakeMessage


class Stuck(OsFileSystem):
    """Removes no directory of this name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def rmtree(self, path: str) -> None:
        if path.endswith(self._name) and self.exists(path):
            raise OSError(errno.EIO, "Input/output error", path)
        super().rmtree(path)


@pytest.mark.xfail(
    strict=True,
    raises=WriteFailed,
    reason="a start ends where such a directory cannot be removed",
)
@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize(
    "name",
    ["store.new", "store.old", "msg_store_persistent/index", "transient", "msg_store_transient"],
)
def test_a_start_goes_on(tmp_path: Path, name: str, is_clean: bool) -> None:
    offline_store.make_store(tmp_path, is_clean=is_clean)
    (vhost,) = tmp_path.glob("vhosts/*")
    place = (tmp_path if name.startswith("store") else vhost) / name
    place.mkdir(exist_ok=True)
    (place / "left").write_bytes(b"left")
    engine = Engine(
        str(tmp_path), Stuck(name), offline_store.OPTIONS, SilentObserver(), FakeMessage
    )
    engine.recover()
    engine.start_inline()
    assert len(offline_store.read_all(engine, "mixed")) == 300
    engine.close()
