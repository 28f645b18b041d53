"""Damaged messages: kept with their bytes, then gone from their queue; never because a read was refused."""

from __future__ import annotations

import errno

import pytest

from burrowmq.storage.directory import quarantine
from burrowmq.storage.errors import DiskFull, NoDescriptors, ReadFailed
from burrowmq.storage.loop.staged_commit import Delete, Open, ReadRequest
from burrowmq.storage.names import QueueNames
from tests.support.disk_side import LARGE, SMALL, DiskSide
from tests.support.disk_side_steps import kept, spoil


def side_with(count: int, size: int = SMALL, version: int = 2) -> DiskSide:
    side = DiskSide(segment_entry_count=16)
    side.open(version=version)
    side.append(0, count, size)
    return side


@pytest.mark.parametrize(("size", "ending"), [(SMALL, ".qs"), (LARGE, ".seg")])
def test_a_damaged_body_is_kept_and_leaves_the_queue(size: int, ending: str) -> None:
    side = side_with(3, size)
    spoil(side, ending)
    assert side.read() == [0, 1]
    side.jobs.idle()
    ((about, data),) = kept(side)
    assert (about.vhost, about.queue, about.seq, about.reason) == ("/", "q", 2, "unreadable record")
    assert about.source.split(",")[0].endswith(ending)
    parts = quarantine.parts_of(data)
    assert parts is not None
    assert len(parts[1]) == about.size - 24 - 12 - len(parts[0])
    assert side.writer.stats()["quarantined"] == side.writer.stats()["set_aside"] == 1
    assert side.observer.events["message_set_aside"] == 1
    again = DiskSide(side.filesystem, segment_entry_count=16)
    again.take_up()
    assert again.read() == [0, 1]
    assert again.writer.stats()["quarantined"] == 1


def test_what_was_set_aside_gives_its_reference_back() -> None:
    side = side_with(3, LARGE)
    spoil(side, ".seg")
    assert side.read() == [0, 1]
    assert side.vhost().persistent.stats()["live_messages"] == 3
    side.jobs.idle()
    assert side.vhost().persistent.stats()["live_messages"] == 2


def test_a_body_whose_entry_is_damaged_is_found() -> None:
    side = side_with(3)
    spoil(side, ".qi", 4)
    assert side.read() == [0, 1]
    side.jobs.idle()
    ((about, data),) = kept(side)
    assert about.reason == "bad index entry"
    parts = quarantine.parts_of(data)
    assert parts is not None
    assert parts[1].startswith(b"\x02")  # a content header frame


def test_it_stays_while_its_bytes_cannot_be_kept() -> None:
    side = side_with(2)
    spoil(side, ".qs")
    assert side.read() == [0]
    side.filesystem.fail("pread", errno.EIO, path_part=".qs")
    side.jobs.upkeep()
    assert not kept(side)
    assert side.writer.reader.has_lost
    assert side.jobs.is_dirty
    side.filesystem.fail("pwrite", errno.EIO, path_part="quarantine")
    side.jobs.upkeep()
    side.filesystem.fail("create", errno.ENOSPC, path_part="quarantine")
    with pytest.raises(DiskFull):
        side.writer.upkeep()
    assert not kept(side)
    side.jobs.upkeep()
    assert len(kept(side)) == 1
    assert side.observer.events["record_lost"] == 1


def test_beyond_the_limit_it_stays_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quarantine, "LIMIT", 0)
    side = side_with(2)
    spoil(side, ".qs")
    assert side.read() == [0]
    side.jobs.idle()
    assert not kept(side)
    assert not side.jobs.is_dirty
    assert side.writer.stats()["set_aside"] == 0


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_a_refused_read_sets_nothing_aside(version: int, size: int) -> None:
    side = side_with(5, size, version)
    side.jobs.idle()
    side.context.release_clean_files()
    for operation in ("open", "pread"):
        side.filesystem.fail(operation, errno.EIO, times=1000)
        with pytest.raises(ReadFailed, match=rf"{operation} failed: .*EIO"):
            side.jobs.read(ReadRequest(1, 0, 1 << 40, 1000, 1 << 30, lambda *_: None))
        side.filesystem.heal()
    side.jobs.idle()
    assert side.read() == [0, 1, 2, 3, 4]
    assert (kept(side), side.observer.events["record_lost"]) == ([], 0)


