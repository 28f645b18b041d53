"""A store with a log for who only reads: what a start would find, and nothing is written."""

from __future__ import annotations

import random

import pytest

from burrowmq.storage.log.view import LogView
from tests.support.mounted_log import (
    IDENTITY,
    QUEUE,
    QUEUES,
    made,
    mounted,
    moved_out,
    synced,
)
from tests.support.sim_filesystem import SimFileSystem


def test_it_shows_what_a_start_would_find() -> None:
    filesystem, base = mounted()
    file = moved_out(filesystem)
    synced(filesystem, made(filesystem, f"{QUEUES}/small/a"))
    file.pwrite(b"little", 500)
    synced(filesystem, file)
    for seed in range(20):
        found: SimFileSystem = base.cut(random.Random(seed))
        before = found.operations
        view = LogView(found, "/data", IDENTITY)
        assert view.listdir(QUEUES) == ["q", "small"]
        assert view.files() == [f"{QUEUES}/small/a"]
        assert view.read_file(f"{QUEUES}/small/a") == b"data"
        assert view.read_file(f"{QUEUE}/0.qi") == b"x" * 500 + b"little"
        assert view.file_size(f"{QUEUE}/0.qi") == 506
        own = view.open(f"{QUEUE}/0.qi")
        assert own.path == f"{QUEUE}/0.qi"
        assert own.pread(3, 499) == b"xli"
        assert own.pread(3, 600) == b""
        own.close()
        assert found.operations == before


def test_nobody_writes_to_it() -> None:
    filesystem, base = mounted()
    file = moved_out(filesystem)
    file.pwrite(b"little", 500)
    synced(filesystem, file)
    own = LogView(base, "/data", IDENTITY).open(f"{QUEUE}/0.qi")
    for call in (
        lambda: own.pwrite(b"", 0),
        lambda: own.pwritev([], 0),
        lambda: own.truncate(0),
        own.fdatasync,
    ):
        with pytest.raises(NotImplementedError):
            call()


def test_what_was_removed_is_gone() -> None:
    filesystem, base = mounted()
    moved_out(filesystem)
    filesystem.rmtree(QUEUE)
    filesystem.groups.flush()
    found = base.cut(random.Random(0))
    view = LogView(found, "/data", IDENTITY)
    assert view.listdir(QUEUES) == []
    assert not view.exists(QUEUE)
    assert view.exists(QUEUES)


def test_what_was_removed_and_made_again_is_there() -> None:
    filesystem, base = mounted()
    synced(filesystem, made(filesystem, f"{QUEUE}/0.qi"))
    filesystem.rmtree(QUEUE)
    synced(filesystem, made(filesystem, f"{QUEUE}/0.qi", b"again"))
    view = LogView(base.cut(random.Random(0)), "/data", IDENTITY)
    assert view.listdir(QUEUES) == ["q"]
    assert view.listdir(QUEUE) == ["0.qi"]
    assert view.read_file(f"{QUEUE}/0.qi") == b"again"
    assert view.exists(QUEUE)
    assert view.exists(f"{QUEUE}/0.qi")
