"""Reading on a worker thread, and asking for figures on another, while the disk thread appends, drops and compacts."""

from __future__ import annotations

import random
import sys
import threading
from pathlib import Path

import pytest

from burrowmq.storage.files.filesystem import OsFileSystem
from burrowmq.storage.record import Record
from burrowmq.storage.shared.references import ReferenceTally
from burrowmq.storage.shared.store import MessageStore, MessageStoreOptions
from tests.support.stored_message import FakeMessage

pytestmark = pytest.mark.slow


def store_in(directory: Path, segment_size_limit: int) -> MessageStore:
    options = MessageStoreOptions(
        directory=str(directory / "store"),
        quarantine_directory=str(directory / "quarantine"),
        identity=b"0123456789abcdef",
        segment_size_limit=segment_size_limit,
        is_durable=False,
        open_files=3,
    )
    store = MessageStore(OsFileSystem(), options)
    store.recover(ReferenceTally())
    return store


def test_a_reader_never_sees_a_half_moved_segment(tmp_path: Path) -> None:
    store = store_in(tmp_path, 30_000)
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
                store.put_in_place()
    finally:
        is_done.set()
        reader.join()
    assert failures == []
    assert store.stats()["compactions"] > 20


def test_figures_are_given_while_segments_come_and_go(tmp_path: Path) -> None:
    """The loop asks for them while the disk thread works."""
    store = store_in(tmp_path, 1000)
    failures: list[RuntimeError] = []
    is_done = threading.Event()

    def ask() -> None:
        while not is_done.is_set():
            try:
                store.stats()
            except RuntimeError as error:
                failures.append(error)
                return

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    asker = threading.Thread(target=ask)
    asker.start()
    try:
        kept: list[int] = []
        for _ in range(1500):
            message = FakeMessage(b"\0\0", bytes(900), 900)
            store.append([message])
            kept.append(message.handle)
            if len(kept) > 100:
                store.drop_refs([kept.pop(0)])
    finally:
        is_done.set()
        asker.join()
        sys.setswitchinterval(interval)
    assert failures == []
    assert store.stats()["live_messages"] == 100
