"""Cuts at an operation that a seed chooses, with any options and versions; and whether they notice what is left out.

State: none. Called by the tests of power cuts, of conversions and of the commit log, which differ in the store they cut.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from burrowmq.storage.errors import StorageError
from burrowmq.storage.types import StoreOptions
from tests.simulation.store_world import OPTIONS, Violation, World, run_to_cut
from tests.support.sim_filesystem import PowerCut

Mutant = Callable[[pytest.MonkeyPatch], None]
Versions = tuple[int, ...]
MORE_SEEDS = range(1_000, 1_000 + int(os.environ.get("BURROWMQ_CRASH_SEEDS", "0")))
needs_more_seeds = pytest.mark.skipif(not MORE_SEEDS, reason="set BURROWMQ_CRASH_SEEDS")


def cut_somewhere(seed: int, options: StoreOptions = OPTIONS, versions: Versions = (2,)) -> None:
    """One seed: a workload, a cut at an operation that the seed chooses, twice."""
    cut_at = random.Random(seed).randint(1, 250)
    try:
        run_to_cut(seed, cut_at, strict=bool(seed & 1), options=options, versions=versions)
    except Violation as error:
        raise Violation(f"seed {seed}, {versions}, cut at {cut_at}: {error}") from error


def kill_somewhere(seeds: Iterable[int], options: StoreOptions) -> None:
    """The process dies, and what was handed over survives it, with no sync at all."""
    for seed in seeds:
        world = World(seed, strict=True, options=replace(options, confirm="written"))
        world.filesystem.cut_before = world.filesystem.operations + seed * 4 + 1
        try:
            world.run(200)
        except PowerCut:
            pass
        world.filesystem.cut_before = None
        world.crash(is_power=False)


def expect_notice(
    mutant: Mutant,
    seeds: Iterable[int],
    cut: Callable[[int], None],
    by: tuple[type[Exception], ...] = (AssertionError,),
) -> None:
    """One of the seeds fails: with a Violation, or what the writer checks of itself.

    What the store itself notices is not what is asked here.
    """
    for seed in seeds:
        try:
            cut(seed)
        except by:
            return
        except StorageError:
            continue
    pytest.fail(f"{mutant.__name__} was not noticed")
