"""One call that fails while a whole file is put in place ends no store, and costs no clean stop.

Covers: storage/directory/terms.py
"""

from __future__ import annotations

import errno
import random

import pytest

from burrowmq.storage.engine import Engine
from burrowmq.storage.errors import StorageError
from burrowmq.storage.loop.queue_log import QueueLog
from tests.support.engine_on_disk import LARGE, commit, engine_on, publish, unopened
from tests.support.sim_filesystem import SimFileSystem


def begun() -> tuple[SimFileSystem, Engine, QueueLog]:
    disk = SimFileSystem()
    disk.mkdir("/data")
    engine = engine_on(disk, has_log=False)
    log = engine.open_queue("/", "q", durable=True)
    publish(log, 0, 1, LARGE)
    commit(engine)
    return disk, engine, log


def near_the_last_number(engine: Engine) -> None:
    assert engine._writer is not None
    engine._writer.context.recorded.ceiling = 10  # as after some thousand segments


@pytest.mark.parametrize("operation", ["exists", "create", "pwrite", "fdatasync", "rename"])
def test_segment_numbers_are_reserved_all_the_same(operation: str) -> None:
    disk, engine, log = begun()
    near_the_last_number(engine)
    disk.fail(operation, errno.EIO, path_part="STORE.json")
    publish(log, 1, 1, LARGE)
    commit(engine)
    assert disk.failed
    after = engine_on(disk.cut(random.Random(1)), has_log=False)
    assert after._writer is not None
    assert after._writer.context.recorded.first_segment > 10


def test_a_second_error_ends_the_store() -> None:
    disk, engine, log = begun()
    near_the_last_number(engine)
    disk.fail("rename", errno.EIO, times=2, path_part="STORE.json")
    publish(log, 1, 1, LARGE)
    with pytest.raises(StorageError, match=r"STORE\.json"):
        commit(engine)


def test_the_sync_of_the_name_is_not_made_again() -> None:
    disk, engine, log = begun()
    near_the_last_number(engine)
    rename = disk.rename

    def rename_and_fail(old: str, new: str) -> None:
        rename(old, new)
        disk.fail("fsync_dir", errno.EIO)

    disk.rename = rename_and_fail  # type: ignore[method-assign]
    publish(log, 1, 1, LARGE)
    with pytest.raises(StorageError):
        commit(engine)


@pytest.mark.parametrize("operation", ["create", "pwrite", "fdatasync", "rename"])
@pytest.mark.parametrize("part", ["terms", "CLEAN"])
def test_a_stop_is_a_clean_one(operation: str, part: str) -> None:
    disk, engine, _ = begun()
    disk.fail(operation, errno.EIO, path_part=part)
    engine.close()
    assert disk.failed
    assert unopened(disk.cut(random.Random(1)), has_log=False).recover().clean
