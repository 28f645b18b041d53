"""Definition rows in memory: the store that SQLite is, and the staging in front of it that the engine does.

`MemoryDefinitionStore` is a `storage.directory.definition_store.DefinitionStore` and keeps each row as JSON text, so
that what comes back is what SQLite would give back. `MemoryDefinitions` is `Engine.definitions` over such a store, with
every change a commit of its own. `tests/unit/support/test_memory_definitions.py` holds both to what the real ones do.
"""

from __future__ import annotations

import json
from typing import cast

from burrowmq.storage.directory.definition_store import DefinitionChange
from burrowmq.storage.errors import StorageError
from burrowmq.storage.types import JsonValue
from tests.support.sim_filesystem import SimFileSystem


class MemoryDefinitionStore:
    """`DefinitionStore` in a dict; copies go to a simulated disk, as JSON."""

    def __init__(self, disk: SimFileSystem | None = None) -> None:
        self._disk = disk or SimFileSystem()
        self._texts: dict[tuple[str, str], str] = {}
        self._is_closed = False

    def opened_again(self) -> MemoryDefinitionStore:
        """What the next start finds: all that was committed, and nothing else of this one."""
        found = MemoryDefinitionStore(self._disk)
        found._texts.update(self._texts)
        return found

    def load(self) -> list[DefinitionChange]:
        """All rows, by kind and key."""
        return [
            (kind, key, cast("JsonValue", json.loads(text)))
            for (kind, key), text in sorted(self._texts.items())
        ]

    def commit(self, changes: list[DefinitionChange]) -> None:
        """Apply the changes in order."""
        if self._is_closed:
            raise StorageError("definitions: commit failed: the store is closed")
        for kind, key, value in changes:
            if value is None:
                self._texts.pop((kind, key), None)
            else:
                self._texts[kind, key] = json.dumps(value)

    def copy_to(self, path: str) -> None:
        """Write a copy of what is committed into a new file."""
        try:
            self._disk.create(path).pwrite(json.dumps(self.load()).encode(), 0)
        except OSError as error:
            raise StorageError(f"definitions were not copied: {error}") from error

    def close(self) -> None:
        """Nothing can be committed afterwards."""
        self._is_closed = True


class MemoryDefinitions:
    """`Engine.definitions`, committed at once; `changes` is the list of what was staged."""

    def __init__(self) -> None:
        self.store = MemoryDefinitionStore()
        self.changes: list[DefinitionChange] = []

    def put(self, kind: str, key: str, value: JsonValue) -> None:
        """Insert or replace a row."""
        if value is None:
            raise ValueError("a row's value cannot be None")
        self._stage((kind, key, value))

    def delete(self, kind: str, key: str) -> None:
        """Remove a row; nothing happens when there is none."""
        self._stage((kind, key, None))

    def _stage(self, change: DefinitionChange) -> None:
        self.changes.append(change)
        self.store.commit([change])

    def load(self) -> list[DefinitionChange]:
        """All rows as a start would find them."""
        return self.store.load()

    @property
    def rows(self) -> dict[tuple[str, str], JsonValue]:
        """The same by kind and key."""
        return {(kind, key): value for kind, key, value in self.load()}

    def of(self, kind: str) -> list[dict[str, JsonValue]]:
        """The rows of one kind."""
        return [
            cast("dict[str, JsonValue]", value) for found, _, value in self.load() if found == kind
        ]
