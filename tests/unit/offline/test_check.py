"""`burrowmq-store check`: what it reports of whole and of damaged files, and that it writes nothing.

Covers: offline/check.py, offline/queue_check.py, offline/segment_check.py,
    offline/report.py, offline/directory.py, offline/terms_check.py, offline/__main__.py
"""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

import pytest

from burrowmq.offline.__main__ import main
from burrowmq.storage.files.filesystem import OsFileSystem
from tests.support import offline_store


def check(path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str]:
    code = main(["--data-dir", str(path), "check", *options])
    return code, capsys.readouterr().out


def contents(path: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in path.rglob("*")
        if file.is_file() and file.name != "LOCK"
    }


def flip(path: Path, offset: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 0x10
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("is_clean", [True, False])
def test_a_whole_store_is_fine_and_stays_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], is_clean: bool, version: int
) -> None:
    offline_store.make_store(tmp_path, is_clean=is_clean, version=version)
    before = contents(tmp_path)
    code, report = check(tmp_path, capsys)
    assert code == 0
    assert contents(tmp_path) == before
    assert "DAMAGED" not in report
    assert "3 queues, 900 messages" in report
    assert "0 damaged files, 0 lost messages" in report
    assert "queue 'small' in vhost '/'" in report
    files = [name for name in before if "vhosts" in name]
    assert len(report.splitlines()) == len(files) + 5


def test_a_queue_that_was_deleted_and_is_not_removed_yet_does_not_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    offline_store.make_store(tmp_path)
    queue = next(tmp_path.glob("vhosts/*/queues/*"))
    shutil.copytree(queue, queue.with_name(f"{queue.name}.1700000000.gone"))
    code, report = check(tmp_path, capsys)
    assert code == 0
    assert "3 queues, 900 messages" in report
    assert ".gone" not in report


def test_damage_in_a_version_1_file_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    offline_store.make_store(tmp_path, version=1)
    files = list(tmp_path.glob("vhosts/*/queues/*/0.idx"))
    small = next(file for file in files if b"00000255" in file.read_bytes())
    flip(small, small.read_bytes().rindex(b"00000255"))
    code, report = check(tmp_path, capsys)
    assert code == 1
    assert "bad record in place 255" in report
    assert "1 damaged files, 1 lost messages" in report


def test_live_and_garbage_are_told_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = offline_store.open_engine(tmp_path)
    log = engine.open_queue("/", "q", durable=True)
    messages = [offline_store.make_message(at, 5000, True) for at in range(10)]
    log.append(0, messages, None, 50_000)
    offline_store.commit(engine)
    log.ack(0, 2)
    offline_store.commit(engine)
    engine.close()
    _, report = check(tmp_path, capsys)
    lines = [line for line in report.splitlines() if "0.g0.seg" in line]
    assert "(" in lines[0]
    size = (tmp_path / lines[0].split()[0]).stat().st_size
    live = int(lines[0].split("live ")[1].split(" ")[0])
    assert 0 < live < size


@pytest.mark.parametrize(
    ("pattern", "offset", "lost"),
    [
        (
            "**/0.g0.seg",
            500,
            1,
        ),  # a body of the shared store, in one queue's ack'ed and another's live entry
        ("**/0.g0.seg", 10, 0),  # its header
        ("**/0.qi", 10, 0),
        ("**/.queue_name", 8, 0),
        ("**/.vhost_name", 0, 0),
    ],
)
def test_damage_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], pattern: str, offset: int, lost: int
) -> None:
    offline_store.make_store(tmp_path)
    flip(sorted(tmp_path.glob(pattern))[0], offset)
    code, report = check(tmp_path, capsys)
    assert code == 1
    assert report.count("DAMAGED") == 1
    assert "1 damaged files" in report
    assert (" 0 lost messages" not in report) == bool(lost)


def test_a_bad_body_or_entry_of_a_queue_costs_that_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    offline_store.make_store(tmp_path)
    store = sorted(tmp_path.rglob("1.qs"))[0]
    flip(store, store.stat().st_size - 5)
    code, report = check(tmp_path, capsys, "--problems")
    assert code == 1
    assert "bad record in place" in report
    assert "1 damaged files, 1 lost messages" in report
    assert len(report.splitlines()) == 1 + 4


