"""Which files go because somebody deleted their queue, and not because its definition was lost.

The definition of a queue goes before its files. A start that finds files without one has to know why that is: a
deletion was cut short, or a row is damaged or gone. So the transaction that takes the definitions says which files are
to follow, in a row of its own, and the next one removes that row: by then they are durably gone. Files with messages
that have neither a definition nor such a row are kept until their queue is declared again.

Files that a commit makes before it defines their queue are said to go as well, until it is defined.

    kind    "removal"
    key     a decimal number; the next is higher while there is one
    value   [[vhost, directory], ...]: names of the virtual host and of the queue's directory; "" is all of the vhost

State: the rows that there are. Called by recovery, then by the writer on the disk thread. Invariant: while the files of
a deleted queue may be found, so is the row.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Final, TypeAlias

from burrowmq.storage.directory.definition_store import DefinitionChange, DefinitionStore
from burrowmq.storage.types import JsonValue

KIND: Final = "removal"
WHOLE: Final = ""
_DEFINED: Final = ("vhost", "queue")  # rows whose keys begin with a virtual host
Place: TypeAlias = tuple[str, str]
"""A virtual host and the name of a queue's directory, or WHOLE."""


class Removals:
    """Those of one store."""

    def __init__(self, rows: Iterable[DefinitionChange] = ()) -> None:
        self._keys: list[str] = []
        places: set[Place] = set()
        for kind, key, value in rows:
            if kind == KIND:
                self._keys.append(key)
                places.update(_places_in(value))
        self.found = frozenset(places)
        """What the start has found of them."""
        self._next = 1 + max((int(key) for key in self._keys if key.isdecimal()), default=0)

    def commit(
        self,
        definitions: DefinitionStore,
        changes: Collection[DefinitionChange],
        going: Collection[Place],
    ) -> None:
        """Commit changes of definitions, behind which these files go; what went before is gone by now.

        Raises DiskFull or StorageError; then nothing has changed, and it may be called again.
        """
        rows: list[DefinitionChange] = [(KIND, each, None) for each in self._keys]
        definitions.commit([*rows, *changes, *self._row(going)])
        self._keys = []
        self._note(going)

    def add(self, definitions: DefinitionStore, going: Collection[Place]) -> None:
        """These go as well, until the next commit of definitions, which comes behind what goes before that.

        Raises DiskFull or StorageError; then nothing has changed, and it may be called again.
        """
        definitions.commit(self._row(going))
        self._note(going)

    def _row(self, going: Collection[Place]) -> list[DefinitionChange]:
        value: list[JsonValue] = [[vhost, directory] for vhost, directory in going]
        return [(KIND, str(self._next), value)] if value else []

    def _note(self, going: Collection[Place]) -> None:
        if going:
            self._keys.append(str(self._next))
            self._next += 1


def deleted_vhosts(rows: Collection[DefinitionChange]) -> frozenset[str]:
    """Give the virtual hosts of which a start keeps nothing: they were deleted, and neither they nor a queue are back.

    None where a key cannot be read: it may be of one that is.
    """
    deleted = {vhost for vhost, directory in Removals(rows).found if directory == WHOLE}
    if not deleted:
        return frozenset()
    try:
        defined = {str(json.loads(key)[0]) for kind, key, _ in rows if kind in _DEFINED}
    except (ValueError, TypeError, LookupError, RecursionError):
        return frozenset()
    return frozenset(deleted - defined)


def _places_in(value: JsonValue) -> Iterable[Place]:
    for each in value if isinstance(value, list) else ():
        if isinstance(each, list) and len(each) == 2:
            vhost, directory = each
            yield str(vhost), str(directory)
