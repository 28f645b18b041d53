"""burrowmq-store quarantine."""

from __future__ import annotations

from pathlib import Path

import pytest

from burrowmq.offline.__main__ import main
from burrowmq.storage.directory import quarantine
from burrowmq.storage.files.filesystem import OsFileSystem
from tests.support import offline_store


def test_messages_that_were_set_aside_are_listed(tmp_path: Path, capsysbinary) -> None:
    offline_store.make_store(tmp_path, scale=1)
    about = quarantine.SetAside(
        vhost="/", queue="q", level=0, seq=7, expiry=0, reason="unreadable record",
        source="0.qs, byte 64", size=3, set_aside_at=1_000,
    )  # fmt: skip
    name = quarantine.keep(OsFileSystem(), str(tmp_path), "/x/queues/ab", about, b"\x00ab")
    arguments = ["--data-dir", str(tmp_path), "quarantine"]
    assert main(arguments) == 0
    out = capsysbinary.readouterr().out.decode()
    assert out == (
        f"{name}  1970-01-01T00:00:01Z  vhost '/' queue 'q' message 7: unreadable record, 3 bytes from 0.qs, byte 64\n"
        "1 messages in quarantine\n"
    )
    assert main([*arguments, "--raw", name]) == 0
    assert capsysbinary.readouterr().out == b"\x00ab"
    assert main([*arguments, "--raw", "other.msg"]) == 1


@pytest.mark.parametrize("head", [b"", b"[]", b"{", b'{"vhost": 1}', b"\xff"])
def test_a_file_that_does_not_say_whose_it_is_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], head: bytes
) -> None:
    offline_store.make_store(tmp_path, scale=1)
    (tmp_path / "quarantine").mkdir()
    (tmp_path / "quarantine" / "ab.7.1.msg").write_bytes(head + b"\n?")
    assert main(["--data-dir", str(tmp_path), "quarantine"]) == 1
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith("ab.7.1.msg  DAMAGED")
    assert last == "0 messages in quarantine"


@pytest.mark.parametrize("when", [10**30, "x", None, -(10**18)])
def test_a_time_that_is_none_does_not_hide_the_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], when: object
) -> None:
    offline_store.make_store(tmp_path, scale=1)
    about = quarantine.SetAside(
        vhost="/", queue="q\ud800", level=0, seq=7, expiry=0, reason="unreadable record",
        source="0.qs, byte 64", size=3, set_aside_at=when,  # type: ignore[arg-type]
    )  # fmt: skip
    name = quarantine.keep(OsFileSystem(), str(tmp_path), "/x/queues/ab", about, b"?")
    assert main(["--data-dir", str(tmp_path), "quarantine"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{name}  at some time  vhost '/' queue 'q\\ud800' message 7")
