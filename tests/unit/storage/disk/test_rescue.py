"""What a failed sync may have taken is written elsewhere, from memory or as it can still be read.

Covers: storage/disk/refusals.py, storage/disk/rescue.py, storage/disk/shared_work.py, storage/queue/convert.py
"""

from __future__ import annotations

import errno
import random

import pytest

from burrowmq.storage.disk import invariants
from burrowmq.storage.disk.rescue import Rescue
from burrowmq.storage.errors import DiskFull, ReadFailed, StorageError
from burrowmq.storage.loop.staged_commit import Ack, AckMany, Append, Delete, StagedCommit
from tests.simulation.store_world import make_message
from tests.support.disk_side import LARGE, SMALL, DiskSide, messages


def unsynced(size: int, *, version: int = 2) -> tuple[DiskSide, StagedCommit]:
    """Four durable messages in a queue, and four more that were applied and not synced."""
    side = DiskSide(journal_run_bytes=500)
    side.open(version=version)
    side.append(0, 4, size)
    return side, side.commit(Append(1, 4, list(messages(4, 4, size)), None), sync=False)


def rescue(side: DiskSide, commit: StagedCommit | None, *endings: str) -> Rescue:
    failed = [path for ending in endings for path in side.paths(ending)]
    return Rescue(side.context, side.writer.queues(), commit, failed, not_refused, not_renamed)


def not_renamed(*_: object) -> None:
    """Nobody keeps a handle to drop it later."""


def not_refused(queue_id: int, error: StorageError, *_: object) -> None:
    raise AssertionError(f"{queue_id}: {error}")


def bodies(side: DiskSide) -> list[int]:
    side.context.sync()
    return side.read()


@pytest.mark.parametrize("is_in_memory", [True, False])
def test_shared_messages_get_new_handles_in_another_file(is_in_memory: bool) -> None:
    side, commit = unsynced(LARGE)
    store = side.vhost().persistent
    (old,) = side.paths(".seg")
    rescue(side, commit if is_in_memory else None).advance()
    assert [path for path in side.paths(".seg") if path != old]
    assert bodies(side) == list(range(8))
    assert store.stats()["live_messages"] == 8
    again = DiskSide(side.filesystem.process_killed())
    assert again.report.messages == 8


def test_shared_messages_that_no_descriptor_is_left_to_read_are_waited_for() -> None:
    side, _ = unsynced(LARGE)
    (old,) = side.paths(".seg")
    later = rescue(side, None)
    side.filesystem.fail("pread", errno.EMFILE, path_part=old, times=9)
    with pytest.raises(DiskFull):
        later.advance()
    side.filesystem.heal()
    later.advance()
    assert [path for path in side.paths(".seg") if path != old]
    assert bodies(side) == list(range(8))


def test_shared_messages_that_cannot_be_read_end_it_and_are_there_at_the_next_start() -> None:
    side, _ = unsynced(LARGE)
    (old,) = side.paths(".seg")
    later = rescue(side, None)
    side.filesystem.fail("pread", path_part=old, times=9)
    with pytest.raises(ReadFailed, match="EIO"):
        later.advance()
    side.filesystem.heal()
    again = DiskSide(side.filesystem.process_killed())
    again.take_up()
    assert again.read() == list(range(8))


def test_a_message_of_several_queues_moves_with_all_its_references() -> None:
    side = DiskSide()
    made = messages(0, 2, LARGE)
    for queue_id in (1, 2, 3):
        side.open(queue_id, f"q{queue_id}")
    commit = side.commit(*(Append(each, 0, list(made), None) for each in (1, 2, 3)), sync=False)
    old = [message.handle for message in made]
    rescue(side, commit).advance()
    new = [message.handle for message in made]
    assert not set(old) & set(new)
    store = side.vhost()
    assert [store.persistent.refs_of(handle) for handle in new] == [3, 3]
    assert not any(map(store.contains, old))
    assert [side.read(each) for each in (1, 2, 3)] == [[0, 1]] * 3


@pytest.mark.parametrize(("version", "ending"), [(2, ".qs"), (2, ".qi"), (1, ".jif")])
def test_a_queues_own_files_are_written_anew(version: int, ending: str) -> None:
    side, commit = unsynced(SMALL, version=version)
    failed = side.paths(ending)
    assert failed
    rescue(side, commit, ending).advance()
    assert bodies(side) == list(range(8))
    again = DiskSide(side.filesystem.process_killed(), journal_run_bytes=500)
    assert again.report.messages == 8


def test_what_did_not_fail_stays_as_it_is() -> None:
    side, commit = unsynced(SMALL)
    before = side.paths("")
    rescue(side, commit).advance()
    assert side.paths("") == before


