"""A sync that fails, or finds no room, while a node stops: what it was for is written elsewhere, as while it runs.

Covers: storage/disk/jobs.py, storage/directory/definition_store.py
"""

from __future__ import annotations

import errno
import random
from dataclasses import replace

import pytest

from burrowmq.storage.directory.definition_store import SqliteDefinitionStore
from burrowmq.storage.engine import Engine
from burrowmq.storage.errors import StorageError, StoreClosed
from burrowmq.storage.types import StoreOptions
from tests.simulation.store_world import SilentObserver
from tests.support.disk_side import writer_of
from tests.support.engine_on_disk import LARGE, commit, engine_on, publish, unopened
from tests.support.sim_filesystem import SimFileSystem
from tests.support.sqlite_disk import connect_on
from tests.support.stored_message import FakeMessage

PARTS = [".seg", ".qi", ".qs"]
PATH = "/data/definitions.db"


def begun(ballast_bytes: int = 1000) -> tuple[SimFileSystem, Engine]:
    """Large and small messages for which nobody waits."""
    disk = SimFileSystem()
    disk.mkdir("/data")
    engine = engine_on(disk, ballast_bytes=ballast_bytes, has_log=False)
    log = engine.open_queue("/", "q", durable=True)
    publish(log, 0, 5, LARGE)
    publish(log, 5, 5)
    engine.hand_over()
    return disk, engine


def was_clean(disk: SimFileSystem) -> bool:
    """Whether a start takes the stop for a clean one; all messages are there then."""
    report = unopened(disk.cut(random.Random(1)), has_log=False).recover()
    assert not report.clean or report.messages == 10
    return report.clean


@pytest.mark.parametrize("part", PARTS)
def test_no_room_in_a_sync_costs_the_ballast_as_none_in_a_write_does(part: str) -> None:
    disk, engine = begun()
    disk.fail("fdatasync", errno.ENOSPC, path_part=part)
    engine.close()
    assert not disk.exists("/data/ballast")
    assert was_clean(disk)


@pytest.mark.parametrize("part", PARTS)
def test_one_error_of_a_sync_costs_nothing(part: str) -> None:
    disk, engine = begun()
    disk.fail("fdatasync", errno.EIO, path_part=part)
    engine.close()
    assert was_clean(disk)


@pytest.mark.parametrize("part", PARTS)
def test_what_cannot_be_written_elsewhere_either_is_not_in_the_terms(part: str) -> None:
    disk, engine = begun()
    disk.fail("fdatasync", errno.EIO, times=2, path_part=part)
    with pytest.raises(StorageError):
        engine.close()
    disk.heal()
    assert not was_clean(disk)


@pytest.mark.parametrize("part", PARTS)
def test_without_a_ballast_the_stop_is_not_clean(part: str) -> None:
    disk, engine = begun(ballast_bytes=0)
    disk.fail("fdatasync", errno.ENOSPC, path_part=part)
    with pytest.raises(StorageError):
        engine.close()
    assert not was_clean(disk)


def fail_behind_the_log(disk: SimFileSystem, number: int) -> None:
    """The last thing that SQLite does is to remove it; the directory's sync follows, and fails."""
    unlink = disk.unlink

    def unlink_and_fail(path: str) -> None:
        unlink(path)
        if path.endswith("-wal"):
            disk.fail("fsync_dir", number)

    disk.unlink = unlink_and_fail  # type: ignore[method-assign]


def test_no_room_for_the_end_of_the_definitions_costs_the_ballast() -> None:
    """The terms are written by then, and are not written again."""
    disk = SimFileSystem()
    disk.mkdir("/data")
    engine = Engine(
        "/data",
        disk,
        replace(StoreOptions(), ballast_bytes=1000),
        SilentObserver(),
        FakeMessage,
        lambda path: SqliteDefinitionStore(path, connect_on(disk), disk),
    )
    engine.recover()
    engine.start_inline()
    engine.definitions.put("queue", "q", 1)
    commit(engine)
    fail_behind_the_log(disk, errno.ENOSPC)
    renames = disk.counters.calls.get("rename", 0)
    engine.close()
    assert not disk.exists("/data/ballast")
    assert disk.counters.calls["rename"] == renames + 2  # the terms, and the mark


@pytest.mark.parametrize(("number", "is_again"), [(errno.ENOSPC, True), (errno.EIO, False)])
def test_definitions_are_closed_again_only_where_there_was_no_room(
    number: int, is_again: bool
) -> None:
    disk = SimFileSystem()
    disk.mkdir("/data")
    store = SqliteDefinitionStore(PATH, connect_on(disk), disk)
    store.commit([("queue", "q", 1)])
    fail_behind_the_log(disk, number)
    with pytest.raises(StorageError):
        store.close()
    with pytest.raises(StoreClosed):
        store.commit([("queue", "r", 1)])
    syncs = disk.counters.calls["fsync_dir"]
    store.close()
    store.close()
    assert disk.counters.calls["fsync_dir"] == syncs + is_again


@pytest.mark.parametrize("times", [1, 3])
def test_no_descriptor_for_a_seal_that_was_left_out_is_waited_for(times: int) -> None:
    """What is open is ours, if not to the last file: to close it is what gives one."""
    disk = SimFileSystem()
    disk.mkdir("/data")
    engine = engine_on(disk, ballast_bytes=1000, has_log=False)
    log = engine.open_queue("/", "q", durable=True)
    for first in range(0, 10, 2):
        disk.fail("pwrite", errno.EIO, path_part=".seg")  # the segment is left, without a seal
        publish(log, first, 2, LARGE)
        commit(engine)
    engine.idle()
    writer_of(engine).context.release_clean_files()
    disk.fail("open", errno.EMFILE, nth=2, times=times, path_part=".seg")
    if times == 1:
        engine.close()
    else:
        with pytest.raises(StorageError):
            engine.close()
    assert was_clean(disk) == (times == 1)
