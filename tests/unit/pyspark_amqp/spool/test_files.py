# ruff: noqa: E402 - without pyarrow the file is skipped before its imports
from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

pa = pytest.importorskip(
    "pyarrow", reason="pyarrow is not installed: pip install 'burrowmq[spark]'"
)

from pyspark_amqp.spool.files import Spool, SpoolError
from pyspark_amqp.spool.offset import Offset, Piece, Share


def piece(seq: int = 1, part: int = 0, queue: str = "work") -> Piece:
    return Piece("stream", queue, seq, part, 10)


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path / "spool")


def write(text: str):
    return lambda path: path.write_text(text)


def names(spool: Spool) -> set[str]:
    return {path.name for path in spool.root.rglob("*") if path.is_file()}


def test_the_first_one_wins(spool: Spool) -> None:
    assert spool.find(piece()) is None
    assert spool.publish(piece(), write("first"))
    assert not spool.publish(piece(), write("second"))
    found = spool.find(piece())
    assert found is not None
    assert found.read_text() == "first"
    assert names(spool) == {"000000000001-0000.arrow"}


def test_a_write_that_fails_leaves_nothing(spool: Spool) -> None:
    def fail(path: Path) -> None:
        path.write_text("half")
        raise ValueError("disk full")

    with pytest.raises(ValueError, match="disk full"):
        spool.publish(piece(), fail)
    assert names(spool) == set()


def test_octets_are_synced_before_the_name_and_the_name_before_it_counts(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    link, fsync = os.link, os.fsync

    def kept_link(source: Path, target: Path) -> None:
        steps.append("link")
        link(source, target)

    def kept_sync(descriptor: int) -> None:
        kind = "folder" if os.path.isdir(f"/proc/self/fd/{descriptor}") else "file"
        steps.append(kind)
        fsync(descriptor)

    monkeypatch.setattr(os, "link", kept_link)
    monkeypatch.setattr(os, "fsync", kept_sync)
    spool.publish(piece(), write("x"))
    assert steps == ["file", "link", "folder", "folder", "folder"]


def test_a_file_system_without_links_is_named(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: Path, target: Path) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(SpoolError, match="POSIX file system"):
        spool.publish(piece(), write("x"))
    (spool.root.parent / "plain").touch()
    with pytest.raises(SpoolError, match="cannot be made"):
        Spool(spool.root.parent / "plain").publish(piece(), write("x"))


def test_a_commit_removes_what_is_acked_and_keeps_what_is_in_doubt(spool: Spool) -> None:
    for seq in (1, 2, 3):
        spool.publish(piece(seq), write("x"))
    spool.mark_acked(piece(1))
    spool.mark_acked(piece(3))
    assert [found.seq for found in spool.in_doubt("stream", "work")] == [2]
    assert spool.committed("stream") == -1
    assert spool.commit("stream", 2) == 1
    assert [found.seq for found in spool.published("stream", "work")] == [2, 3]
    assert spool.committed("stream") == 2
    assert names(spool) == {
        "committed",
        "000000000002-0000.arrow",
        "000000000003-0000.arrow",
        "000000000003-0000.acked",
    }
    assert spool.commit("stream", 1) == 0  # never goes back
    assert spool.committed("stream") == 2


def test_what_is_committed_is_stale(spool: Spool) -> None:
    spool.commit("stream", 2)
    assert spool.is_stale(piece(2))
    assert not spool.is_stale(piece(3))
    spool.publish(piece(2), write("late"))
    spool.withdraw(piece(2))
    assert spool.find(piece(2)) is None


def test_the_number_is_on_disk_before_a_file_goes(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool.publish(piece(1), write("x"))
    spool.mark_acked(piece(1))
    seen: list[int] = []
    unlink = Path.unlink

    def kept_unlink(path: Path, missing_ok: bool = False) -> None:
        seen.append(spool.committed("stream"))
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", kept_unlink)
    spool.commit("stream", 1)
    assert seen
    assert set(seen) == {1}


def test_sweeping_goes_by_age(spool: Spool) -> None:
    for seq in (1, 2):
        spool.publish(piece(seq), write("x"))
    spool.commit("stream", 1)
    folder = spool.path(piece()).parent
    (folder / "000000000009-0000.abc.tmp").touch()
    assert spool.sweep("stream", temporary_age_s=60, in_doubt_age_s=60) == 0
    old = 1_600_000_000
    for path in folder.iterdir():
        os.utime(path, (old, old))
    assert spool.sweep("stream", temporary_age_s=60, in_doubt_age_s=60) == 2
    assert [found.seq for found in spool.published("stream", "work")] == [2]


@pytest.mark.parametrize("queue", ["..", ".", "a/b", "é" * 127, "x" * 255, "a" * 254 + "/", "%2F"])
def test_any_queue_name_has_a_folder_of_its_own(spool: Spool, queue: str) -> None:
    assert spool.publish(piece(queue=queue), write("x"))
    assert spool.publish(piece(queue=queue[:-1] + "_"), write("y"))
    found = spool.find(piece(queue=queue))
    assert found is not None
    assert found.read_text() == "x"
    assert found.resolve().is_relative_to(spool.root.resolve())
    spool.mark_acked(piece(queue=queue))
    assert spool.commit("stream", 1) == 1
    assert spool.find(piece(queue=queue)) is None


def test_a_spool_can_be_sent_to_an_executor(spool: Spool) -> None:
    spool.publish(piece(), write("x"))
    assert pickle.loads(pickle.dumps(spool)).find(piece()) is not None


def test_a_plan_is_the_first_ones_for_ever(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    first = Offset("drain d", 1, {"q": Share(5, 1)})
    assert spool.plan("drain d", lambda: first) == first
    assert spool.plan("drain d", lambda: Offset("drain d")) == first
    assert spool.has_stream("drain d")
    (tmp_path / "drain%20d" / "plan.json").write_text("{")
    with pytest.raises(SpoolError, match=r"plan\.json: cannot be read"):
        spool.plan("drain d", lambda: first)


def test_a_stream_is_there_from_its_opening_to_its_removal(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    assert not spool.has_stream("s")
    spool.open_stream("s")
    spool.open_stream("s")
    assert spool.has_stream("s")
    assert spool.remove_stream("s")
    assert not spool.remove_stream("s")
    assert list((tmp_path / "spool").iterdir()) == []