def test_a_missing_store_file_is_damage_after_a_clean_stop(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    offline_store.make_store(tmp_path)
    next(tmp_path.rglob("0.qs")).unlink()
    code, report = check(tmp_path, capsys)
    assert code == 1
    assert "is missing" in report


def test_a_torn_end_after_a_crash_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    offline_store.make_store(tmp_path, is_clean=False)
    segments = sorted(tmp_path.rglob("*.seg"), key=lambda file: int(file.name.partition(".")[0]))
    with segments[-1].open("ab") as file:
        file.write(b"\xa5\x51\x01\x00 half a record")
    code, report = check(tmp_path, capsys)
    assert code == 0
    assert "torn end of 18 B" in report


def test_what_is_no_data_directory_is_refused_and_not_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--data-dir", str(tmp_path / "none"), "check"]) == 69
    assert "is not a data directory" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()
    (tmp_path / "STORE.json").write_text("{}")
    assert main(["--data-dir", str(tmp_path), "check"]) == 69
    assert "cannot be read" in capsys.readouterr().err


def test_a_directory_in_use_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from burrowmq.broker.node.data_directory import DataDirectory

    offline_store.make_store(tmp_path)
    lock = DataDirectory(str(tmp_path))
    lock.lock()
    assert main(["--data-dir", str(tmp_path), "check"]) == 69
    assert "is in use by process" in capsys.readouterr().err
    lock.unlock()


def test_bad_arguments_are_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--data-dir", "x", "resegment", "--file-size", "small"])
    assert ended.value.code == 64
    assert "file-size" in capsys.readouterr().err


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_shared_segment_that_is_missing_after_a_clean_stop_is_a_loss(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], is_clean: bool
) -> None:
    offline_store.make_store(tmp_path, scale=10, is_clean=is_clean)
    next(tmp_path.rglob("0.g0.seg")).unlink()
    code, report = check(tmp_path, capsys)
    engine = offline_store.open_engine(tmp_path)
    assert bool(engine.report.lost) == is_clean
    engine.close()
    assert code == is_clean
    assert ("0.g0.seg  0 B  DAMAGED; missing since the clean stop" in report) == is_clean
    # Else it may have gone with its last message, and the acks did not reach the disk.
    assert (" 0 lost messages" in report) != is_clean
    if is_clean:
        assert f" {engine.report.lost} lost messages" in report


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("ending", [".qs", ".seg"])
def test_what_the_disk_refuses_to_read_is_not_lost(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    ending: str,
    is_clean: bool,
) -> None:
    offline_store.make_store(tmp_path, is_clean=is_clean)
    read_file = OsFileSystem.read_file

    def refused(self: OsFileSystem, path: str) -> bytes:
        if path.endswith(ending):
            raise OSError(errno.EIO, "Input/output error", path)
        return read_file(self, path)

    with monkeypatch.context() as patch:
        patch.setattr(OsFileSystem, "read_file", refused)
        code, report = check(tmp_path, capsys)
    files = list(tmp_path.glob(f"vhosts/*/queues/*/*{ending}"))
    files += tmp_path.glob(f"vhosts/*/msg_store_persistent/*{ending}")
    lines = [line for line in report.splitlines() if "DAMAGED" in line]
    assert len(lines) == len(files)
    assert all(line.endswith("  DAMAGED; cannot be read: Input/output error") for line in lines)
    assert "missing" not in report
    assert "superseded" not in report
    assert "3 queues, 900 messages" in report
    assert f"{len(files)} damaged files, 0 lost messages" in report
    assert code == 1


@pytest.mark.parametrize(
    "name",
    ["1.gx.qs", "1.g.qs", "\u0663.qi", "9" * 200 + ".qi", f"{1 << 32}.idx", f"1.g{1 << 32}.qs"],
)
@pytest.mark.parametrize("is_clean", [True, False])
def test_a_file_that_no_store_makes_is_in_nobodys_way(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], is_clean: bool, name: str
) -> None:
    expected = offline_store.make_store(tmp_path, scale=10, is_clean=is_clean)
    next(tmp_path.rglob("0.qi")).with_name(name).write_bytes(b"")
    code, report = check(tmp_path, capsys)
    assert code == 0
    assert "3 queues, 90 messages" in report
    assert offline_store.bodies_of(tmp_path) == expected


@pytest.mark.parametrize(
    "text", [b'VHOST: "\\ud800"\nQUEUE: "q"\n', b"VHOST: " + b"[" * 100_000 + b'\nQUEUE: "q"\n']
)
def test_a_name_that_cannot_be_one_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: bytes
) -> None:
    offline_store.make_store(tmp_path, scale=10)
    next(tmp_path.rglob(".queue_name")).write_bytes(text)
    code, report = check(tmp_path, capsys)
    assert code == 1
    assert "does not name the queue of this directory" in report


MISSING = "missing since the clean stop, with "


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("what", ["file", "queue", "vhost", "vhosts"])
def test_index_files_that_are_missing_after_a_clean_stop_are_damage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str, version: int
) -> None:
    offline_store.make_store(tmp_path, version=version)
    ending = {1: "idx", 2: "qi"}[version]
    place = tmp_path
    gone = {
        "file": next(tmp_path.glob(f"vhosts/*/queues/*/1.{ending}")),
        "queue": next(tmp_path.glob("vhosts/*/queues/*")),
        "vhost": next(tmp_path.glob("vhosts/*")),
        "vhosts": tmp_path / "vhosts",
    }[what]
    files = [gone] if what == "file" else list(gone.rglob(f"*.{ending}"))
    gone.rename(tmp_path / "elsewhere")
    code, report = check(tmp_path, capsys)
    assert code == 1
    for file in files:
        assert f"{file.relative_to(place)}  0 B  DAMAGED; {MISSING}" in report
    assert report.count(MISSING) == len(files)
    kept = int(report.split(" queues, ")[1].split(" messages")[0])
    assert f"{900 - kept} lost messages" in report


def test_nobody_knows_of_a_missing_index_file_after_a_kill(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    offline_store.make_store(tmp_path, is_clean=False)
    next(tmp_path.glob("vhosts/*/queues/*/1.qi")).unlink()
    code, report = check(tmp_path, capsys)
    assert (code, MISSING in report) == (0, False), "a kill may come before a file is there"


@pytest.mark.parametrize("place", [0, 10, -1])
def test_terms_that_are_damaged_are_told_and_cost_no_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], place: int
) -> None:
    offline_store.make_store(tmp_path)
    terms = tmp_path / "terms"
    flip(terms, place % terms.stat().st_size)
    code, report = check(tmp_path, capsys)
    assert code == 1
    assert "DAMAGED; not what the clean stop wrote: a start looks at every file instead" in report
    assert "1 damaged files, 0 lost messages" in report
    terms.unlink()
    assert check(tmp_path, capsys)[0] == 1
