"""What a start makes durable of a log before it writes over the other file.

Covers: storage/log/mount.py
"""

from __future__ import annotations

import errno
import random

import pytest

from tests.support.mounted_log import (
    QUEUE,
    QUEUES,
    made,
    mounted,
    on_forgetful_disk,
    one_file_behind,
    synced,
)
from tests.support.sim_filesystem import PowerCut


@pytest.mark.parametrize(("number", "times"), [(errno.ENOSPC, 1), (errno.EIO, 2)])
def test_a_generation_whose_sync_failed_is_written_again_before_it_counts(
    number: int, times: int
) -> None:
    """Its pages are clean, and in memory alone: another sync of it says nothing."""
    base, filesystem = on_forgetful_disk()
    names = [f"{QUEUES}/r{each}/0.qi" for each in range(8)]
    for name in names:
        synced(filesystem, made(filesystem, name, name.encode() * 10))
    filesystem.groups.renew()
    base.fail("fdatasync", number, times=times, path_part="commit_log")
    assert filesystem.sync_all([], [QUEUES])
    base.heal()
    base = base.process_killed()
    wrote = []

    def cut(operation: str, path: str) -> None:
        if "1.log" not in path and "commit_log" in path:
            wrote.append(operation)
        base.is_off = operation == "fdatasync" and "pwrite" in wrote and "0.log" in path

    base.on_call = cut
    with pytest.raises(PowerCut):
        mounted(base)
    base.is_off = False
    base.on_call = lambda operation, path: None
    for seed in range(60):
        found, _ = mounted(base.cut(random.Random(seed)))
        assert all(found.read_file(name) == name.encode() * 10 for name in names)


@pytest.mark.parametrize("is_renamed", [False, True])
def test_a_directory_that_a_killed_process_took_away_does_not_come_back_without_what_the_log_had(
    is_renamed: bool,
) -> None:
    base, filesystem, file = one_file_behind()
    if is_renamed:
        filesystem.rename(QUEUE, f"{QUEUE}.1.gone")
    else:
        filesystem.rmtree(QUEUE)
    mounted(base)
    for seed in range(40):
        found, _ = mounted(base.cut(random.Random(seed)))
        assert not found.exists(file.path) or found.read_file(file.path)[500:505] == b"acked"
