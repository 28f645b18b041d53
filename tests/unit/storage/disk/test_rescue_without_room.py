"""A rescue whose references find no room in the index goes on without counting any of them twice.

Covers: storage/disk/rescue.py
Covers: storage/shared/vhost_store.py
"""

from __future__ import annotations

import errno

import pytest

from burrowmq.storage.errors import DiskFull
from burrowmq.storage.loop.staged_commit import Append
from burrowmq.storage.shared.store import MessageStore
from tests.support.disk_side import LARGE, DiskSide, messages


@pytest.mark.parametrize("name", ["add_range", "drop_range"])
@pytest.mark.parametrize("nth", range(1, 6))
def test_a_moved_message_has_as_many_references_as_entries(
    nth: int, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    side = DiskSide()
    side.open()
    side.open(2, "other")
    change, calls = getattr(MessageStore, name), 0

    def refused_once(store: MessageStore, first: int, last: int, *count: int) -> None:
        nonlocal calls
        calls += 1
        if calls == nth:
            raise DiskFull("the index has no room")
        change(store, first, last, *count)

    monkeypatch.setattr(MessageStore, name, refused_once)
    made = messages(0, 2, LARGE)
    side.filesystem.fail("fdatasync", errno.EIO, nth=2, path_part="msg_store_persistent")
    side.commit(Append(1, 0, list(made), None), Append(2, 0, list(made), None))
    assert side.writer.counters.rescues
    assert len(side.waits) == 1
    store = side.vhost().persistent
    assert [store.refs_of(one.handle) for one in made] == [2, 2]
    side.ack(0, 1, 1)
    side.ack(0, 1, 2)
    assert store.live_bytes == 0
