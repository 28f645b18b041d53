"""The lock on the data directory."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
from contextlib import closing

import pytest

from burrowmq.broker.node.data_directory import (
    LONGEST,
    DataDirectory,
    DataDirectoryLocked,
    DataDirectoryUnusable,
)
from burrowmq.storage.directory.definition_store import SqliteDefinitionStore


def test_one_owner_at_a_time(tmp_path):
    path = str(tmp_path / "a" / "data")
    first, second = DataDirectory(path), DataDirectory(path)
    first.lock()
    assert os.stat(path).st_mode & 0o777 == 0o700
    with pytest.raises(DataDirectoryLocked, match=f"in use by process {os.getpid()};"):
        second.lock()
    second.unlock()
    first.unlock()
    second.lock()
    second.unlock()


def test_a_path_is_no_longer_than_definitions_may_have(tmp_path):
    longest = str(tmp_path)
    while len(longest) < LONGEST - 100:
        longest += "/" + "d" * 99
    longest += "/" + "d" * (LONGEST - len(longest) - 1)
    directory = DataDirectory(longest)
    directory.lock()
    with closing(SqliteDefinitionStore(f"{longest}/definitions.db")) as definitions:
        definitions.commit([("vhost", '["/"]', {})])
    directory.unlock()
    with pytest.raises(DataDirectoryUnusable, match="more than the 489 octets that SQLite takes"):
        DataDirectory(f"{longest}d").lock()


def test_a_disk_that_refuses_the_end_of_a_lock_is_no_obstacle(tmp_path):
    first, second = DataDirectory(str(tmp_path)), DataDirectory(str(tmp_path))
    first.lock()
    os.close(first._lock.fileno())  # from now on each call for it fails
    first.unlock()
    second.lock()
    second.unlock()


def test_the_owners_number_replaces_an_older_one(tmp_path):
    (tmp_path / "LOCK").write_text("99999999\n")
    directory = DataDirectory(str(tmp_path))
    directory.lock()
    assert (tmp_path / "LOCK").read_text() == f"{os.getpid()}\n"
    directory.unlock()


def test_a_child_has_no_say_in_the_lock(tmp_path):
    first, second = DataDirectory(str(tmp_path)), DataDirectory(str(tmp_path))
    first.lock()
    inherited = os.dup(first._lock.fileno())  # what a fork leaves open in the child
    try:
        first.unlock()
        second.lock()
    finally:
        os.close(inherited)
    second.forget()  # closes the last of its descriptors
    first.lock()
    first.unlock()


def test_a_directory_that_cannot_be_used_says_what_to_do(tmp_path):
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "data"):
        with pytest.raises(DataDirectoryUnusable, match=r"cannot be used: .*file.*; move the file"):
            DataDirectory(str(path)).lock()
    with pytest.raises(DataDirectoryUnusable, match="choose another with --data-dir"):
        DataDirectory("").lock()


def test_a_disk_that_cannot_say_what_is_there_is_not_taken_for_a_file_in_the_way(
    tmp_path, monkeypatch
):
    """`os.makedirs` takes a directory of which it cannot be told that it is one for a file."""

    def fails(path, **_: object):
        raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    with monkeypatch.context() as patched:
        patched.setattr(os, "stat", fails)
        with pytest.raises(
            DataDirectoryUnusable, match=r"Input/output error: .*; look at that disk"
        ):
            DataDirectory(str(tmp_path)).lock()
    directory = DataDirectory(str(tmp_path))
    directory.lock()
    directory.unlock()


def test_a_lock_that_the_disk_refuses_is_nobodys(tmp_path, monkeypatch):
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    (tmp_path / "LOCK").write_text("1\n")
    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(DataDirectoryUnusable, match=r"No locks available: .*LOCK; look at that d"):
        DataDirectory(str(tmp_path)).lock()


def test_a_full_disk_does_not_keep_a_directory_from_being_locked(tmp_path):
    first, second = DataDirectory(str(tmp_path)), DataDirectory(str(tmp_path))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        first.lock()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    with pytest.raises(DataDirectoryLocked, match="in use by process unknown"):
        second.lock()
    first.unlock()
    second.lock()
    second.unlock()


def test_a_directory_of_somebody_else_names_the_user(tmp_path, monkeypatch):
    def refuse(path: str, **_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr(os, "makedirs", refuse)
    with pytest.raises(
        DataDirectoryUnusable, match=rf"Permission denied.*\(user id {os.geteuid()}\)"
    ):
        DataDirectory(str(tmp_path)).lock()


def test_who_only_reads_keeps_nodes_away_and_no_other_reader(tmp_path):
    DataDirectory(str(tmp_path)).lock_to_read()  # a copy, where no node has been
    assert not list(tmp_path.iterdir())
    node = DataDirectory(str(tmp_path))
    node.lock()
    readers = [DataDirectory(str(tmp_path)) for _ in range(2)]
    with pytest.raises(DataDirectoryLocked):
        readers[0].lock_to_read()
    node.unlock()
    for reader in readers:
        reader.lock_to_read()
    with pytest.raises(DataDirectoryLocked):
        node.lock()
    for reader in readers:
        reader.unlock()
    node.lock()
    node.unlock()
