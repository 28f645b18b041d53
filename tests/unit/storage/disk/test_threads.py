"""The threads: order, confirms, reads, waiting for space, failing, closing."""

from __future__ import annotations

import contextlib
import errno
import os
import queue
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from burrowmq.storage.disk import acks
from burrowmq.storage.disk.jobs import DiskJobs
from burrowmq.storage.engine import EARLY_BYTES, Engine
from burrowmq.storage.errors import StoreClosed
from burrowmq.storage.files.filesystem import OsFileSystem
from burrowmq.storage.loop.queue_log import QueueLog
from burrowmq.storage.loop.staged_commit import Append, StagedCommit
from burrowmq.storage.names import QueueNames
from burrowmq.storage.types import StoreOptions
from tests.simulation.store_world import SilentObserver, make_message
from tests.support.stored_message import FakeMessage


class FailingFileSystem(OsFileSystem):
    """The real one, with switches for the disk being full, for creating at all, for removing directories."""

    def __init__(self) -> None:
        super().__init__()
        self.error: int | None = None
        self.is_broken = False
        self.keeps_trees = False

    def rmtree(self, path: str):
        if self.keeps_trees:
            raise OSError(errno.EIO, "no", path)
        super().rmtree(path)

    def create(self, path: str):
        if self.is_broken:
            raise RuntimeError("broken")
        if self.error is not None and path.endswith((".qi", ".qs", ".seg", "probe")):
            raise OSError(self.error, "no", path)
        return super().create(path)


class Loop:
    """An event loop's worth of callbacks."""

    def __init__(self) -> None:
        self.inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.is_closed = False

    def post(self, callback: Callable[[], None]) -> None:
        if self.is_closed:
            raise RuntimeError("Event loop is closed")
        self.inbox.put(callback)

    def run_until(self, is_done: Callable[[], bool]) -> None:
        while not is_done():
            self.inbox.get(timeout=20)()


class Node:
    """An engine with threads in a directory."""

    def __init__(self, directory: Path, confirm: str = "fsync", *, has_log: bool = False) -> None:
        self.loop = Loop()
        self.filesystem = FailingFileSystem()
        self.observer = SilentObserver()
        self.engine = Engine(
            str(directory),
            self.filesystem,
            StoreOptions(
                confirm=confirm,
                segment_entry_count=64,
                segment_size_limit=40_000,
                idle_s=0.02,
                has_log=has_log,
            ),
            self.observer,
            FakeMessage,
        )
        self.report = self.engine.recover()
        self.engine.start(self.loop.post)
        self.committed: list[int] = []
        self.engine.on_committed = self.committed.append

    def sync(self) -> None:
        self.engine.require_sync()
        epoch = self.engine.epoch
        self.engine.hand_over()
        self.loop.run_until(lambda: bool(self.committed) and self.committed[-1] >= epoch)

    def _read(self, log: QueueLog, seq: int) -> tuple[list[tuple[int, object, int]], int]:
        answers: list[tuple[list[tuple[int, object, int]], int]] = []
        answer = log.read(seq, 40, 1 << 20, lambda *found: answers.append(found))
        if answer is None:
            self.loop.run_until(lambda: bool(answers))
            answer = answers[0]
        return answer

    def read_all(self, log: QueueLog) -> list[tuple[int, object, int]]:
        found: list[tuple[int, object, int]] = []
        seq = 0
        while True:
            answer = self._read(log, seq)
            found += answer[0]
            if not answer[0] and answer[1] <= seq:
                return found
            seq = answer[1]


@pytest.fixture(params=["fsync", "written"])
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Node]:
    before = set(threading.enumerate())
    found = Node(tmp_path / "data", request.param)
    yield found
    try:
        found.engine.close()
    except StoreClosed:
        pass
    left = set(threading.enumerate()) - before
    assert not [thread for thread in left if thread.name in ("disk", "reader", "copier")]


def test_batches_commit_in_order_and_reads_come_back(node: Node) -> None:
    log = node.engine.open_queue("/", "q", durable=True)
    messages = [make_message(at, (20, 6000)[at % 7 == 0], persistent=True) for at in range(300)]
    for at in range(0, 300, 10):
        log.append(at, messages[at : at + 10], None, 500)
        node.engine.require_sync()
        node.engine.hand_over()
    node.sync()
    assert node.committed == sorted(node.committed)
    found = node.read_all(log)
    assert [(seq, m.raw) for seq, m, _ in found] == [(at, m.raw) for at, m in enumerate(messages)]


