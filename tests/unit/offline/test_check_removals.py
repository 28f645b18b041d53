"""`burrowmq-store check` after a kill between a queue's definition and its files: a start keeps none of its messages.

Covers: offline/check.py, offline/definitions_check.py, offline/deletions.py
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from burrowmq.broker.words.resource import row_key
from burrowmq.offline.__main__ import main
from burrowmq.offline.deletions import Deletions
from burrowmq.storage.directory.definition_table import put_row, transaction
from burrowmq.storage.directory.removals import WHOLE
from burrowmq.storage.names import QueueNames, vhost_directory
from tests.support import offline_store

SMALL = QueueNames("/", "small").directory
DELETED = "its queue was deleted: a start removes it"


def say(
    path: Path, *places: tuple[str, str], defined: tuple[str, ...] = (), vhost: str = ""
) -> None:
    """Write rows as a commit does that deletes: these files go, those queues are there."""
    connection = sqlite3.connect(path / "definitions.db", isolation_level=None)
    with transaction(connection) as execute:
        put_row(execute, "removal", "1", [list(place) for place in places])
        for name in defined:
            put_row(execute, "queue", row_key("/", name), {})
        if vhost:
            put_row(execute, "vhost", row_key(vhost), {})
    connection.close()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A killed node's."""
    offline_store.make_store(tmp_path, is_clean=False)
    return tmp_path


def checked(path: Path, capsys: pytest.CaptureFixture[str], status: int = 0, *options: str) -> str:
    assert main(["--data-dir", str(path), "check", *options]) == status
    return capsys.readouterr().out


def test_a_queue_whose_deletion_was_cut_short_does_not_count(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    say(store, ("/", SMALL))
    report = checked(store, capsys)
    assert "2 queues, 700 messages" in report
    (line,) = [line for line in report.splitlines() if SMALL in line]
    assert DELETED in line


def test_nor_do_the_queues_of_a_deleted_vhost(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    say(store, ("/", WHOLE))
    for name in store.glob("vhosts/*/.vhost_name"):
        name.unlink()  # a power cut keeps what it likes
    report = checked(store, capsys)
    assert "0 queues, 0 messages" in report
    assert "0 damaged files, 0 lost messages" in report
    assert "its virtual host was deleted: a start removes it" in report
    assert DELETED not in report


def test_nor_those_of_one_that_was_made_again(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    say(store, ("/", WHOLE), vhost="/")
    report = checked(store, capsys)
    assert "0 queues, 0 messages" in report
    assert report.count(DELETED) == 3


def test_a_virtual_host_is_not_taken_for_deleted_where_a_key_cannot_be_read() -> None:
    said = ("removal", "1", [["/", WHOLE]])
    assert Deletions([said]).has_vhost(vhost_directory("/"))
    for row in (("vhost", '["/"]', {}), ("queue", '["/", "q"]', {}), ("vhost", "[", {})):
        assert not Deletions([said, row]).has_vhost(vhost_directory("/"))
    assert Deletions([said, ("vhost", '["other"]', {})]).has_vhost(vhost_directory("/"))


def test_one_that_is_defined_counts(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The deletion and a declaration of the same name were one commit: a start opens what is there."""
    say(store, ("/", SMALL), ("/", WHOLE), defined=("small", "mixed"))
    assert "2 queues, 500 messages" in checked(store, capsys)


def test_damage_in_it_is_nobodys_loss(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for file in store.glob(f"vhosts/*/queues/{SMALL}/*"):
        file.write_bytes(b"no file of a queue")
    checked(store, capsys, 1)
    say(store, ("/", SMALL))
    assert "0 damaged files, 0 lost messages" in checked(store, capsys)


def test_a_store_whose_definitions_cannot_be_read_deletes_nothing(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    say(store, ("/", SMALL))
    connection = sqlite3.connect(store / "definitions.db", isolation_level=None)
    connection.execute("UPDATE definition SET crc = crc + 1")
    connection.close()
    assert "3 queues, 900 messages" in checked(store, capsys, 1)


def test_each_level_is_known_by_its_own_directory() -> None:
    levels = [QueueNames("/", "urgent", level) for level in range(3)]
    said = ("removal", "1", [["/", names.directory] for names in levels])
    root = vhost_directory("/")
    alone = Deletions([said])
    assert all(alone.has(root, names.directory) for names in levels)
    assert not alone.has(root, QueueNames("/", "urgent", 3).directory)
    assert not alone.has(vhost_directory("other"), levels[0].directory)
    defined = Deletions([said, ("queue", row_key("/", "urgent"), {}), ("queue", "no key", {})])
    assert not any(defined.has(root, names.directory) for names in levels)
