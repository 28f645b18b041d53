"""A data directory that burrowmq-store cannot lock, and one with an index file that is empty: said, no traceback.

Covers: offline/directory.py, offline/queue_check.py, offline/report.py
"""

from __future__ import annotations

import builtins
import errno
import fcntl
import os
from pathlib import Path

import pytest

from burrowmq.offline.__main__ import main
from burrowmq.storage.directory import quarantine
from burrowmq.storage.files.filesystem import Naming, OsFileSystem
from tests.support import offline_store


@pytest.mark.parametrize("command", ["check", "quarantine", "resegment"])
def test_a_directory_that_cannot_be_locked_is_unusable_and_not_damaged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    offline_store.make_store(tmp_path, scale=10)
    (tmp_path / "LOCK").unlink(missing_ok=True)
    (
        tmp_path / "LOCK"
    ).mkdir()  # as on a disk that is read only: the file cannot be opened to write
    assert main(["--data-dir", str(tmp_path), command]) == 69
    assert "cannot be used" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["check", "quarantine", "resegment"])
def test_a_record_that_cannot_be_read_is_said_with_its_file(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    command: str,
) -> None:
    offline_store.make_store(tmp_path, scale=10)
    read_file = OsFileSystem.read_file
    path = f"{tmp_path}/STORE.json"

    def refuse(filesystem: OsFileSystem, asked: str) -> bytes:
        if asked != path:
            return read_file(filesystem, asked)
        with Naming("read", path):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    monkeypatch.setattr(OsFileSystem, "read_file", refuse)
    assert main(["--data-dir", str(tmp_path), command]) == 69
    assert f"{path}: read failed: Input/output error (EIO)" in capsys.readouterr().err


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize(("version", "name"), [(1, "0.idx"), (2, "0.qi")])
def test_an_index_file_with_nothing_in_it_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], version: int, name: str, is_clean: bool
) -> None:
    offline_store.make_store(tmp_path, scale=100, version=version, is_clean=is_clean)
    path = next(tmp_path.rglob(name))
    path.write_bytes(b"")
    assert main(["--data-dir", str(tmp_path), "check", "--problems"]) == 1
    out = capsys.readouterr().out
    assert f"{path.parent.name}/{name}  0 B" in out
    assert "damaged files" in out


def test_a_shared_segment_that_a_kill_left_empty_is_no_damage(tmp_path: Path) -> None:
    offline_store.make_store(tmp_path, scale=10, is_clean=False)
    store = next(tmp_path.rglob("msg_store_persistent"))
    (store / "50.g0.seg").touch(exist_ok=False)  # killed right after it was made
    assert main(["--data-dir", str(tmp_path), "check"]) == 0


def test_a_queue_of_any_name_is_one_line_of_the_quarantine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    offline_store.make_store(tmp_path, scale=10)
    about = quarantine.SetAside(
        vhost="/",
        queue="a\nb",
        level=0,
        seq=1,
        expiry=0,
        reason="unreadable record",
        source="file, byte 0",
        size=1,
        set_aside_at=1,
    )
    quarantine.keep(OsFileSystem(), str(tmp_path), "queues/0", about, b"?")
    assert main(["--data-dir", str(tmp_path), "quarantine"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


@pytest.fixture
def read_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """No file can be opened for writing, as on a disk that is mounted read only."""
    os_open, file_open = os.open, builtins.open

    def refuse(path: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)

    def open_descriptor(path: str, flags: int, *rest: int) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            refuse(path)
        return os_open(path, flags, *rest)

    def open_file(path: str, mode: str = "r", *rest: object, **options: object) -> object:
        if set(mode) & set("wa+x"):
            refuse(path)
        return file_open(path, mode, *rest, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(os, "open", open_descriptor)
    monkeypatch.setattr(builtins, "open", open_file)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    offline_store.make_store(tmp_path, scale=10)
    return tmp_path


@pytest.mark.parametrize("has_lock", [True, False])
@pytest.mark.parametrize(
    ("command", "said"), [("check", "0 damaged files"), ("quarantine", "0 messages")]
)
def test_a_store_on_a_disk_that_is_read_only_can_be_looked_at(
    store: Path,
    capsys: pytest.CaptureFixture[str],
    request,
    command: str,
    said: str,
    has_lock: bool,
) -> None:
    (store / "LOCK").unlink(missing_ok=True)
    if has_lock:
        (store / "LOCK").touch()
    request.getfixturevalue("read_only")
    assert main(["--data-dir", str(store), command]) == 0
    assert said in capsys.readouterr().out


def test_a_store_that_a_node_uses_is_left_alone_on_a_read_only_mount_too(
    store: Path, capsys: pytest.CaptureFixture[str], request
) -> None:
    with (store / "LOCK").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        request.getfixturevalue("read_only")
        assert main(["--data-dir", str(store), "check"]) == 69
    assert "is in use" in capsys.readouterr().err


@pytest.mark.usefixtures("store", "read_only")
def test_what_writes_says_that_nothing_can_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--data-dir", str(tmp_path), "resegment", "--entries", "512"]) == 69
    assert "Read-only file system" in capsys.readouterr().err


def test_a_directory_that_may_not_be_searched_is_not_taken_for_one_without_a_store(
    store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    os_stat = os.stat

    def stat(path: str, **options: object) -> os.stat_result:
        if str(path).endswith("STORE.json"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return os_stat(path, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "stat", stat)
    assert main(["--data-dir", str(store), "check"]) == 69
    assert f"{store} cannot be read: Permission denied" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["--data-dir", "", "check"], ["--data-dir", "never made", "restore", ""]]
)
def test_an_empty_name_is_no_directory(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 64
    assert "it is empty: name a directory" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["check", "quarantine", "resegment"])
@pytest.mark.parametrize("text", ["5", "[]", "null", '"x"', "{", "[" * 100_000, '{"format": "x"}'])
def test_a_record_of_the_store_that_is_none_is_named(
    store: Path, capsys: pytest.CaptureFixture[str], text: str, command: str
) -> None:
    (store / "STORE.json").write_text(text)
    assert main(["--data-dir", str(store), command]) == 69
    error = capsys.readouterr().err
    assert f"{store}/STORE.json cannot be read: " in error
    assert "restore that file" in error
