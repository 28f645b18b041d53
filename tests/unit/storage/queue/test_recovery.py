"""What becomes of a queue's files at a start: the golden directories, and each repair.

Covers: storage/queue/live_count.py.
"""

from __future__ import annotations

import errno
import random
from pathlib import Path

import pytest

from burrowmq.storage.errors import ForeignStore
from burrowmq.storage.queue.directory import directory_at
from burrowmq.storage.queue.disk import QueueDisk
from burrowmq.storage.queue.journal_limits import JournalLimits
from burrowmq.storage.queue.live_count import LiveCount, count_persistent
from burrowmq.storage.queue.recovery import QueueRecovery
from burrowmq.storage.shared.references import ReferenceTally
from tests.simulation.store_world import SilentObserver
from tests.support.disk_side import DiskSide
from tests.support.golden_queues import GoldenQueue, golden_queues, live_seqs, open_engine
from tests.support.queue_on_disk import COUNT, files_in, messages, queue_on, seqs_of
from tests.support.sim_filesystem import PowerCut, SimFileSystem


@pytest.mark.parametrize("golden", golden_queues(), ids=lambda queue: queue.name)
def test_a_start_keeps_what_is_live_and_the_second_one_finds_the_same(
    golden: GoldenQueue, tmp_path: Path
) -> None:
    path = golden.copy_to(tmp_path / "data")
    expected = golden.expected
    for _ in range(2):
        engine = open_engine(path)
        assert live_seqs(engine) == expected["live"]
        engine.hand_over()
        engine.idle()
    left = {file.name for file in path.rglob("*")}
    assert "0.qi.tmp" not in left


class Restart:
    """A queue that was killed, and is on its way back."""

    def __init__(self, version: int = 2) -> None:
        self.filesystem = SimFileSystem()
        self.queue = queue_on(self.filesystem, version)
        self.observer = SilentObserver()
        self.tally = ReferenceTally()

    def sync(self) -> None:
        """Make all durable, so that the journals that were found go."""
        for _ in range(3):
            assert self.queue.place.cache.sync() == {}
            self.queue.after_sync()

    def recover(self, identity: bytes | None = None) -> QueueRecovery:
        """Walk over what is there and take it in."""
        old = self.queue.place
        cache = old.cache
        place = directory_at(old.path, identity or old.identity, COUNT, cache, is_durable=True)
        self.queue = QueueDisk(self.queue.names, place, JournalLimits())
        names = sorted(files_in(self.filesystem))
        recovery = QueueRecovery(self.queue, names, self.observer)
        recovery.take_in(self.tally)
        return recovery


@pytest.fixture(params=[1, 2])
def restart(request: pytest.FixtureRequest) -> Restart:
    return Restart(request.param)


@pytest.mark.parametrize("acked", [0, 1])
def test_whether_any_live_message_has_a_deadline(restart: Restart, acked: int) -> None:
    restart.queue.put(0, messages(0, 3), [0, 5_000, 0])
    assert restart.recover().finish().may_expire
    restart.queue.ack(acked, 1, None, [])
    restart.queue.keep_up(is_idle=True)
    assert not restart.recover().finish().may_expire


def test_the_counts_of_what_is_live(restart: Restart) -> None:
    restart.queue.put(0, messages(0, COUNT), None)
    restart.queue.put(COUNT, messages(COUNT, 10), None)
    restart.queue.ack(0, 4, None, [])
    restart.queue.keep_up(is_idle=True)
    found = restart.recover().finish()
    assert (found.first_seq, found.next_seq, found.next_deliver_seq) == (5, 2 * COUNT, 2 * COUNT)
    assert (found.count, found.persistent_count) == (COUNT + 5, COUNT + 5)
    assert found.bytes == found.persistent_bytes == (COUNT + 5) * messages(0, 1)[0].size


