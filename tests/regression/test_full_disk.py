"""A full disk costs a wait, never the store: what a review found in upkeep and in definitions."""

from __future__ import annotations

import errno
import queue
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from burrowmq.storage.directory.definition_store import SqliteDefinitionStore
from burrowmq.storage.engine import Engine
from burrowmq.storage.errors import DiskFull
from burrowmq.storage.files.filesystem import OsFileSystem
from burrowmq.storage.types import StoreOptions
from tests.simulation.store_world import SilentObserver, make_message
from tests.support.stored_message import FakeMessage


class NoRoomToRewrite(OsFileSystem):
    """The real one; a segment that is written anew finds no room, new messages do."""

    refusals = 0

    def create(self, path: str):
        if path.endswith(".qi.tmp") or ".g" in path.rpartition("/")[2]:
            self.refusals += 1
            raise OSError(errno.ENOSPC, "no room", path)
        return super().create(path)


def test_acks_do_not_wait_for_the_room_that_a_rewrite_would_need(tmp_path: Path) -> None:
    inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
    filesystem = NoRoomToRewrite()
    options = StoreOptions(segment_entry_count=64, rewrite_above=10_000, idle_s=0.01)
    engine = Engine(str(tmp_path / "data"), filesystem, options, SilentObserver(), FakeMessage)
    engine.recover()
    engine.start(inbox.put)
    committed: list[int] = []
    engine.on_committed = committed.append
    failures: list[str] = []
    engine.on_failed = failures.append

    def sync() -> None:
        engine.require_sync()
        epoch = engine.epoch
        engine.hand_over()
        until = time.monotonic() + 10
        while not committed or committed[-1] < epoch:
            assert not failures, failures
            assert time.monotonic() < until, "the commit does not come"
            try:
                inbox.get(timeout=0.5)()
            except queue.Empty:
                continue

    log = engine.open_queue("/", "q", durable=True)
    log.append(0, [make_message(at, 2000, True) for at in range(64)], None, 128_000)
    sync()
    log.ack(0, 61)
    sync()
    time.sleep(0.1)  # idle work looks at it again
    log.append(64, [make_message(64, 2000, True)], None, 2000)
    sync()
    assert filesystem.refusals
    engine.close()


def test_upkeep_without_room_is_tried_again(tmp_path: Path) -> None:
    inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
    options = StoreOptions(segment_entry_count=64, idle_s=0.01)
    engine = Engine(str(tmp_path / "data"), OsFileSystem(), options, SilentObserver(), FakeMessage)
    engine.recover()
    writer = engine._writer
    assert writer is not None
    upkeep = writer.upkeep
    calls: list[int] = []

    def full_twice(**how: bool) -> None:
        calls.append(1)
        if len(calls) <= 2:
            raise DiskFull("no room")
        upkeep(**how)

    writer.upkeep = full_twice  # type: ignore[method-assign]
    engine.start(inbox.put)
    log = engine.open_queue("/", "q", durable=True)
    log.append(0, [make_message(at, 20, True) for at in range(4)], None, 80)
    engine.hand_over()
    inbox.get(timeout=10)()
    log.ack(0, 1)
    engine.hand_over()
    until = time.monotonic() + 10
    while len(calls) < 3 and time.monotonic() < until:
        time.sleep(0.01)
    engine.close()
    assert len(calls) >= 3


def test_definitions_on_a_full_disk_may_be_committed_later(tmp_path: Path) -> None:
    store = SqliteDefinitionStore(str(tmp_path / "definitions.db"))
    pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
    store._connection.execute(f"PRAGMA max_page_count={pages}")
    changes = [("queue", f"q{at}", {"name": "x" * 1000}) for at in range(50)]
    with pytest.raises(DiskFull):
        store.commit(list(changes))
    store._connection.execute("PRAGMA max_page_count=100000")
    store.commit(list(changes))
    assert len(store.load()) == 50
    store.close()


class NoDescriptors(OsFileSystem):
    """The real one, which refuses to open or create the next few files: the process has too many open."""

    refusals = 0

    def _refuse(self, path: str) -> None:
        if self.refusals:
            self.refusals -= 1
            raise OSError(errno.EMFILE, "too many open files", path)

    def open(self, path: str):
        self._refuse(path)
        return super().open(path)

    def create(self, path: str):
        self._refuse(path)
        return super().create(path)


@pytest.mark.slow
def test_too_many_open_files_lose_nothing(tmp_path: Path) -> None:
    inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
    filesystem = NoDescriptors()
    options = StoreOptions(segment_entry_count=8, idle_s=0.01, open_files=2)
    engine = Engine(str(tmp_path / "data"), filesystem, options, SilentObserver(), FakeMessage)
    engine.recover()
    engine.start(inbox.put)
    committed: list[int] = []
    engine.on_committed = committed.append
    failures: list[str] = []
    engine.on_failed = failures.append

    def run_until(is_done: Callable[[], bool]) -> None:
        until = time.monotonic() + 10
        while not is_done():
            assert not failures, failures
            assert time.monotonic() < until
            try:
                inbox.get(timeout=0.1)()
            except queue.Empty:
                continue

    log = engine.open_queue("/", "q", durable=True)
    for at in range(64):  # every other body is in the shared store
        size = (20, 6000)[at % 2]
        filesystem.refusals = at % 16 == 3
        log.append(at, [make_message(at, size, True)], None, size)
        engine.require_sync()
        epoch = engine.epoch
        engine.hand_over()
        run_until(lambda epoch=epoch: bool(committed) and committed[-1] >= epoch)  # type: ignore[misc]
    found: list[int] = []
    seq = 0
    while seq < 64:
        answers: list[int] = []
        filesystem.refusals = 4

        def on_read(loaded, next_seq, answers=answers):
            found.extend(each[0] for each in loaded)
            answers.append(next_seq)

        answer = log.read(seq, 8, 1 << 20, on_read)
        assert answer is None
        run_until(lambda answers=answers: bool(answers))  # type: ignore[misc]
        seq = answers[0]
    assert found == list(range(64))
    filesystem.refusals = 0
    engine.close()