def test_without_room_it_goes_on_later() -> None:
    side, commit = unsynced(LARGE)
    going = rescue(side, commit)
    side.filesystem.fail("create", errno.ENOSPC)
    with pytest.raises(DiskFull):
        going.advance()
    assert all(message.handle >= 0 for command in commit.commands for message in command.messages)  # type: ignore[union-attr]
    going.advance()
    going.advance()
    assert bodies(side) == list(range(8))


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("keep", [0, 5])
def test_an_entry_of_which_a_full_disk_took_a_part_is_written_again(
    version: int, keep: int
) -> None:
    side, commit = unsynced(LARGE, version=version)
    going = rescue(side, commit)
    ending = ".qi" if version == 2 else ".jif"
    side.filesystem.fail("pwrite", errno.ENOSPC, nth=2, keep=keep, path_part=ending)
    with pytest.raises(DiskFull):
        going.advance()
    going.advance()
    assert bodies(side) == list(range(8))
    assert side.vhost().persistent.stats()["live_messages"] == 8
    assert DiskSide(side.filesystem.process_killed()).report.messages == 8


def test_a_name_file_that_was_lost_is_written_again() -> None:
    side, commit = unsynced(SMALL)
    (path,) = side.paths(".queue_name")
    side.filesystem.damage(path, 0, b"?" * 20)
    rescue(side, commit, ".queue_name").advance()
    assert b'QUEUE: "q"' in side.filesystem.content(path)


@pytest.mark.parametrize(("version", "run_bytes"), [(1, 500), (1, 50), (2, 500)])
def test_entries_that_the_failed_sync_took_from_the_page_cache_come_from_memory(
    version: int, run_bytes: int
) -> None:
    side = DiskSide(journal_run_bytes=run_bytes)
    side.open(version=version)
    side.append(0, 4)
    side.filesystem.reverts = True
    side.filesystem.fail("fdatasync", path_part="/queues/", times=2 if version == 2 else 1)
    command = Append(1, 4, list(messages(4, 4)), [0, 0, 1 << 50, 0])
    side.commit(command)
    assert side.read() == list(range(8))
    assert side.writer.counters.rescues
    again = DiskSide(side.filesystem.cut(random.Random(1)), journal_run_bytes=run_bytes)
    assert again.report.messages == 8


@pytest.mark.parametrize("version", [1, 2])
def test_a_rescue_that_fails_leaves_what_can_be_read_to_the_next_start(version: int) -> None:
    side = DiskSide(journal_run_bytes=50)
    side.open(version=version)
    side.append(0, 4)
    side.filesystem.fail("fdatasync", path_part="/queues/", times=100)
    commit = side.commit(Append(1, 4, messages(4, 4), None))
    assert commit.refused == {1}
    again = DiskSide(side.filesystem.process_killed(), journal_run_bytes=50)
    again.take_up(version=version)
    assert again.report.messages == 8
    assert again.read() == list(range(8))
    assert not again.context.observer.events["record_lost"]


@pytest.mark.parametrize(("version", "bodies", "nth"), [(1, ".idx", 2), (2, ".qs", 1)])
def test_bodies_that_a_rescue_cannot_read_are_waited_for(
    version: int, bodies: str, nth: int
) -> None:
    side = DiskSide(journal_run_bytes=50)
    side.open(version=version)
    side.append(0, 4)
    side.filesystem.fail("fdatasync", path_part="/queues/")
    side.filesystem.fail("pread", path_part=bodies, nth=nth, times=2)
    commit = side.commit(Append(1, 4, messages(4, 4), None))
    assert commit.refused == {1}
    side.filesystem.heal()
    side.jobs.reopen(is_last=True)
    assert side.read() == list(range(8))
    assert not side.observer.events["record_lost"]


