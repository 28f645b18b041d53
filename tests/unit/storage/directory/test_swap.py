"""A whole store in the place of another: before the mark the old one, after it the new one."""

from __future__ import annotations

from pathlib import Path

import pytest

from burrowmq.storage.directory.swap import begin_swap, commit_swap, finish_swap
from burrowmq.storage.errors import StorageError
from burrowmq.storage.files.filesystem import OsFile, OsFileSystem


def fill(path: Path, text: str) -> None:
    (path / "vhosts" / "v").mkdir(parents=True)
    (path / "vhosts" / "v" / "file").write_text(text)
    for name in ("STORE.json", "terms", "CLEAN"):
        (path / name).write_text(text)


def names(path: Path) -> set[str]:
    return {str(file.relative_to(path)) for file in path.rglob("*") if file.is_file()}


def texts(path: Path) -> set[str]:
    return {file.read_text() for file in path.rglob("*") if file.is_file()}


def test_the_new_store_replaces_the_old(tmp_path: Path) -> None:
    fill(tmp_path, "old")
    filesystem = OsFileSystem()
    fill(Path(begin_swap(filesystem, str(tmp_path))), "new")
    commit_swap(filesystem, str(tmp_path))
    assert texts(tmp_path) == {"new"}
    assert names(tmp_path) == {"vhosts/v/file", "STORE.json", "terms", "CLEAN"}
    assert not finish_swap(filesystem, str(tmp_path))


class InOrder(OsFileSystem):
    """Notes directories whose names changed: each is synced before the next name changes."""

    def __init__(self, changed: set[str]) -> None:
        super().__init__()
        self.changed = changed
        self.steps = 0

    def _change(self, *paths: str) -> None:
        assert not self.changed, f"not durable when {paths} change: {self.changed}"
        self.changed = {path.rpartition("/")[0] for path in paths}
        self.steps += 1

    def fsync_dir(self, path: str) -> None:
        super().fsync_dir(path)
        self.changed.discard(path)

    def rename(self, source: str, target: str) -> None:
        self._change(source, target)
        super().rename(source, target)

    def create(self, path: str) -> OsFile:
        self._change(path)
        return super().create(path)

    def unlink(self, path: str) -> None:
        self._change(path)
        super().unlink(path)


def test_each_name_is_durable_before_the_next_one_changes(tmp_path: Path) -> None:
    fill(tmp_path, "old")
    new = begin_swap(OsFileSystem(), str(tmp_path))
    fill(Path(new), "new")
    filesystem = InOrder({new, str(tmp_path)})
    commit_swap(filesystem, str(tmp_path))
    assert not filesystem.changed
    assert filesystem.steps == len(
        ("SWAP", "CLEAN", "vhosts", "vhosts", "STORE.json", "terms", "CLEAN", "SWAP")
    )
    assert texts(tmp_path) == {"new"}


class Killed(Exception):
    """The process ends."""


class KilledBeforeSync(InOrder):
    """Ends when a directory is to be synced after so many changes of names."""

    def __init__(self, changed: set[str], steps: int) -> None:
        super().__init__(changed)
        self._last = steps

    def fsync_dir(self, path: str) -> None:
        if self.steps >= self._last:
            raise Killed
        super().fsync_dir(path)


@pytest.mark.parametrize("steps", range(1, 8))
def test_names_that_a_killed_process_has_changed_are_durable_before_the_next(
    tmp_path: Path, steps: int
) -> None:
    fill(tmp_path, "old")
    new = begin_swap(OsFileSystem(), str(tmp_path))
    fill(Path(new), "new")
    with pytest.raises(Killed):
        commit_swap(KilledBeforeSync({new, str(tmp_path)}, steps), str(tmp_path))
    filesystem = InOrder({new, str(tmp_path)})
    assert finish_swap(filesystem, str(tmp_path))
    assert texts(tmp_path) == {"new"}


def test_a_mark_that_comes_back_with_the_power_means_nothing(tmp_path: Path) -> None:
    """It was removed, and then the rest; of two names that were not synced the power may take either."""
    fill(tmp_path, "new")
    (tmp_path / "SWAP").touch()
    assert finish_swap(OsFileSystem(), str(tmp_path))
    assert texts(tmp_path) == {"new"}
    assert not (tmp_path / "SWAP").exists()


def test_an_unfinished_one_is_removed(tmp_path: Path) -> None:
    fill(tmp_path, "old")
    filesystem = OsFileSystem()
    fill(Path(begin_swap(filesystem, str(tmp_path))), "new")
    assert not finish_swap(filesystem, str(tmp_path))
    assert texts(tmp_path) == {"old"}
    assert not (tmp_path / "store.new").exists()


def test_a_store_that_was_not_closed_is_not_taken(tmp_path: Path) -> None:
    fill(tmp_path, "old")
    filesystem = OsFileSystem()
    new = Path(begin_swap(filesystem, str(tmp_path)))
    fill(new, "new")
    (new / "CLEAN").unlink()
    with pytest.raises(StorageError, match="not closed cleanly"):
        commit_swap(filesystem, str(tmp_path))
    finish_swap(filesystem, str(tmp_path))
    assert texts(tmp_path) == {"old"}


def test_an_empty_directory_takes_one(tmp_path: Path) -> None:
    filesystem = OsFileSystem()
    fill(Path(begin_swap(filesystem, str(tmp_path))), "new")
    commit_swap(filesystem, str(tmp_path))
    assert texts(tmp_path) == {"new"}