def test_transient_messages_end(restart: Restart) -> None:
    made = messages(0, 10)
    for message in made[::2]:
        message.flags = 0
    restart.queue.put(0, made, None)
    recovery = restart.recover()
    assert recovery.finish().count == 5
    assert seqs_of(restart.queue) == [1, 3, 5, 7, 9]
    assert restart.recover().finish().count == 5  # the acks are in the files


def test_a_start_counts_the_references_of_what_is_live(restart: Restart) -> None:
    restart.queue.put(0, messages(0, 6, handle=20), None)
    restart.queue.ack(0, 1, None, [])
    restart.queue.keep_up(is_idle=True)
    recovery = restart.recover()
    assert [segment.shared for segment in restart.queue.index] == [4]
    recovery.drop_missing(frozenset((23,)), frozenset())
    assert [segment.shared for segment in restart.queue.index] == [3]


def test_references_are_told_and_what_is_missing_is_dropped(restart: Restart) -> None:
    restart.queue.put(0, [*messages(0, 3), *messages(3, 4, handle=20)], None)
    recovery = restart.recover()
    assert [restart.tally.count_of(handle) for handle in range(19, 25)] == [0, 1, 1, 1, 1, 0]
    recovery.drop_missing(frozenset((21, 23)), frozenset((23,)))
    assert (recovery.lost, recovery.dropped) == (1, 1)
    assert restart.observer.events["record_lost"] == 1
    recovery.finish()
    assert seqs_of(restart.queue) == [0, 1, 2, 3, 5]
    restart.sync()
    restart.recover().finish()
    assert seqs_of(restart.queue) == [0, 1, 2, 3, 5]


def test_a_store_of_somebody_else_is_refused(restart: Restart) -> None:
    restart.queue.put(0, messages(0, 3), None)
    with pytest.raises(ForeignStore):
        restart.recover(identity=b"j" * 16)


def test_an_empty_segment_goes() -> None:
    restart = Restart()
    restart.queue.put(0, messages(0, 3), None)
    restart.queue.put(COUNT, messages(0, 3), None)
    restart.queue.ack(0, 2, None, [])
    restart.queue.index.segments[0].files.mark_synced(restart.queue.index.segments[0])
    restart.recover().finish()
    assert files_in(restart.filesystem) == {"1.qi", "1.qs"}


def test_a_stop_counts_persistent_messages_and_drops_the_others(restart: Restart) -> None:
    made = [*messages(0, 4), *messages(4, 2, handle=9)]
    made[1].flags = made[5].flags = 0
    restart.queue.put(0, made, None)
    dropped: list[int] = []
    counted = count_persistent(restart.queue, dropped)
    assert (counted.count, counted.first_seq, dropped) == (4, 0, [10])
    assert seqs_of(restart.queue) == [0, 2, 3, 4]


def test_an_empty_queue_begins_where_it_goes_on() -> None:
    found = LiveCount(COUNT).as_recovered(Restart().queue.names, 128, 128)
    assert (found.first_seq, found.next_seq, found.count) == (128, 128, 0)


def rewritten_not_durably() -> SimFileSystem:
    """A queue whose segment was written anew; the process was killed before the new name was durable."""
    side = DiskSide(rewrite_above=0)
    side.open()
    side.append(0, 20)
    side.filesystem.fail("fsync_dir", errno.ENOSPC, path_part="/queues/", nth=2, times=9)
    side.ack(0, 15)
    side.jobs.idle()
    assert side.paths("/0.qs")
    assert side.paths("/0.g1.qs")
    found = side.filesystem.process_killed()
    found.heal()
    return found


@pytest.mark.slow
def test_an_older_store_stays_until_the_name_of_the_newer_index_is_durable() -> None:
    is_whole = False
    at = 0
    while not is_whole:
        filesystem = rewritten_not_durably()
        filesystem.cut_before = at
        try:
            DiskSide(filesystem)
            is_whole = True
        except PowerCut:
            at += 1
        for seed in range(12):
            found = DiskSide(filesystem.cut(random.Random(seed)))
            found.take_up()
            assert found.read()[-4:] == [16, 17, 18, 19]
    assert at > 5
