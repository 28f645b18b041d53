"""A store gets a log, is opened with one, and has it taken away."""

from __future__ import annotations

import contextlib
import os
import random
from pathlib import Path

import pytest

from burrowmq.storage.errors import SyncFailed
from burrowmq.storage.files.filesystem import OsFileSystem
from burrowmq.storage.log import commit_log
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
    names_left,
    one_file_behind,
    synced,
)
from tests.support.sim_filesystem import PowerCut, SimFileSystem


def test_the_log_of_a_store_that_has_begun_it_four_billion_times_goes_on() -> None:
    filesystem, base = mounted()
    made(filesystem, f"{QUEUE}/0.qi")
    filesystem.groups._log.resume((1 << 32) - 3, filesystem.groups._log._counting)
    for number in range(6):
        filesystem.groups.begin_generation()
        made(filesystem, f"{QUEUE}/{number + 1}.qi")
        filesystem.groups.flush()
        filesystem, base = mounted(base.process_killed())
        assert filesystem.listdir(QUEUE) == [f"{one}.qi" for one in range(number + 2)]
    assert filesystem.groups._log.generation > 1 << 32


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


def test_what_a_move_that_was_cut_off_left_is_no_queues() -> None:
    filesystem, base = mounted()
    synced(filesystem, made(filesystem, f"{QUEUE}/0.qi"))
    killed = base.process_killed()
    killed.mkdir(QUEUE)
    killed.create(f"{QUEUE}/1.qi").pwrite(b"half", 0)
    again, _ = mounted(killed)
    assert not killed.exists(QUEUE)
    assert again.listdir(QUEUE) == ["0.qi"]


def test_a_generation_that_a_killed_process_has_not_synced_is_held_on_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It counts in the next start, which writes over the one before: the only one that the disk had."""
    monkeypatch.setattr(commit_log, "_PART", 100)  # a snapshot is whole after several writes
    filesystem, first = mounted()
    for directory in ("/", "/data", "/data/vhosts", "/data/vhosts/v", QUEUES):
        first.fsync_dir(directory)
    synced(filesystem, *(made(filesystem, f"{QUEUES}/{name}/0.qi", b"x" * 300) for name in "abc"))
    for killed_at in range(20):
        second = stopped_start(first.process_killed(), killed_at)
        for cut_at in range(20):
            third = stopped_start(second.process_killed(), cut_at)
            for seed in range(8):
                found, _ = mounted(third.cut(random.Random(seed)))
                assert found.read_file(f"{QUEUES}/b/0.qi") == b"x" * 300, (killed_at, cut_at)


@pytest.mark.parametrize("is_renamed", [False, True])
def test_a_file_that_a_killed_process_removed_does_not_come_back_without_what_only_the_log_had(
    is_renamed: bool,
) -> None:
    """Its name was not durably gone, and the next start begins a generation that says nothing of it."""
    base, filesystem, _ = one_file_behind()
    if is_renamed:
        aside = filesystem.create(f"{QUEUE}/0.tmp")
        aside.pwrite(b"anew", 0)
        aside.fdatasync()
        filesystem.rename(f"{QUEUE}/0.tmp", f"{QUEUE}/0.qi")
        filesystem.write_noted()
    else:
        filesystem.unlink(f"{QUEUE}/0.qi")
    killed = base.process_killed()
    before = [killed.cut(random.Random(seed)) for seed in range(20)]
    assert b"x" * 500 in {
        each.content(f"{QUEUE}/0.qi")[:500] for each in before if names_left(each)
    }
    mounted(killed)
    for seed in range(20):
        found = killed.cut(random.Random(seed))
        assert [found.content(name) for name in names_left(found)] == [b"anew"] * is_renamed


def stopped_start(base: SimFileSystem, operations: int) -> SimFileSystem:
    """The disk of a start that came so far."""
    base.cut_before = base.operations + operations
    with contextlib.suppress(PowerCut):
        mounted(base)
    base.cut_before = None
    return base


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
