"""A commit log with a damaged commit, and directories in which files come and go while they are listed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'burrowmq[spark]'")

from pyspark_amqp_store.files import Store
from pyspark_amqp_store.messages import StoreLoss, refuse_damaged_log
from tests.support.store_on_disk import OPTIONS, StoreOnDisk, message
from tests.support.store_rows import damage, rows

WITH_LOG = replace(OPTIONS, has_log=True, log_limit=640 * 1024, log_queue_limit=40_000)


def log_and_commits(path: Path) -> tuple[Path, list[int]]:
    """Return the log of a store, and where its commits begin."""
    log = max(path.glob("commit_log/*.log"), key=lambda each: each.stat().st_size)
    data, at, found = log.read_bytes(), 0, []
    while (at := data.find(b"BCLG", at + 1)) >= 0:
        found.append(at)
    return log, found


@pytest.mark.parametrize("place", [20, 45], ids=["head", "records"])
@pytest.mark.parametrize("commit", [-2, -3])
def test_a_damaged_commit_costs_what_is_in_it_and_is_told(
    tmp_path: Path, commit: int, place: int
) -> None:
    disk = StoreOnDisk(tmp_path, WITH_LOG)
    for number in range(6):
        disk.publish("q", [message(b"%d" % number)])
        disk.commit()
    log, commits = log_and_commits(tmp_path)
    damage(log, commits[commit] + place)
    with pytest.raises(StoreLoss, match="of the log"):
        rows(tmp_path, ["body"])
    with pytest.raises(StoreLoss, match="of the log"):
        refuse_damaged_log(Store(str(tmp_path)))
    left = [number for number in range(6) if number != 6 + commit]
    assert rows(tmp_path, ["seq"], fails_on_loss=False) == [(number,) for number in left]


def test_what_a_kill_cut_off_at_the_end_is_no_damage(tmp_path: Path) -> None:
    disk = StoreOnDisk(tmp_path, WITH_LOG)
    for number in range(3):
        disk.publish("q", [message(b"%d" % number)])
        disk.commit()
    log, commits = log_and_commits(tmp_path)
    damage(log, commits[-1] + 45)
    assert rows(tmp_path, ["seq"]) == [(0,), (1,)]
    refuse_damaged_log(Store(str(tmp_path)))


def test_a_queue_whose_directory_a_killed_node_could_not_remove_is_not_read(tmp_path: Path) -> None:
    disk = StoreOnDisk(tmp_path / "store", WITH_LOG)
    disk.publish("q", [message(b"x" * 3000) for _ in range(40)])
    disk.commit()
    disk.upkeep()
    (queue,) = Store(str(tmp_path / "store")).queues()
    shutil.copytree(queue.directory, tmp_path / "kept")
    disk.log("q").delete()
    disk.commit()
    shutil.copytree(tmp_path / "kept", queue.directory)  # as before the last step of it
    assert Store(str(tmp_path / "store")).queues() == []
    shutil.rmtree(queue.directory)
    for body, count in ((b"small", 1), (b"large" * 900, 20)):
        disk.logs.clear()
        disk.publish("q", [message(body)] * count)
        disk.upkeep()
        assert rows(tmp_path / "store", ["body"])[-count:] == [(body,)] * count


def test_a_file_that_goes_while_they_are_listed_hides_no_queue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = StoreOnDisk(tmp_path)
    disk.publish("q", [message(b"%d" % number) for number in range(200)])
    disk.commit()
    (gone,) = tmp_path.rglob("0.qs")
    listed = os.scandir

    def scandir(path: str) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
        if str(path) != str(gone.parent):
            return listed(path)
        entries = list(listed(path))
        gone.unlink(missing_ok=True)  # as a node does when all in it is acknowledged
        return nullcontext(iter(entries))

    monkeypatch.setattr(os, "scandir", scandir)
    found = rows(tmp_path, ["seq", "body"])
    assert found[-1] == (199, b"199")
    assert not gone.exists()
