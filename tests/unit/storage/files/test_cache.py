"""Open files: few that are clean, every one that waits for a sync; and what a refused call becomes."""

from __future__ import annotations

import errno

import pytest

from burrowmq.storage.errors import DirectoryFailed, DiskFull, NoDescriptors, WriteFailed
from burrowmq.storage.files.cache import (
    FileCache,
    as_storage_errors,
    open_file,
    parent_of,
    write_error,
)
from tests.support.sim_filesystem import SimFileSystem


def cache_of(limit: int = 3) -> tuple[FileCache, SimFileSystem]:
    filesystem = SimFileSystem()
    filesystem.mkdir("/d")
    return FileCache(filesystem, limit), filesystem


def written(cache: FileCache, *names: str) -> None:
    """New files that wait for a sync, and so do their names."""
    for name in names:
        file = cache.create(f"/d/{name}", is_synced=True)
        file.pwrite(b"x", 0)
        cache.store_written(f"/d/{name}", file)


def test_few_files_stay_open_and_every_dirty_one() -> None:
    cache, _ = cache_of()
    written(cache, *"01234")
    for at in range(5, 10):
        cache.create(f"/d/{at}", is_synced=True)
    assert cache.open_count == 8
    assert cache.is_crowded
    with pytest.raises(NoDescriptors, match="more than 3 files wait for a sync"):
        cache.refuse_more()
    assert cache.sync() == {}
    assert (cache.open_count, cache.dirty_count, cache.is_crowded) == (3, 0, False)
    assert cache.get("/d/0") is cache.get("/d/0")


def test_index_files_that_wait_for_a_sync_crowd_it_too() -> None:
    cache, _ = cache_of(2)
    written(cache, "a")
    cache.index_written("/d/b", cache.create("/d/b", is_synced=True))
    assert (cache.is_crowded, cache.room) == (True, 0)


def test_the_file_used_longest_ago_is_closed_first() -> None:
    cache, filesystem = cache_of(2)
    for name in "ab":
        cache.create(f"/d/{name}", is_synced=False)
    kept = cache.get("/d/a")
    cache.create("/d/c", is_synced=False)
    opens = filesystem.opens
    assert cache.get("/d/a") is kept
    assert filesystem.opens == opens
    cache.get("/d/b")
    assert filesystem.opens == opens + 1


def test_stores_indexes_and_names_are_synced_in_one_call() -> None:
    cache, filesystem = cache_of()
    written(cache, "a")
    index = cache.create("/d/b", is_synced=True)
    cache.index_written("/d/b", index)
    other = filesystem.create("/d/other")
    assert cache.dirty_count == 3
    assert cache.sync({other: "/d/other"}) == {}
    calls = filesystem.counters.calls
    assert (calls["fdatasync"], calls["fsync_dir"], cache.syncs) == (3, 1, 3)


def test_a_file_whose_sync_failed_is_not_written_to_again_by_who_asks_for_it() -> None:
    cache, filesystem = cache_of()
    written(cache, "a", "b")
    files = [cache.get("/d/a"), cache.get("/d/b")]
    filesystem.fail("fdatasync", path_part="/d/a")
    assert cache.sync().keys() == {"/d/a"}
    assert [cache.get("/d/a") is files[0], cache.get("/d/b") is files[1]] == [False, True]


def test_a_failed_sync_is_told_and_not_tried_again() -> None:
    cache, filesystem = cache_of()
    written(cache, "a", "b")
    filesystem.fail("fdatasync", path_part="/d/a")
    assert cache.sync() == {"/d/a": "/d/a: fdatasync failed: Input/output error (EIO)"}
    calls = filesystem.counters.calls["fdatasync"]
    assert cache.sync() == {}
    assert filesystem.counters.calls["fdatasync"] == calls


def test_a_name_that_cannot_be_made_durable_is_the_end() -> None:
    cache, filesystem = cache_of()
    written(cache, "a")
    filesystem.fail("fsync_dir")
    with pytest.raises(DirectoryFailed, match="/d: fsync"):
        cache.sync()


def test_a_directory_for_which_no_descriptor_is_left_may_be_tried_again() -> None:
    cache, filesystem = cache_of()
    written(cache, "a")
    filesystem.fail("fsync_dir", errno.EMFILE)
    with pytest.raises(NoDescriptors):
        cache.sync()
    assert cache.dirty_count == 1
    assert cache.sync() == {}


