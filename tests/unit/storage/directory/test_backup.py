"""Backups: the state of the cut, whatever happens to the store between the cut and the copying."""

from __future__ import annotations

import errno
import json
import os
import random
import sqlite3
from pathlib import Path

import pytest

from burrowmq.storage.directory.backup import (
    INCOMPLETE,
    MANIFEST,
    STAGING,
    BackupRefused,
    make_backup,
    take_cut,
)
from burrowmq.storage.directory.definition_store import SqliteDefinitionStore
from burrowmq.storage.engine import Engine
from burrowmq.storage.errors import StorageError
from burrowmq.storage.files.filesystem import OsFileSystem
from burrowmq.storage.types import BackupJob, StoreOptions
from tests.simulation.store_world import SilentObserver, read_all
from tests.support.disk_side import writer_of
from tests.support.engine_on_disk import engine_on, publish
from tests.support.sim_filesystem import SimFileSystem
from tests.support.stored_message import FakeMessage

OPTIONS = {"segment_entry_count": 64, "segment_size_limit": 64 * 1024, "rewrite_above": 8 * 1024}


def never(_: float) -> bool:
    return False


def cut_of(engine, directory: str = "/backup"):
    """Take the cut as the disk thread does."""
    engine.hand_over()
    writer = writer_of(engine)
    job = BackupJob(directory)
    return take_cut(writer.context, writer.durable_queues(), job), job


def messages_in(filesystem: SimFileSystem, data_dir: str, names: list[str]) -> dict[str, list]:
    """What a node would find there."""
    copy = SimFileSystem()
    for path in filesystem.paths():
        if path.startswith(f"{data_dir}/"):
            target = "/data" + path[len(data_dir) :]
            copy.mkdir(target.rpartition("/")[0])
            copy.create(target).pwrite(filesystem.read_file(path), 0)
    engine = engine_on(copy, {}, **OPTIONS)
    logs = {name: engine.open_queue("/", name, durable=True) for name in names}
    return {
        name: [(seq, message.raw) for seq, message, _ in read_all(log, 50)]
        for name, log in logs.items()
    }


@pytest.mark.parametrize("version", [1, 2])
def test_the_engine_makes_a_backup(version: int) -> None:
    filesystem = SimFileSystem()
    engine = engine_on(filesystem, {}, **OPTIONS)
    log = engine.open_queue("/", "q", durable=True, version=version)
    publish(log, 0, 100)
    publish(log, 100, 20, 5000)
    log.ack(0, 9, None)
    job = engine.start_backup("/backup", {"node": "n", "made_at": "now"})
    assert job.state == "waiting"
    engine.hand_over()
    assert (job.state, job.reason, job.queue_count, job.message_count) == ("done", "", 1, 110)
    assert job.files_done == job.file_count > 5
    assert job.bytes_done == job.byte_count > 100_000
    manifest = json.loads(filesystem.read_file(f"/backup/{MANIFEST}"))
    assert [manifest[key] for key in ("format", "node", "made_at", "messages")] == [
        1,
        "n",
        "now",
        110,
    ]
    assert manifest["msg_store_file_size_limit"] == 64 * 1024
    assert not filesystem.exists(f"/backup/{INCOMPLETE}")
    assert not filesystem.exists(f"/data/{STAGING}")
    found = messages_in(filesystem, "/backup", ["q"])
    assert [seq for seq, _ in found["q"]] == list(range(10, 120))


class Workload:
    """Random publishing, acking and upkeep on a few queues, with what each of them holds."""

    def __init__(self, seed: int, version: int = 2) -> None:
        self.random = random.Random(seed)
        self.filesystem = SimFileSystem()
        self.engine = engine_on(self.filesystem, {}, **OPTIONS)
        self.logs = {
            name: self.engine.open_queue("/", name, durable=True, version=version)
            for name in ("a", "b", "c")
        }
        self.next_seq = dict.fromkeys(self.logs, 0)
        self.held: dict[str, dict[int, bytes]] = {name: {} for name in self.logs}

    def step(self) -> None:
        name = self.random.choice(list(self.logs))
        log, held = self.logs[name], self.held[name]
        act = self.random.random()
        if act < 0.5:
            count = self.random.randint(1, 40)
            size = self.random.choice([20, 700, 5000])
            messages = publish(log, self.next_seq[name], count, size)
            held.update(enumerate((message.raw for message in messages), self.next_seq[name]))
            self.next_seq[name] += count
        elif act < 0.7 and held:
            first = min(held)
            last = first + self.random.randint(0, 60)
            log.ack(first, last, None)
            for seq in range(first, last + 1):
                held.pop(seq, None)
        elif act < 0.85 and held:
            chosen = self.random.sample(list(held), min(len(held), 30))
            log.ack_many(chosen)
            for seq in chosen:
                del held[seq]
        elif act < 0.88:
            log.ack(0, self.next_seq[name] - 1)
            held.clear()
        self.engine.hand_over()
        if act > 0.9:
            self.engine.idle()  # compactions and rewrites too


