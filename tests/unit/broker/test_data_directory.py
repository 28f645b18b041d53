"""The lock on the data directory."""

from __future__ import annotations

import os

import pytest

from broker.data_directory import DataDirectory, DataDirectoryLocked


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


def test_the_owners_number_replaces_an_older_one(tmp_path):
    (tmp_path / "LOCK").write_text("99999999\n")
    directory = DataDirectory(str(tmp_path))
    directory.lock()
    assert (tmp_path / "LOCK").read_text() == f"{os.getpid()}\n"
    directory.unlock()