def test_a_directory_that_is_gone_needs_no_sync() -> None:
    cache, filesystem = cache_of()
    written(cache, "a")
    cache.forget_tree("/d")
    cache.dir_changed("/gone")
    assert cache.sync() == {}
    assert filesystem.counters.calls.get("fdatasync", 0) == 0


def test_where_no_descriptor_is_left_clean_files_make_room() -> None:
    cache, filesystem = cache_of()
    cache.create("/d/a", is_synced=False)
    filesystem.fail("create", errno.EMFILE)
    cache.create("/d/b", is_synced=False)
    assert cache.open_count == 1
    filesystem.fail("open", errno.EMFILE)
    assert cache.get("/d/a").size() == 0
    cache.release_clean()
    filesystem.fail("open", errno.EMFILE)
    with pytest.raises(NoDescriptors):
        cache.get("/d/b")


def test_a_name_that_an_interrupted_attempt_left_is_used_again() -> None:
    cache, filesystem = cache_of()
    filesystem.create("/d/a").pwrite(b"left", 0)
    assert cache.create("/d/a", is_synced=False).size() == 0


def test_unlinking_forgets_the_file_and_what_is_not_there_is_nothing() -> None:
    cache, filesystem = cache_of()
    written(cache, "a")
    cache.sync()
    cache.unlink("/d/a")
    assert (cache.open_count, cache.dirty_count) == (0, 1), "the name has to go durably"
    cache.unlink("/d/a")
    filesystem.create("/d/b")
    filesystem.fail("unlink", errno.EROFS)
    with pytest.raises(WriteFailed):
        cache.unlink("/d/b")


def test_what_was_written_to_a_file_that_cannot_be_removed_becomes_durable() -> None:
    cache, filesystem = cache_of()
    written(cache, "a")
    filesystem.fail("unlink")
    cache.unlink_or_leave("/d/a")
    assert cache.leftover_count == 1
    cache.sync()
    assert filesystem.is_durable("/d/a")


def test_releasing_closes_everything() -> None:
    cache, _ = cache_of()
    written(cache, "a")
    cache.create("/d/b", is_synced=False)
    cache.release()
    assert cache.open_count == 0


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOSPC, DiskFull),
        (errno.EDQUOT, DiskFull),
        (errno.EFBIG, DiskFull),
        (errno.EMFILE, NoDescriptors),
        (errno.ENFILE, NoDescriptors),
        (errno.EIO, WriteFailed),
    ],
)
def test_what_a_refused_call_becomes(number: int, kind: type[WriteFailed]) -> None:
    refused = OSError(number, "no", "/d/a")
    assert type(write_error("/d/a", refused)) is kind
    with pytest.raises(kind) as caught, as_storage_errors():
        raise refused
    assert caught.value.__cause__ is refused


def test_only_what_nobody_has_translated_yet_is_translated() -> None:
    first = WriteFailed("one queue's")
    with pytest.raises(WriteFailed) as caught, as_storage_errors(), as_storage_errors():
        raise first
    assert caught.value is first
    with pytest.raises(DiskFull) as inner, as_storage_errors(), as_storage_errors():
        raise OSError(errno.ENOSPC, "no", "/d/a")
    assert isinstance(inner.value.__cause__, OSError)
    with pytest.raises(KeyError), as_storage_errors():
        raise KeyError("a bug")


def test_a_file_is_opened_at_the_second_attempt_unless_it_is_not_there() -> None:
    _, filesystem = cache_of()
    filesystem.create("/d/a")
    filesystem.fail("open")
    assert open_file(filesystem, "/d/a").size() == 0
    filesystem.fail("open", times=2)
    with pytest.raises(OSError, match="no"):
        open_file(filesystem, "/d/a")
    opens = filesystem.counters.calls["open"]
    with pytest.raises(FileNotFoundError):
        open_file(filesystem, "/d/none")
    assert filesystem.counters.calls["open"] == opens + 1


def test_the_directory_of_a_path() -> None:
    assert [parent_of(path) for path in ("/a/b/c", "/a", "a")] == ["/a/b", "", ""]
