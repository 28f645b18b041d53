"""Failing calls under the real engine: syncs that fail once or for good, a full disk, writes that stop half-way."""

from __future__ import annotations

import errno
import random
from collections import Counter

import pytest

from burrowmq.storage.errors import StorageError
from tests.simulation.store_world import World
from tests.support.sim_filesystem import PowerCut

VERSIONS = ((2,), (1,), (1, 2))


@pytest.mark.parametrize("versions", VERSIONS)
def test_a_failed_sync_loses_nothing_that_is_confirmed(versions: tuple[int, ...]) -> None:
    rescues: Counter[str] = Counter()
    for seed in range(150):
        world = World(seed, strict=bool(seed & 1), versions=versions)
        world.is_faulty = True
        rng = random.Random(seed)
        world.filesystem.fail("fdatasync", nth=rng.randint(3, 40), path_part="vhosts")
        world.filesystem.cut_before = world.filesystem.operations + rng.randint(60, 250)
        try:
            world.run(200)
        except PowerCut:
            pass
        except (StorageError, OSError):
            continue  # in a place where the store has to stop, or cannot start: nothing was confirmed since
        rescues.update(world.observer.events)
        world.filesystem.cut_before = None
        world.filesystem._faults.clear()
        world.crash()
        world.run(30)
    assert rescues["sync_failed"] > 50


def test_a_sync_that_fails_again_stops_the_store() -> None:
    world = World(1, strict=True)
    world.declare()
    world.sync()
    world.filesystem.fail("fdatasync", nth=1, times=1000, path_part="vhosts")
    with pytest.raises(StorageError):
        for _ in range(20):
            world.publish()
            world.sync()


@pytest.mark.parametrize("versions", VERSIONS)
def test_a_full_disk_costs_a_wait_and_no_message(versions: tuple[int, ...]) -> None:
    for seed in range(80 if versions == (2,) else 30):
        world = World(seed, strict=bool(seed & 1), versions=versions)
        world.is_faulty = True
        rng = random.Random(seed)
        for _ in range(6):
            world.filesystem.fail(
                "pwrite", errno.ENOSPC, nth=rng.randint(1, 60), keep=rng.randint(0, 40)
            )
        spaces: list[bool] = []
        world.engine.on_space = spaces.append
        try:
            world.run(150)
            world.restart()
        except (StorageError, OSError):
            # The limits, the vhost's name, the terms, a start: not parts of a batch that could be tried again.
            continue
        world.run(30)
        assert spaces == [True, False] * (len(spaces) // 2)


def test_space_that_comes_back_lets_the_batch_through() -> None:
    world = World(3, strict=True)
    world.declare()
    world.sync()
    spaces: list[bool] = []
    committed: list[int] = []

    def on_space(is_exhausted: bool) -> None:
        spaces.append(is_exhausted)
        if is_exhausted:
            world.filesystem.free_bytes = None

    world.engine.on_space = on_space
    world.engine.on_committed = committed.append
    world.filesystem.free_bytes = 100
    queue = next(iter(world.queues.values()))
    for _ in range(5):
        world.publish()
    world.sync()
    assert spaces == [True, False]
    assert committed[-1] == world.engine.epoch - 1
    assert len(queue.live()) > 0
    world.read_back()
