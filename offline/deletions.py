"""Which files a start removes unread: somebody deleted the queue, or the vhost, and a crash came before its files went.

The definitions tell (`storage.directory.removals`), and by the names of directories, since the file that names a queue
may be damaged. State owned: those names. Called by `check`. Invariant: a queue that is defined is none of them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from contextlib import suppress

from burrowmq.storage.directory.definition_store import DefinitionChange
from burrowmq.storage.directory.removals import WHOLE, Removals, deleted_vhosts
from burrowmq.storage.names import QueueNames, level_in, vhost_directory

_QUEUE = "queue"


class Deletions:
    """Those that the rows of one store's definitions tell of."""

    def __init__(self, rows: Collection[DefinitionChange] = ()) -> None:
        self._places = {
            (vhost_directory(vhost), directory) for vhost, directory in Removals(rows).found
        }
        self._defined = set(_defined(rows)) if self._places else set()
        self._vhosts = set(map(vhost_directory, deleted_vhosts(rows)))
        # By level, as the directories of a level are asked for: their names in each vhost's directory.
        self._known: dict[int, set[tuple[str, str]]] = {}

    def has_vhost(self, vhost: str) -> bool:
        """Whether a start removes this directory of a vhost."""
        return vhost in self._vhosts

    def has(self, vhost: str, directory: str) -> bool:
        """Whether a start removes this queue's directory in that one of a vhost."""
        is_said = (vhost, directory) in self._places or (vhost, WHOLE) in self._places
        return is_said and (vhost, directory) not in self._defined_at(level_in(directory))

    def _defined_at(self, level: int) -> set[tuple[str, str]]:
        if level not in self._known:
            self._known[level] = {
                (vhost_directory(vhost), QueueNames(vhost, name, level).directory)
                for vhost, name in self._defined
            }
        return self._known[level]


def _defined(rows: Collection[DefinitionChange]) -> Iterator[tuple[str, str]]:
    """Give (vhost, name) of each queue, as the keys of the rows say: a row that is no use else counts, too."""
    for kind, key, _ in rows:
        if kind == _QUEUE:
            with suppress(ValueError, TypeError, RecursionError):
                vhost, name = json.loads(key)
                yield str(vhost), str(name)
