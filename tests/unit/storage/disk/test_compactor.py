"""Compaction in three steps: chosen, copied, put in place; and what comes between them.

Covers: storage/disk/compactor.py, storage/shared/compaction.py, storage/shared/store.py
"""

from __future__ import annotations

import errno
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from unittest import mock

import pytest

from burrowmq.storage.errors import StoreClosed, SyncFailed
from burrowmq.storage.loop.staged_commit import Ack, Append, DeleteVhost
from tests.support import sim_filesystem
from tests.support.disk_side import LARGE, DiskSide, messages
from tests.support.misread import Misread


def mostly_dead() -> DiskSide:
    """Two segments, the first of which is a third alive and sealed."""
    side = DiskSide(segment_size_limit=40_000)
    side.open()
    side.append(0, 12, LARGE)
    side.commit(*(Ack(1, seq, seq, None) for seq in (0, 1, 3, 4, 6, 7)))
    return side


def test_what_is_copied_and_put_in_place_frees_space_and_loses_nothing() -> None:
    side = mostly_dead()
    before = side.vhost().persistent.total_bytes
    chosen = side.jobs.compactor.choose(is_idle=True)
    assert chosen is not None
    store, plan = chosen
    assert side.jobs.compactor.put_in_place(store, plan, side.jobs.compactor.copy(plan))
    assert store.total_bytes < before - 5 * LARGE
    assert side.observer.events["compaction_finished"] == 1
    assert side.read() == [2, 5, 8, 9, 10, 11]


def test_nothing_is_chosen_where_nothing_is_worth_it() -> None:
    side = DiskSide()
    side.open()
    side.append(0, 4, LARGE)
    assert side.jobs.compactor.choose(is_idle=True) is None
    assert mostly_dead().jobs.compactor.choose(is_idle=False) is None, "not while it is busy"


def test_a_store_that_is_being_closed_gives_the_plan_up() -> None:
    side = DiskSide(segment_size_limit=20_000_000)
    side.open()
    side.append(
        0, 15, 1_500_000
    )  # sealed after fourteen; six of them are more than one step copies
    side.commit(Ack(1, 0, 7, None))
    chosen = side.jobs.compactor.choose(is_idle=True)
    assert chosen is not None
    store, plan = chosen
    error = side.jobs.compactor.copy(plan, lambda: True)
    assert isinstance(error, StoreClosed)
    assert not side.jobs.compactor.put_in_place(store, plan, error)
    assert not side.paths(".tmp")
    assert side.observer.events["compaction_failed"] == 0, "nothing went wrong"
    assert side.jobs.compactor.choose(is_idle=True) is not None


@pytest.mark.parametrize(
    ("number", "is_said"), [(errno.ENOSPC, False), (errno.EIO, True), (errno.EMFILE, False)]
)
def test_a_copy_that_fails_costs_nothing_and_is_said_unless_it_may_be_tried_again(
    number: int, is_said: bool
) -> None:
    side = mostly_dead()
    chosen = side.jobs.compactor.choose(is_idle=True)
    assert chosen is not None
    store, plan = chosen
    side.filesystem.fail("create", number)
    assert not side.jobs.compactor.put_in_place(store, plan, side.jobs.compactor.copy(plan))
    assert bool(side.observer.events["compaction_failed"]) == is_said
    assert side.read() == [2, 5, 8, 9, 10, 11]


