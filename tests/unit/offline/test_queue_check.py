"""A queue's directory under `burrowmq-store check`: the golden directories, and which report says what."""

from __future__ import annotations

from pathlib import Path

import pytest

from burrowmq.offline.directory import open_directory
from burrowmq.offline.progress import Progress
from burrowmq.offline.queue_check import QueueCheck, check_queue
from burrowmq.offline.report import FileReport
from burrowmq.storage.shared.references import ReferenceTally
from tests.support.golden_queues import GoldenQueue, golden_queues
from tests.support.offline_store import streams

GOLDEN = {queue.name: queue for queue in golden_queues()}


def checked(golden: GoldenQueue, tmp_path: Path) -> QueueCheck:
    path = golden.copy_to(tmp_path / "data")
    (queue,) = path.glob("vhosts/*/queues/*")
    with (
        open_directory(str(path)) as directory,
        Progress(streams().errors, "checking", 1) as progress,
    ):
        return check_queue(directory, str(queue), ReferenceTally(), progress)


def report_of(found: QueueCheck, name: str) -> FileReport:
    (report,) = [one for one in found.reports if Path(one.path).name == name]
    return report


@pytest.mark.parametrize("name", GOLDEN)
def test_as_many_messages_are_live_as_a_start_keeps(name: str, tmp_path: Path) -> None:
    found = checked(GOLDEN[name], tmp_path)
    expected = GOLDEN[name].expected
    assert found.live == len(expected["live"])
    assert found.lost == expected["bad"]
    names = {Path(report.path).name for report in found.reports}
    assert names == {file.name for file in GOLDEN[name].directory.iterdir()}
    unused = {Path(one.path).name for one in found.reports if one.live_bytes == 0 and one.notes}
    assert unused >= set(expected["unused"])


@pytest.mark.parametrize("name", [name for name in GOLDEN if not name.startswith("damaged")])
def test_what_a_crash_leaves_is_no_damage(name: str, tmp_path: Path) -> None:
    assert [one.problems for one in checked(GOLDEN[name], tmp_path).reports if one.problems] == []


def test_damage_is_reported_with_its_file(tmp_path: Path) -> None:
    found = checked(GOLDEN["damaged_2"], tmp_path / "2")
    assert report_of(found, "0.qi").problems == ["1 bad entries"]
    assert report_of(found, "0.g1.qs").notes == ["no index uses it"]
    found = checked(GOLDEN["damaged_1"], tmp_path / "1")
    assert report_of(found, "0.idx").problems == ["damaged header"]


def test_of_two_files_for_a_segment_the_one_that_counts_is_checked(tmp_path: Path) -> None:
    found = checked(GOLDEN["converting"], tmp_path / "newer")
    assert report_of(found, "0.idx").notes == ["converted to version 2"]
    assert report_of(found, "0.qi").notes == ["63 live entries"]
    found = checked(GOLDEN["conversion_without_store"], tmp_path / "older")
    assert report_of(found, "0.idx").notes == ["63 live entries"]
    assert "not finished" in report_of(found, "0.qi").notes[0]


def test_what_only_a_journal_holds_is_reported_with_it(tmp_path: Path) -> None:
    found = checked(GOLDEN["version_1_journal"], tmp_path)
    report = report_of(found, "1.jif")
    assert report.notes == ["31 live entries"]
    assert report.live_bytes is None
