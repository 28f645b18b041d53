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


def test_one_that_is_being_put_back_is_claimed_until_it_is_gone_or_given_up() -> None:
    disk, name = kept()
    ours = quarantine.Quarantine(disk, "/data")
    assert [ours.claim(name), ours.claim(name)] == [True, False]
    ours.release(name)
    assert ours.claim(name)
    disk.fail("unlink", errno.EIO, path_part="quarantine")
    with pytest.raises(OSError, match="Input/output error"):
        ours.remove(name)
    assert not ours.claim(name)
    ours.remove(name)
    assert ours.claim(name)


@pytest.mark.parametrize(
    "change",
    [
        (b'"queue":"q"', b'"queue":[1]'),
        (b'"vhost":"/"', b'"vhost":{}'),
        (b'"seq":1', b'"seq":' + b"[" * 100_000 + b"]" * 100_000),
        (b'"seq":1,', b""),
        (b'{"vhost"', b'\xff{"vhost"'),
    ],
)
def test_a_file_that_somebody_has_changed_is_none_of_ours(change: tuple[bytes, bytes]) -> None:
    disk, name = kept()
    path = f"/data/quarantine/{name}"
    content = disk.read_file(path)
    disk.unlink(path)
    disk.create(path).pwrite(content.replace(*change), 0)
    ours = quarantine.Quarantine(disk, "/data")
    assert (ours.listing(), ours.load(name)) == ([], None)
