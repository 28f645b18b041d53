"""Real threads on a simulated disk, with hooks in its calls as barriers: what two threads do at once, waits and ends.

Covers: storage/disk/threads.py, storage/disk/jobs.py, storage/disk/reader.py, storage/disk/writer.py, storage/disk/backups.py
"""

from __future__ import annotations

import contextlib
import errno
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from burrowmq.storage.disk.threads import ThreadedBackend
from burrowmq.storage.engine import Engine
from burrowmq.storage.errors import DiskFull, StorageError, StoreClosed
from burrowmq.storage.loop.queue_log import QueueLog
from burrowmq.storage.loop.staged_commit import Append, Delete, ReadRequest
from burrowmq.storage.types import StoreOptions
from tests.simulation.store_world import SilentObserver, SimDefinitions
from tests.support.disk_side import LARGE, SMALL, DiskSide, messages, writer_of
from tests.support.sim_filesystem import SimFileSystem
from tests.support.stored_message import FakeMessage

PATIENCE_S = 20


class HookedFileSystem(SimFileSystem):
    """One that calls `hook` before each call, in the thread that makes it."""

    def __init__(self) -> None:
        super().__init__()
        self.hook: Callable[[str, str], None] = lambda *_: None

    def begin(self, operation: str, path: str) -> tuple[OSError, int] | None:
        self.hook(operation, path)
        return super().begin(operation, path)

    def begin_simple(self, operation: str, path: str) -> None:
        self.hook(operation, path)
        super().begin_simple(operation, path)


def test_a_read_planned_while_a_rescue_waits_for_room_loses_nothing() -> None:
    disk = HookedFileSystem()
    side = DiskSide(disk)
    side.open()
    made = [*messages(0, 1, SMALL), *messages(1, 1, LARGE)]
    side.commit(Append(1, 0, list(made), None), sync=False)  # no sync yet: nobody waits
    is_planned, is_rescued = threading.Event(), threading.Event()

    def read() -> None:
        request = ReadRequest(1, 0, 1 << 40, 1000, 1 << 30, lambda *_: None)
        with contextlib.suppress(StorageError):  # it may be tried again
            side.jobs.read(request)

    reader = threading.Thread(target=read)

    def hook(operation: str, path: str) -> None:
        if threading.current_thread() is reader and operation == "pread" and path.endswith(".qs"):
            is_planned.set()
            assert is_rescued.wait(PATIENCE_S)

    def no_room(_: DiskFull) -> None:
        if not is_planned.is_set():
            disk.hook = hook
            reader.start()
            assert is_planned.wait(PATIENCE_S)

    disk.fail("fdatasync", errno.ENOSPC, path_part=".seg")
    side.commit(Append(1, 2, list(messages(2, 1, SMALL)), None), sync=False)
    side.jobs.sync(None, no_room)
    is_rescued.set()
    reader.join(PATIENCE_S)
    side.jobs.idle()
    assert side.read() == [0, 1, 2]


class Loop:
    """An event loop's worth of callbacks."""

    def __init__(self) -> None:
        self.inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()

    def run_until(self, is_done: Callable[[], bool]) -> None:
        while not is_done():
            self.inbox.get(timeout=PATIENCE_S)()


class Node:
    """An engine with threads on a simulated disk."""

    def __init__(self, **options: object) -> None:
        self.loop = Loop()
        self.disk = HookedFileSystem()
        self.observer = SilentObserver()
        self.engine = Engine(
            "/data",
            self.disk,
            replace(StoreOptions(idle_s=0.02), **options),  # type: ignore[arg-type]
            self.observer,
            FakeMessage,
            lambda _: SimDefinitions(self.disk, {}),  # type: ignore[arg-type, return-value]
        )
        self.engine.recover()
        self.engine.start(self.loop.inbox.put)
        self.committed: list[int] = []
        self.failures: list[str] = []
        self.engine.on_committed = self.committed.append
        self.engine.on_failed = self.failures.append

    def stage(self) -> int:
        self.engine.require_sync()
        epoch = self.engine.epoch
        self.engine.hand_over()
        return epoch

    def sync(self) -> None:
        epoch = self.stage()
        self.loop.run_until(lambda: bool(self.committed) and self.committed[-1] >= epoch)

    def queue_with(self, name: str, count: int = 1, size: int = SMALL) -> QueueLog:
        log = self.engine.open_queue("/", name, durable=True)
        log.append(0, messages(0, count, size), None, count * size)
        self.sync()
        return log


class Clock:
    """Real time, and what the disk has taken beside it."""

    def __init__(self) -> None:
        self.passed = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.passed


