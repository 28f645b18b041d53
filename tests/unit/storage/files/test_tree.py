"""Directories are made once, files synced in groups, and everything is durable after the last sync."""

from __future__ import annotations

import errno
import random

import pytest

from burrowmq.storage.files.tree import FileTree, pieces
from tests.support.sim_filesystem import SimFileSystem


def test_everything_is_durable_after_the_last_sync() -> None:
    filesystem = SimFileSystem(strict=True)
    filesystem.mkdir("/new")
    tree = FileTree(filesystem, "/new")
    for number in range(130):
        tree.make_directory(f"/new/a/{number % 3}")
        file = filesystem.create(f"/new/a/{number % 3}/{number}")
        file.pwrite(b"%d" % number, 0)
        tree.take(file)
    assert filesystem.counters.calls["mkdir"] == 5
    assert filesystem.counters.calls["fdatasync"] == 128
    tree.sync(tree.directories)
    found = filesystem.cut(random.Random(1))
    assert [found.content(f"/new/a/{number % 3}/{number}") for number in range(130)] == [
        b"%d" % number for number in range(130)
    ]


def test_a_failed_sync_is_raised() -> None:
    filesystem = SimFileSystem()
    filesystem.mkdir("/new")
    tree = FileTree(filesystem, "/new")
    tree.take(filesystem.create("/new/a"))
    filesystem.fail("fdatasync", errno.EIO)
    with pytest.raises(OSError, match="Input/output"):
        tree.sync([])


def test_a_file_comes_in_pieces() -> None:
    filesystem = SimFileSystem()
    filesystem.mkdir("/d")
    file = filesystem.create("/d/a")
    file.pwrite(b"x" * 2_500_000, 0)
    assert [len(piece) for piece in pieces(file, 2_400_000)] == [1 << 20, 1 << 20, 302_848]