@pytest.mark.parametrize("version", [2, 1])
@pytest.mark.parametrize("seed", range(12))
def test_what_comes_after_the_cut_is_not_in_the_backup(seed: int, version: int) -> None:
    load = Workload(seed, version)
    for _ in range(load.random.randint(5, 80)):
        load.step()
    expected = {name: sorted(held.items()) for name, held in load.held.items()}
    cut, job = cut_of(load.engine)
    for _ in range(60):
        load.step()
    if seed % 3 == 0:
        load.logs["a"].delete()
        load.engine.hand_over()
        load.engine.idle()
    make_backup(load.filesystem, cut, job, never)
    paths = [path for path in load.filesystem.paths() if path.startswith("/backup/")]
    before = {path: load.filesystem.read_file(path) for path in paths}
    for name in ("b", "c"):
        load.logs[name].ack(0, load.next_seq[name] - 1)
    load.engine.hand_over()
    load.engine.idle()
    load.engine.close()
    # Nothing in a finished backup changes with the store that it was taken from.
    assert before == {path: load.filesystem.read_file(path) for path in before}
    assert messages_in(load.filesystem, "/backup", list(load.logs)) == expected


def test_the_top_segment_keeps_its_bytes_until_it_is_copied() -> None:
    filesystem = SimFileSystem()
    engine = engine_on(filesystem, {}, **OPTIONS)
    log = engine.open_queue("/", "q", durable=True)
    publish(log, 0, 10, 5000)
    cut, job = cut_of(engine)
    log.ack(0, 9, None)
    engine.hand_over()
    writer_of(engine).context.vhost(
        "/"
    ).persistent.roll()  # all dead: it would be cut to its header
    make_backup(filesystem, cut, job, never)
    assert len(messages_in(filesystem, "/backup", ["q"])["q"]) == 10


def test_a_start_removes_what_a_killed_backup_left() -> None:
    filesystem = SimFileSystem()
    engine = engine_on(filesystem, {}, **OPTIONS)
    publish(engine.open_queue("/", "q", durable=True), 0, 10)
    cut_of(engine)
    assert filesystem.exists(f"/data/{STAGING}/0")
    found = messages_in(filesystem, "/data", ["q"])
    assert len(found["q"]) == 10
    engine = engine_on(filesystem, {}, **OPTIONS)
    assert not filesystem.exists(f"/data/{STAGING}")


@pytest.mark.parametrize("operation", ["link", "create", "pwrite", "fdatasync", "rename"])
def test_a_backup_that_fails_is_marked_and_costs_nothing_else(operation: str) -> None:
    filesystem = SimFileSystem()
    engine = engine_on(filesystem, {}, **OPTIONS)
    log = engine.open_queue("/", "q", durable=True)
    publish(log, 0, 100)
    engine.hand_over()
    job = engine.start_backup("/backup", {})
    filesystem.fail(operation, errno.ENOSPC, path_part="backup")
    engine.hand_over()
    assert job.state == "failed"
    assert "space" in job.reason
    assert not filesystem.exists(f"/data/{STAGING}")
    assert not filesystem.exists(f"/backup/{MANIFEST}")
    assert len(read_all(log, 50)) == 100
    again = engine.start_backup("/backup", {})
    engine.hand_over()
    assert again.state == "done"
    assert len(messages_in(filesystem, "/backup", ["q"])["q"]) == 100


@pytest.mark.parametrize(
    ("number", "way_out"),
    [
        (
            errno.EACCES,
            f"the user who runs the node (user id {os.geteuid()}) must be able to write there",
        ),
        (
            errno.EROFS,
            "the node may only read there: systemd's unit can name it in ReadWritePaths=",
        ),
    ],
)
def test_a_backup_where_the_node_may_not_write_says_so_and_marks_nothing(
    number: int, way_out: str
) -> None:
    filesystem = SimFileSystem()
    engine = engine_on(filesystem, {}, **OPTIONS)
    cut, job = cut_of(engine, "/backups/monday")
    filesystem.fail("mkdir", number, path_part="backups")
    with pytest.raises(StorageError, match=r"/backups/monday: mkdir failed: .*; ") as caught:
        make_backup(filesystem, cut, job, never)
    assert str(caught.value).endswith(way_out)
    assert not job.is_marked
    assert not filesystem.exists("/backups/monday")


@pytest.mark.parametrize("operation", ["create", "pwrite"])
def test_a_backup_knows_whether_it_is_marked(operation: str) -> None:
    filesystem = SimFileSystem()
    engine = engine_on(filesystem, {}, **OPTIONS)
    publish(engine.open_queue("/", "q", durable=True), 0, 10)
    for is_marked in (operation != "create", True):  # the second goes to what the first has left
        cut, job = cut_of(engine)
        if not is_marked:
            filesystem.fail(operation, errno.ENOSPC, path_part=INCOMPLETE)
        else:
            filesystem.fail("pwrite", errno.ENOSPC, path_part="/backup/")
        with pytest.raises(StorageError, match="space"):
            make_backup(filesystem, cut, job, never)
        assert job.is_marked is is_marked is filesystem.exists(f"/backup/{INCOMPLETE}")