def test_a_hand_over_finds_what_is_finished_before_the_loop_comes_to_it(node: Node) -> None:
    log = node.engine.open_queue("/", "q", durable=True)
    node.sync()
    log.append(0, [make_message(0, 10, persistent=True)], None, 10)
    first = node.engine.epoch
    node.engine.hand_over()
    callback = node.loop.inbox.get(timeout=20)
    assert node.committed[-1] < first
    log.append(1, [make_message(1, 10, persistent=True)], None, 10)
    second = node.engine.epoch
    node.engine.hand_over()
    assert node.committed[-1] == first
    callback()
    assert node.committed.count(first) == 1
    node.loop.run_until(lambda: node.committed[-1] == second)


def test_a_free_disk_wants_what_is_enough_and_waited_for(node: Node) -> None:
    log = node.engine.open_queue("/", "q", durable=True)
    node.sync()
    log.append(0, [make_message(0, EARLY_BYTES, persistent=True)], None, EARLY_BYTES)
    assert not node.engine.wants_commit(), "nobody waits"
    node.engine.require_sync()
    assert node.engine.wants_commit()
    node.engine.hand_over()
    node.engine.require_sync()
    log.append(1, [make_message(1, 100, persistent=True)], None, 100)
    callback = node.loop.inbox.get(timeout=20)
    assert not node.engine.wants_commit(), "it is not much"
    log.append(2, [make_message(2, EARLY_BYTES, persistent=True)], None, EARLY_BYTES)
    assert node.engine.wants_commit(), "the one before is finished, if not reported"
    callback()
    assert node.engine.wants_commit()


def test_half_the_messages_gone_the_store_shrinks_by_itself(node: Node, tmp_path: Path) -> None:
    log = node.engine.open_queue("/", "q", durable=True)
    messages = [make_message(at, 5000, persistent=True) for at in range(100)]
    log.append(0, messages, None, 500_000)
    node.sync()
    log.ack_many([seq for seq in range(100) if seq % 3])
    node.sync()
    directory = next(tmp_path.glob("data/vhosts/*/msg_store_persistent"))

    def size() -> int:
        for _ in range(100):
            try:
                return sum(path.stat().st_size for path in directory.iterdir())
            except FileNotFoundError:
                continue  # compacted away between listing and asking
        raise AssertionError("the directory does not come to rest")

    for _ in range(2_000):
        if size() <= 2 * 34 * 5100 + 3 * 40_000:
            break
        threading.Event().wait(0.01)
    assert size() <= 2 * 34 * 5100 + 3 * 40_000
    assert [seq for seq, _, _ in node.read_all(log)] == list(range(0, 100, 3))


def test_a_full_disk_holds_the_commit_until_there_is_space(node: Node) -> None:
    spaces: list[bool] = []
    node.engine.on_space = spaces.append
    log = node.engine.open_queue("/", "q", durable=True)
    node.sync()
    node.filesystem.error = errno.ENOSPC
    log.append(0, [make_message(1, 10, persistent=True)], None, 10)
    node.engine.require_sync()
    epoch = node.engine.epoch
    node.engine.hand_over()
    node.loop.run_until(lambda: spaces == [True])
    assert epoch not in node.committed
    node.filesystem.error = None
    node.loop.run_until(lambda: epoch in node.committed)
    assert spaces == [True, False]


def test_a_write_error_fails_the_store_once_and_for_all(node: Node) -> None:
    failures: list[str] = []
    node.engine.on_failed = failures.append
    log = node.engine.open_queue("/", "q", durable=True)
    node.sync()
    node.filesystem.error = errno.EIO
    log.append(0, [make_message(1, 10, persistent=True)], None, 10)
    before = list(node.committed)
    node.engine.hand_over()
    node.loop.run_until(lambda: bool(failures))
    node.filesystem.error = None
    log.append(1, [make_message(2, 10, persistent=True)], None, 10)
    node.engine.hand_over()
    assert (len(failures), node.committed) == (1, before)
    with pytest.raises(StoreClosed):
        node.engine.close()


