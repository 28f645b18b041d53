"""What can be caught together."""

from __future__ import annotations

import pytest

from burrowmq.storage import errors


@pytest.mark.parametrize(
    ("error", "base"),
    [
        (errors.LimitChanged, errors.StoreRefused),
        (errors.ForeignStore, errors.StoreRefused),
        (errors.UnknownFormat, errors.StoreRefused),
        (errors.DiskFull, errors.WriteFailed),
        (errors.SyncFailed, errors.StorageError),
        (errors.ReadFailed, errors.StorageError),
        (errors.StoreClosed, errors.StorageError),
        (errors.StoreRefused, errors.StorageError),
    ],
)
def test_hierarchy(error: type[Exception], base: type[Exception]) -> None:
    assert issubclass(error, base)
    assert not issubclass(error, OSError)


def test_a_failed_sync_is_no_failed_write() -> None:
    assert not issubclass(errors.SyncFailed, errors.WriteFailed)


def test_nobody_is_told_to_start_a_node_that_tries_again() -> None:
    text = errors.refused_for_now(errors.ReadFailed("0.qi: pread failed: no (EIO)"))
    assert text == (
        "0.qi: pread failed: no (EIO); look at the disk and at the kernel's log;"
        " it is tried again by itself until it works: what was confirmed is kept"
    )
    directory = errors.DirectoryFailed("q: fsync failed: no (EIO)", "q")
    assert errors.refused_for_now(directory) == errors.with_way_out(directory)
    assert "start the node again" in errors.with_way_out(directory)
    full = errors.DiskFull("0.qi: pwrite failed: full (ENOSPC)")
    assert errors.refused_for_now(full) == errors.with_way_out(full)
    foreign = errors.ReadFailed("0.qi: open failed: no (EACCES)")
    foreign.__cause__ = PermissionError()
    assert errors.refused_for_now(foreign).endswith("to the user who runs the node")
