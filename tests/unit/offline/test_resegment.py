"""`burrowmq-store resegment`: the same messages under other limits, once each, whenever it is killed."""

from __future__ import annotations

import contextlib
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from burrowmq.offline.__main__ import main
from burrowmq.offline.directory import CannotUse, open_directory
from burrowmq.offline.resegment import resegment
from burrowmq.storage.directory.terms import ENTRY_COUNT_KEY, FILE_SIZE_KEY
from burrowmq.storage.errors import LimitChanged
from burrowmq.storage.files.filesystem import OsFileSystem
from tests.support import offline_store

WANTED = {FILE_SIZE_KEY: 128 * 1024, ENTRY_COUNT_KEY: 512}
NEW = replace(offline_store.OPTIONS, segment_size_limit=128 * 1024, segment_entry_count=512)


def run(path: Path, *options: str) -> int:
    return main(["--data-dir", str(path), "resegment", *options])


@pytest.mark.parametrize("is_clean", [True, False])
def test_messages_order_expiry_and_delivery_stay(tmp_path: Path, is_clean: bool) -> None:
    bodies = offline_store.make_store(tmp_path, is_clean=is_clean)
    assert run(tmp_path, "--file-size", "128KiB", "--entries", "512") == 0
    engine = offline_store.open_engine(tmp_path, NEW)
    assert engine.report.clean
    delivered = {
        names.name: queue.next_deliver_seq for names, queue in engine.report.queues.items()
    }
    found = {name: offline_store.read_all(engine, name) for name in bodies}
    assert {name: [raw for _, raw, _ in rows] for name, rows in found.items()} == bodies
    assert [expiry for _, _, expiry in found["mixed"]] == [
        at // 100 * 100 + 1 for at in range(400) if at % 4
    ]
    if is_clean:  # after a crash everything counts as delivered
        assert delivered["small"] == 50
    engine.close()


def test_a_shared_message_is_stored_once(tmp_path: Path) -> None:
    offline_store.make_store(tmp_path)
    engine = offline_store.open_engine(tmp_path)
    before = engine.stats()["shared_live_messages"]
    engine.close()
    assert run(tmp_path, "--file-size", "128KiB") == 0
    engine = offline_store.open_engine(
        tmp_path, replace(offline_store.OPTIONS, segment_size_limit=128 * 1024)
    )
    after = engine.stats()
    engine.close()
    assert before == after["shared_live_messages"] == 200


def test_a_queue_of_version_1_stays_one(tmp_path: Path) -> None:
    engine = offline_store.open_engine(tmp_path)
    log = engine.open_queue("/", "q", durable=True, version=1)
    messages = [offline_store.make_message(at, 40, True) for at in range(600)]
    log.append(0, list(messages), None, 600 * 40)
    offline_store.commit(engine)
    engine.close()
    assert run(tmp_path, "--entries", "512") == 0
    assert not list(tmp_path.rglob("*.qi"))
    engine = offline_store.open_engine(
        tmp_path, replace(offline_store.OPTIONS, segment_entry_count=512)
    )
    found = offline_store.read_all(engine, "q")
    assert [raw for _, raw, _ in found] == [message.raw for message in messages]
    engine.close()