def test_a_bug_in_the_disk_thread_is_reported_with_its_traceback(node: Node) -> None:
    failures: list[str] = []
    node.engine.on_failed = failures.append
    log = node.engine.open_queue("/", "q", durable=True)
    node.sync()
    node.filesystem.is_broken = True
    log.append(0, [make_message(1, 10, persistent=True)], None, 10)
    node.engine.hand_over()
    node.loop.run_until(lambda: bool(failures))
    assert "RuntimeError: broken" in failures[0]
    node.filesystem.is_broken = False


def test_what_was_staged_last_is_written_by_closing(tmp_path: Path) -> None:
    node = Node(tmp_path)
    log = node.engine.open_queue("/", "q", durable=True)
    log.append(0, [make_message(at, 10, persistent=True) for at in range(5)], None, 50)
    log.set_delivered(3)
    node.engine.close()
    again = Node(tmp_path)
    assert again.report.clean
    found = again.report.queues[QueueNames("/", "q")]
    assert (found.count, found.next_seq, found.next_deliver_seq) == (5, 5, 3)
    again.engine.close()


def test_an_answer_that_the_loop_comes_to_after_closing_may_ask_for_more(tmp_path: Path) -> None:
    node = Node(tmp_path)
    log = node.engine.open_queue("/", "q", durable=True)
    log.append(0, [make_message(at, 10, persistent=True) for at in range(5)], None, 50)
    node.sync()
    answers: list[int] = []

    def go_on(loaded: list[object], next_seq: int) -> None:
        answers.append(next_seq)
        assert log.read(next_seq, 1, 1 << 20, go_on) is None

    assert log.read(0, 1, 1 << 20, go_on) is None
    node.engine.close()
    node.loop.run_until(lambda: bool(answers))
    assert answers == [1]


def test_an_idle_store_syncs_by_itself(node: Node) -> None:
    log = node.engine.open_queue("/", "q", durable=True)
    log.append(0, [make_message(1, 10, persistent=True)], None, 10)
    node.engine.hand_over()
    for _ in range(400):
        if node.engine.stats()["file_syncs"] >= 2:
            break
        threading.Event().wait(0.01)
    assert node.engine.stats()["file_syncs"] >= 2


def test_what_could_not_be_removed_is_removed_though_nobody_commits_any_more(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acks, "SWEEP_S", 0.05)
    log = node.engine.open_queue("/", "q", durable=True)
    log.append(0, [make_message(1, 10, persistent=True)], None, 10)
    node.sync()
    node.filesystem.keeps_trees = True
    log.delete()
    node.sync()
    assert node.engine.stats()["leftover_files"] == 1
    for _ in range(20):  # the last commit's own work is done
        threading.Event().wait(0.01)
    node.filesystem.keeps_trees = False
    for _ in range(400):
        if not node.engine.stats()["leftover_files"]:
            break
        threading.Event().wait(0.01)
    assert node.engine.stats()["leftover_files"] == 0


def test_a_stop_that_cannot_be_clean_says_so(tmp_path: Path) -> None:
    node = Node(tmp_path)
    log = node.engine.open_queue("/", "q", durable=True)
    log.append(0, [make_message(1, 10, persistent=True)], None, 10)
    node.sync()
    node.filesystem.is_broken = True
    with pytest.raises(StoreClosed, match="broken"):
        node.engine.close()


def files_open_below(directory: Path) -> list[str]:
    """Of this process, by the kernel's list."""
    found: list[str] = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            found.append(os.readlink(descriptor))
    return [path for path in found if path.startswith(str(directory))]


def test_a_store_that_failed_has_no_file_open_once_it_is_closed(tmp_path: Path) -> None:
    node = Node(tmp_path)
    failures: list[str] = []
    node.engine.on_failed = failures.append
    log = node.engine.open_queue("/", "q", durable=True)
    log.append(0, [make_message(at, 10, persistent=True) for at in range(5)], None, 50)
    node.sync()
    node.filesystem.error = errno.EIO
    log.append(5, [make_message(at, 10, persistent=True) for at in range(99)], None, 990)
    node.engine.hand_over()
    node.loop.run_until(lambda: bool(failures))
    node.filesystem.error = None
    assert files_open_below(tmp_path)
    with pytest.raises(StoreClosed):
        node.engine.close()
    assert not files_open_below(tmp_path)


