"""What a start of version 1 finds is durable when it ends: two power cuts in a row.

Covers: storage/queue/v1/files.py
"""

from __future__ import annotations

import random

from burrowmq.storage.loop.staged_commit import Ack, SetVersion
from tests.support.conversions import convert_all
from tests.support.disk_side import DiskSide
from tests.support.sim_filesystem import Fate, SimFileSystem


def acked_in_the_file_alone() -> SimFileSystem:
    """A journal has four messages whose acks only their segment's file has; the power went in the flush that wrote them."""
    side = DiskSide(segment_entry_count=16)
    side.open(version=1)
    side.append(0, 4)
    for _ in range(3):  # the queue is quiet, and its first journal goes
        side.jobs.idle()
    side.append(4, 4)
    side.jobs.upkeep()
    side.commit(Ack(1, 0, 7, None), sync=False)

    def fate(kind: str, path: str) -> Fate:
        return "lost" if kind == "content" and path.endswith(".jif") else "kept"

    return side.filesystem.cut(random.Random(1), fate_of=fate)


def test_what_a_start_has_found_acked_stays_away_when_its_journal_comes_back() -> None:
    disk = acked_in_the_file_alone()
    side = DiskSide(disk, segment_entry_count=16)
    assert side.report.messages == 0

    def fate(_: str, path: str) -> Fate:
        return "lost" if path.endswith(".jif") else "kept"

    again = DiskSide(side.filesystem.cut(random.Random(1), fate_of=fate), segment_entry_count=16)
    assert again.report.messages == 0


def test_an_empty_segment_goes_once_its_journal_is_durably_gone() -> None:
    side = DiskSide(acked_in_the_file_alone(), segment_entry_count=16)
    side.take_up(version=1)
    for _ in range(4):
        side.jobs.idle()
    assert not side.paths(".jif")
    assert not side.paths(".idx")


def spared() -> DiskSide:
    """The start after that: an empty segment whose journal is on its way out."""
    side = DiskSide(acked_in_the_file_alone(), segment_entry_count=16, convert_slice=1)
    side.take_up(version=1)
    return side


def test_messages_may_come_into_such_a_segment() -> None:
    side = spared()
    side.append(8, 3)
    side.jobs.idle()
    assert side.read() == [8, 9, 10]
    again = DiskSide(side.filesystem.cut(random.Random(1)), segment_entry_count=16)
    assert again.report.messages == 3


def test_a_queue_with_such_a_segment_is_converted() -> None:
    side = spared()
    side.append(8, 3)
    side.commit(SetVersion(1, 2))
    convert_all(side)
    for _ in range(3):
        side.jobs.idle()
    assert side.read() == [8, 9, 10]
    assert not side.paths(".idx")
    again = DiskSide(side.filesystem.cut(random.Random(1)), segment_entry_count=16)
    assert again.report.messages == 3


def test_a_clean_stop_leaves_nothing_of_such_a_segment_to_the_next_start() -> None:
    side = spared()
    side.jobs.close({1: (8, 8)})
    again = DiskSide(side.filesystem.process_killed(), segment_entry_count=16)
    assert again.report.clean
    assert again.report.messages == 0
    assert not again.observer.events["record_lost"]
