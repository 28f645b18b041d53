"""A flush that stops behind an emptied segment: its file is gone, the segment is not, and may get another one.

Covers: storage/queue/v1/files.py, storage/queue/segment.py
"""

from __future__ import annotations

import errno

import pytest

from burrowmq.storage.loop.staged_commit import Append
from tests.support.disk_side import DiskSide, messages

OPTIONS = {"segment_entry_count": 16, "journal_run_bytes": 400}


def used_again() -> DiskSide:
    """Segment 0 has its second file: the flush that removed the first could not write to segment 1."""
    side = DiskSide(**OPTIONS)
    side.open(version=1)
    side.append(
        0, 14
    )  # goes to 0.idx at once; places 14 and 15 come late, as a paged-out message does
    side.append(16, 4)
    for _ in range(4):
        side.jobs.idle()
    side.ack(0, 6)
    for _ in range(4):
        side.jobs.idle()  # 0.idx says these acks
    side.append(20, 1)
    side.ack(7, 13)
    side.filesystem.fail("pwrite", errno.EIO, times=2, path_part="/1.idx")
    for _ in range(3):
        side.jobs.idle()
    side.filesystem.heal()
    side.commit(Append(1, 14, list(messages(14, 2, 300)), None))
    assert len(side.paths("/0.idx")) == 1
    return side


def test_nobody_takes_the_acks_of_the_first_file_for_damaged_in_the_second() -> None:
    side = used_again()
    scrub = side.jobs.scrub
    scrub.request()
    for at in range(200):
        scrub.step(1e6 + at * 1000.0)
        side.jobs.idle()
        if not scrub.status.is_running:
            break
    assert scrub.status.last is not None
    assert not side.observer.events["file_damaged"]


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("idles", [0, 1, 6])
def test_no_acked_message_comes_back(is_clean: bool, idles: int) -> None:
    side = used_again()
    for _ in range(idles):
        side.jobs.idle()
    assert side.read() == [14, 15, 16, 17, 18, 19, 20]
    if is_clean:
        side.jobs.close({1: (21, 0)})
    again = DiskSide(side.filesystem.process_killed(), **OPTIONS)
    again.take_up(version=1)
    assert again.report.clean is is_clean
    assert again.read() == [14, 15, 16, 17, 18, 19, 20]