@pytest.mark.parametrize("is_scrubbed", [False, True])
@pytest.mark.parametrize(("version", "ending"), [(1, ".idx"), (2, ".qi")])
@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_messages_whose_index_is_gone_leave_the_queue_once(
    version: int, ending: str, size: int, is_scrubbed: bool
) -> None:
    side = side_with(3, size, version)
    for _ in range(3):  # a journal goes once the queue is quiet
        side.jobs.idle()
    side.context.release_clean_files()
    (path,) = side.paths(ending)
    side.filesystem.unlink(path)
    if is_scrubbed:
        for seq in range(3):
            side.writer.reader.suspect(1, seq, "bad index entry")
    else:
        assert side.read() == []
    for _ in range(3):
        side.jobs.idle()
    assert not side.writer.reader.has_lost
    assert not side.jobs.is_dirty
    assert [(about.seq, path in about.source) for about, _ in kept(side)] == [
        (seq, version == 1 or size == LARGE) for seq in range(3)
    ]
    assert side.writer.stats()["set_aside"] == side.observer.events["record_lost"] == 3
    side.append(3, 2, size)
    assert side.read() == [3, 4]


@pytest.mark.parametrize("how", ["set aside", "deleted", "acked"])
@pytest.mark.parametrize(("version", "ending"), [(1, ".idx"), (2, ".qi")])
def test_the_next_start_gives_back_what_damaged_entries_referred_to(
    version: int, ending: str, how: str
) -> None:
    """Also after a clean stop: nobody can read any more which messages of the shared store these were."""
    side = side_with(3, LARGE, version)
    side.open(2, "other")
    for _ in range(3):  # a journal goes once the queue is quiet
        side.jobs.idle()
    (path,) = side.paths(ending)
    side.filesystem.damage(path, 64, bytes(side.filesystem.file_size(path) - 64))
    if how == "set aside":
        assert side.read() == []
    elif how == "deleted":
        side.commit(Delete(1))
    else:
        side.ack(0, 2)
    side.jobs.idle()
    assert side.observer.events["index_unreadable"]
    assert side.writer.stats()["shared_live_messages"] == 3
    side.jobs.close({1: (3, 3), 2: (0, 0)})
    again = DiskSide(side.filesystem, segment_entry_count=16)
    assert again.writer.stats()["shared_live_messages"] == 0


def test_a_start_gives_back_what_damaged_entries_of_a_queue_referred_to_that_ended_with_the_stop() -> (
    None
):
    side = DiskSide(segment_entry_count=16)
    side.commit(Open(1, QueueNames("/", "q"), False))
    side.append(0, 3, LARGE)
    (path,) = side.paths(".qi")
    side.filesystem.damage(path, 64, bytes(side.filesystem.file_size(path) - 64))
    side.context.release_clean_files()
    side.jobs.close({1: (3, 3)})
    again = DiskSide(side.filesystem, segment_entry_count=16)
    assert again.writer.stats()["shared_live_messages"] == 0


@pytest.mark.parametrize("nth", [1, 2])
def test_no_descriptor_while_one_is_set_aside_keeps_it_once(nth: int) -> None:
    side = DiskSide(segment_entry_count=16, open_files=1)
    side.open(version=2)
    side.append(0, 2)
    side.append(2, 1, LARGE)
    spoil(side, ".qs")
    assert side.read() == [0, 2]
    # First the message is looked for; its file takes the place of the index, which is opened again for the references.
    side.filesystem.fail("open", errno.EMFILE, path_part=".qi", nth=nth, times=2)
    with pytest.raises(NoDescriptors):
        side.writer.upkeep()
    side.jobs.idle()
    assert (len(kept(side)), side.writer.stats()["set_aside"]) == (1, 1)
    assert side.read() == [0, 2]