def test_slow_refused_reads_leave_a_turn_to_other_reads_and_to_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two queues on a bad spot where each attempt takes the disk some seconds: then one of them is always due."""
    node, clock = Node(), Clock()
    monkeypatch.setattr("burrowmq.storage.disk.threads.time", clock)
    logs = [node.queue_with(f"q{at}") for at in range(3)]
    bad = tuple(writer_of(node.engine).queues()[log.queue_id].directory for log in logs[:2])
    backend = node.engine._backend
    assert isinstance(backend, ThreadedBackend)
    in_vain = [0]  # attempts in a row while something else waited
    starves, is_well = threading.Event(), threading.Event()

    def hook(operation: str, path: str) -> None:
        is_read = operation == "pread" and threading.current_thread().name == "reader"
        if is_read and path.startswith(bad) and not is_well.is_set():
            clock.passed += 3.0  # each is tried twice at once
            in_vain[0] = 0 if backend._reads.empty() else in_vain[0] + 1
            if in_vain[0] > 100:
                starves.set()
            raise OSError(errno.EIO, "no", path)

    node.disk.hook = hook
    answers: list[int] = []
    for at, log in enumerate(logs):
        log.read(0, 40, 1 << 20, lambda *_, at=at: answers.append(at))
    while not answers and not starves.is_set():
        with contextlib.suppress(queue.Empty):
            node.loop.inbox.get(timeout=0.01)()
    was_starving = starves.is_set()
    starves.clear()
    in_vain[0] = 0
    closing = threading.Thread(target=node.engine.close)
    closing.start()
    while closing.is_alive() and not starves.is_set():
        closing.join(0.01)
    has_hung = starves.is_set()
    is_well.set()
    closing.join(PATIENCE_S)
    assert (was_starving, has_hung) == (False, False)
    assert answers == [2]


@pytest.mark.parametrize("name", ["disk", "reader"])
def test_a_thread_that_comes_upon_something_nobody_thought_of_ends_the_store_and_says_so(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it is: a reader that dies unheard would leave a node that looks well and reads nothing any more."""
    node, clock = Node(), Clock()
    log = node.queue_with("q")

    def look() -> float:
        if threading.current_thread().name == name:
            raise OverflowError("no such time")
        return time.monotonic()

    monkeypatch.setattr(clock, "monotonic", look)
    monkeypatch.setattr("burrowmq.storage.disk.threads.time", clock)
    log.read(0, 40, 1 << 20, lambda *_: None)
    log.ack(0, 0)
    node.stage()
    node.loop.run_until(lambda: bool(node.failures))
    assert "OverflowError: no such time" in node.failures[0]

    def close() -> None:
        with pytest.raises(StoreClosed):
            node.engine.close()

    closing = threading.Thread(target=close)
    closing.start()
    closing.join(PATIENCE_S)
    assert not closing.is_alive()


def test_messages_that_there_is_no_memory_for_wait_for_it_and_others_are_read() -> None:
    """One of 128 MB may find none where others do: the queue says so, and nothing else ends."""
    node = Node()
    logs = [node.queue_with(f"q{at}") for at in range(2)]
    large = writer_of(node.engine).queues()[logs[0].queue_id].directory
    has_memory = threading.Event()

    def hook(operation: str, path: str) -> None:
        if operation == "pread" and path.startswith(large) and not has_memory.is_set():
            raise MemoryError

    node.disk.hook = hook
    answers: list[int] = []
    faults: list[tuple[str, str, str]] = []
    node.engine.on_queue_fault = lambda names, kind, why: faults.append((names.name, kind, why))
    for at, log in enumerate(logs):
        log.read(0, 40, 1 << 20, lambda *_, at=at: answers.append(at))
    node.loop.run_until(lambda: answers == [1] and bool(faults))
    name, kind, reason = faults[0]
    assert (name, kind) == ("q0", "reading")
    assert "there is no memory" in reason
    has_memory.set()
    node.loop.run_until(lambda: answers == [1, 0])
    assert faults[1:] == [("q0", "reading", "")]
    node.engine.close()
    assert not node.failures


def test_a_compaction_that_comes_upon_something_nobody_thought_of_is_given_up_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(_: object, __: int) -> bool:
        raise OverflowError("no such place")

    monkeypatch.setattr("burrowmq.storage.shared.compaction.CompactionPlan._step", broken)
    node = Node(segment_size_limit=40_000)
    reasons: list[str] = []
    is_said = threading.Event()

    def note(_: str, reason: str) -> None:
        reasons.append(reason)
        is_said.set()

    node.observer.compaction_failed = note  # type: ignore[method-assign]
    log = node.queue_with("q", 100, LARGE)
    log.ack_many([seq for seq in range(100) if seq % 3])
    node.sync()
    assert is_said.wait(PATIENCE_S)
    assert "OverflowError: no such place" in reasons[0]
    node.engine.close()
    assert not node.failures


