# ruff: noqa: E402 - without pyarrow the file is skipped before its imports
from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

pa = pytest.importorskip(
    "pyarrow", reason="pyarrow is not installed: pip install 'burrowmq[spark]'"
)

from pyspark_amqp.spool.files import Outcome, Spool
from pyspark_amqp.spool.marks import Mark
from pyspark_amqp.spool.offset import Offset, Piece, Share
from pyspark_amqp.spool.posix import PosixStore
from pyspark_amqp.spool.store import SpoolError
from tests.support.spools import content, publish


def piece(seq: int = 1, part: int = 0, queue: str = "work") -> Piece:
    return Piece("stream", queue, seq, part, 10)


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path / "spool")


def write(text: str):
    return lambda path: path.write_text(text)


def root(spool: Spool) -> Path:
    assert isinstance(spool.store, PosixStore)
    return spool.store.root


def path_of(spool: Spool, one: Piece) -> Path:
    return root(spool) / spool.key(one)


def names(spool: Spool) -> set[str]:
    return {path.name for path in root(spool).rglob("*") if path.is_file()}


def test_the_first_one_wins(spool: Spool) -> None:
    assert not spool.has(piece())
    assert publish(spool, piece(), write("first"))
    assert not publish(spool, piece(), write("second"))
    assert content(spool, piece()) == b"first"
    assert names(spool) == {"000000000001-0000.arrow"}


def test_a_write_that_fails_leaves_nothing(spool: Spool) -> None:
    def fail(path: Path) -> None:
        path.write_text("half")
        raise ValueError("disk full")

    with pytest.raises(ValueError, match="disk full"):
        publish(spool, piece(), fail)
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
    publish(spool, piece(), write("x"))
    assert steps == ["file", "link", "folder", "folder", "folder"]


def test_a_file_system_without_links_is_named(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: Path, target: Path) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(SpoolError, match="POSIX file system"):
        publish(spool, piece(), write("x"))
    (root(spool).parent / "plain").touch()
    with pytest.raises(SpoolError, match="cannot be made"):
        publish(Spool(root(spool).parent / "plain"), piece(), write("x"))


def test_a_commit_removes_what_is_acked_and_keeps_what_is_in_doubt(spool: Spool) -> None:
    for seq in (1, 2, 3):
        publish(spool, piece(seq), write("x"))
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
        "000000000002-0000.read",
        "000000000003-0000.arrow",
        "000000000003-0000.acked",
    }
    assert spool.commit("stream", 1) == 0  # never goes back
    assert spool.committed("stream") == 2


def test_what_became_of_a_batch(spool: Spool) -> None:
    offset = Offset("stream", 3, {"work": Share(40, 4)})
    whole, cut, unmarked, missing = offset.pieces()
    for one in (whole, cut, unmarked):
        publish(spool, one, write("x"))
    spool.mark_acked(whole)
    spool.mark_acked(cut, Mark(7, redelivered_count=2))
    found = spool.outcome(offset)
    assert found == Outcome(offset, 3, 1, {cut: Mark(7, 2), unmarked: None, missing: None})
    spool.store.put(spool.key(cut).replace(".arrow", ".acked"), b"seven")
    with pytest.raises(SpoolError, match="acked: cannot be read"):
        spool.outcome(offset)


def test_what_is_committed_is_stale(spool: Spool) -> None:
    spool.commit("stream", 2)
    assert spool.is_stale(piece(2))
    assert not spool.is_stale(piece(3))
    publish(spool, piece(2), write("late"))
    spool.withdraw(piece(2))
    assert not spool.has(piece(2))


def test_the_number_is_on_disk_before_a_file_goes(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(spool, piece(1), write("x"))
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
        publish(spool, piece(seq), write("x"))
    spool.commit("stream", 1)
    folder = path_of(spool, piece()).parent
    (folder / "000000000009-0000.abc.tmp").touch()
    assert spool.sweep("stream", temporary_age_s=60, in_doubt_age_s=60) == 0
    old = 1_600_000_000
    for path in folder.iterdir():
        os.utime(path, (old, old))
    assert spool.sweep("stream", temporary_age_s=60, in_doubt_age_s=60) == 2
    assert [found.seq for found in spool.published("stream", "work")] == [2]


@pytest.mark.parametrize("queue", ["..", ".", "a/b", "é" * 127, "x" * 255, "a" * 254 + "/", "%2F"])
def test_any_queue_name_has_a_folder_of_its_own(spool: Spool, queue: str) -> None:
    assert publish(spool, piece(queue=queue), write("x"))
    assert publish(spool, piece(queue=queue[:-1] + "_"), write("y"))
    assert content(spool, piece(queue=queue)) == b"x"
    found = path_of(spool, piece(queue=queue))
    assert found.resolve().is_relative_to(root(spool).resolve())
    spool.mark_acked(piece(queue=queue))
    assert spool.commit("stream", 1) == 1
    assert not spool.has(piece(queue=queue))


def test_a_spool_can_be_sent_to_an_executor(spool: Spool) -> None:
    publish(spool, piece(), write("x"))
    assert pickle.loads(pickle.dumps(spool)).has(piece())


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
    (tmp_path / "spool" / "t").mkdir()  # all that version 0.1.0 made
    assert spool.has_stream("t")


def test_queues_that_are_gone_leave_no_folders(spool: Spool) -> None:
    spool.open_stream("stream")
    for number in range(50):
        publish(spool, piece(1, queue=f"q{number}"), write("x"))
        spool.mark_acked(piece(1, queue=f"q{number}"))
    publish(spool, piece(1, queue="in doubt"), write("x"))
    assert spool.commit("stream", 1) == 50
    assert [path.name for path in (root(spool) / "stream").glob("q-*")] == ["q-in%20doubt"]
    publish(spool, piece(2, queue="q0"), write("again"))
    assert content(spool, piece(2, queue="q0")) == b"again"


def test_folders_that_were_left_empty_are_swept(spool: Spool) -> None:
    spool.open_stream("stream")
    for number in range(3):
        (root(spool) / "stream" / f"q-{number}").mkdir()
    spool.sweep("stream", temporary_age_s=60, in_doubt_age_s=60)
    assert (
        len(list((root(spool) / "stream").glob("q-*"))) == 3
    )  # somebody may be about to write there
    spool.sweep("stream", temporary_age_s=0, in_doubt_age_s=60)
    assert list((root(spool) / "stream").glob("q-*")) == []
    assert spool.has_stream("stream")


def test_a_folder_that_goes_while_one_writes_is_made_again(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    touch, left = Path.touch, [3]

    def removed_first(path: Path) -> None:
        if left[0]:
            left[0] -= 1
            path.parent.rmdir()
        touch(path)

    monkeypatch.setattr(Path, "touch", removed_first)
    assert publish(spool, piece(), write("x"))
    assert left == [0]


def test_streams_and_pieces_are_listed(spool: Spool) -> None:
    for stream in ("b", "a"):
        spool.open_stream(stream)
    publish(spool, piece(2, queue="q/2"), write("x"))
    publish(spool, piece(1, part=1, queue="q/2"), write("x"))
    spool.mark_acked(piece(2, queue="q/2"))
    assert spool.streams() == ["a", "b", "stream"]
    found = spool.pieces("stream")
    assert [(one.queue, one.seq, one.part, one.is_in_doubt) for one in found] == [
        ("q/2", 1, 1, True),
        ("q/2", 2, 0, False),
    ]
    assert [one.seq for one in spool.siblings(piece(2, queue="q/2"))] == [2]
