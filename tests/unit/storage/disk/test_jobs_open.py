"""What a review found and nobody has mended yet: who mends one takes the mark away.

Covers: storage/disk/compactor.py, storage/disk/rescue.py, storage/disk/shared_work.py
"""

from __future__ import annotations

import errno

import pytest

from burrowmq.storage.disk import invariants
from burrowmq.storage.errors import DiskFull
from burrowmq.storage.loop.staged_commit import Ack, AckMany, Append, StagedCommit
from tests.support.disk_side import LARGE, DiskSide, messages

FOR_GOOD = 1 << 30


def references_of(side: DiskSide) -> list[str]:
    queues = list(side.writer.queues().values())
    return list(map(str, invariants.of_references(side.vhost(), queues)))


@pytest.mark.xfail(strict=True, reason="open: what is owed to be dropped names the handle before")
def test_references_that_a_withheld_queue_gives_back_later_follow_a_rescue() -> None:
    side = DiskSide(segment_entry_count=16)
    for queue_id, name in ((1, "q"), (2, "dead"), (3, "other")):
        side.open(queue_id, name)
        side.append(0, 2, queue_id=queue_id)
    dead = side.writer.queues()[2].directory
    side.filesystem.fail("pwrite", errno.EIO, times=FOR_GOOD, path_part=dead)
    moving = StagedCommit(
        90,
        [Append(2, 2, list(messages(20, 1)), None), Ack(1, 0, 0, None)],
        touched={1, 2},
        sync=True,
        is_moving=True,
        moves={(("/", "q"), ("/", "dead"))},
    )
    side.jobs.apply(moving, side.no_room)
    assert side.writer.refusals.withheld() == {1}
    shared = list(messages(50, 1, LARGE))
    side.commit(Append(1, 2, shared, None), Append(3, 2, shared, None), sync=False)
    side.commit(Ack(1, 2, 2, shared), sync=False)
    side.filesystem.fail("fdatasync", errno.EIO, path_part=".seg")
    side.commit(Append(3, 3, list(messages(60, 1)), None))
    side.filesystem.heal()
    side.jobs.idle()
    assert references_of(side) == []


@pytest.mark.xfail(strict=True, reason="open: the work is taken away before it is done")
def test_references_are_given_back_once_there_is_room_for_the_index(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    side = DiskSide(segment_entry_count=16)
    side.open(1, "q")
    side.append(0, 3, LARGE)
    table = type(next(iter(side.vhost().persistent._segments.tables.values())))
    whole, refused = table.drop, [True]

    def drop(self: object, first: int, last: int) -> object:
        if refused:
            refused.pop()
            raise DiskFull("index.db: database or disk is full")
        return whole(self, first, last)  # type: ignore[arg-type]

    monkeypatch.setattr(table, "drop", drop)
    side.ack(0, 2)
    assert references_of(side) == []


@pytest.mark.xfail(strict=True, reason="open: it ends the store, and no rescue is tried")
def test_the_search_for_what_to_compact_survives_a_failed_sync() -> None:
    side = DiskSide(segment_entry_count=64)
    side.open(1, "q")
    side.commit(Append(1, 0, list(messages(0, 30, 60_000)), None))
    side.commit(Ack(1, 0, 27, None), sync=False)
    side.commit(Append(1, 30, list(messages(30, 1, 60_000)), None), sync=False)
    side.filesystem.fail("fdatasync", errno.EIO, path_part=".seg")
    side.jobs.compactor.choose(is_idle=True)


@pytest.mark.xfail(strict=True, reason="open: a full disk is taken for a broken one")
def test_a_compacted_file_waits_for_room_for_its_name() -> None:
    side = DiskSide(segment_entry_count=64, segment_size_limit=300_000)
    side.open(1, "q")
    for number in range(20):
        side.append(number, 1, 60_000)
    side.commit(AckMany(1, [number for number in range(20) if number % 5]))
    chosen = side.jobs.compactor.choose(is_idle=True)
    assert chosen is not None
    store, plan = chosen
    failed = side.jobs.compactor.copy(plan)
    side.filesystem.fail("fsync_dir", errno.ENOSPC, path_part="msg_store_persistent")
    side.jobs.compactor.put_in_place(store, plan, failed)