@pytest.mark.parametrize(
    ("number", "most"), [(errno.EIO, 70), (errno.ENOSPC, 730)], ids=["refused", "full"]
)
def test_one_that_fails_for_an_hour_is_tried_at_pauses_and_works_when_the_disk_does(
    number: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    side, now = mostly_dead(), 0.0
    compactor = side.jobs.compactor
    compactor.first_pause_s = 0.25
    clock = SimpleNamespace(monotonic=lambda: now)
    monkeypatch.setattr("burrowmq.storage.disk.compactor.time", clock)

    def attempts(seconds: int) -> Iterator[bool]:
        nonlocal now
        for _ in range(4 * seconds):
            now += 0.25
            chosen = compactor.choose(is_idle=True)
            if chosen is not None:
                yield compactor.put_in_place(*chosen, compactor.copy(chosen[1]))

    side.filesystem.fail("create", number, times=1 << 30, path_part=".tmp")
    assert 10 < sum(not is_done for is_done in attempts(3600)) <= most
    assert side.observer.events["compaction_failed"] <= 70
    side.filesystem.heal()
    assert any(attempts(61))
    assert side.read() == [2, 5, 8, 9, 10, 11]


def test_a_file_that_cannot_be_read_keeps_the_others_from_nothing() -> None:
    side = mostly_dead()
    compactor = side.jobs.compactor
    compactor.first_pause_s = 3600.0
    side.append(12, 20, LARGE)
    side.ack(8, 14)
    side.filesystem.fail("pread", path_part="/0.g0.seg")
    done = []
    while (chosen := compactor.choose(is_idle=True)) is not None:
        done.append(compactor.put_in_place(*chosen, compactor.copy(chosen[1])))
    assert done == [False, True]


def test_a_vhost_that_is_deleted_meanwhile_takes_the_plan_along() -> None:
    side = mostly_dead()
    chosen = side.jobs.compactor.choose(is_idle=True)
    assert chosen is not None
    store, plan = chosen
    side.commit(DeleteVhost(0, "/"))
    error = side.jobs.compactor.copy(plan)
    assert isinstance(error, StoreClosed)
    assert side.jobs.compactor.put_in_place(store, plan, error), "it may go on with others"
    assert not side.paths(".seg")


def test_batches_are_applied_while_a_plan_is_copied() -> None:
    side = mostly_dead()
    chosen = side.jobs.compactor.choose(is_idle=True)
    assert chosen is not None
    store, plan = chosen
    assert not plan.step(1)
    applied = threading.Thread(target=lambda: side.ack(2, 2))
    applied.start()
    applied.join(10)
    assert not applied.is_alive()
    assert side.jobs.compactor.put_in_place(store, plan, side.jobs.compactor.copy(plan))
    assert side.read() == [5, 8, 9, 10, 11]


def test_an_idle_moment_does_not_end_a_segment_that_has_to_be_synced_first() -> None:
    """A sync that fails there has no rescue."""
    side = DiskSide(segment_entry_count=64)
    side.open()
    side.commit(Append(1, 0, list(messages(0, 30, 60_000)), None))
    side.commit(Ack(1, 0, 27, None), sync=False)
    side.commit(Append(1, 30, list(messages(30, 1, 60_000)), None), sync=False)
    side.filesystem.fail("fdatasync", errno.EIO, path_part=".seg")
    assert side.jobs.compactor.choose(is_idle=True) is None
    assert side.jobs.compactor.choose(is_idle=True) is None
    side.jobs.sync(None)
    assert side.jobs.compactor.choose(is_idle=True) is not None
    assert side.read() == [28, 29, 30]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EMFILE])
def test_a_compacted_file_waits_for_room_for_its_name(number: int) -> None:
    side = mostly_dead()
    chosen = side.jobs.compactor.choose(is_idle=True)
    assert chosen is not None
    store, plan = chosen
    side.filesystem.fail("fsync_dir", number, path_part="msg_store_persistent", times=2)
    side.jobs.compactor.put_in_place(store, plan, side.jobs.compactor.copy(plan))
    files = side.paths(".seg")
    assert plan.victims[0].path in files, "a power cut may leave nothing else"
    assert side.read() == [2, 5, 8, 9, 10, 11]
    assert side.jobs.compactor.choose(is_idle=True) is None
    assert side.paths(".seg") == files
    side.jobs.compactor.choose(is_idle=True)
    assert set(files) - set(side.paths(".seg")) == {plan.victims[0].path}
    assert store.total_bytes < 7 * LARGE


def test_a_stop_waits_for_room_for_the_name_of_a_compacted_file() -> None:
    side = mostly_dead()
    chosen = side.jobs.compactor.choose(is_idle=True)
    assert chosen is not None
    store, plan = chosen
    side.filesystem.fail("fsync_dir", errno.ENOSPC, path_part="msg_store_persistent")
    side.jobs.compactor.put_in_place(store, plan, side.jobs.compactor.copy(plan))
    victim = plan.victims[0].path
    side.jobs.close({1: (12, 12)})
    assert victim not in side.paths(".seg")
    again = DiskSide(side.filesystem.process_killed(), segment_size_limit=40_000)
    assert (again.report.messages, again.report.clean) == (6, True)


