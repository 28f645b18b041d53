"""A whole store in the place of another: before the mark the old one, after it the new one."""

from __future__ import annotations

from pathlib import Path

import pytest

from burrowmq.storage.directory.swap import begin_swap, commit_swap, finish_swap
from burrowmq.storage.errors import StorageError
from burrowmq.storage.files.filesystem import OsFileSystem


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
