"""A data directory that burrowmq-store cannot lock, and one with an index file that is empty: said, no traceback.

Covers: offline/directory.py, offline/queue_check.py
"""

from __future__ import annotations

from pathlib import Path

import pytest

from burrowmq.offline.__main__ import main
from burrowmq.storage.directory import quarantine
from burrowmq.storage.files.filesystem import OsFileSystem
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


@pytest.mark.xfail(strict=True, reason="check takes what a crash left without a header for damage")
def test_a_shared_segment_that_a_kill_left_empty_is_no_damage(tmp_path: Path) -> None:
    offline_store.make_store(tmp_path, scale=10, is_clean=False)
    store = next(tmp_path.rglob("msg_store_persistent"))
    (store / "50.g0.seg").touch(exist_ok=False)  # killed right after it was made
    assert main(["--data-dir", str(tmp_path), "check"]) == 0


@pytest.mark.xfail(strict=True, reason="names go to the listing as they are")
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
