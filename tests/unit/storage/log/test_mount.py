"""A store gets a log, is opened with one, and has it taken away."""

from __future__ import annotations

import contextlib
import os
import random
from pathlib import Path

import pytest

from burrowmq.storage.errors import SyncFailed
from burrowmq.storage.files.filesystem import OsFileSystem
from burrowmq.storage.log.mount import mount, remove_log, unmount
from tests.support.machine_disk import MachineDisk
from tests.support.mounted_log import (
    IDENTITY,
    OPTIONS,
    QUEUE,
    QUEUES,
    made,
    mounted,
    moved_out,
    synced,
)


def test_taking_the_log_away_gives_every_queue_its_files() -> None:
    filesystem, base = mounted()
    for number in range(70):
        made(filesystem, f"{QUEUES}/q{number}/a")
    assert unmount(filesystem) is base
    remove_log(base, "/data")
    remove_log(base, "/data")
    found = base.cut(random.Random(3))
    assert len(found.listdir(QUEUES)) == 70
    assert found.content(f"{QUEUES}/q69/a") == b"data"
    assert not found.exists("/data/commit_log")


def test_a_start_that_cannot_sync_what_it_replayed_is_refused() -> None:
    filesystem, base = mounted()
    file = moved_out(filesystem)
    file.pwrite(b"little", 500)
    synced(filesystem, file)
    base.fail("fdatasync", path_part="0.qi")
    with pytest.raises(SyncFailed, match=r"0\.qi: fdatasync failed"):
        mounted(base)


def test_a_store_that_gets_a_log_has_the_directories_of_its_queues() -> None:
    """A process that was killed, and had no log, made them; whoever syncs them later asks a log that knows nothing of it."""
    disk = MachineDisk()
    disk.mkdir(QUEUES)
    for directory in ("/", "/data", "/data/vhosts", "/data/vhosts/v"):
        disk.fsync_dir(directory)
    disk.mkdir(QUEUE)
    filesystem, _ = mount(disk, "/data", IDENTITY, OPTIONS, is_new=True)
    assert filesystem.sync_all([], [QUEUES]) == []
    assert {disk.cut(random.Random(seed)).exists(QUEUE) for seed in range(20)} == {True}


def test_nothing_stays_open(tmp_path: Path) -> None:
    (tmp_path / "vhosts/v/queues").mkdir(parents=True)
    real = OsFileSystem()
    options = OPTIONS._replace(queue_limit=100)
    filesystem, _ = mount(real, str(tmp_path), IDENTITY, options, is_new=True)
    file = made(filesystem, f"{tmp_path}/vhosts/v/queues/q/0.qi", b"x" * 500)
    synced(filesystem, file)
    file.pwrite(b"y", 500)
    synced(filesystem, file)
    name = str(tmp_path)
    assert [one for one in open_files() if one.startswith(name)]
    filesystem.release()
    assert not [one for one in open_files() if one.startswith(name)]


def open_files() -> list[str]:
    found = []
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found.append(os.readlink(f"/proc/self/fd/{number}"))
    return found
