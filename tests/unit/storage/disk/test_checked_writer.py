"""The writer that checks itself: after a commit, after a sync, after idle work; and whom it tells."""

from __future__ import annotations

import errno

import pytest

from burrowmq.storage.disk import checked_writer
from burrowmq.storage.disk.checked_writer import CheckedWriter
from tests.support.store_in_use import StoreInUse


@pytest.fixture
def store() -> StoreInUse:
    return StoreInUse()


@pytest.fixture
def told(store, monkeypatch) -> list[str]:
    found: list[str] = []
    monkeypatch.setattr(store.writer, "_on_broken", found.append)
    return found


def test_a_commit_that_leaves_a_rule_broken_is_told_and_raised(store, told):
    store.queue.index.segments[0].live += 1
    store.world.queues["a"].log.ack(1, 1)
    with pytest.raises(AssertionError, match="5 places are live, 6 are counted"):
        store.world.sync()
    (sentence,) = told
    assert sentence.startswith("QueueNames(vhost='/', name='a', level=0), segment 0: 5 places")


def test_queues_that_the_commit_does_not_touch_are_not_looked_at(store, told):
    store.queue.index.segments[0].live += 1
    store.world.queues["b"].log.ack(1, 1)
    store.world.sync()
    assert told == []


def test_idle_work_is_checked(store, told):
    store.queue.index.segments[0].live += 1
    store.writer._unflushed[1] = None
    with pytest.raises(AssertionError, match="6 places are live, 7 are counted"):
        store.writer.upkeep()
    assert len(told) == 1


def test_after_a_sync_nothing_is_left_unsynced(store, told, monkeypatch):
    store.shared._unsynced._bytes = 5
    monkeypatch.setattr(store.shared._unsynced, "note_synced", lambda failed: None)
    with pytest.raises(
        AssertionError, match="msg_store_persistent: 5 bytes un-synced after a sync"
    ):
        store.writer.sync()
    assert len(told) == 1


def test_references_are_compared_until_a_sync_has_failed(store, told):
    store.table.refs[0] += 1
    with pytest.raises(AssertionError, match="7 references are counted, 6 entries"):
        store.writer._check([])
    store.writer.counters.rescues = 1
    store.writer._check([])
    store.writer.counters.rescues = 0
    store.writer.context.is_miscounted = True
    store.writer._check([])
    store.writer.context.is_miscounted = False
    store.writer._steps.append(list)  # a commit waits for room while there is idle work
    store.writer._check([])
    store.writer._steps.clear()
    store.writer._ack_steps.append(
        list
    )  # a queue is deleted, its references go with acks that wait for a sync
    store.writer._check([])
    assert len(told) == 1


def test_recovered_queues_that_nobody_opened_refer_to_messages_too():
    store = StoreInUse()
    store.world.engine.close()
    store.world.filesystem = store.world.filesystem.process_killed()
    engine = store.world._open()
    assert isinstance(engine._writer, CheckedWriter)
    assert len(engine._writer.context.recovered) == 2
    engine._writer._check([])
    engine._writer.context.recovered.popitem()
    with pytest.raises(AssertionError, match="references are counted, 3 entries refer to shared"):
        engine._writer._check([])


def test_a_store_of_many_segments_has_no_sums_compared(store, monkeypatch):
    monkeypatch.setattr(checked_writer, "SUM_SEGMENTS", 1)
    store.table.refs[0] += 1
    store.writer._check([])


def test_a_rescue_is_no_broken_rule(store, told):
    store.world.filesystem.fail_from(1, errno.EIO, operations=frozenset({"fdatasync"}), full=5)
    store.world.publish()
    store.world.sync()
    assert store.world.observer.events["sync_failed"] == 1
    assert told == []


def test_by_default_nobody_is_told_and_the_error_is_raised_all_the_same():
    store = StoreInUse()
    writer = CheckedWriter(store.writer.context)
    with pytest.raises(AssertionError, match=r"^no$"):
        writer._refuse("no")
