"""What a review found and nobody has mended yet: who mends one takes the mark away.

Covers: storage/queue/convert.py
"""

from __future__ import annotations

import errno

import pytest

from burrowmq.storage.loop.staged_commit import SetVersion
from tests.unit.storage.disk.test_conversion import three_segments


@pytest.mark.xfail(strict=True, reason="open: a full disk blocks the queue until the next start")
@pytest.mark.parametrize("source", [1, 2])
def test_a_conversion_waits_for_room_for_the_sync_of_its_directory(source: int) -> None:
    side = three_segments(source)
    side.commit(SetVersion(1, 3 - source))
    place = side.paths(".queue_name")[0].rpartition("/")[0]
    side.filesystem.fail("fsync_dir", errno.ENOSPC, path_part=place)
    for _ in range(30):
        side.jobs.convert()
    assert not side.writer.refusals
    assert not side.jobs.is_converting
    assert side.read() == list(range(40))
