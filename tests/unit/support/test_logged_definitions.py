"""The twin of SQLite's definitions: what it says is committed no crash takes back.

Covers: tests/simulation/machine/definitions.py
"""

from __future__ import annotations

import errno
import random
from contextlib import suppress

from tests.simulation.machine.definitions import LoggedDefinitions
from tests.support.machine_disk import MachineDisk
from tests.support.sim_filesystem import PowerCut

PATH = "/data/definitions.db"


def test_what_a_killed_process_wrote_anew_is_kept_with_all_that_comes_behind_it() -> None:
    for seed in range(20):
        disk = MachineDisk()
        definitions = LoggedDefinitions(disk, PATH)
        definitions.commit([("queue", "a", 1)])
        disk.fail("pwrite", errno.EIO)
        disk.cut_before = disk.operations + 5  # its name is in place, and not synced
        with suppress(PowerCut):
            definitions.commit([("queue", "a", 2)])
        disk = disk.process_killed()
        assert not disk.is_durably_named(PATH)
        LoggedDefinitions(disk, PATH).commit([("queue", "b", 3)])
        found = LoggedDefinitions(disk.cut(random.Random(seed)), PATH)
        assert found.load() == [("queue", "a", 2), ("queue", "b", 3)]
