"""The loop side: batches, epochs, memory, reads; with everything applied in this thread."""

from __future__ import annotations

import errno
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from burrowmq.storage.disk.jobs import DiskJobs
from burrowmq.storage.engine import Engine
from burrowmq.storage.errors import StoreClosed
from burrowmq.storage.files.filesystem import File, OsFileSystem
from burrowmq.storage.loop.queue_log import QueueLog
from burrowmq.storage.loop.staged_commit import Ack, StagedCommit
from burrowmq.storage.names import QueueNames
from burrowmq.storage.shared.index import NAMES as INDEXES
from burrowmq.storage.types import EMBEDDED_ONLY, StoreOptions
from tests.simulation.store_world import SilentObserver, SimDefinitions, make_message, read_all
from tests.support.disk_side import writer_of
from tests.support.engine_on_disk import LARGE, SMALL, commit, engine_on, publish, run_of, unopened
from tests.support.sim_filesystem import SimFileSystem
from tests.support.stored_message import FakeMessage


def bodies_read(log: QueueLog) -> int:
    answer = log.read(0, 1000, 1 << 20, lambda *_: None)
    assert answer is not None
    return len(answer[0])


class HeldEngine(Engine):
    """Batches are held back until `release`, as while a disk thread is busy."""

    held: list[StagedCommit]

    def start_held(self) -> None:
        self.held = []
        self.start_inline()
        backend = self._backend
        assert backend is not None
        self._submit = backend.submit
        backend.submit = self.held.append  # type: ignore[method-assign]

    def release(self) -> None:
        self._submit(self.held.pop(0))


def held_engine(filesystem: SimFileSystem | None = None) -> HeldEngine:
    filesystem = filesystem or SimFileSystem()
    engine = HeldEngine(
        "/data",
        filesystem,
        StoreOptions(backlog_limit=100_000),
        SilentObserver(),
        FakeMessage,
        lambda _: SimDefinitions(filesystem, {}),
    )
    engine.recover()
    engine.start_held()
    return engine


def test_an_empty_turn_hands_nothing_over() -> None:
    engine = engine_on(SimFileSystem())
    engine.hand_over()
    assert engine.epoch == 1
    engine.require_sync()
    committed: list[int] = []
    engine.on_committed = committed.append
    engine.hand_over()
    assert (engine.epoch, committed) == (2, [1])


def test_one_batch_is_in_flight_and_the_next_collects() -> None:
    engine = held_engine()
    committed: list[int] = []
    engine.on_committed = committed.append
    log = engine.open_queue("/", "q", durable=True)
    for seq in range(4):
        publish(log, seq, 1)
        engine.require_sync()
        engine.hand_over()
    assert (len(engine.held), engine.epoch) == (1, 2)
    engine.release()
    assert committed == [1]
    assert (len(engine.held), engine.epoch) == (1, 3)
    assert len(engine.held[0].commands) == 3
    engine.release()
    assert committed == [1, 2]
    assert not engine.held


def test_the_next_batch_goes_when_the_loop_says_so() -> None:
    engine = held_engine()
    told: list[int] = []
    engine.on_due = lambda: told.append(engine.epoch)
    log = engine.open_queue("/", "q", durable=True)
    publish(log, 0, 1)
    commit(engine)
    publish(log, 1, 5)
    commit(engine)
    engine.release()
    assert told == [2]
    assert not engine.held
    log.ack(1, 5, None)  # read in the same turn: what it is for is not written
    engine.hand_over()
    engine.release()
    assert engine.stats()["written"] == 1
    assert engine.stats()["elided"] == 5
    assert told == [2], "nothing was due"


