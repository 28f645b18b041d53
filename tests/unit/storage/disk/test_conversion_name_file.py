"""A conversion's last step writes the file that names the queue, also where that is missing.

Covers: storage/disk/conversion.py
"""

from __future__ import annotations

from pathlib import Path

from burrowmq.storage.engine import Engine
from burrowmq.storage.files.filesystem import OsFileSystem
from tests.simulation.store_world import SilentObserver, make_message
from tests.support import offline_store
from tests.support.stored_message import FakeMessage


class Told(SilentObserver):
    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []

    def sync_failed(self, path: str, reason: str) -> None:
        self.told.append(reason)


def test_a_missing_name_file_leaves_nothing_unconverted(tmp_path: Path) -> None:
    offline_store.make_store(tmp_path)
    told = Told()
    engine = Engine(str(tmp_path), OsFileSystem(), offline_store.OPTIONS, told, FakeMessage)
    engine.recover()
    engine.start_inline()
    log = engine.open_queue("/", "small", durable=True)
    (name,) = [
        path
        for path in tmp_path.glob("vhosts/*/queues/*/.queue_name")
        if b"small" in path.read_bytes()
    ]
    name.unlink()
    log.set_version(1)
    log.append(300, [make_message(1, 40, True)], None, 40)
    offline_store.commit(engine)
    engine.idle()
    files = sorted(path.name for path in name.parent.iterdir())
    assert not any(one.endswith(".qi") for one in files)
    assert told.told == []
    assert b"small" in name.read_bytes()
    assert engine.stats()["unconverted_queues"] == 0
