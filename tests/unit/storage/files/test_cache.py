"""Open files: how many, and which have to be synced."""

from __future__ import annotations

from burrowmq.storage.files.cache import FileCache
from tests.support.sim_filesystem import SimFileSystem


def test_the_cache_keeps_few_files_open_and_every_dirty_one() -> None:
    filesystem = SimFileSystem()
    filesystem.mkdir("/d")
    cache = FileCache(filesystem, 3)
    for at in range(10):
        file = cache.create(f"/d/{at}", is_synced=True)
        if at < 5:
            cache.store_written(f"/d/{at}", file)
    assert cache.open_count == 8
    assert cache.sync() == {}
    assert (cache.open_count, cache.dirty_count) == (3, 0)
    assert cache.get("/d/0") is cache.get("/d/0")


def test_a_failed_sync_is_not_tried_again() -> None:
    filesystem = SimFileSystem()
    filesystem.mkdir("/d")
    cache = FileCache(filesystem, 3)
    for name in ("a", "b"):
        file = cache.create(f"/d/{name}", is_synced=True)
        file.pwrite(b"x", 0)
        cache.store_written(f"/d/{name}", file)
    filesystem.fail("fdatasync", path_part="/d/a")
    assert cache.sync() == {"/d/a": "/d/a: fdatasync failed: Input/output error (EIO)"}
    calls = filesystem.counters.calls["fdatasync"]
    assert cache.sync() == {}
    assert filesystem.counters.calls["fdatasync"] == calls
