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
