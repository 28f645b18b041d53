"""The definitions under `burrowmq-store check`: what a start refuses is told, and nothing is written beside them."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from burrowmq.offline.__main__ import main
from burrowmq.storage.directory.definition_store import SqliteDefinitionStore
from burrowmq.storage.directory.definition_table import FORMAT
from tests.support import offline_store


def with_definitions(path: Path) -> SqliteDefinitionStore:
    offline_store.make_store(path, scale=10)
    store = SqliteDefinitionStore(str(path / "definitions.db"))
    store.commit([("vhost", '["/"]', {}), ("vhost", '["other"]', {"key": "x" * 200})])
    return store


def problems(path: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    code = main(["--data-dir", str(path), "check", "--problems"])
    lines = capsys.readouterr().out.splitlines()[:-4]
    assert code == bool(lines)
    return lines


def names(path: Path) -> set[str]:
    return {entry.name for entry in path.iterdir()} - {"LOCK"}


def test_whole_ones_are_read_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with_definitions(tmp_path).close()
    before = names(tmp_path)
    assert main(["--data-dir", str(tmp_path), "check"]) == 0
    assert "definitions.db  8192 B  2 records  ok" in capsys.readouterr().out
    assert names(tmp_path) == before


def test_a_store_without_definitions_is_no_whole_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with_definitions(tmp_path).close()
    (tmp_path / "definitions.db").unlink()
    (line,) = problems(tmp_path, capsys)
    assert line.startswith("definitions.db")
    assert "missing: a start refuses the store without it, restore it" in line


def test_what_is_in_the_log_alone_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = with_definitions(tmp_path / "of a node")
    killed = tmp_path / "a?b#c%20"
    shutil.copytree(tmp_path / "of a node", killed)
    store.close()
    (killed / "definitions.db-shm").unlink()
    before = {path.name: path.read_bytes() for path in killed.glob("definitions*")}
    assert before["definitions.db-wal"]
    assert main(["--data-dir", str(killed), "check"]) == 0
    assert "2 records  ok" in capsys.readouterr().out
    assert {path.name: path.read_bytes() for path in killed.glob("definitions*")} == before


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: b"", "cut off"),
        (lambda data: b"x" * len(data), "file is not a database"),
        (lambda data: data[:4096] + b"\xff" * 100 + data[4196:], "Page 2"),
        (lambda data: data[:5000], "Page"),
    ],
)
def test_damaged_ones_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change, said: str
) -> None:
    with_definitions(tmp_path).close()
    path = tmp_path / "definitions.db"
    path.write_bytes(change(path.read_bytes()))
    (line,) = problems(tmp_path, capsys)
    assert line.startswith("definitions.db ")
    assert "DAMAGED" in line
    assert said.lower() in line.lower()


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (f"PRAGMA user_version={FORMAT + 1}", f"has format {FORMAT + 1}"),
        ("UPDATE definition SET value = '{' WHERE key LIKE '%other%'", "fails its checksum"),
        (
            "UPDATE definition SET key = '[\"/\",\"p\"]' WHERE key LIKE '%other%'",
            "fails its checksum",
        ),
    ],
)
def test_what_a_start_cannot_read_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], statement: str, said: str
) -> None:
    with_definitions(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / "definitions.db", isolation_level=None)) as changed:
        changed.execute(statement)
    (line,) = problems(tmp_path, capsys)
    assert said in line


def test_rows_of_format_1_have_no_checksum(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with_definitions(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / "definitions.db", isolation_level=None)) as older:
        older.execute("ALTER TABLE definition DROP COLUMN crc")
        older.execute("PRAGMA user_version=1")
    assert not problems(tmp_path, capsys)
    with closing(sqlite3.connect(tmp_path / "definitions.db", isolation_level=None)) as older:
        older.execute("UPDATE definition SET value = '{' WHERE key LIKE '%other%'")
    (line,) = problems(tmp_path, capsys)
    assert "Expecting property name" in line


def test_a_log_that_is_damaged_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = with_definitions(tmp_path)
    log = tmp_path / "definitions.db-wal"
    data = bytearray(log.read_bytes())
    store.close()
    data[20] ^= 1  # its salt
    log.write_bytes(data)
    (line,) = problems(tmp_path, capsys)
    assert "damaged at byte 0" in line


def test_a_first_start_that_was_killed_left_nothing_damaged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    offline_store.make_store(tmp_path, scale=10)
    with closing(sqlite3.connect(tmp_path / "definitions.db")) as begun:
        begun.execute("PRAGMA journal_mode=WAL")
    assert not problems(tmp_path, capsys)