def test_a_store_that_is_closed_meanwhile_ends_the_copying() -> None:
    filesystem = SimFileSystem()
    engine = engine_on(filesystem, {}, **OPTIONS)
    publish(engine.open_queue("/", "q", durable=True), 0, 10)
    cut, job = cut_of(engine)
    with pytest.raises(StorageError, match="the node is stopping"):
        make_backup(filesystem, cut, job, lambda _: True)
    assert filesystem.exists(f"/backup/{INCOMPLETE}")


@pytest.mark.parametrize(
    ("directory", "text"),
    [
        ("backup", "not an absolute path"),
        ("/data/backup", "is inside the data directory"),
        ("/data", "is inside the data directory"),
        ("/full", "is not empty"),
        ("/done", "holds a backup already"),
    ],
)
def test_directories_that_are_refused(directory: str, text: str) -> None:
    filesystem = SimFileSystem()
    engine = engine_on(filesystem, {}, **OPTIONS)
    for name, file in (("/full", "x"), ("/done", MANIFEST)):
        filesystem.mkdir(name)
        filesystem.create(f"{name}/{file}")
    with pytest.raises(BackupRefused, match=text):
        engine.check_backup(directory)
    before = filesystem.paths()
    job = engine.start_backup(directory, {})
    engine.hand_over()
    assert job.state == "failed"
    assert text in job.reason
    assert [path for path in filesystem.paths() if path in before] == before


def test_one_backup_at_a_time_and_none_of_a_failed_store() -> None:
    engine = engine_on(SimFileSystem(), {}, **OPTIONS)
    job = engine.start_backup("/one", {})
    with pytest.raises(BackupRefused, match="a backup to /one is being made"):
        engine.start_backup("/two", {})
    engine.store_failed("gone")
    assert (job.state, job.reason) == ("failed", "gone")
    with pytest.raises(BackupRefused, match="the store has failed"):
        engine.start_backup("/two", {})


class NoLinks(OsFileSystem):
    """Two file systems: links end at the backup's border."""

    def link(self, source: str, target: str) -> None:
        if "/copy/" in target:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), target)
        super().link(source, target)


@pytest.mark.parametrize("filesystem", [OsFileSystem(), NoLinks()])
def test_sealed_files_are_linked_or_copied(tmp_path: Path, filesystem: OsFileSystem) -> None:
    data, backup = tmp_path / "data", tmp_path / "copy"
    engine = Engine(str(data), filesystem, StoreOptions(**OPTIONS), SilentObserver(), FakeMessage)
    engine.recover()
    engine.start_inline()
    engine.definitions.put("queue", "q", {"durable": True})
    log = engine.open_queue("/", "q", durable=True)
    publish(log, 0, 60, 5000)
    publish(log, 60, 140)
    job = engine.start_backup(str(backup), {})
    engine.hand_over()
    assert job.state == "done", job.reason
    shared = [path for path in data.rglob("*.seg") if path.stat().st_nlink > 1]
    stores = [path for path in data.rglob("*.qs") if path.stat().st_nlink > 1]
    if isinstance(filesystem, NoLinks):
        assert (shared, stores, job.linked_bytes) == ([], [], 0)
    else:
        assert len(shared) == len(list(data.rglob("*.seg"))) - 1
        assert [path.name for path in sorted(stores)] == ["0.qs", "1.qs", "2.qs"]
    assert all(path.stat().st_nlink == 1 for path in backup.rglob("*.qi"))
    database = sqlite3.connect(backup / "definitions.db")
    assert database.execute("SELECT kind, key FROM definition").fetchall() == [("queue", "q")]
    database.close()
    rows = json.loads((backup / MANIFEST).read_text())["files"]
    assert sorted(row[0] for row in rows) == sorted(
        path.relative_to(backup).as_posix()
        for path in backup.rglob("*")
        if path.is_file() and path.name != MANIFEST
    )
    engine.close()


def test_definitions_that_cannot_be_copied_are_an_error(tmp_path: Path) -> None:
    store = SqliteDefinitionStore(str(tmp_path / "definitions.db"))
    store.commit([("user", "guest", {"tags": []})])
    store.copy_to(str(tmp_path / "copy.db"))
    with pytest.raises(StorageError, match="were not copied"):
        store.copy_to(str(tmp_path / "copy.db"))
    store.close()
    copy = SqliteDefinitionStore(str(tmp_path / "copy.db"))
    assert copy.load() == [("user", "guest", {"tags": []})]
    copy.close()
