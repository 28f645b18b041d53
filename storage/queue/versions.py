"""The choice between the two versions of a queue's files: the one place that knows which classes they are.

Who calls gives a version that was asked for (a declaration, a policy), or one that is written down: in the terms of a
clean stop, or found by a walk. From then on a segment asks its own `IndexFiles`. Version 1 is loaded when the first of
its files is asked for. State: none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from burrowmq.storage.queue.directory import QueueDirectory
from burrowmq.storage.queue.journal_limits import JournalLimits
from burrowmq.storage.queue.segment import IndexFiles
from burrowmq.storage.queue.table import SegmentTable
from burrowmq.storage.queue.v2.files import IndexFilesV2

if TYPE_CHECKING:
    from burrowmq.storage.queue.v1.files import IndexFilesV1

DEFAULT = IndexFilesV2.version
JOURNALED = 1


def files_of(
    version: int, directory: QueueDirectory, table: SegmentTable, limits: JournalLimits
) -> IndexFiles:
    """Give the files of this version of a queue; `limits` are what the journals of all queues share."""
    if version == JOURNALED:
        return _journaled()(directory, table, limits)
    assert version == DEFAULT, version
    return IndexFilesV2(directory, table)


def keeps_entries(version: int) -> bool:
    """Tell whether files of this version keep entries in memory until the next idle moment."""
    return _class_of(version).keeps_entries


def file_names(version: int, number: int, generation: int, store_end: int) -> list[str]:
    """Give the names of a segment's files, by what a clean stop wrote down."""
    return _class_of(version).file_names(number, generation, store_end)


def _class_of(version: int) -> type[IndexFilesV1 | IndexFilesV2]:
    if version == JOURNALED:
        return _journaled()
    assert version == DEFAULT, version
    return IndexFilesV2


def _journaled() -> type[IndexFilesV1]:
    from burrowmq.storage.queue.v1.files import IndexFilesV1  # noqa: PLC0415 - 8 modules that few nodes need

    return IndexFilesV1
