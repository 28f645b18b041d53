"""Segments of any number of entries that may be configured: the last places have no octet of their own in the acks."""

from __future__ import annotations

import pytest

from tests.support.disk_side import DiskSide


@pytest.mark.parametrize("count", [300, 1001, 16_385, 65_535])
def test_a_segment_may_have_any_number_of_entries_that_may_be_configured(count: int) -> None:
    side = DiskSide(segment_entry_count=count)
    side.open()
    for first in range(0, count + 5, 500):
        side.append(first, min(500, count + 5 - first), 8)
    side.ack(1, count - 1)
    side.jobs.idle()
    again = DiskSide(side.filesystem.process_killed(), segment_entry_count=count)
    again.take_up()
    assert again.read() == [0, *range(count, count + 5)]
