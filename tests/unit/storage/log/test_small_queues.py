"""The files of small queues in memory, packed while nobody uses them."""

from __future__ import annotations

import random

from burrowmq.storage.log.small_queues import UNPACKED
from tests.support.mounted_log import (
    OPTIONS,
    QUEUES,
    made,
    mounted,
    synced,
)


def test_small_queues_that_nobody_uses_are_packed_and_come_back() -> None:
    options = OPTIONS._replace(total_limit=1 << 20, limit=1 << 20)
    filesystem, base = mounted(options=options)
    kept = [made(filesystem, f"{QUEUES}/kept{number}/a", b"kept") for number in range(30)]
    for number in range(2 * UNPACKED):
        made(filesystem, f"{QUEUES}/{number}/a", b"head" + bytes(100) + b"%d" % number)
        filesystem.create(f"{QUEUES}/{number}/empty")
        filesystem.open(f"{QUEUES}/{number}/a").truncate(300)
    for _ in range(9):  # a look goes through some of them
        synced(filesystem)
    held = filesystem._small._contents
    assert sum(isinstance(one, dict) for one in held.values()) == len(kept)
    filesystem.groups.begin_generation()
    filesystem.settle()
    assert not filesystem._small._forms.keys() - {file.path.rpartition("/")[0] for file in kept}
    for file in kept:
        file.pwrite(b"more", 4)
    filesystem.open(f"{QUEUES}/7/a").pwrite(b"!", 300)
    filesystem.rename(f"{QUEUES}/8/a", f"{QUEUES}/8/b")
    filesystem.rmtree(f"{QUEUES}/9")
    synced(filesystem)
    for found in (filesystem, mounted(base.cut(random.Random(1)), options)[0]):
        assert len(found.listdir(QUEUES)) == 2 * UNPACKED + len(kept) - 1
        assert found.read_file(f"{QUEUES}/kept3/a") == b"keptmore"
        assert found.read_file(f"{QUEUES}/7/a") == b"head" + bytes(100) + b"7" + bytes(195) + b"!"
        assert found.file_size(f"{QUEUES}/7/empty") == 0
        assert found.listdir(f"{QUEUES}/8") == ["b", "empty"]
        assert not found.exists(f"{QUEUES}/9")
