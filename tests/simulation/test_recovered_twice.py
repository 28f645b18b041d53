"""Every start on the same files answers the same, be the one before it whole, or cut off by another power cut.

A recovery writes (acks, removals, journals moved into segment files) before anybody asks it anything; what it wrote must
not change what the next one finds.
"""

from __future__ import annotations

import copy
import random

import pytest

from burrowmq.storage.directory.terms import CLEAN_FILE
from burrowmq.storage.engine import Engine
from tests.simulation.store_world import (
    OPTIONS,
    VHOST,
    SilentObserver,
    SimDefinitions,
    World,
    read_all,
)
from tests.support.sim_filesystem import PowerCut, SimFileSystem
from tests.support.stored_message import FakeMessage

SEEDS = 25
Answer = dict[str, list[tuple[int, bytes, int]]]
Rows = dict[tuple[str, str], object]


def files_of_a_crash(seed: int, versions: tuple[int, ...]) -> tuple[SimFileSystem, Rows]:
    """What a power cut left of a workload, and the definitions."""
    rng = random.Random(seed)
    world = World(seed, strict=bool(seed & 1), versions=versions)
    world.filesystem.cut_before = world.filesystem.operations + rng.randint(20, 250)
    try:
        world.run(200)
    except PowerCut:
        pass
    return world.filesystem.cut(rng), world.rows


def start(filesystem: SimFileSystem, rows: Rows) -> Answer:
    """Start as a node does, and read everything."""
    kept = dict(rows)
    engine = Engine(
        "/data",
        filesystem,
        OPTIONS,
        SilentObserver(),
        FakeMessage,
        lambda _: SimDefinitions(filesystem, kept),
    )
    engine.recover()
    engine.start_inline()
    names = [name for kind, name in rows if kind == "queue"]
    logs = {name: engine.open_queue(VHOST, name, durable=True) for name in names}
    assert not engine.discard_unclaimed()
    engine.hand_over()
    return {
        name: [(seq, message.raw, expiry) for seq, message, expiry in read_all(log, 50)]  # type: ignore[attr-defined]
        for name, log in logs.items()
    }


@pytest.mark.parametrize("versions", [(1,), (2,), (1, 2)], ids=str)
def test_the_next_start_finds_what_this_one_found(versions: tuple[int, ...]) -> None:
    found = sum(
        starts_alike(seed, *files_of_a_crash(seed, versions), cuts=3) for seed in range(SEEDS)
    )
    assert found > SEEDS * 10


@pytest.mark.parametrize("versions", [(1,), (2,), (1, 2)], ids=str)
def test_nor_do_old_files_among_the_new_ones_change_that(versions: tuple[int, ...]) -> None:
    found = sum(
        starts_alike(seed, *files_with_stale_ones(seed, versions), cuts=1) for seed in range(SEEDS)
    )
    assert found > SEEDS * 10


def files_with_stale_ones(seed: int, versions: tuple[int, ...]) -> tuple[SimFileSystem, Rows]:
    """The same, but one or two files are as they were some time before: writes that the disk lost.

    A clean stop would be taken at its word, and its index files not be read: there is none.
    """
    rng = random.Random(seed)
    world = World(seed, strict=bool(seed & 1), versions=versions)
    world.run(rng.randint(20, 80))
    world.sync()
    before = copy.deepcopy(world.filesystem)
    world.filesystem.cut_before = world.filesystem.operations + rng.randint(20, 150)
    try:
        world.run(150)
    except PowerCut:
        pass
    files = world.filesystem.cut(rng)
    changed = [
        path
        for path in sorted({*files.paths()} & {*before.paths()})
        if files.content(path) != before.content(path) and not path.endswith("STORE.json")
    ]
    for path in rng.sample(changed, min(len(changed), 1 + seed % 2)):
        was = before.content(path)
        files._find(path).durable[:] = files._find(path).content[:] = was
    for names in (files._names, files._durable_names):
        names["/data"].pop(CLEAN_FILE, None)
    return files, world.rows


def starts_alike(seed: int, stale: SimFileSystem, rows: Rows, *, cuts: int) -> int:
    """Start on copies of the files, twice and with power cuts in between; how many messages each finds."""
    files = copy.deepcopy(stale)
    first = start(files, rows)
    assert start(files.process_killed(), rows) == first, f"seed {seed}: the process was killed"
    rng = random.Random(seed)
    for _ in range(cuts):
        files = copy.deepcopy(stale)
        files.cut_before = files.operations + rng.randint(1, 30)
        try:
            start(files, rows)
        except PowerCut:
            pass
        assert start(files.cut(rng), rows) == first, f"seed {seed}: cut before {files.cut_before}"
    return sum(map(len, first.values()))