def test_a_store_that_was_recovered_and_never_started_can_be_closed(tmp_path: Path) -> None:
    engine = Engine(str(tmp_path), OsFileSystem(), StoreOptions(), SilentObserver(), FakeMessage)
    engine.recover()
    assert files_open_below(tmp_path)
    engine.close()
    engine.close()
    assert not files_open_below(tmp_path)


def test_a_loop_that_is_gone_does_not_hurt_closing(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.loop.is_closed = True
    log = node.engine.open_queue("/", "q", durable=True)
    log.append(0, [make_message(1, 10, persistent=True)], None, 10)
    node.engine.close()


def test_a_store_that_is_never_idle_syncs_acks_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DiskJobs, "idle", lambda _: None)
    node = Node(tmp_path / "data")
    log = node.engine.open_queue("/", "q", durable=True)
    log.append(0, [make_message(at, 20, persistent=True) for at in range(8)], None, 160)
    node.sync()
    syncs = node.engine.stats()["syncs"]
    log.ack(0, 3)
    while node.engine.stats()["syncs"] == syncs:  # nobody waits for any of these
        epoch = node.engine.epoch
        log.append(log.next_seq, [make_message(log.next_seq, 20, persistent=True)], None, 20)
        node.engine.hand_over()
        node.loop.run_until(lambda: node.committed[-1] >= epoch)  # noqa: B023 - of this turn
    node.engine.close()


def test_the_scrubber_works_beside_commits_and_reads_and_wakes_the_disk_thread(
    node: Node, tmp_path: Path
) -> None:
    done: list[tuple[object, ...]] = []
    node.observer.scrub_finished = lambda *details: node.loop.post(lambda: done.append(details))
    log = node.engine.open_queue("/", "q", durable=True)
    log.append(0, [make_message(seq, 50, True) for seq in range(100)], None, 5000)
    node.sync()
    (store,) = tmp_path.glob("**/queues/*/0.qs")
    data = bytearray(store.read_bytes())
    data[-2] ^= 1
    store.write_bytes(bytes(data))
    node.engine.start_scrub()
    node.loop.run_until(lambda: bool(done))
    assert node.engine.scrub.last is not None
    assert node.engine.scrub.last.found == 1
    assert [seq for seq, *_ in node.read_all(log)] == [*range(63), *range(64, 100)]
    assert node.observer.events["message_set_aside"] == 1
    node.engine.close()
    with pytest.raises(StoreClosed):
        node.engine.start_scrub()


