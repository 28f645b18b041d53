"""A virtual host with a queue that a start has kept (`queue_undefined`) is deleted, and made again, in one commit.

Covers: storage/disk/deletions.py, storage/directory/context.py, storage/engine.py
"""

from __future__ import annotations

import random

import pytest

from burrowmq.storage.engine import Engine
from burrowmq.storage.names import NAME_FILE, QueueNames
from tests.support.engine_on_disk import commit, engine_on, publish, unopened
from tests.support.sim_filesystem import PowerCut, SimFileSystem

Q = QueueNames("v", "q")
LEVELS = (0, 3)
Rows = dict[tuple[str, str], object]


def begun(*, has_log: bool, is_named: bool) -> tuple[SimFileSystem, Rows, Engine]:
    """The virtual host is defined, its queues are not: of two queues two levels each have messages."""
    disk = SimFileSystem()
    disk.mkdir("/data")
    rows: Rows = {("vhost", '["v"]'): {"old": 1}}
    engine = engine_on(disk, rows, has_log=has_log)
    logs = [
        engine.open_queue("v", name, durable=True, level=level)
        for name in ("q", "r")
        for level in LEVELS
    ]
    for log in logs:
        publish(log, 0, 3)
    commit(engine)
    engine.close()
    if not is_named:
        disk.unlink("/data/CLEAN")
        for path in [path for path in disk.paths() if path.endswith(NAME_FILE)]:
            disk.damage(path, 0, bytes(len(disk.content(path))))
    engine = unopened(disk, rows, has_log=has_log)
    engine.recover()
    engine.start_inline()
    assert len(engine.discard_unclaimed()) == 4
    commit(engine)
    return disk, rows, engine


def again(engine: Engine) -> None:
    engine.delete_vhost("v")
    engine.definitions.delete("vhost", '["v"]')
    engine.definitions.put("vhost", '["v"]', {"new": 1})
    assert engine.is_deleting(*Q[:2])  # so that it is opened at once
    engine.definitions.put("queue", "v/q", 1)
    engine.open_queue(*Q[:2], durable=True)
    commit(engine)


@pytest.mark.parametrize("is_named", [True, False])
@pytest.mark.parametrize("has_log", [False, True])
def test_a_power_cut_leaves_the_new_queue_nothing_of_the_old_one(
    *, has_log: bool, is_named: bool
) -> None:
    """Nor one of the old queue's messages without the others, before that."""
    disk, _, engine = begun(has_log=has_log, is_named=is_named)
    before = disk.operations
    again(engine)
    assert disk.operations > before
    for at in range(before, disk.operations + 1):
        side, rows, engine = begun(has_log=has_log, is_named=is_named)
        side.cut_before = at
        try:
            again(engine)
            assert at == disk.operations
        except PowerCut:
            assert at < disk.operations
        for seed in range(4):
            found = unopened(side.cut(random.Random(seed)), dict(rows), has_log=has_log)
            found.recover()
            for level in LEVELS:
                old = found._recovered.take(Q._replace(level=level))
                is_new = ("queue", "v/q") in rows
                assert old is None or old.count in ((0,) if is_new else (0, 3))


def test_the_name_is_used_again_by_a_queue_of_its_own() -> None:
    disk, rows, engine = begun(has_log=False, is_named=True)
    again(engine)
    log = next(one for one in engine._logs.values() if one.names == Q)
    assert log.recovered is None
    publish(log, 0, 2)
    commit(engine)
    assert not engine.is_deleting(*Q[:2])
    engine.close()
    report = unopened(disk, rows, has_log=False).recover()
    assert (report.clean, report.messages, report.lost) == (True, 2, 0)


def test_a_virtual_host_without_such_queues_costs_none_anything() -> None:
    disk = SimFileSystem()
    disk.mkdir("/data")
    engine = engine_on(disk)
    engine.open_queue("v", "q", durable=True)
    commit(engine)
    engine.delete_vhost("v")
    assert engine.is_deleting("v", "q")
    assert not engine.is_deleting("v", "r")
