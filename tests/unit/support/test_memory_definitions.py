"""Rows in memory do what SQLite and the engine's staging do: each test runs on both."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from burrowmq.protocol.codec import load_message
from burrowmq.storage.directory.definition_store import (
    DefinitionChange,
    DefinitionStore,
    SqliteDefinitionStore,
)
from burrowmq.storage.engine import Engine
from burrowmq.storage.errors import StorageError
from burrowmq.storage.files.filesystem import OsFileSystem
from burrowmq.storage.types import StoreOptions
from tests.support.bench.observer import RecordingObserver
from tests.support.memory_definitions import MemoryDefinitions, MemoryDefinitionStore
from tests.support.sim_filesystem import SimFileSystem


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[DefinitionStore]:
    found: DefinitionStore = (
        MemoryDefinitionStore()
        if request.param == "memory"
        else SqliteDefinitionStore(str(tmp_path / "definitions.db"))
    )
    yield found
    found.close()


def test_rows_come_by_kind_and_key_and_the_last_change_counts(store: DefinitionStore) -> None:
    store.commit([("vhost", "ü", 1), ("queue", "b", {"x": [1, None]}), ("vhost", "z", True)])
    store.commit([("queue", "b", None), ("queue", "b", 2), ("vhost", "z", 3), ("vhost", "z", None)])
    assert store.load() == [("queue", "b", 2), ("vhost", "ü", 1)]


def test_rows_are_there_when_it_is_opened_again(tmp_path: Path) -> None:
    path = str(tmp_path / "d.db")
    memory, sqlite = MemoryDefinitionStore(), SqliteDefinitionStore(path)
    for store in (memory, sqlite):
        store.commit([("queue", "q", 1), ("vhost", "/", {"a": 1})])
        store.close()
    for again in (memory.opened_again(), SqliteDefinitionStore(path)):
        again.commit([("queue", "q", None)])
        assert again.load() == [("vhost", "/", {"a": 1})]
        again.close()


def test_deleting_what_is_not_there_is_nothing(store: DefinitionStore) -> None:
    store.commit([("queue", "q", None)])
    assert store.load() == []


def test_a_row_is_what_it_was_when_it_was_committed(store: DefinitionStore) -> None:
    row: dict[str, Any] = {"tags": ["a"], "pair": (1, 2)}
    store.commit([("vhost", "/", row)])
    row["tags"].append("b")
    assert store.load() == [("vhost", "/", {"tags": ["a"], "pair": [1, 2]})]


def test_what_is_loaded_is_the_callers_own(store: DefinitionStore) -> None:
    store.commit([("vhost", "/", ["a"])])
    ((_, _, value),) = store.load()
    assert isinstance(value, list)
    value.append("b")
    assert store.load() == [("vhost", "/", ["a"])]


def test_nothing_is_committed_after_the_end(store: DefinitionStore) -> None:
    store.close()
    with pytest.raises(StorageError):
        store.commit([("queue", "q", 1)])


def test_a_copy_has_what_was_committed(tmp_path: Path) -> None:
    rows: list[DefinitionChange] = [("queue", "q", 1), ("vhost", "/", {"a": 1})]
    disk = SimFileSystem()
    memory, sqlite = MemoryDefinitionStore(disk), SqliteDefinitionStore(str(tmp_path / "d.db"))
    path = str(tmp_path / "copy.db")
    disk.mkdir(str(tmp_path))
    for each in (memory, sqlite):
        each.commit(rows)
        each.copy_to(path)
        each.commit([("queue", "q", None)])
        each.close()
    copy = SqliteDefinitionStore(path)
    assert [tuple(row) for row in json.loads(disk.content(path))] == copy.load() == rows
    copy.close()


def test_a_copy_that_cannot_be_written_is_said_to_be_that(store: DefinitionStore) -> None:
    with pytest.raises(StorageError, match="definitions were not copied"):
        store.copy_to("/nosuch/directory/copy.db")


def memory_staging(_: Path) -> tuple[Any, Callable[[], list[DefinitionChange]]]:
    definitions = MemoryDefinitions()
    return definitions, definitions.load


def engine_staging(path: Path) -> tuple[Any, Callable[[], list[DefinitionChange]]]:
    """The engine's own, over SQLite; what a start after a clean stop finds."""

    def open_engine() -> Engine:
        return Engine(
            str(path),
            OsFileSystem(),
            StoreOptions(),
            cast("Any", RecordingObserver()),
            load_message,
        )

    engine = open_engine()
    engine.recover()
    engine.start_inline()

    def load() -> list[DefinitionChange]:
        engine.hand_over()
        engine.close()
        again = open_engine()
        rows = again.recover().definitions
        again.close()
        return rows

    return engine.definitions, load


@pytest.mark.parametrize("staging", [memory_staging, engine_staging])
def test_staging(
    staging: Callable[[Path], tuple[Any, Callable[[], list[DefinitionChange]]]], tmp_path: Path
) -> None:
    definitions, load = staging(tmp_path)
    definitions.put("vhost", "/", {"name": "/"})
    definitions.put("queue", "q", {"name": "q"})
    definitions.put("queue", "r", {"name": "r"})
    definitions.put("vhost", "/", {"name": "/", "tags": []})
    definitions.delete("queue", "q")
    definitions.delete("queue", "gone")
    with pytest.raises(ValueError, match="a row's value cannot be None"):
        definitions.put("queue", "s", None)
    assert load() == [("queue", "r", {"name": "r"}), ("vhost", "/", {"name": "/", "tags": []})]


def test_what_was_staged_is_known_and_rows_are_found_by_kind() -> None:
    definitions = MemoryDefinitions()
    definitions.put("queue", "q", {"name": "q"})
    definitions.put("vhost", "/", {})
    definitions.delete("vhost", "/")
    assert definitions.changes == [
        ("queue", "q", {"name": "q"}),
        ("vhost", "/", {}),
        ("vhost", "/", None),
    ]
    assert definitions.rows == {("queue", "q"): {"name": "q"}}
    assert definitions.of("queue") == [{"name": "q"}]
    assert definitions.of("vhost") == []