def test_a_segment_whose_file_a_flush_removed_before_it_failed_is_rescued_without() -> None:
    side = DiskSide(segment_entry_count=8)
    side.open(version=1)
    side.append(0, 8)
    for _ in range(4):
        side.jobs.idle()
    side.append(8, 4)
    assert side.paths("0.idx")
    side.filesystem.fail("create", path_part="1.idx", times=2)
    side.ack(0, 8)
    for _ in range(2):
        side.jobs.upkeep()
    assert not side.paths("0.idx")
    side.filesystem.heal()
    rescue(side, None, ".jif").advance()
    assert bodies(side) == [9, 10, 11]
    again = DiskSide(side.filesystem.cut(random.Random(1)), segment_entry_count=8)
    assert again.report.messages == 3


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_what_another_queue_has_in_the_log_alone_does_not_hold_a_rescue_up(number: int) -> None:
    side = DiskSide(segment_entry_count=16, has_log=True, log_queue_limit=100)
    for queue_id, name in ((1, "rescued"), (2, "other")):
        side.open(queue_id, name)
        side.append(0, 2, SMALL * 20, queue_id)
        side.append(2, 1, SMALL, queue_id)  # into the log: its files are on the disk by now
    rescued, other = (side.writer.queues()[each].directory for each in (1, 2))
    fail = side.filesystem.fail
    fail("fdatasync", errno.EIO, path_part=rescued)
    fail("fdatasync", number, path_part=".log")
    fail("fdatasync", number, path_part=other)
    side.append(3, 10, LARGE // 2, 1)
    assert side.waits == []
    side.append(13, 1, SMALL, 1)
    side.append(3, 1, SMALL, 2)
    assert not side.writer.refusals
    assert not side.filesystem.resynced
    assert side.read(1) == list(range(14))
    assert side.read(2) == list(range(4))
    again = DiskSide(side.filesystem.process_killed(), segment_entry_count=16, has_log=True)
    assert again.report.messages == 18


def test_what_a_flush_moved_that_stopped_half_way_is_rescued_with_what_the_next_one_moved() -> None:
    """Version 1: the second flush moves another run of the same segment, and no sync came in between."""
    side = DiskSide(segment_entry_count=16)
    side.filesystem.reverts = True
    side.open(version=1)
    side.append(0, 4)
    side.append(16, 4)
    side.commit(AckMany(1, [19]), sync=False)
    side.jobs.upkeep()
    side.filesystem.fail("create", path_part="/1.idx")
    side.jobs.upkeep()  # the first segment is moved, the second is refused
    side.commit(Append(1, 6, [make_message(6, 50, False)], None), sync=False)
    side.jobs.upkeep()
    side.jobs.upkeep()
    side.filesystem.fail("fdatasync", path_part="/0.idx")
    assert side.commit(Append(1, 20, list(messages(20, 1)), None)).refused == set()
    assert side.read() == [0, 1, 2, 3, 6, 16, 17, 18, 20]
    assert not side.observer.events["record_lost"]


def references_of(side: DiskSide) -> list[str]:
    queues = list(side.writer.queues().values())
    return list(map(str, invariants.of_references(side.vhost(), queues)))


def test_references_that_a_withheld_queue_gives_back_later_follow_a_rescue() -> None:
    side = DiskSide(segment_entry_count=16)
    for queue_id, name in ((1, "q"), (2, "dead"), (3, "other")):
        side.open(queue_id, name)
        side.append(0, 2, queue_id=queue_id)
    dead = side.writer.queues()[2].directory
    side.filesystem.fail("pwrite", errno.EIO, times=1 << 30, path_part=dead)
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


def test_references_that_a_deletion_is_about_to_drop_follow_a_rescue() -> None:
    """The segment is full in the commit that deletes a queue, and its sync fails before anything is dropped."""
    side = DiskSide(segment_size_limit=3 * LARGE)
    for queue_id in (1, 2):
        side.open(queue_id, str(queue_id))
    shared = list(messages(0, 3, LARGE))
    side.commit(Append(1, 0, shared, None), Append(2, 0, shared, None), sync=False)
    side.filesystem.fail("fdatasync", errno.EIO, path_part=".seg")
    side.commit(Delete(2), Append(1, 3, list(messages(3, 2, LARGE)), None))
    assert side.writer.counters.rescues == 1
    assert references_of(side) == []
    assert side.read(1) == [0, 1, 2, 3, 4]


def test_two_objects_of_one_message_both_follow_a_rescue() -> None:
    """Two queues read it from the disk, and both have it dead-lettered in the commit whose sync fails."""
    side = DiskSide()
    for queue_id in (1, 2, 3):
        side.open(queue_id, str(queue_id))
    shared = list(messages(0, 1, LARGE))
    side.commit(Append(1, 0, shared, None), Append(2, 0, shared, None), sync=False)
    copies = list(messages(0, 1, LARGE)) + list(messages(0, 1, LARGE))
    for copy in copies:
        copy.handle = shared[0].handle
    side.filesystem.fail("fdatasync", errno.EIO, path_part=".seg")
    side.commit(Append(3, 0, copies, None))
    assert copies[0].handle == copies[1].handle != shared[0].handle
    assert references_of(side) == []
    again = DiskSide(side.filesystem.process_killed())
    assert (again.report.messages, again.observer.events["record_lost"]) == (4, 0)


def test_what_a_failed_sync_took_of_a_journal_is_not_counted_after_its_rescue() -> None:
    """Version 1, nobody waits for the message: what can be read of the journal is not what was written."""
    side = DiskSide(segment_entry_count=16)
    side.filesystem.reverts = True
    side.open(version=1)
    side.append(0, 4)
    side.jobs.idle()
    side.commit(Append(1, 4, list(messages(4, 1)), None), sync=False)
    side.filesystem.fail("fdatasync", errno.ENOSPC, path_part=".jif")
    side.jobs.idle()
    side.jobs.idle()
    side.jobs.close({1: (5, 5)})
    again = DiskSide(side.filesystem.process_killed(), segment_entry_count=16)
    again.take_up()
    assert again.report.messages == len(again.read()) == 4
    assert not again.observer.events["record_lost"]


def test_a_damaged_body_outside_what_a_failed_sync_took_stays_for_whoever_reads_it() -> None:
    side = DiskSide(segment_entry_count=16, journal_entries=2)
    side.open(version=1)
    side.append(0, 4)
    side.jobs.idle()
    path = side.paths(".idx")[0]
    side.filesystem.damage(path, side.filesystem.file_size(path) - 10, b"?")
    side.filesystem.fail("fdatasync", path_part=".jif")
    side.append(4, 1)
    side.jobs.idle()
    assert side.read() == [0, 1, 2, 4]
    side.jobs.idle()
    assert len(side.paths(".msg")) == 1, "it is in quarantine"