def test_a_directory_that_fails_ends_the_store_and_keeps_the_files_before() -> None:
    side = mostly_dead()
    chosen = side.jobs.compactor.choose(is_idle=True)
    assert chosen is not None
    store, plan = chosen
    side.filesystem.fail("fsync_dir", errno.EIO, path_part="msg_store_persistent")
    with pytest.raises(SyncFailed):
        side.jobs.compactor.put_in_place(store, plan, side.jobs.compactor.copy(plan))
    assert plan.victims[0].path in side.paths(".seg")


def test_a_compaction_that_has_no_descriptor_for_its_index_is_chosen_later() -> None:
    side = DiskSide(store_index="paged", segment_size_limit=24_000)
    side.open()
    side.vhost().persistent._index._limit = 0  # type: ignore[attr-defined]
    side.append(0, 60, LARGE)
    side.ack(0, 2)
    side.jobs.idle()
    for number in range(3, 11):  # others are in use, so that the table of the victim is in its file
        side.vhost().persistent.read([number << 32])
    side.filesystem.fail("open", errno.EMFILE, path_part="/index/", times=2)
    # NoDescriptors here ends the disk thread.
    assert side.jobs.compactor.choose(is_idle=True) is None
    side.filesystem.heal()
    assert side.jobs.compactor.choose(is_idle=True) is not None


def test_a_compaction_reads_again_what_fails_its_check() -> None:
    side = mostly_dead()
    chosen = side.jobs.compactor.choose(is_idle=True)
    assert chosen is not None
    store, plan = chosen
    misread = Misread(".seg")
    with mock.patch.object(sim_filesystem.SimFile, "pread", misread.bound()):
        side.jobs.compactor.put_in_place(store, plan, side.jobs.compactor.copy(plan))
    assert misread.is_done
    assert side.read() == [2, 5, 8, 9, 10, 11]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EMFILE, errno.EIO])
@pytest.mark.parametrize("refused", ["abc", "ab", "a", "b"])
def test_stores_whose_compaction_fails_keep_no_other_from_its_own(
    refused: str, number: int
) -> None:
    side = DiskSide(segment_size_limit=40_000)
    for queue_id, vhost in enumerate("abc", 1):
        side.open(queue_id, vhost=vhost)
        side.append(0, 12, LARGE, queue_id=queue_id)
        acked = [Ack(queue_id, seq, seq, None) for seq in (0, 1, 3, 4, 6, 7)]
        side.commit(*acked)
    stores = {vhost: side.vhost(vhost).persistent for vhost in "abc"}
    for vhost in refused:
        side.filesystem.fail(
            "create", number, times=1 << 30, path_part=stores[vhost].options.directory
        )
    tried = ""
    for _ in range(9):
        chosen = side.jobs.compactor.choose(is_idle=True)
        if chosen is None:
            break
        store, plan = chosen
        tried += next(vhost for vhost, one in stores.items() if one is store)
        side.jobs.compactor.put_in_place(store, plan, side.jobs.compactor.copy(plan))
    assert {vhost for vhost, one in stores.items() if one.stats()["compactions"]} == set(
        "abc"
    ) - set(refused)
    assert all(tried.count(vhost) >= 3 for vhost in refused), "in turn"
    side.filesystem.heal()
    for vhost in refused:
        chosen = side.jobs.compactor.choose(is_idle=True)
        assert chosen is not None
        store, plan = chosen
        assert side.jobs.compactor.put_in_place(store, plan, side.jobs.compactor.copy(plan)), vhost


def test_want_of_descriptors_to_end_a_mostly_dead_segment_ends_no_store() -> None:
    side = DiskSide(segment_entry_count=64)
    side.open()
    side.commit(Append(1, 0, list(messages(0, 30, 60_000)), None))
    side.ack(0, 27)
    side.jobs.sync(None)
    side.context.release_clean_files()
    side.filesystem.fail("open", errno.EMFILE, path_part=".seg", times=2)
    side.jobs.compactor.choose(is_idle=True)  # NoDescriptors here ends the disk thread
    side.filesystem.heal()
    assert side.vhost().persistent.stats()["rolled"] == 1
    assert side.read() == [28, 29]