def test_a_commit_is_reported_before_the_failure_of_what_comes_after_it(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    node.engine.on_committed = lambda epoch: told.append(f"committed {epoch}")
    node.engine.on_failed = lambda reason: told.append(reason.strip().rpartition("\n")[2])

    def broken(_: DiskJobs, __: float) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(DiskJobs, "keep_acks_young", broken)
    node.engine.open_queue("/", "q", durable=True)
    node.engine.require_sync()
    epoch = node.engine.epoch
    node.engine.hand_over()
    node.loop.run_until(lambda: len(told) == 2)
    assert told == [f"committed {epoch}", "RuntimeError: broken"]


def test_a_commit_is_reported_before_the_work_that_comes_after_it(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread tells of it last when it has nothing else to do, and first when it has."""
    is_reported = threading.Event()
    waited: list[bool] = []
    node.engine.on_committed = lambda _: is_reported.set()
    monkeypatch.setattr(DiskJobs, "is_upkeep_due", lambda *_: True)
    monkeypatch.setattr(DiskJobs, "keep_acks_young", lambda *_: waited.append(is_reported.wait(20)))
    node.engine.open_queue("/", "q", durable=True)
    node.engine.require_sync()
    node.engine.hand_over()
    node.loop.run_until(is_reported.is_set)
    node.engine.close()
    assert waited[0]


def _small(node: Node, log: QueueLog, seq: int, *, is_alone: bool = True) -> int:
    """Hand over a message that somebody waits for; give its epoch."""
    log.append(seq, [make_message(seq, 10, persistent=True)], None, 10)
    node.engine.require_sync()
    epoch = node.engine.epoch
    node.engine.hand_over(is_alone=is_alone)
    return epoch


def _until_at_once(node: Node, log: QueueLog) -> int:
    """Hand over messages until the first that is there when the call returns; give the next sequence number."""
    for seq in range(1000):
        epoch = _small(node, log, seq)
        if node.committed and node.committed[-1] == epoch:
            return seq + 1
        node.loop.run_until(lambda epoch=epoch: node.committed[-1:] == [epoch])
    raise AssertionError("the disk thread has written all of them")


@pytest.fixture
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    """A node whose disk is taken to be quick whatever else this machine does, and whose thread's turn comes late."""
    monkeypatch.setattr("burrowmq.storage.disk.at_once.QUICK_S", 1000.0)
    monkeypatch.setattr("burrowmq.storage.disk.at_once.TURN_S", 1000.0)
    found = Node(tmp_path / "data", has_log=True)
    yield found
    with contextlib.suppress(StoreClosed):
        found.engine.close()


def test_who_is_alone_need_not_wait_for_the_thread(quick: Node) -> None:
    log = quick.engine.open_queue("/", "q", durable=True)
    count = _until_at_once(quick, log)
    assert not quick.engine._in_flight
    epoch = _small(quick, log, count, is_alone=False)
    assert quick.committed[-1] != epoch
    quick.loop.run_until(lambda: quick.committed[-1] == epoch)
    assert quick.committed == sorted(quick.committed)
    assert [seq for seq, _, _ in quick.read_all(log)] == list(range(count + 1))


def test_while_the_thread_is_at_work_the_loop_writes_nothing(
    quick: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = quick.engine.open_queue("/", "q", durable=True)
    count = _until_at_once(quick, log)
    is_idle, may_go = threading.Event(), threading.Event()

    def idle(_: DiskJobs) -> None:
        is_idle.set()
        assert may_go.wait(20)

    with monkeypatch.context() as patch:
        patch.setattr(DiskJobs, "is_dirty", True)
        patch.setattr(DiskJobs, "idle", idle)
        quick.sync()  # the thread looks again what it has to do
        assert is_idle.wait(20)
        epoch = _small(quick, log, count)
        assert quick.committed[-1] != epoch
    may_go.set()
    quick.loop.run_until(lambda: quick.committed[-1] == epoch)


def test_a_bug_in_what_the_loop_writes_ends_the_store(
    quick: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = quick.engine.open_queue("/", "q", durable=True)
    count = _until_at_once(quick, log)
    failures: list[str] = []
    quick.engine.on_failed = failures.append

    def broken(*_: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr("burrowmq.storage.disk.short_commits.ShortCommits.write", broken)
    epoch = _small(quick, log, count)
    quick.loop.run_until(lambda: bool(failures))
    assert "RuntimeError: broken" in failures[0]
    assert quick.committed[-1] != epoch


def test_a_sync_that_fails_in_the_loop_is_the_threads(
    quick: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = quick.engine.open_queue("/", "q", durable=True)
    count = _until_at_once(quick, log)
    refusals: list[int] = []

    def refused(*_: object) -> None:
        refusals.append(threading.get_ident())
        raise OSError(errno.EIO, "no")

    with monkeypatch.context() as patch:
        patch.setattr("burrowmq.storage.log.commit_log.CommitLog.append_through", refused)
        patch.setattr("burrowmq.storage.log.commit_log.CommitLog.sync", refused)
        epoch = _small(quick, log, count)
        assert quick.committed[-1] != epoch
    assert refusals[0] == threading.get_ident()
    quick.loop.run_until(lambda: quick.committed[-1] == epoch)
    assert [seq for seq, _, _ in quick.read_all(log)] == list(range(count + 1))


def test_after_the_end_the_loop_writes_nothing(quick: Node) -> None:
    log = quick.engine.open_queue("/", "q", durable=True)
    _until_at_once(quick, log)
    backend = quick.engine._backend
    quick.engine.close()
    assert backend is not None
    commit = StagedCommit(1000, [Append(log.queue_id, 0, [], None)], sync=True)
    assert not backend.apply_at_once(commit)
