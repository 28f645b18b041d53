"""Reading on a worker thread while the disk thread appends, drops and compacts."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest

from storage.filesystem import OsFileSystem
from storage.message_store import MessageStore, MessageStoreOptions
from storage.record import Record
from storage.references import ReferenceTally
from tests.support.stored_message import FakeMessage

pytestmark = pytest.mark.slow


def test_a_reader_never_sees_a_half_moved_segment(tmp_path: Path) -> None:
    options = MessageStoreOptions(
        directory=str(tmp_path / "store"),
        quarantine_directory=str(tmp_path / "quarantine"),
        identity=b"0123456789abcdef",
        segment_size_limit=30_000,
        is_durable=False,
        open_files=3,
    )
    store = MessageStore(OsFileSystem(), options)
    store.recover(ReferenceTally())
    lasting: dict[int, Record] = {}  # never dropped: must always be readable
    failures: list[object] = []
    is_done = threading.Event()

    def read() -> None:
        rng = random.Random(2)
        while not is_done.is_set():
            known = sorted(dict(lasting))  # it grows meanwhile
            handles = sorted(rng.sample(known, min(30, len(known))))
            found = store.read(handles)
            wrong = [h for h, r in zip(handles, found, strict=True) if r != lasting[h]]
            if wrong:
                failures.append(wrong)
                return

    rng = random.Random(1)
    reader = threading.Thread(target=read)
    reader.start()
    try:
        for _ in range(250):
            batch = [
                FakeMessage(b"\0\0", rng.randbytes(size), size) for size in range(100, 900, 40)
            ]
            store.append(batch)
            lasting.update((message.handle, message.record) for message in batch[::4])
            store.drop_refs([message.handle for n, message in enumerate(batch) if n % 4])
            plan = store.plan(is_idle=True)
            if plan is not None:
                while not plan.step(20_000):
                    pass
                store.publish()
    finally:
        is_done.set()
        reader.join()
    assert failures == []
    assert store.stats()["compactions"] > 20
