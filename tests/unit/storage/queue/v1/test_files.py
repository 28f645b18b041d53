"""Version 1 of a queue: which files are written when, and what is left of them."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from burrowmq.storage.errors import ReadFailed, SyncFailed, WriteFailed
from burrowmq.storage.queue.v1.files import IndexFilesV1
from tests.simulation.store_world import make_message, read_all
from tests.support.one_queue import DIRECT, LARGE, OPTIONS, SMALL, OneQueue
from tests.support.queue_on_disk import bodies_of, messages, queue_on
from tests.support.sim_filesystem import SimFileSystem


@pytest.fixture(params=[1, 2])
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def test_a_commit_writes_one_file() -> None:
    store = OneQueue()
    store.publish(10)
    assert set(store.files()) == {"1.jif"}
    assert store.seqs() == list(range(10))


def test_the_journal_goes_into_the_segment_files_when_the_queue_is_quiet() -> None:
    store = OneQueue()
    store.publish(100)
    store.publish(10, LARGE)
    store.settle()
    assert set(store.files()) == {"0.idx", "1.idx"}
    assert store.seqs() == list(range(110))
    assert store.memory_bytes() < 4_000 + 31 * 64


def test_a_large_run_is_written_once_and_goes_to_the_segment_files() -> None:
    store = OneQueue(options=DIRECT)
    store.publish(100)
    store.publish(10, LARGE)
    store.publish(9)  # a small run: the journal
    assert set(store.files()) == {"0.idx", "1.idx", "1.jif"}
    assert store.seqs() == list(range(119))
    written = store.files()
    store.settle()
    files = store.files()
    assert set(files) == {"0.idx", "1.idx"}
    assert sum(files.values()) <= sum(written.values())
    store.log.ack_many([5, 70, 115])
    store.settle()
    store.crash()
    assert store.seqs() == [seq for seq in range(119) if seq not in (5, 70, 115)]


def test_what_is_read_while_large_runs_arrive_is_all_of_it() -> None:
    store = OneQueue(options=DIRECT)
    for _ in range(12):
        store.publish(10)
        store.publish(3)
        assert store.seqs() == list(range(store.published))
    store.log.ack(0, 99)
    assert store.seqs() == list(range(100, store.published))


def test_the_tail_of_a_queue_that_runs_empty_is_not_made_again_each_time() -> None:
    store = OneQueue(options=DIRECT)
    made: set[int] = set()
    for first in range(0, 60, 10):
        store.publish(10)
        store.log.ack(first, first + 9)
        store.commit()
        made.add(store.files()["0.idx"])
    assert len(made) == 6  # it grew
    store.settle()
    assert store.files() == {}


def test_a_full_journal_is_flushed_and_stays_bounded() -> None:
    store = OneQueue()
    for _ in range(120):
        store.publish(5)
    names = store.files()
    assert sum(name.endswith(".jif") for name in names) <= 2
    assert sum(name.endswith(".idx") for name in names) >= 6
    assert store.seqs() == list(range(600))


def test_what_is_acked_in_the_journal_is_never_written_to_a_segment_file() -> None:
    store = OneQueue()
    store.publish(60)
    store.log.ack(0, 59)
    store.settle()
    assert store.files() == {}
    store.publish(60)
    store.log.ack_many(list(range(60, 110)))
    store.settle()
    assert sum(store.files().values()) < 64 * 2 + 10 * 300
    assert store.seqs() == list(range(110, 120))


def test_many_messages_in_one_journal_flush_by_memory() -> None:
    store = OneQueue(options=replace(OPTIONS, journal_entries=1_000_000))
    for _ in range(4):
        for _ in range(600):
            store.log.append(store.log.next_seq, [make_message(1, 8, True)], None, 8)
            store.engine.hand_over()
    assert store.memory_bytes() < 1_200_000
    assert sum(name.endswith(".idx") for name in store.files()) > 20


def test_a_clean_stop_leaves_segment_files_only_and_is_trusted(version: int) -> None:
    store = OneQueue(version)
    store.publish(100)
    store.publish(20, LARGE)
    store.log.ack_many([1, 5, 70])
    store.engine.close()
    store.open(version)
    assert store.report.clean
    assert not any(name.endswith(".jif") for name in store.files())
    assert store.seqs() == [seq for seq in range(120) if seq not in (1, 5, 70)]
    assert store.log.recovered is not None
    assert store.log.recovered.count == 117


def test_a_queue_that_is_not_durable_keeps_no_journal() -> None:
    store = OneQueue()
    log = store.engine.open_queue("/", "t", durable=False, version=1)
    for first in range(0, 300, 50):
        messages = [make_message(at, SMALL, False) for at in range(50)]
        log.append(first, messages, None, 50 * SMALL)
        store.engine.hand_over()
    assert [seq for seq, _, _ in read_all(log, 60)] == list(range(300))
    log.ack(0, 299)
    store.settle()
    paths = [path for path in store.filesystem.paths() if "/transient/" in path]
    assert [path for path in paths if path.endswith((".jif", ".idx"))] == []


def test_what_a_journal_says_is_written_again_by_a_start_whatever_the_segment_file_says() -> None:
    """It was moved there, and the sync of that failed, and the disk refused all else: what is read is not durable."""
    store = OneQueue()
    store.publish(5)
    store.settle()
    store.publish(1)
    store.log.ack(0, 1)
    store.engine.require_acks([store.log.queue_id])
    store.commit()
    for part in (".idx", ".jif", "probe"):
        store.filesystem.fail("fdatasync", path_part=part, times=1000)
    with pytest.raises(SyncFailed):
        store.settle()
    store.crash()
    store.settle()
    assert set(store.files()) == {"0.idx"}
    disks = [store.filesystem.cut(random.Random(seed)) for seed in range(8)]
    for disk in disks:
        store.filesystem = disk
        store.open(1)
        assert store.seqs() == [2, 3, 4, 5]


def test_after_a_failed_sync_bodies_are_read_from_the_journal_that_was_given_up() -> None:
    queue = queue_on(SimFileSystem(), version=1)
    queue.put(0, messages(0, 5), None)
    queue.flush_journals()
    files = queue.files
    assert isinstance(files, IndexFilesV1)
    files._journal.take_back()
    bodies = bodies_of(queue)
    assert len(bodies) == 5
    assert None not in bodies
    queue.put(5, messages(5, 5), None)
    with pytest.raises(ReadFailed, match="two journals"):
        bodies_of(queue)


def test_a_segment_whose_file_cannot_be_removed_stays() -> None:
    filesystem = SimFileSystem()
    queue = queue_on(filesystem, version=1)
    queue.put(0, messages(0, 40, 400), None)
    (segment,) = queue.index
    queue.ack(0, 39, None, [])
    filesystem.fail("unlink")
    with pytest.raises(WriteFailed):
        queue.remove(segment)
    assert list(queue.index) == [segment]
    queue.remove(segment)
    assert not list(queue.index)
