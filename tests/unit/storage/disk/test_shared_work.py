"""What a commit does to the shared stores: one copy for all queues, references added before and dropped after.

Covers: storage/disk/shared_work.py, storage/disk/writer.py, storage/shared/vhost_store.py
"""

from __future__ import annotations

import errno
from collections.abc import Sequence

import pytest

from burrowmq.storage.directory import context, terms
from burrowmq.storage.directory.terms import read_recorded
from burrowmq.storage.disk.shared_work import SharedWork
from burrowmq.storage.errors import DiskFull
from burrowmq.storage.loop.staged_commit import AckMany, Append
from burrowmq.storage.types import PERSISTENT, StoredMessage
from tests.support.disk_side import LARGE, SMALL, DiskSide, messages
from tests.support.stored_message import FakeMessage


def work() -> tuple[SharedWork, DiskSide]:
    side = DiskSide()
    side.open()
    return SharedWork(side.context), side


def test_a_message_of_several_queues_is_appended_once_and_referred_to_for_each() -> None:
    shared, side = work()
    made = messages(0, 3, LARGE)
    for _ in range(4):
        shared.share("/", made)
    assert shared.vhosts() == ["/"]
    shared.append("/")
    shared.add_refs("/")
    shared.drop_refs()
    store = side.vhost().persistent
    assert [store.refs_of(message.handle) for message in made] == [4, 4, 4]
    assert store.stats()["appended_messages"] == 3
    assert shared.vhosts() == [], "nothing is left for the next commit"


def test_no_segment_number_is_used_that_a_start_would_use_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(terms, "_RESERVED", 6)
    monkeypatch.setattr(context, "SEGMENT_MARGIN", 3)
    side = DiskSide(segment_size_limit=2 * LARGE)
    side.open()
    for first in range(0, 30, 2):
        side.append(first, 2, LARGE)
        next_segment_no = side.vhost().persistent.next_segment_no
        assert next_segment_no <= read_recorded(side.filesystem, "/data").ceiling
    assert next_segment_no > 6


def test_small_messages_stay_with_their_queue() -> None:
    shared, _ = work()
    made = messages(0, 3, SMALL)
    shared.share("/", made)
    assert (shared.vhosts(), [message.handle for message in made]) == ([], [-1] * 3)


def test_the_embed_rule_counts_body_and_properties() -> None:
    shared, _ = work()
    properties = b"\x40\x00" + b"x" * 4000
    head = b"\x02\x00\x01" + (12 + len(properties)).to_bytes(4, "big") + b"\x00\x3c\x00\x00"
    raw = head + (200).to_bytes(8, "big") + properties + b"\xce" + b"b" * 200
    wide = FakeMessage(b"\x00\x00", raw, 200, PERSISTENT)
    below, at = messages(0, 1, 4088)[0], messages(1, 1, 4096)[0]
    shared.share("/", [below, at, wide])
    shared.append("/")
    assert (below.handle, at.handle >= 0, wide.handle >= 0) == (-1, True, True)


def test_an_append_that_finds_no_room_is_tried_again_and_done_once() -> None:
    shared, side = work()
    made = messages(0, 3, LARGE)
    shared.share("/", made)
    side.filesystem.fail("create", errno.ENOSPC)
    with pytest.raises(DiskFull):
        shared.append("/")
    shared.append("/")
    shared.append("/")
    assert side.vhost().persistent.stats()["appended_messages"] == 3


def test_references_are_dropped_for_all_vhosts_that_are_still_there() -> None:
    shared, side = work()
    side.open(2, vhost="other")
    made = {vhost: messages(0, 1, LARGE) for vhost in ("/", "other")}
    for vhost, sent in made.items():
        shared.share(vhost, sent)
        shared.append(vhost)
    shared.drop_refs()
    for vhost, sent in made.items():
        shared.dropped(vhost).append(sent[0].handle)
    side.context.delete_vhost("other")
    shared.drop_refs()
    assert side.vhost().persistent.refs_of(made["/"][0].handle) == 0
    assert not side.context.has_vhost("other"), "dropping makes no vhost"


def test_what_a_deleted_vhost_had_to_do_does_not_reach_the_one_made_again() -> None:
    shared, _ = work()
    shared.dropped("/").append(5)
    shared.forget("/")
    shared.forget("unknown")
    assert shared.vhosts() == []


@pytest.mark.parametrize("change", ["add", "drop"])
@pytest.mark.parametrize("at", [0, 1])
def test_changes_of_references_that_the_index_has_no_room_for_are_finished_and_done_once(
    monkeypatch: pytest.MonkeyPatch, change: str, at: int
) -> None:
    side = DiskSide()
    for queue_id in (1, 2):
        side.open(queue_id, str(queue_id))
    made = messages(0, 4, LARGE)
    side.commit(Append(1, 0, made, None), Append(2, 0, [made[0], made[2]], None))
    table = type(next(iter(side.vhost().persistent._segments.tables.values())))
    whole, countdown = getattr(table, change), [at]

    def changed(self: object, *values: int) -> object:
        if countdown[0] == 0:
            countdown[0] -= 1
            raise DiskFull("index.db: database or disk is full")
        countdown[0] -= 1
        return whole(self, *values)

    monkeypatch.setattr(table, change, changed)
    if change == "add":
        side.commit(Append(2, 2, [made[1], made[3]], None))
        assert references_of(side, made) == [2, 2, 2, 2]
    else:
        side.commit(AckMany(1, [0, 2]))
        assert references_of(side, made) == [1, 1, 1, 1]
    assert len(side.waits) == 1


def references_of(side: DiskSide, made: Sequence[StoredMessage]) -> list[int]:
    return [side.vhost().persistent.refs_of(message.handle) for message in made]


def test_a_commit_whose_plan_found_no_descriptor_refers_to_its_messages_once() -> None:
    side = DiskSide(store_index="paged", segment_size_limit=40_000)
    side.open()
    side.open(2, "q2")
    store = side.vhost().persistent
    store._index._limit = 0  # type: ignore[attr-defined]
    made = side.append(0, 60, LARGE)
    more = messages(60, 3, LARGE)
    side.filesystem.fail("open", errno.EMFILE, path_part="/index/")
    side.commit(Append(1, 60, list(more), None), Append(2, 0, [*more, made[0]], None))
    assert [store.refs_of(one.handle) for one in more] == [2, 2, 2]
