"""The walk over a queue's files: which files count, what it finds in them, and that it changes nothing."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from burrowmq.storage.queue.found import FoundSegment
from burrowmq.storage.queue.walk import Unreadable, Walk
from tests.support.golden_queues import (
    COUNT,
    GoldenQueue,
    found_in,
    golden_queues,
    walk_of,
)
from tests.support.queue_on_disk import files_in, messages, queue_on
from tests.support.sim_filesystem import SimFileSystem


@pytest.fixture(params=golden_queues(), ids=lambda queue: queue.name)
def queue(request: pytest.FixtureRequest) -> GoldenQueue:
    """Give each golden directory."""
    found: GoldenQueue = request.param
    return found


def contents(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.iterdir()}


def test_what_is_in_the_golden_directories_is_found_and_stays(queue: GoldenQueue) -> None:
    before = contents(queue.directory)
    expected = queue.expected
    del expected["live"]
    assert found_in(queue) == expected
    assert contents(queue.directory) == before


def test_segments_come_one_by_one_those_of_version_1_first(queue: GoldenQueue) -> None:
    _, findings = walk_of(queue)
    found = [(one.version, one.number) for one in findings if isinstance(one, FoundSegment)]
    assert found == sorted(found)
    assert len({number for _, number in found}) == len(found)


class Refusing(SimFileSystem):
    """Cannot read one file."""

    def read_file(self, path: str) -> bytes:
        """Read any other."""
        if path == "/q/1.qi":
            raise OSError(errno.EIO, "refused", path)
        return super().read_file(path)


def test_a_file_that_cannot_be_read_is_a_finding_and_the_others_are_found() -> None:
    filesystem = Refusing()
    queue = queue_on(filesystem)
    for first in range(0, 3 * COUNT, COUNT):
        queue.put(first, messages(first, COUNT), None)
    findings = list(Walk(queue.place, sorted(files_in(filesystem))).findings())
    assert [type(one) for one in findings] == [FoundSegment, Unreadable, FoundSegment]
    assert [one.path for one in findings] == ["/q/0.qi", "/q/1.qi", "/q/2.qi"]


def test_files_of_others_are_passed_over() -> None:
    filesystem = SimFileSystem()
    queue = queue_on(filesystem)
    queue.put(0, messages(0, 3), None)
    walk = Walk(queue.place, [".queue_name", "x.qi", "notes", "0.qi", "0.qs", "qi"])
    assert [one.path for one in walk.findings()] == ["/q/0.qi"]


def test_after_a_clean_stop_a_torn_body_counts_as_damaged() -> None:
    filesystem = SimFileSystem()
    queue = queue_on(filesystem, version=1)
    queue.put(0, messages(0, 60, 400), None)  # to the segment file at once
    file = filesystem.open("/q/0.idx")
    file.truncate(file.size() - 5)
    (torn,) = Walk(queue.place, ["0.idx"]).findings()
    (damaged,) = Walk(queue.place, ["0.idx"], is_clean=True).findings()
    assert isinstance(torn, FoundSegment)
    assert isinstance(damaged, FoundSegment)
    assert torn.live.bit_count() == 59
    assert damaged.live.bit_count() == 60
