"""Whatever goes behind its definition, or comes before it, is said to go.

Covers: storage/disk/deletions.py
Covers: storage/disk/writer.py
"""

from __future__ import annotations

import errno

import pytest

from burrowmq.storage.loop.staged_commit import (
    Command,
    Delete,
    DeleteVhost,
    Open,
)
from burrowmq.storage.names import QueueNames
from tests.support.disk_side import DiskSide
from tests.support.disk_side_steps import Q, dead_letters

NEW = QueueNames("/", "new")


def said(side: DiskSide) -> list[object]:
    """What the definitions' rows say."""
    rows = [value for (kind, _), value in side.rows.items() if kind == "removal"]
    return [place for row in rows for place in row]  # type: ignore[attr-defined]


def at(names: QueueNames) -> list[str]:
    return [names.vhost, names.directory]


def refused(side: DiskSide, *commands: Command) -> None:
    """A commit whose deletions the disk refuses, when its definitions are written."""
    side.filesystem.fail("rmtree", errno.ENOSPC, times=20)
    with pytest.raises(Exception, match="ENOSPC"):
        side.commit(*commands, definitions=[("queue", "q", None)])


def test_every_level_of_a_queue_is() -> None:
    side = DiskSide()
    side.open()
    level = Q._replace(level=3)
    side.commit(Open(2, level, True))
    for queue_id in (1, 2):
        side.append(0, 3, queue_id=queue_id)
    refused(side, Delete(1), Delete(2))
    assert said(side) == [at(Q), at(level)]


def test_a_virtual_host_is_with_all_in_it() -> None:
    side = DiskSide()
    side.open(1, "q", vhost="v")
    side.append(0, 3)
    refused(side, DeleteVhost(0, "v"))
    assert said(side) == [["v", ""]]


def test_a_queue_that_is_not_durable_is_not() -> None:
    side = DiskSide()
    side.commit(Open(1, Q, False))
    side.append(0, 3)
    side.commit(Delete(1))
    assert not side.rows


def test_what_has_gone_is_so_no_more_when_the_next_definitions_come() -> None:
    side = DiskSide()
    side.open()
    side.append(0, 3)
    side.commit(Delete(1))
    assert said(side) == [at(Q)]
    side.commit(Open(2, Q, True), definitions=[("queue", "q", {})])
    assert not said(side)


def test_a_queue_that_gets_dead_letters_before_its_definition_is_until_then() -> None:
    """Its definition waits with the end of the queue that they come from."""
    side = DiskSide()
    side.open()
    side.append(0, 3)
    commit = dead_letters(2, first_seq=0)
    commit.commands.insert(0, Open(2, NEW, True))
    commit.definitions.append(("queue", "new", {}))
    side.filesystem.fail("commit", errno.EIO, nth=2, times=2)
    with pytest.raises(Exception, match="EIO"):
        side.jobs.apply(commit, side.no_room)
    assert any(NEW.directory in path for path in side.filesystem.paths())
    assert said(side) == [at(NEW)]
    assert ("queue", "new") not in side.rows


def test_it_is_not_once_it_is_defined() -> None:
    side = DiskSide()
    side.open()
    side.append(0, 3)
    commit = dead_letters(2, first_seq=0)
    commit.commands.insert(0, Open(2, NEW, True))
    commit.definitions.append(("queue", "new", {}))
    side.jobs.apply(commit, side.no_room)
    assert said(side) == [at(Q)]
    assert side.read(2) == [0, 1, 2]
