"""Many files whose sync failed get back what only the log has of them, and that is read once.

Covers: storage/log/groups.py, storage/log/syncs.py
"""

from __future__ import annotations

import errno

import pytest

from tests.support.mounted_log import OPTIONS, QUEUE, mounted, moved_out, synced

COUNT = 6
LOGS = 2  # the log's files


@pytest.mark.parametrize("ends", [False, True])
def test_the_log_is_read_once_for_all_files_whose_sync_failed(ends: bool) -> None:
    """In a sync of theirs, or as the next generation of the log begins."""
    filesystem, base = mounted(options=OPTIONS._replace(limit=1 << 20, queue_limit=100))
    base.reverts = True
    files = [moved_out(filesystem, f"{at}.qi") for at in range(COUNT)]
    for file in files:
        file.pwrite(b"acked" * 10, 500)
    synced(filesystem, *files)
    for file in files if not ends else ():
        file.pwrite(b"much" * 10_000, 550)
    base.fail("fdatasync", times=COUNT, path_part=".qi")
    before = base.counters.calls.get("pread", 0)
    if ends:
        filesystem.groups.begin_generation()
    else:
        assert dict(filesystem.sync_all(files, [])).keys() == set(files)
    # A generation says it again, too.
    assert base.counters.calls["pread"] - before == (2 * LOGS if ends else LOGS)
    for at in range(COUNT):
        assert base.read_file(f"{QUEUE}/{at}.qi")[500:550] == b"acked" * 10


def test_one_that_the_disk_refuses_keeps_the_others_from_nothing() -> None:
    filesystem, base = mounted(options=OPTIONS._replace(limit=1 << 20, queue_limit=100))
    base.reverts = True
    files = [moved_out(filesystem, f"{at}.qi") for at in range(3)]
    for file in files:
        file.pwrite(b"acked" * 10, 500)
    synced(filesystem, *files)
    for file in files:
        file.pwrite(b"much" * 10_000, 550)
    base.fail("fdatasync", times=3, path_part=".qi")
    base.fail("pwrite", errno.EIO, path_part="1.qi")
    assert dict(filesystem.sync_all(files, [])).keys() == set(files)
    there = [base.read_file(f"{QUEUE}/{at}.qi")[500:550] == b"acked" * 10 for at in range(3)]
    assert there == [True, False, True]
    assert all(file.pread(50, 500) == b"acked" * 10 for file in files)
