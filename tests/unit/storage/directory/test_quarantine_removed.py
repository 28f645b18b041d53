"""What was taken out of quarantine (put back into its queue, or dropped for good) stays out, whatever the power does.

Covers: storage/directory/quarantine.py
"""

from __future__ import annotations

import errno
import random

import pytest

from burrowmq.storage.directory import quarantine
from burrowmq.storage.errors import SyncFailed
from tests.support.machine_disk import MachineDisk

ABOUT = quarantine.SetAside(
    vhost="/", queue="q", level=0, seq=1, expiry=0, reason="r", source="s", size=1, set_aside_at=1
)


def kept() -> tuple[MachineDisk, str]:
    """A disk with one message in quarantine, and its name there."""
    disk = MachineDisk()
    disk.mkdir("/data")
    disk.fsync_dir("/")
    return disk, quarantine.keep(disk, "/data", "/data/vhosts/v/queues/q", ABOUT, b"x")


@pytest.mark.parametrize("seed", range(8))
def test_what_was_taken_out_does_not_come_back(seed: int) -> None:
    disk, name = kept()
    quarantine.Quarantine(disk, "/data").remove(name)
    assert quarantine.names(disk.cut(random.Random(seed)), "/data") == []


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_one_that_may_come_back_is_told_of_and_gone_for_now(number: int) -> None:
    disk, name = kept()
    counted: list[int] = []
    ours = quarantine.Quarantine(disk, "/data")
    ours.on_removed = lambda: counted.append(len(quarantine.names(disk, "/data")))
    disk.fail("fsync_dir", number, path_part="quarantine")
    with pytest.raises(SyncFailed, match="quarantine"):
        ours.remove(name)
    assert (ours.listing(), counted) == ([], [0])
    ours.remove(name)  # of which there is nothing left to sync


def test_one_that_cannot_be_removed_stays() -> None:
    disk, name = kept()
    disk.fail("unlink", errno.EIO, path_part="quarantine")
    with pytest.raises(OSError, match="Input/output error"):
        quarantine.Quarantine(disk, "/data").remove(name)
    assert quarantine.names(disk, "/data") == [name]
