"""The pluggable index of a shared store: where each message lies and how often it is referred to.

`msg_store_index_module` names an implementation: `array` (5 bytes a message in memory), `paged` (the arrays of all but
the segments in use on disk), `sqlite` (rows in a database). None of them is durable: each start builds the index anew
from the segments' seals, and from the references that a clean stop kept or that the queues' indexes have. So another
one may be chosen at any start. What an implementation keeps on disk lies in the directory `index` beside the segments.

An implementation is a `StoreIndex`, which makes tables, and a `segment.Table`. The store asks the tables directly, so
that nothing comes between them. State: none. Source: the callbacks of RabbitMQ's msg_store_index_module.
"""

from __future__ import annotations

from typing import Final, Protocol

from burrowmq.storage.files.filesystem import FileSystem
from burrowmq.storage.shared.index.array_table import ArrayIndex
from burrowmq.storage.shared.index.paged_table import PagedIndex
from burrowmq.storage.shared.index.sqlite_table import SqliteIndex
from burrowmq.storage.shared.segment import SegmentFile, Table, TableLayout

NAMES: Final = ("array", "paged", "sqlite")
_DIRECTORY = "index"


class StoreIndex(Protocol):
    """Makes the tables of one store."""

    def open(self) -> None:
        """Begin anew; what an earlier run left is gone. Before any table is made."""

    def begin(self, file: SegmentFile, segment_no: int) -> Table:
        """Make the table of a new segment that messages are appended to until its `seal`."""

    def table(self, file: SegmentFile, layout: TableLayout) -> Table:
        """Make the table of a file that is there; all counts are 0."""

    def close(self) -> None:
        """No table is asked any more."""


def make_index(name: str, filesystem: FileSystem, store_directory: str) -> StoreIndex:
    """Give the index of that name for a store. Raises ValueError for a name that is none of NAMES."""
    directory = f"{store_directory}/{_DIRECTORY}"
    if name == "array":
        return ArrayIndex(filesystem, directory)
    if name == "paged":
        return PagedIndex(filesystem, directory)
    if name == "sqlite":
        return SqliteIndex(filesystem, directory)
    raise ValueError(f"msg_store_index_module {name!r} is none of {', '.join(NAMES)}")
