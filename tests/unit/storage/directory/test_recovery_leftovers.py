"""A start goes on where the disk removes nothing of what nobody needs (docs/storage.md, a full or failing disk).

What it cannot remove is a leftover: it is out of the way, counted, and tried again. A start is refused only where it is
in the way and cannot be renamed either: new files would have the names of what lies there.

Covers: storage/directory/recovery.py, storage/directory/swap.py, storage/directory/context.py
"""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from burrowmq.storage.directory.swap import begin_swap
from burrowmq.storage.engine import Engine
from burrowmq.storage.errors import WriteFailed
from burrowmq.storage.files.filesystem import OsFileSystem
from tests.simulation.store_world import SilentObserver
from tests.support import offline_store
from tests.support.stored_message import FakeMessage


class Stuck(OsFileSystem):
    """Removes no directory of this name, nor what it is called after a rename; with `is_fixed` it renames none."""

    def __init__(self, name: str, *, is_fixed: bool = False) -> None:
        super().__init__()
        self.name = name
        self._is_fixed = is_fixed

    def _has_name(self, path: str) -> bool:
        return bool(self.name) and f"/{self.name}" in path and self.exists(path)

    def rmtree(self, path: str) -> None:
        if self._has_name(path):
            raise OSError(errno.EIO, "Input/output error", path)
        super().rmtree(path)

    def rename(self, source: str, target: str) -> None:
        if self._is_fixed and self._has_name(source):
            raise OSError(errno.EIO, "Input/output error", source)
        super().rename(source, target)


BESIDE = ["store.new", "store.old"]
OF_ONE_RUN = ["msg_store_persistent/index", "transient", "msg_store_transient"]


def leave(path: Path, name: str, *, is_clean: bool) -> None:
    """A store with such a directory in it, with a file."""
    offline_store.make_store(path, is_clean=is_clean)
    (vhost,) = path.glob("vhosts/*")
    place = (path if name in BESIDE else vhost) / name
    place.mkdir(exist_ok=True)
    (place / "left").write_bytes(b"left")


def start(path: Path, filesystem: OsFileSystem) -> Engine:
    """A start on it."""
    engine = Engine(str(path), filesystem, offline_store.OPTIONS, SilentObserver(), FakeMessage)
    engine.recover()
    engine.start_inline()
    return engine


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("name", BESIDE + OF_ONE_RUN)
def test_a_start_goes_on(tmp_path: Path, name: str, is_clean: bool) -> None:
    leave(tmp_path, name, is_clean=is_clean)
    filesystem = Stuck(name)
    engine = start(tmp_path, filesystem)
    assert engine.stats()["leftover_files"] == 1
    assert len(offline_store.read_all(engine, "mixed")) == 300
    engine.close()
    engine = start(tmp_path, filesystem)  # nor does the next one mind, for which it was made anew
    assert engine.stats()["leftover_files"] == 1 + (name == "msg_store_transient")
    filesystem.name = ""
    engine.idle()
    assert engine.stats()["leftover_files"] == 0
    assert not list(tmp_path.rglob("left"))
    assert len(offline_store.read_all(engine, "mixed")) == 300
    engine.close()


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("name", OF_ONE_RUN)
def test_a_start_is_refused_where_its_own_files_would_meet_it(
    tmp_path: Path, name: str, is_clean: bool
) -> None:
    """A segment or a queue's file of this run would have the name of one that lies there."""
    leave(tmp_path, name, is_clean=is_clean)
    engine = Engine(
        str(tmp_path),
        Stuck(name, is_fixed=True),
        offline_store.OPTIONS,
        SilentObserver(),
        FakeMessage,
    )
    with pytest.raises(WriteFailed, match=f"/{name} can be neither removed .* remove it by hand"):
        engine.recover()
    assert len(offline_store.bodies_of(tmp_path)["mixed"]) == 300


@pytest.mark.parametrize("name", BESIDE)
def test_no_store_is_written_anew_beside_it(tmp_path: Path, name: str) -> None:
    """It would be mixed with what is left of another, or be taken for the old one."""
    leave(tmp_path, name, is_clean=True)
    with pytest.raises(WriteFailed, match=name):
        begin_swap(Stuck(name), str(tmp_path))


@pytest.mark.parametrize("is_queue", [True, False])
def test_what_nobody_named_and_nothing_is_in_goes_later(tmp_path: Path, is_queue: bool) -> None:
    """A crash came before its name; when somebody makes it again, it is not what the start could not remove."""
    offline_store.make_store(tmp_path, is_clean=False)
    (vhost,) = tmp_path.glob("vhosts/*")
    place = vhost / "queues" / ("5" * 24) if is_queue else tmp_path / "vhosts" / ("5" * 24)
    place.mkdir()
    (place / "left").write_bytes(b"left")
    filesystem = Stuck("5" * 24)
    engine = start(tmp_path, filesystem)
    assert engine.stats()["leftover_files"] == 1
    assert not place.exists()
    assert len(offline_store.read_all(engine, "mixed")) == 300
    filesystem.name = ""
    engine.idle()
    assert not list(tmp_path.rglob("left"))
    engine.close()
