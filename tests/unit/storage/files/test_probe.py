"""A disk that takes a new file, one that does not, and one that is only full."""

from __future__ import annotations

import errno

import pytest

from burrowmq.storage.files.probe import PROBE_FILE, takes_writes
from tests.support.sim_filesystem import SimFileSystem


def made() -> SimFileSystem:
    filesystem = SimFileSystem()
    filesystem.mkdir("/data")
    return filesystem


def test_a_good_disk_takes_it_and_keeps_nothing() -> None:
    filesystem = made()
    assert [takes_writes(filesystem, "/data") for _ in range(2)] == [True, True]
    assert filesystem.listdir("/data") == []


@pytest.mark.parametrize("operation", ["create", "pwrite", "fdatasync", "fsync_dir"])
def test_each_call_counts_and_want_of_room_does_not(operation: str) -> None:
    for number, expected in ((errno.EIO, False), (errno.EROFS, False), (errno.ENOSPC, True)):
        filesystem = made()
        filesystem.fail(operation, number)
        assert takes_writes(filesystem, "/data") is expected
        assert filesystem.listdir("/data") == []


def test_a_file_that_could_not_be_removed_is_no_fault() -> None:
    filesystem = made()
    filesystem.fail("unlink", errno.EIO)
    assert takes_writes(filesystem, "/data")
    assert filesystem.listdir("/data") == [PROBE_FILE]
    assert takes_writes(filesystem, "/data")
    assert filesystem.listdir("/data") == []
