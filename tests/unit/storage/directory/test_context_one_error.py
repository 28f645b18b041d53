"""One call that fails while a virtual host is made, or a queue's directory removed, ends no store.

Covers: storage/directory/context.py
"""

from __future__ import annotations

import errno
import random

import pytest

from burrowmq.storage.errors import DirectoryFailed
from burrowmq.storage.loop.staged_commit import Append, Delete, Open
from burrowmq.storage.names import QueueNames
from tests.support.disk_side import LARGE, DiskSide, messages

NEW = QueueNames("new", "q")


def begun() -> DiskSide:
    side = DiskSide()
    side.open()
    side.append(0, 3)
    return side


def change(side: DiskSide) -> None:
    """A virtual host more, and a queue less."""
    made = messages(0, 3, LARGE)
    side.commit(Open(2, NEW, True), Append(2, 0, list(made), None), Delete(1, 3))


@pytest.mark.parametrize(
    "operation", ["exists", "mkdir", "rmtree", "create", "pwrite", "fdatasync"]
)
def test_a_call_that_fails_once_is_made_again(operation: str) -> None:
    whole = begun()
    before = whole.filesystem.counters.calls.get(operation, 0)
    change(whole)
    for nth in range(1, whole.filesystem.counters.calls[operation] - before + 1):
        side = begun()
        side.filesystem.fail(operation, errno.EIO, nth=nth)
        change(side)
        after = DiskSide(side.filesystem.cut(random.Random(nth)))
        assert [(one.names, found.count) for one, found in after.context.recovered.values()] == [
            (NEW, 3)
        ]


@pytest.mark.parametrize("nth", [1, 2, 3])
def test_a_directory_of_a_virtual_host_is_not_synced_again(nth: int) -> None:
    side = begun()
    side.filesystem.fail("fsync_dir", errno.EIO, nth=nth)
    with pytest.raises(DirectoryFailed):
        side.commit(Open(2, NEW, True))
