"""`burrowmq-store restore`: the way back, what is refused, and that nothing is written then."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from burrowmq.offline.__main__ import main
from burrowmq.offline.directory import CannotUse
from burrowmq.offline.restore import Manifest, NotABackup, prepare, read_manifest, restore
from burrowmq.storage.directory.backup import INCOMPLETE, MANIFEST
from burrowmq.storage.directory.definition_store import SqliteDefinitionStore
from burrowmq.storage.engine import Engine
from burrowmq.storage.errors import StoreRefused, UnknownFormat
from burrowmq.storage.files.filesystem import OsFileSystem
from tests.simulation.store_world import SilentObserver
from tests.support import offline_store
from tests.support.engine_on_disk import engine_on, publish
from tests.support.sim_filesystem import SimFileSystem
from tests.support.stored_message import FakeMessage


def backed_up() -> SimFileSystem:
    filesystem = SimFileSystem()
    engine = engine_on(filesystem, {}, segment_entry_count=64)
    log = engine.open_queue("/", "q", durable=True)
    publish(log, 0, 100)
    publish(log, 100, 3, 5000)
    engine.start_backup("/backup", {})
    engine.hand_over()
    return filesystem


def brought_back(filesystem: SimFileSystem, seen: list[int] | None = None) -> Manifest:
    manifest = prepare(filesystem, "/backup", "/other")
    restore(filesystem, "/backup", "/other", manifest, ([] if seen is None else seen).append)
    return manifest


def change(filesystem: SimFileSystem, key: str, value: object) -> None:
    path = f"/backup/{MANIFEST}"
    text = json.loads(filesystem.read_file(path))
    text[key] = value
    filesystem.unlink(path)
    filesystem.create(path).pwrite(json.dumps(text).encode(), 0)


def refused(filesystem: SimFileSystem, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        prepare(filesystem, "/backup", "/other")


def test_progress_ends_at_the_whole() -> None:
    seen: list[int] = []
    manifest = brought_back(backed_up(), seen)
    assert sum(seen) == manifest.byte_count > 10_000
    assert len(seen) >= len(manifest.files)


def test_an_empty_directory_is_enough_and_one_that_is_not_is_refused() -> None:
    filesystem = backed_up()
    filesystem.mkdir("/other")
    filesystem.create("/other/LOCK")
    brought_back(filesystem)
    with pytest.raises(CannotUse, match=r"/other is not empty: it holds STORE.json"):
        brought_back(filesystem)


def test_what_is_no_backup_is_refused() -> None:
    filesystem = backed_up()
    with pytest.raises(NotABackup, match=r"there is no BACKUP\.json"):
        prepare(filesystem, "/data", "/other")
    filesystem.create(f"/backup/{INCOMPLETE}")
    refused(filesystem, NotABackup, "was not finished")


def test_a_manifest_that_is_not_ours_is_refused() -> None:
    filesystem = backed_up()
    change(filesystem, "format", 9)
    refused(filesystem, UnknownFormat, "format 9 is not known")
    change(filesystem, "format", 1)
    change(filesystem, "files", [["../x", 1, None]])
    refused(filesystem, NotABackup, "names '../x'")
    change(filesystem, "files", [["x"]])
    refused(filesystem, NotABackup, "cannot be read")


def test_missing_and_short_files_are_found_before_anything_is_written() -> None:
    filesystem = backed_up()
    path = next(
        path for path in filesystem.paths() if path.startswith("/backup/") and path.endswith(".qi")
    )
    filesystem.open(path).truncate(1)
    refused(filesystem, NotABackup, "has 1 bytes instead of")
    filesystem.unlink(path)
    refused(filesystem, NotABackup, "is missing")


def test_a_damaged_file_leaves_a_directory_that_the_node_refuses() -> None:
    filesystem = backed_up()
    file = read_manifest(filesystem, "/backup").files[-2]
    assert file.check is not None
    filesystem.open(f"/backup/{file.path}").pwrite(b"\xff", 0)
    with pytest.raises(NotABackup, match="is damaged"):
        brought_back(filesystem)
    for path in list(filesystem.paths()):
        if path.startswith("/data/"):
            filesystem.unlink(path)
    filesystem.rmtree("/data")
    filesystem.mkdir("/data/vhosts")
    with pytest.raises(StoreRefused, match=r"no STORE.json"):
        engine_on(filesystem)
    assert filesystem.exists("/other/vhosts")
    assert not filesystem.exists("/other/STORE.json")


def test_a_damaged_record_of_the_store_is_not_left_there() -> None:
    filesystem = backed_up()
    filesystem.open("/backup/STORE.json").pwrite(b"[", 0)
    with pytest.raises(NotABackup, match=r"STORE.json is damaged"):
        brought_back(filesystem)
    assert filesystem.exists("/other/vhosts")
    assert not filesystem.exists("/other/STORE.json"), "a node might start on it"


def run(path: Path, *words: str) -> int:
    return main(["--data-dir", str(path), "restore", *words])


@pytest.fixture
def backup(tmp_path: Path) -> tuple[Path, dict[str, list[bytes]]]:
    """A backup on disk, and the bodies in it."""
    bodies = offline_store.make_store(tmp_path / "data")
    SqliteDefinitionStore(str(tmp_path / "data" / "definitions.db")).close()
    engine = Engine(
        str(tmp_path / "data"),
        OsFileSystem(),
        offline_store.OPTIONS,
        SilentObserver(),
        FakeMessage,
    )
    engine.recover()
    engine.start_inline()
    for name in bodies:
        engine.open_queue("/", name, durable=True)
    job = engine.start_backup(str(tmp_path / "backup"), {"node": "n", "made_at": "then"})
    engine.hand_over()
    assert job.state == "done", job.reason
    engine.close()
    return tmp_path / "backup", bodies


def test_the_command_restores_and_checks(
    tmp_path: Path, backup: tuple[Path, dict[str, list[bytes]]], capsys: pytest.CaptureFixture[str]
) -> None:
    place, bodies = backup
    assert run(tmp_path / "other", str(place)) == 0
    said = capsys.readouterr().out
    count = sum(map(len, bodies.values()))
    assert said.startswith(f"restored {count} messages in 3 queues, ")
    assert "as of then on n\n" in said
    engine = offline_store.open_engine(tmp_path / "other")
    found = {name: [raw for _, raw, _ in offline_store.read_all(engine, name)] for name in bodies}
    assert found == bodies
    engine.close()
    assert run(tmp_path / "other", str(place)) == 69
    assert "is not empty" in capsys.readouterr().err


def test_a_bad_byte_that_no_manifest_tells_is_found_by_the_check(
    tmp_path: Path, backup: tuple[Path, dict[str, list[bytes]]], capsys: pytest.CaptureFixture[str]
) -> None:
    place, _ = backup
    manifest = read_manifest(OsFileSystem(), str(place))
    linked = next(file for file in manifest.files if file.check is None and file.size > 10_000)
    path = place / linked.path
    data = bytearray(path.read_bytes())
    data[5000] ^= 1
    path.write_bytes(data)
    assert run(tmp_path / "other", str(place)) == 1
    assert path.name in capsys.readouterr().out


def test_what_is_no_backup_is_status_69(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path / "other", str(tmp_path)) == 69
    assert "there is no BACKUP.json" in capsys.readouterr().err


def manifest_of(**changed: object) -> str:
    whole = {"format": 1, "queues": 0, "messages": 0, "bytes": 0, "files": []}
    return json.dumps(whole | changed)


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, manifest_of(messages=float("inf")), manifest_of(files=[["a\0b", 1, None]])],
    ids=["nested", "infinity", "nul"],
)
def test_a_damaged_manifest_is_status_69(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    (tmp_path / MANIFEST).write_text(text)
    assert run(tmp_path / "other", str(tmp_path)) == 69
    assert MANIFEST in capsys.readouterr().err


def test_a_working_directory_that_is_no_more_is_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert main(["--data-dir", str(tmp_path / "data"), "restore", "backup"]) == 74
    told = capsys.readouterr().err
    assert told == "burrowmq-store: the working directory: No such file or directory\n"
