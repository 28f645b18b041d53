"""Reads of the disk side: what was planned comes as messages, what cannot be read is reported once."""

from __future__ import annotations

import pytest

from burrowmq.storage.errors import ReadFailed
from burrowmq.storage.loop.staged_commit import Append, Delete, ReadRequest
from burrowmq.storage.types import ON_DISK
from tests.support.disk_side import LARGE, SMALL, DiskSide, messages


def request(first: int = 0) -> ReadRequest:
    return ReadRequest(1, first, 1 << 40, 1000, 1 << 30, lambda *_: None)


def test_messages_come_as_they_were_and_say_that_they_are_on_disk() -> None:
    side = DiskSide()
    side.open()
    made = side.append(0, 2, SMALL) + side.append(2, 2, LARGE)
    loaded, _ = side.jobs.read(request())
    assert [(seq, message.raw) for seq, message, _ in loaded] == [
        (seq, message.raw) for seq, message in enumerate(made)
    ]
    assert all(message.flags & ON_DISK for _, message, _ in loaded)
    assert [message.handle for _, message, _ in loaded] == [message.handle for message in made]
    assert not any(message.flags & ON_DISK for message in made)


def test_what_cannot_be_read_is_left_out_reported_and_forgotten() -> None:
    side = DiskSide()
    side.open()
    side.append(0, 5)
    (store,) = side.paths(".qs")
    side.filesystem.damage(store, side.filesystem.file_size(store) - 2, b"??")
    assert side.read() == [0, 1, 2, 3]
    assert side.observer.lost == [
        (side.context.queue_dir(side.names, True), 4, "unreadable record")
    ]
    assert side.writer.stats()["lost"] == 1
    side.jobs.upkeep()
    assert side.read() == [0, 1, 2, 3]
    assert side.writer.stats()["lost"] == 1, "it is reported once"
    assert not side.writer.reader.lost_count


def test_a_bad_entry_of_the_index_costs_that_message() -> None:
    side = DiskSide(segment_entry_count=16)
    side.open()
    side.append(0, 5)
    (index,) = side.paths(".qi")
    side.filesystem.damage(index, side.filesystem.file_size(index) - 4, b"????")
    assert side.read() == [0, 1, 2, 3]
    assert [reason for _, _, reason in side.observer.lost] == ["bad index entry"]


def test_nobody_misses_what_was_acked_while_it_was_read() -> None:
    side = DiskSide()
    side.open()
    side.append(0, 3)
    planned = side.writer.plan_read(request())
    assert planned is not None
    side.ack(2, 2)
    (store,) = side.paths(".qs")
    side.filesystem.damage(store, side.filesystem.file_size(store) - 2, b"??")
    loaded = side.writer.reader.fetch(1, *planned, 0)
    assert [seq for seq, _, _ in loaded] == [0, 1]
    assert side.observer.lost == []


def test_nobody_misses_what_was_deleted_while_it_was_read() -> None:
    side = DiskSide()
    side.open()
    side.append(0, 2)
    planned = side.writer.plan_read(request())
    assert planned is not None
    side.commit(Delete(1))
    side.writer.reader.fetch(1, *planned, 0)
    assert side.observer.lost == []
    assert side.jobs.read(request(3)) == ([], 3), "a queue that is gone has nothing"


def test_what_a_rescue_moved_while_it_was_read_is_no_damage() -> None:
    side = DiskSide(segment_entry_count=16)
    for queue_id, name in ((1, "q"), (2, "other")):
        side.open(queue_id, name)
    side.commit(Append(1, 0, list(messages(0, 3, LARGE)), None), sync=False)
    request = ReadRequest(1, 0, 1 << 40, 1000, 1 << 30, lambda *_: None)
    planned = side.writer.plan_read(request)
    assert planned is not None
    side.filesystem.fail("fdatasync", path_part=".seg")
    side.commit(Append(2, 0, list(messages(9, 1)), None))
    with pytest.raises(ReadFailed, match="written elsewhere"):
        side.writer.reader.fetch(1, *planned, 0)
    side.jobs.idle()
    assert side.read(1) == [0, 1, 2]
    assert not side.observer.events["record_lost"]
