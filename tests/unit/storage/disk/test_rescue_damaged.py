"""A message that was damaged before a sync of another file failed is set aside, and not given up with its bytes.

Covers: storage/disk/rescue.py, storage/queue/v2/rewrite.py
"""

from __future__ import annotations

import errno

import pytest

from tests.support.disk_side import DiskSide

BODIES, INDEX = {1: ".idx", 2: ".qs"}, {1: ".jif", 2: ".qi"}


def rescued(version: int) -> DiskSide:
    """Of eight durable messages the last is damaged; the sync of a ninth fails in the file that has its entry."""
    side = DiskSide(segment_entry_count=16)
    side.open(version=version)
    side.append(0, 8)
    for _ in range(4):
        side.jobs.idle()
    (path,) = side.paths(BODIES[version])
    data = side.filesystem.content(path)
    place = data.rfind(b"\xa5\x51\x01\x00") + 60  # in the body of the last
    side.filesystem.damage(path, place, bytes((data[place] ^ 1,)))
    side.filesystem.fail("fdatasync", errno.EIO, path_part=INDEX[version])
    side.append(8, 1)
    assert side.writer.counters.rescues == 1
    return side


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("is_killed", [False, True])
def test_a_damaged_older_message_keeps_its_bytes_when_its_index_is_written_elsewhere(
    version: int, is_killed: bool
) -> None:
    side = rescued(version)
    assert not side.observer.events["record_lost"]
    if is_killed:
        side = DiskSide(side.filesystem.process_killed(), segment_entry_count=16)
        side.take_up(version=version)
    assert side.read() == [0, 1, 2, 3, 4, 5, 6, 8]
    side.jobs.idle()
    assert len([each for each in side.filesystem.paths() if "/quarantine/" in each]) == 1
    assert side.read() == [0, 1, 2, 3, 4, 5, 6, 8]