@pytest.mark.parametrize("version", [1, 2])
def test_what_is_acknowledged_while_a_commit_waits_for_hours_does_not_fill_the_memory(
    version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full disk publishers wait, and consumers go on with what was there."""
    monkeypatch.setattr("burrowmq.storage.loop.staged_commit.ACKED_BYTES", 10 * LARGE)
    engine = held_engine()
    log = engine.open_queue("/", "q", durable=True, version=version)
    other = engine.open_queue("/", "p", durable=True, version=version)
    for one in (log, other):
        publish(one, 0, 200, LARGE)
    engine.hand_over()
    engine.release()
    publish(log, 200, 1)
    commit(engine)
    for seq in range(150):
        answer = log.read(seq, 1, 1 << 20, lambda *_: None)
        assert answer is not None
        ((found, message, _),) = answer[0]
        log.ack(found, found, [message], message.size)
        if seq == 100:
            other.ack(7, 8, None)
        engine.hand_over()
    waiting = engine._collecting
    kept = [each for each in waiting.commands if isinstance(each, Ack) and each.messages]
    assert len(kept) <= 10
    assert len(waiting.commands) < 20
    assert len(log._acked) < 5
    engine.release()
    engine.release()
    engine.idle()
    assert engine.stats()["shared_live_messages"] == 50 + 198
    assert [seq for seq, _, _ in read_all(log, 100)] == list(range(150, 201))


def test_the_backlog_is_told_once_and_again_below_half() -> None:
    engine = held_engine()
    told: list[bool] = []
    engine.on_backlog = told.append
    log = engine.open_queue("/", "q", durable=True)
    for at in range(3):
        publish(log, 10 * at, 10, LARGE)
    engine.hand_over()
    assert told == [True]
    publish(log, 30, 2, LARGE)
    engine.release()
    assert (told, engine.backlog_bytes > 0) == ([True, False], True)


def test_what_the_disk_refuses_is_read_from_memory() -> None:
    filesystem = SimFileSystem()
    engine = engine_on(filesystem)
    log = engine.open_queue("/", "q", durable=True)
    publish(log, 0, 3)
    commit(engine)
    filesystem.fail("pwrite", errno.EIO, times=1 << 30, path_part="/queues/")
    publish(log, 3, 3)
    commit(engine)
    assert [seq for seq, _, _ in read_all(log, 10)] == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("is_transient", [False, True])
def test_what_was_refused_of_a_queue_that_is_gone_meanwhile_is_told(is_transient: bool) -> None:
    """Its deletion is not durable yet: a publish to it may not be confirmed."""
    filesystem = SimFileSystem()
    engine = held_engine(filesystem)
    told: list[frozenset[QueueNames]] = []
    engine.on_refused = lambda _, names, __: told.append(names)
    log = engine.open_queue("/", "q", durable=not is_transient)
    publish(log, 0, 3)
    engine.require_sync()
    filesystem.fail("pwrite", errno.EIO, times=1 << 30, path_part="/queues/")
    engine.hand_over()
    log.delete()
    engine.release()
    assert told == ([] if is_transient else [frozenset({QueueNames("/", "q")})])


def test_what_is_in_flight_counts_as_backlog() -> None:
    engine = held_engine()
    told: list[bool] = []
    engine.on_backlog = told.append
    log = engine.open_queue("/", "q", durable=True)
    half = engine.options.backlog_limit // LARGE // 2 + 1
    publish(log, 0, half, LARGE)
    engine.hand_over()
    assert told == []
    publish(log, half, half, LARGE)
    assert told == [True]


def test_what_is_not_finished_is_read_from_memory() -> None:
    engine = held_engine()
    log = engine.open_queue("/", "q", durable=True)
    first = publish(log, 0, 3)
    engine.hand_over()
    second = publish(log, 3, 3)
    answer = log.read(1, 4, 1 << 20, lambda *_: None)
    assert answer is not None
    loaded, next_seq = answer
    assert [message for _, message, _ in loaded] == [*first[1:], *second[:2]]
    assert next_seq == 5
    log.ack(1, 2, None)
    log.ack_many([4])
    answer = log.read(0, 10, 1 << 20, lambda *_: None)
    assert answer is not None
    assert [seq for seq, _, _ in answer[0]] == [0, 3, 5]
    assert log.memory_bytes > 6 * SMALL
    engine.hand_over()
    engine.release()
    engine.release()
    assert log.memory_bytes < 6500  # holes: two bit sets of 2 KiB
    assert [seq for seq, _, _ in read_all(log, 2)] == [0, 3, 5]


def test_a_read_keeps_to_both_limits_and_brings_one_at_least() -> None:
    engine = engine_on(SimFileSystem())
    log = engine.open_queue("/", "q", durable=True)
    publish(log, 0, 10, 100)
    engine.hand_over()
    for max_count, max_bytes, expected in ((3, 1 << 20, 3), (100, 350, 3), (100, 1, 1)):
        answer = log.read(2, max_count, max_bytes, lambda *_: None)
        assert answer is not None
        assert [seq for seq, _, _ in answer[0]] == list(range(2, 2 + expected))
        assert answer[1] == 2 + expected


def test_bytes_that_end_with_a_segment_skip_nothing() -> None:
    engine = engine_on(SimFileSystem(), segment_entry_count=16)
    log = engine.open_queue("/", "q", durable=True)
    publish(log, 0, 40, 104)
    engine.hand_over()
    for count in range(1, 40):
        assert len(read_all(log, 100, count * 104)) == 40


def test_older_messages_may_come_after_younger_ones() -> None:
    engine = engine_on(SimFileSystem(), segment_entry_count=16)
    log = engine.open_queue("/", "q", durable=True)
    publish(log, 20, 10)
    engine.hand_over()
    publish(log, 5, 10)
    assert [seq for seq, _, _ in read_all(log, 4)] == [*range(5, 15), *range(20, 30)]
    engine.hand_over()
    publish(log, 15, 3)
    publish(log, 2, 2)
    assert [seq for seq, _, _ in read_all(log, 4)] == [2, 3, *range(5, 18), *range(20, 30)]


def test_a_message_acked_in_its_own_batch_is_not_written() -> None:
    engine = engine_on(SimFileSystem())
    log = engine.open_queue("/", "q", durable=True)
    messages = publish(log, 0, 10, LARGE)
    log.ack(0, 6, messages[:7])
    log.ack_many([8])
    engine.hand_over()
    assert engine.stats()["elided"] == 8
    assert engine.stats()["written"] == 2
    assert [seq for seq, _, _ in read_all(log, 5)] == [7, 9]
    assert messages[0].handle == -1
    assert messages[7].handle >= 0


def test_one_copy_for_any_fan_out() -> None:
    filesystem = SimFileSystem()
    engine = engine_on(filesystem)
    logs = [engine.open_queue("/", f"q{at}", durable=True) for at in range(5)]
    messages = run_of(0, 4, LARGE)
    for log in logs:
        log.append(0, list(messages), None, 4 * LARGE)
    engine.require_sync()
    engine.hand_over()
    sizes = [filesystem.file_size(path) for path in filesystem.paths() if path.endswith(".seg")]
    assert sum(sizes) < 4 * LARGE + 1000
    assert not [path for path in filesystem.paths() if path.endswith(".qs")]
    for log in logs[:4]:
        log.ack(0, 3, messages)
    engine.hand_over()
    assert [m.raw for _, m, _ in read_all(logs[4], 9)] == [m.raw for m in messages]
    logs[4].ack(0, 3, None)  # without the messages: looked up
    engine.hand_over()
    engine.idle()
    assert engine.stats()["shared_live_messages"] == 0


class SyncedTogether(SimFileSystem):
    """Tells which files each call of `sync_all` was given."""

    def __init__(self) -> None:
        super().__init__()
        self.groups: list[list[str]] = []

    def sync_all(
        self, files: Sequence[File], directories: Sequence[str]
    ) -> list[tuple[File | str, OSError]]:
        """Sync them, and write down their paths."""
        self.groups.append([file.path for file in files])
        return super().sync_all(files, directories)


def test_one_call_syncs_a_batch_whatever_stores_it_is_in() -> None:
    filesystem = SyncedTogether()
    engine = engine_on(filesystem)
    logs = [engine.open_queue("/", name, durable=True, version=2) for name in ("small", "large")]
    for log, size in zip(logs, (SMALL, LARGE), strict=True):
        publish(log, 0, 2, size)
    commit(engine)
    filesystem.groups.clear()
    before = filesystem.counters.calls["fdatasync"]
    for log, size in zip(logs, (SMALL, LARGE), strict=True):
        publish(log, 2, 2, size)
    commit(engine)
    assert len(filesystem.groups) == 1
    assert sorted(path.rpartition(".")[2] for path in filesystem.groups[0]) == [
        "qi",
        "qi",
        "qs",
        "seg",
    ]
    assert filesystem.counters.calls["fdatasync"] - before == 4


def test_a_purge_a_deletion_and_a_new_queue_of_the_same_name() -> None:
    engine = engine_on(SimFileSystem(), segment_entry_count=16)
    log = engine.open_queue("/", "q", durable=True)
    publish(log, 0, 40)
    engine.hand_over()
    log.ack(0, 34)
    assert [seq for seq, _, _ in read_all(log, 9)] == list(range(35, 40))
    engine.hand_over()
    assert [seq for seq, _, _ in read_all(log, 9)] == list(range(35, 40))
    log.delete()
    again = engine.open_queue("/", "q", durable=True)
    assert again.recovered is None
    publish(again, 0, 2)
    engine.hand_over()
    assert [seq for seq, _, _ in read_all(again, 9)] == [0, 1]


def test_what_a_batch_deletes_is_known_until_it_is_handed_over() -> None:
    engine = engine_on(SimFileSystem())
    kept, gone, passing = (
        engine.open_queue("/", name, durable=name != "passing")
        for name in ("kept", "gone", "passing")
    )
    engine.hand_over()
    gone.delete()
    passing.delete()
    assert engine.is_deleting("/", "gone")
    assert not any(engine.is_deleting("/", name) for name in ("kept", "passing"))
    assert not engine.is_deleting("other", "gone")
    engine.hand_over()
    assert not engine.is_deleting("/", "gone")
    engine.delete_vhost("/")
    assert engine.is_deleting("/", kept.names.name)


def test_a_queue_opened_after_the_unclaimed_ones_were_discarded_is_a_new_one() -> None:
    filesystem = SimFileSystem()
    engine = engine_on(filesystem)
    publish(engine.open_queue("/", "q", durable=True), 0, 40)
    commit(engine)
    engine.close()
    rows: dict[tuple[str, str], object] = {
        ("removal", "7"): [["/", QueueNames("/", "q").directory]]
    }
    engine = engine_on(filesystem, rows)
    assert not engine.discard_unclaimed()
    log = engine.open_queue("/", "q", durable=True)  # a definitions file is imported at the start
    assert (log.recovered, log.next_seq) == (None, 0)
    publish(log, 0, 2)
    commit(engine)
    assert [seq for seq, _, _ in read_all(log, 99)] == [0, 1]
    engine.close()
    again = engine_on(filesystem).open_queue("/", "q", durable=True)
    assert [seq for seq, _, _ in read_all(again, 99)] == [0, 1]


def test_an_empty_queue_keeps_no_files() -> None:
    filesystem = SimFileSystem()
    engine = engine_on(filesystem)
    log = engine.open_queue("/", "q", durable=True)
    publish(log, 0, 10)
    engine.hand_over()
    log.ack(0, 9, None)
    engine.hand_over()
    engine.idle()
    assert not [path for path in filesystem.paths() if path.endswith((".qi", ".qs"))]
    publish(log, 10, 1)
    engine.hand_over()
    assert [seq for seq, _, _ in read_all(log, 9)] == [10]


def test_a_queue_that_is_emptied_all_the_time_keeps_its_files_for_a_while() -> None:
    filesystem = SimFileSystem()
    engine = engine_on(filesystem)
    log = engine.open_queue("/", "q", durable=True)

    def stores() -> list[int]:
        paths = [path for path in filesystem.paths() if path.endswith(".qs")]
        return [filesystem.file_size(path) >> 20 for path in paths]

    for turn in range(2):
        publish(log, turn * 1000, 1000, 3000)
        engine.hand_over()
        log.ack(turn * 1000, turn * 1000 + 999, None)
        engine.hand_over()
        assert stores() == ([2] if turn == 0 else []), "more than 4 MB go at once"
    publish(log, 2000, 1000, 3000)
    engine.hand_over()
    log.ack(2000, 2999, None)
    engine.hand_over()
    engine.idle()
    assert stores() == []


@pytest.mark.parametrize("version", [1, 2])
def test_a_few_waiting_messages_do_not_keep_a_large_store(version: int) -> None:
    filesystem = SimFileSystem()
    engine = engine_on(filesystem, rewrite_above=10_000)
    log = engine.open_queue("/", "q", durable=True, version=version)
    messages = publish(log, 0, 400, 1000)
    engine.hand_over()
    log.ack(0, 380, None)
    log.ack_many([390, 395])
    engine.hand_over()
    for _ in range(4):  # version 1: a journal has to go before
        engine.idle()
    assert engine.stats()["rewritten"] == 1
    stores = [path for path in filesystem.paths() if path.endswith((".qs", ".idx", ".jif"))]
    assert sum(map(filesystem.file_size, stores)) < 40_000
    left = [seq for seq in range(381, 400) if seq not in (390, 395)]
    assert [(s, m.raw) for s, m, _ in read_all(log, 9)] == [(s, messages[s].raw) for s in left]
    publish(log, 400, 3, 1000)
    engine.hand_over()
    assert [seq for seq, _, _ in read_all(log, 9)] == [*left, 400, 401, 402]


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("version", [1, 2])
def test_nor_after_a_restart(version: int, is_clean: bool) -> None:
    filesystem, rows = SimFileSystem(), dict[tuple[str, str], object]()
    engine = engine_on(filesystem, rows, rewrite_above=1 << 30)
    log = engine.open_queue("/", "q", durable=True, version=version)
    messages = publish(log, 0, 400, 1000)
    commit(engine)
    log.ack(0, 396, None)
    engine.hand_over()
    for _ in range(4):
        engine.idle()
    if is_clean:
        engine.close()
    found = filesystem.process_killed()
    engine = engine_on(found, rows, rewrite_above=10_000)
    log = engine.open_queue("/", "q", durable=True, version=version)
    for _ in range(4):
        engine.hand_over()
        engine.idle()
    assert engine.stats()["rewritten"] == 1
    stores = [path for path in found.paths() if path.endswith((".qs", ".idx", ".jif"))]
    assert sum(map(found.file_size, stores)) < 10_000
    left = range(397, 400)
    assert [(s, m.raw) for s, m, _ in read_all(log, 9)] == [(s, messages[s].raw) for s in left]


def test_damage_on_disk_costs_that_message_only() -> None:
    filesystem = SimFileSystem()
    engine = engine_on(filesystem)
    log = engine.open_queue("/", "q", durable=True)
    publish(log, 0, 20)
    engine.require_sync()
    engine.hand_over()
    store = next(path for path in filesystem.paths() if path.endswith(".qs"))
    filesystem.damage(store, 600, b"\xff\xff")
    found = [seq for seq, _, _ in read_all(log, 50)]
    assert len(found) == 19
    assert engine.stats()["lost"] == 1
    engine.idle()
    assert [seq for seq, _, _ in read_all(log, 50)] == found
    assert engine.stats()["lost"] == 1


def test_the_buffer_bounds_what_a_queue_store_writes_at_once() -> None:
    # Records of some 110 bytes: in one piece, ten to a piece, each by itself; and one write of the index.
    for cache_size, writes in ((1 << 20, 1), (1100, 2), (0, 20)):
        filesystem = SimFileSystem()
        engine = engine_on(filesystem, cache_size=cache_size)
        log = engine.open_queue("/", "q", durable=True)
        publish(log, 0, 1)
        commit(engine)
        before = filesystem.counters.calls["pwrite"]
        publish(log, 1, 20)
        commit(engine)
        found = filesystem.counters.calls["pwrite"] - before - 1
        assert abs(found - writes) <= 1, cache_size
        assert bodies_read(log) == 21


def test_the_check_of_reads_can_be_turned_off() -> None:
    for is_checked, count in ((True, 0), (False, 1)):
        filesystem = SimFileSystem()
        engine = engine_on(filesystem, is_checked=is_checked)
        log = engine.open_queue("/", "q", durable=True)
        publish(log, 0, 1)
        commit(engine)
        path = next(path for path in filesystem.paths() if path.endswith(".qs"))
        filesystem.damage(path, len(filesystem.content(path)) - 3, b"?")
        assert bodies_read(log) == count


def test_files_stay_within_the_budget() -> None:
    engine = engine_on(SimFileSystem(), open_files=10)
    logs = [engine.open_queue("/", f"q{at}", durable=True) for at in range(100)]
    for log in logs:
        publish(log, 0, 2)
    engine.hand_over()
    engine.idle()
    assert engine.stats()["open_files"] <= 10
    assert all(len(read_all(log, 9)) == 2 for log in logs)


def test_definitions_are_rows_and_go_with_their_batch() -> None:
    rows: dict[tuple[str, str], object] = {}
    engine = engine_on(SimFileSystem(), rows)
    engine.definitions.put("queue", "q", {"a": 1})
    engine.definitions.put("queue", "r", {})
    engine.definitions.delete("queue", "r")
    assert rows == {}
    engine.hand_over()
    assert rows == {("queue", "q"): {"a": 1}}
    with pytest.raises(ValueError, match="None"):
        engine.definitions.put("queue", "q", None)


def test_a_vhost_goes_with_all_its_queues() -> None:
    filesystem = SimFileSystem()
    engine = engine_on(filesystem)
    log = engine.open_queue("v", "q", durable=True)
    publish(log, 0, 3, LARGE)
    engine.hand_over()
    engine.delete_vhost("v")
    engine.hand_over()
    assert not [path for path in filesystem.paths() if "/vhosts/" in path]
    assert engine.stats()["open_queues"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("is_made_again", [False, True])
@pytest.mark.parametrize("copied_steps", [0, 2, 9])
@pytest.mark.parametrize("index", INDEXES)
def test_a_vhost_deleted_during_a_compaction_takes_it_along(
    index: str, copied_steps: int, is_made_again: bool, tmp_path: Path
) -> None:
    observer = SilentObserver()
    options = StoreOptions(segment_size_limit=1 << 24, store_index=index)
    engine = Engine(str(tmp_path), OsFileSystem(), options, observer, FakeMessage)
    engine.recover()
    engine.start_inline()
    log = engine.open_queue("v", "q", durable=True)
    other = engine.open_queue("w", "q", durable=True)
    publish(log, 0, 8, 2_000_000)
    publish(log, 8, 8, 2_000_000)  # some in a segment of their own, so that the first is sealed
    publish(other, 0, 3, LARGE)
    commit(engine)
    log.ack(0, 4)  # a plan of more than one step
    commit(engine)
    compactor = DiskJobs(writer_of(engine), lambda _: None).compactor
    chosen = compactor.choose(is_idle=True)
    assert chosen is not None
    store, plan = chosen
    is_copied = any(plan.step(1 << 20) for _ in range(copied_steps))
    dead = [message.handle for _, message, _ in read_all(log, 20)]
    engine.delete_vhost("v")
    if is_made_again:
        log = engine.open_queue("v", "q", durable=True)
        publish(log, 0, 3, LARGE)
    commit(engine)
    assert compactor.put_in_place(store, plan, None if is_copied else compactor.copy(plan))
    assert is_copied == (copied_steps == 9)
    assert len(store.read(dead)) == len(dead)  # a reader that comes late
    assert not list(tmp_path.glob("vhosts/*/*/*.g1.*"))
    engine.idle()
    publish(other, 3, 3, LARGE)
    commit(engine)
    assert (bodies_read(other), engine.failure) == (6, None)
    assert not is_made_again or bodies_read(log) == 3
    assert not [name for name in observer.events if name.startswith("compaction")]
    engine.close()


@pytest.mark.parametrize("persistent", [True, False])
def test_a_vhost_made_again_in_the_same_commit_has_all_its_messages(persistent: bool) -> None:
    filesystem = SimFileSystem()
    engine = engine_on(filesystem)
    logs = [engine.open_queue("v", name, durable=True) for name in "qr"]
    old = run_of(0, 3, LARGE, persistent=persistent)
    for log in logs:
        log.append(0, list(old), None, 3 * LARGE)
    commit(engine)
    logs[0].ack(0, 0, old[:1])
    filesystem.fail("rmtree", errno.EMFILE, nth=3)  # that of the vhost, after its two queues
    for _ in range(2):
        engine.delete_vhost("v")
        again = engine.open_queue("v", "q", durable=True)
        new = run_of(0, 3, LARGE, persistent=persistent)
        again.append(0, list(new), None, 3 * LARGE)
    again.ack(0, 0, new[:1])
    commit(engine)
    assert [seq for seq, _, _ in read_all(again, 9)] == [1, 2]
    store = writer_of(engine).context.vhost("v")
    assert [store.contains(message.handle) for message in new] == [False, True, True]
    if persistent:
        assert not {one.handle >> 32 for one in old} & {one.handle >> 32 for one in new}
        engine.close()
        engine = engine_on(filesystem)
        assert bodies_read(engine.open_queue("v", "q", durable=True)) == 2


def test_order_of_life() -> None:
    filesystem = SimFileSystem()
    engine = Engine("/data", filesystem, StoreOptions(), SilentObserver(), FakeMessage)
    with pytest.raises(StoreClosed):
        engine.start_inline()
    engine.close()


@pytest.mark.parametrize("threads", [False, True])
def test_what_is_abandoned_is_as_a_killed_process_leaves_it(tmp_path: Path, threads: bool) -> None:
    simulated, real, rows = SimFileSystem(), str(tmp_path / "data"), {}

    def opened() -> Engine:
        engine = unopened(simulated, rows)
        if threads:
            engine = Engine(real, OsFileSystem(), StoreOptions(), SilentObserver(), FakeMessage)
        engine.recover()
        return engine

    first = opened()
    committed = threading.Event()
    first.on_committed = lambda _: committed.set()
    if threads:
        first.start(lambda callback: callback())
    else:
        first.start_inline()
    log = first.open_queue("/", "q", durable=True)
    publish(log, 0, 3)
    first.require_sync()
    first.hand_over()
    assert committed.wait(10)
    publish(log, 3, 2)
    with pytest.raises(StoreClosed, match="was killed"):
        first.abandon()
    second = opened()
    second.start_inline()
    log = second.open_queue("/", "q", durable=True)
    assert [seq for seq, _, _ in read_all(log, 10)] == [0, 1, 2]
    second.close()


def mixed(*sizes: int) -> QueueLog:
    """A queue on disk with messages of these sizes, read from disk."""
    filesystem = SimFileSystem()
    engine = engine_on(filesystem)
    log = engine.open_queue("/", "q", durable=True)
    messages = [make_message(at, size, True) for at, size in enumerate(sizes)]
    log.append(0, list(messages), None, sum(sizes))
    engine.hand_over()
    return log


def read_wanted(log: QueueLog, first: int, max_count: int, wanted: int) -> tuple[list[int], int]:
    answer = log.read(first, max_count, 1 << 30, lambda *_: None, wanted)
    assert answer is not None
    return [seq for seq, _, _ in answer[0]], answer[1]


def test_a_read_ahead_ends_before_a_body_in_the_shared_store():
    log = mixed(SMALL, SMALL, LARGE, SMALL, LARGE, LARGE, SMALL)
    assert read_wanted(log, 0, 10, 1) == ([0, 1], 2)
    assert read_wanted(log, 0, 10, 3) == ([0, 1, 2, 3], 4)
    assert read_wanted(log, 2, 10, 1) == ([2, 3], 4), "what is wanted comes, however large"
    assert read_wanted(log, 2, 10, 0) == ([], 2)
    assert read_wanted(log, 4, 10, 2) == ([4, 5, 6], 7)
    assert read_wanted(log, 0, 2, 0) == ([0, 1], 2)


def test_a_read_may_leave_out_what_is_in_the_shared_store():
    log = mixed(LARGE, SMALL, LARGE, SMALL, LARGE, SMALL)
    assert read_wanted(log, 0, 10, EMBEDDED_ONLY) == ([1, 3, 5], 6)
    assert read_wanted(log, 0, 4, EMBEDDED_ONLY) == ([1, 3], 4), "what is left out counts"
    log.ack(1, 1)
    assert read_wanted(log, 0, 10, EMBEDDED_ONLY) == ([3, 5], 6)


def test_messages_that_were_only_in_memory_may_follow_younger_ones_long_on_disk():
    filesystem = SimFileSystem()
    engine = engine_on(filesystem, segment_entry_count=16)
    log = engine.open_queue("/", "q", durable=True)
    publish(log, 0, 16)
    publish(log, 48, 16)
    log.ack(0, 15)  # the file of the first segment goes
    engine.hand_over()
    engine.idle()
    publish(log, 3, 2)
    publish(log, 20, 2)
    engine.hand_over()
    assert [each[0] for each in read_all(log, 100)][:5] == [3, 4, 20, 21, 48]
    engine.close()
    again = engine_on(filesystem, segment_entry_count=16)
    found = read_all(again.open_queue("/", "q", durable=True), 100)
    assert [each[0] for each in found][:5] == [3, 4, 20, 21, 48]


def test_demands_go_with_their_commit() -> None:
    engine = held_engine()
    engine.require_acks([3, 4])
    engine.require_acks([4, 5])
    engine.order_acks("/", "a", "b")
    commit(engine)
    assert [(one.acks_of, one.is_moving) for one in engine.held] == [({3, 4, 5}, True)]
    assert (engine._collecting.acks_of, engine._collecting.is_moving) == (set(), False)


def test_what_is_read_before_the_start_is_answered_by_it() -> None:
    filesystem = SimFileSystem()
    engine = engine_on(filesystem)
    log = engine.open_queue("/", "q", durable=True)
    publish(log, 0, 3)
    engine.hand_over()
    engine.close()
    again = unopened(filesystem)
    again.recover()
    log = again.open_queue("/", "q", durable=True)
    found: list[tuple[list[tuple[int, object, int]], int]] = []
    assert log.read(0, 9, 1 << 20, lambda *answer: found.append(answer)) is None
    assert not found
    again.start_inline()
    ((loaded, next_seq),) = found
    assert ([seq for seq, _, _ in loaded], next_seq) == ([0, 1, 2], 3)


def test_a_way_through_a_queue_without_files_is_noted_and_asks_for_no_sync() -> None:
    engine = engine_on(SimFileSystem())
    engine.note_way("/", "a", "between")
    assert engine._collecting.moves == {(("/", "a"), ("/", "between"))}
    assert not engine._collecting.is_moving