def test_a_conversion_that_finds_no_room_is_tried_after_pauses_that_grow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses: list[float] = []

    class Paused:
        """A clock that is where the next attempt is due."""

        now = 0.0

        def monotonic(self) -> float:
            backend = node.engine._backend
            assert isinstance(backend, ThreadedBackend)
            if backend._next_conversion > self.now:
                pauses.append(backend._next_conversion - self.now)
                self.now = backend._next_conversion
            return self.now

    node = Node()
    log = node.queue_with("q", 10)
    has_room = threading.Event()

    def hook(operation: str, path: str) -> None:
        if operation == "create" and path.endswith(".idx.tmp") and not has_room.is_set():
            raise OSError(errno.ENOSPC, "no room", path)

    node.disk.hook = hook
    monkeypatch.setattr("burrowmq.storage.disk.threads.time", Paused())
    log.set_version(1)
    node.sync()
    deadline = time.monotonic() + PATIENCE_S
    while len(pauses) < 8 and time.monotonic() < deadline:
        time.sleep(0.001)
    assert [round(one, 1) for one in pauses[:7]] == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    has_room.set()
    while node.engine.stats()["converting_queues"] and time.monotonic() < deadline:
        time.sleep(0.001)
    assert node.engine.stats()["converted_segments"] == 1
    node.engine.close()


def test_what_is_compacted_at_rest_is_also_where_the_last_commit_leaves_nothing_else_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its acks were written and synced with it: the thread had no idle moment, and waited for the next commit."""
    node, clock = Node(segment_size_limit=40_000), Clock()
    log = node.queue_with("q", 100, LARGE)
    monkeypatch.setattr("burrowmq.storage.disk.threads.time", clock)
    monkeypatch.setattr("burrowmq.storage.disk.threads._COMPACTION_CHECK_S", 1e9)
    log.append(100, messages(100, 1, SMALL), None, SMALL)
    node.sync()  # after which a check is due in 30 years
    clock.passed = 0.2
    log.ack_many([seq for seq in range(100) if seq % 3])
    node.sync()
    deadline = time.monotonic() + PATIENCE_S
    while node.engine.stats()["shared_compaction_debt_bytes"] > 0 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert node.engine.stats()["shared_compaction_debt_bytes"] <= 0
    node.engine.close()


@pytest.mark.parametrize("name", ["disk", "reader"])
def test_a_start_that_gets_one_of_its_threads_leaves_none(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directory may be another's at once, and whoever embeds the broker goes on."""
    before = set(threading.enumerate())
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name == name:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        Node()
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("name", ["copier", "backup"])
def test_a_thread_that_cannot_be_started_is_no_reason_to_end(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process or its cgroup has as many threads as it may have (EAGAIN)."""
    node = Node(segment_size_limit=40_000)
    log = node.queue_with("q", 100, LARGE)
    refused = threading.Event()
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name == name:
            refused.set()
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    if name == "backup":
        node.engine.start_backup("/backup", {})
    else:
        log.ack_many([seq for seq in range(100) if seq % 3])
    node.stage()
    assert refused.wait(PATIENCE_S)
    monkeypatch.undo()
    with contextlib.suppress(StoreClosed):
        node.engine.close()
    while not node.loop.inbox.empty():
        node.loop.inbox.get()()
    assert not node.failures
    if name == "backup":
        assert node.engine.backup is not None
        assert node.engine.backup.is_over


@pytest.mark.parametrize("part", [".qi", ".qs"])
def test_a_read_between_a_failed_sync_and_its_rescue_loses_nothing_that_was_confirmed(
    part: str,
) -> None:
    """Own files, of which the log has what was confirmed: until it is written back the kernel may show what was before."""
    disk = HookedFileSystem()
    disk.reverts = True
    side = DiskSide(disk, has_log=True, log_queue_limit=200, log_limit=4000)
    side.open()
    side.open(2, "p")
    for number in range(8):  # both have moved out
        side.append(number, 1)
        side.append(number, 1, queue_id=2)
    readers: list[threading.Thread] = []

    def read() -> None:
        for queue_id in (1, 2):
            with contextlib.suppress(StorageError):  # it may be tried again
                side.read(queue_id)

    def hook(_: str, __: str) -> None:
        if disk.failed and not readers:
            readers.append(threading.Thread(target=read))
            readers[0].start()
            readers[0].join(1)  # it may wait for the end of this

    disk.fail("fdatasync", path_part=part)
    disk.hook = hook
    count = 8
    while not disk.failed:  # the next generation of the log begins
        side.append(count, 1)
        side.append(count, 1, queue_id=2)
        count += 1
    assert readers
    for _ in range(4):
        side.jobs.idle()
    assert side.observer.events["message_set_aside"] == 0
    assert side.read(1) == side.read(2) == list(range(count))


def test_a_read_between_a_failed_sync_and_its_rescue_loses_nothing_of_a_journal() -> None:
    """Version 1: the journal is flushed, the segment's file cannot be synced; the journal is there until it is."""
    disk = HookedFileSystem()
    disk.reverts = True
    side = DiskSide(disk)
    side.open(version=1)
    side.open(2, "p", version=1)
    side.append(0, 1)
    side.append(0, 1, queue_id=2)
    readers: list[threading.Thread] = []

    def read() -> None:
        with contextlib.suppress(StorageError):
            side.read()

    def hook(operation: str, _: str) -> None:
        if operation in ("fdatasync", "fsync_dir") and disk.failed and not readers:
            readers.append(threading.Thread(target=read))
            readers[0].start()
            readers[0].join(1)  # it may wait for the end of this

    disk.fail("fdatasync", path_part=".idx")
    disk.hook = hook
    for _ in range(4):
        side.jobs.idle()
    assert readers
    assert side.observer.events["message_set_aside"] == 0
    assert side.read() == [0]


def test_a_full_disk_is_waited_for_where_a_file_has_to_be_written_back() -> None:
    """The sync of an own file finds no room, nor does what the log has of it: nothing is broken."""
    disk = HookedFileSystem()
    side = DiskSide(disk, has_log=True, log_queue_limit=200, log_limit=4000)
    side.open()
    side.open(2, "p")
    for number in range(8):  # both have moved out
        side.append(number, 1)
        side.append(number, 1, queue_id=2)
    refused: list[str] = []

    def hook(operation: str, path: str) -> None:
        if operation == "pwrite" and path.endswith(".qi") and disk.failed and not refused:
            refused.append(path)
            raise OSError(errno.ENOSPC, "no", path)

    disk.fail("fdatasync", errno.ENOSPC, path_part=".qi")
    disk.hook = hook
    count = 8
    while not refused:
        side.append(count, 1)
        side.append(count, 1, queue_id=2)
        count += 1
    side.jobs.idle()
    assert side.waits
    assert side.read(1) == side.read(2) == list(range(count))


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EMFILE])
def test_a_deleted_queue_gives_its_space_back_though_its_removal_had_to_wait_for_room(
    code: int,
) -> None:
    side = DiskSide()
    side.open()
    side.append(0, 10, LARGE)
    side.jobs.idle()
    side.filesystem.fail("fsync_dir", code, path_part="/queues")
    side.commit(Delete(1, 10))
    side.jobs.idle()
    assert side.waits
    assert not side.observer.events["index_unreadable"]
    assert side.vhost().persistent.stats()["live_messages"] == 0


