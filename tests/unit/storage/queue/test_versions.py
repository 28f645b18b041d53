"""The choice between the versions: what it gives, and that both give all that the protocol asks for."""

from __future__ import annotations

import pytest

from burrowmq.storage.queue import versions
from burrowmq.storage.queue.journal_limits import JournalLimits
from burrowmq.storage.queue.segment import IndexFiles
from burrowmq.storage.queue.table import SegmentTable
from tests.support.queue_on_disk import COUNT, place_on
from tests.support.sim_filesystem import SimFileSystem

VERSIONS = (1, 2)


def files_of(version: int) -> IndexFiles:
    table = SegmentTable(COUNT)
    return versions.files_of(version, place_on(SimFileSystem()), table, JournalLimits())


@pytest.mark.parametrize("version", VERSIONS)
def test_a_version_is_what_was_asked_for(version: int) -> None:
    files = files_of(version)
    assert files.version == version
    assert files.keeps_entries == versions.keeps_entries(version)


@pytest.mark.parametrize("version", VERSIONS)
def test_each_version_has_all_of_the_protocol(version: int) -> None:
    files = files_of(version)
    wanted = {name for name in vars(IndexFiles) if not name.startswith("_")}
    wanted |= set(IndexFiles.__annotations__)
    assert [name for name in sorted(wanted) if not hasattr(files, name)] == []


def test_files_are_named_as_they_are_on_disk() -> None:
    assert versions.file_names(1, 7, 3, 0) == []
    assert versions.file_names(1, 7, 3, 100) == ["7.idx"]
    assert versions.file_names(2, 7, 0, 0) == ["7.qi"]
    assert versions.file_names(2, 7, 3, 100) == ["7.qi", "7.g3.qs"]


def test_a_damaged_index_costs_a_page_or_the_segment() -> None:
    assert (files_of(1).page_entries, files_of(2).page_entries) == (COUNT, 128)