def test_a_node_with_other_limits_is_refused_until_then(tmp_path: Path) -> None:
    bodies = offline_store.make_store(tmp_path)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    with pytest.raises(LimitChanged) as refused:
        offline_store.open_engine(tmp_path, NEW)
    assert "msg_store_file_size_limit is 131072" in str(refused.value)
    assert "was made with 65536" in str(refused.value)
    assert "queue_index_segment_entry_count is 512" in str(refused.value)
    assert "resegment --file-size 131072 --entries 512" in str(refused.value)
    assert before == {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    assert run(tmp_path, "--file-size", "131072", "--entries", "512") == 0
    assert offline_store.bodies_of(tmp_path, NEW) == bodies


def test_nothing_is_done_for_the_limits_that_there_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    offline_store.make_store(tmp_path)
    before = sorted(file.stat().st_mtime_ns for file in (tmp_path / "vhosts").rglob("*"))
    assert run(tmp_path, "--file-size", str(offline_store.FILE_SIZE)) == 0
    assert "nothing to do" in capsys.readouterr().out
    assert before == sorted(file.stat().st_mtime_ns for file in (tmp_path / "vhosts").rglob("*"))


def test_without_room_nothing_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bodies = offline_store.make_store(tmp_path)
    monkeypatch.setattr(OsFileSystem, "disk_free", lambda *_: 1000)
    assert run(tmp_path, "--entries", "512") == 69
    monkeypatch.undo()
    assert offline_store.bodies_of(tmp_path) == bodies


def test_a_queue_without_a_name_is_not_left_behind(tmp_path: Path) -> None:
    offline_store.make_store(tmp_path, is_clean=False)
    next(tmp_path.rglob(".queue_name")).write_bytes(b"?")
    with (
        open_directory(str(tmp_path)) as directory,
        pytest.raises(CannotUse, match="damaged name file"),
    ):
        resegment(directory, WANTED, offline_store.streams())


class Killed(BaseException):
    """The process is gone."""


class Killing(OsFileSystem):
    """The real file system, until the n-th change of a name or a sync: from then on nothing happens any more."""

    def __init__(self, left: int) -> None:
        super().__init__()
        self.left = left

    def _count(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Killed

    def create(self, path: str):
        self._count()
        return super().create(path)

    def fsync_dir(self, path: str) -> None:
        self._count()
        super().fsync_dir(path)

    def rename(self, source: str, target: str) -> None:
        self._count()
        super().rename(source, target)

    def unlink(self, path: str) -> None:
        self._count()
        super().unlink(path)

    def rmtree(self, path: str) -> None:
        self._count()
        super().rmtree(path)

    def mkdir(self, path: str) -> None:
        self._count()
        super().mkdir(path)


@pytest.mark.slow
def test_a_kill_leaves_the_old_store_or_the_new_one(tmp_path: Path) -> None:
    bodies = offline_store.make_store(tmp_path / "store", scale=10)

    def run_until(left: int, path: Path) -> int:
        """Rewrite a copy of the store, killed before a step; gives how many steps were left."""
        shutil.copytree(tmp_path / "store", path)
        with open_directory(str(path)) as directory:
            directory.filesystem = killing = Killing(left)
            with contextlib.suppress(Killed):
                resegment(directory, WANTED, offline_store.streams())
        return killing.left

    plenty = 10_000
    steps = plenty - run_until(plenty, tmp_path / "whole")
    outcomes: list[bool] = []
    for left in [*range(0, steps - 30, 5), *range(steps - 30, steps)]:
        path = tmp_path / "killed"
        assert run_until(left, path) < 0
        try:
            found = offline_store.bodies_of(path)
            outcomes.append(False)
        except LimitChanged:
            found = offline_store.bodies_of(path, NEW)
            outcomes.append(True)
        assert found == bodies, left
        assert not (path / "store.new").exists()
        assert not (path / "store.old").exists()
        assert not (path / "SWAP").exists()
        shutil.rmtree(path)
    assert outcomes == sorted(outcomes)
    assert outcomes.count(True) > 5
    assert outcomes.count(False) > 10


@pytest.mark.parametrize("is_clean", [True, False])
def test_damaged_messages_that_are_left_behind_are_no_success(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], is_clean: bool
) -> None:
    bodies = offline_store.make_store(tmp_path, is_clean=is_clean)
    path = next(tmp_path.rglob("0.g0.seg"))
    data = bytearray(path.read_bytes())
    data[500] ^= 1
    path.write_bytes(bytes(data))
    assert run(tmp_path, "--entries", "512") == 1
    ended = capsys.readouterr()
    assert "lost: " in ended.err
    assert "written anew" in ended.out
    left = offline_store.bodies_of(tmp_path, replace(NEW, segment_size_limit=64 * 1024))
    assert sum(map(len, left.values())) < sum(map(len, bodies.values()))
    assert all(set(left[name]) <= set(bodies[name]) for name in bodies)