def test_a_stop_does_not_wait_for_a_backup_whose_target_does_not_answer() -> None:
    node = Node()
    node.queue_with("q")
    hangs, may_go_on = threading.Event(), threading.Event()

    def hook(_: str, path: str) -> None:
        if path.startswith("/backup") and threading.current_thread().name == "backup":
            hangs.set()
            may_go_on.wait(PATIENCE_S)

    node.disk.hook = hook
    node.engine.start_backup("/backup", {})
    node.stage()
    assert hangs.wait(PATIENCE_S)
    closing = threading.Thread(target=node.engine.close)
    closing.start()
    closing.join(3)
    has_hung = closing.is_alive()
    may_go_on.set()
    closing.join(PATIENCE_S)
    assert not has_hung


def test_after_a_failure_no_commit_is_reported() -> None:
    """The reader thread fails, by a bug for one, while the disk thread syncs a commit."""
    node = Node()
    log = node.queue_with("q")
    is_syncing, may_go_on = threading.Event(), threading.Event()

    def hook(operation: str, _: str) -> None:
        name = threading.current_thread().name
        if operation == "fdatasync" and name == "disk":
            is_syncing.set()
            may_go_on.wait(PATIENCE_S)
        if operation == "pread" and name == "reader":
            raise RuntimeError("broken")

    node.disk.hook = hook
    log.append(1, list(messages(1, 1)), None, SMALL)
    epoch = node.stage()
    assert is_syncing.wait(PATIENCE_S)
    log.read(0, 40, 1 << 20, lambda *_: None)
    node.loop.run_until(lambda: bool(node.failures))
    may_go_on.set()
    with contextlib.suppress(StoreClosed):
        node.engine.close()
    while not node.loop.inbox.empty():
        node.loop.inbox.get()()
    assert epoch not in node.committed
