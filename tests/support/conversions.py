"""A queue of several segments on its way from one version of its files to the other, on a `DiskSide`."""

from __future__ import annotations

from tests.support.disk_side import DiskSide
from tests.support.sim_filesystem import SimFileSystem

FOR_GOOD = 1 << 30


ENDINGS = {1: ".idx", 2: ".qi"}


def three_segments(version: int, **options: object) -> DiskSide:
    """A queue with 40 messages in three index segments of one version."""
    side = DiskSide(segment_entry_count=16, convert_slice=1, journal_entries=8, **options)
    side.open(version=version)
    for first in range(0, 40, 8):
        side.append(first, 8)
    side.jobs.idle()
    return side


def started_again(filesystem: SimFileSystem, version: int, **options: object) -> DiskSide:
    """The next start, which finds the queue, on such a disk."""
    side = DiskSide(
        filesystem,
        has_sqlite=False,
        **{"segment_entry_count": 16, "convert_slice": 1, "journal_entries": 8, **options},
    )
    side.take_up(1, "q", version)
    return side


def convert_all(side: DiskSide) -> int:
    """Convert until nothing is left; gives how many slices had something."""
    slices = 0
    for _ in range(30):
        if not side.jobs.is_converting:
            return slices
        slices += side.jobs.convert()
    raise AssertionError("it does not come to an end")


def settle(side: DiskSide) -> None:
    """Let what is done every few seconds be done, too."""
    for _ in range(3):
        side.jobs.idle()
        side.context.sweep()
