"""The files of small queues in memory, packed while nobody uses them."""

from __future__ import annotations

import random

from burrowmq.storage.log.files import Bytes
from burrowmq.storage.log.records import Kind
from burrowmq.storage.log.small_queues import UNPACKED, SmallQueues
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


class NoJournal:
    """What small files tell, told to nobody."""

    def note(self, kind: Kind, path: str, offset: int = 0, data: bytes = b"") -> None:
        pass

    def flush(self) -> None:
        pass

    def wrote(self, path: str, data: Bytes, offset: int) -> None:
        raise AssertionError(path)

    def resized(self, path: str) -> None:
        raise AssertionError(path)

    def settled(self, path: str) -> None:
        pass


def small_queues(count: int) -> SmallQueues:
    small = SmallQueues(NoJournal(), "/v/", 1, {})
    make(small, range(count))
    return small


def make(small: SmallQueues, numbers: range) -> None:
    for number in numbers:
        small.add(f"/v/q{number}")
        small.create(f"/v/q{number}/0.qi").pwrite(b"entry", 0)


def test_a_commit_that_makes_many_leaves_few_of_them_unpacked() -> None:
    small = small_queues(0)
    for first in range(0, 5000, 500):
        make(small, range(first, first + 500))
        small.pack_idle()
    assert small.unpacked_count <= 3 * UNPACKED


def test_at_rest_all_but_a_few_are_packed_and_between_commits_those_in_use_stay() -> None:
    small = small_queues(4 * UNPACKED)
    while small.is_packing_due:
        small.pack_idle(is_at_rest=True)
    assert small.unpacked_count <= UNPACKED
    for number in range(UNPACKED):  # in use again, by turns
        assert small.contents(f"/v/q{number}") is not None
    before = small.unpacked_count
    small.pack_idle()
    assert small.unpacked_count == before
