"""A store with a commit log on a real disk: taken over, given back, backed up, checked, and refused by name."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from burrowmq.offline.__main__ import main
from burrowmq.storage.directory.backup import make_backup, take_cut
from burrowmq.storage.errors import StoreRefused
from burrowmq.storage.files.filesystem import OsFileSystem
from burrowmq.storage.log.small_queues import UNPACKED
from burrowmq.storage.types import BackupJob
from tests.support.offline_store import OPTIONS, commit, open_engine, read_all
from tests.support.store_on_disk import message
from tests.support.store_record import changed

WITH_LOG = replace(OPTIONS, has_log=True)
NAMES = [f"q{number}" for number in range(20)]


def publish(path: Path, options=WITH_LOG, sizes=(10, 300, 9000)) -> None:
    """The same messages into each queue, and a kill."""
    engine = open_engine(path, options)
    for name in NAMES:
        log = engine.open_queue("/", name, durable=True)
        messages = [message(b"%d" % size * (size // 2)) for size in sizes]
        log.append(log.next_seq, messages, None, sum(sizes))
    commit(engine)


def counts(path: Path, options=WITH_LOG) -> set[int]:
    engine = open_engine(path, options)
    try:
        return {len(read_all(engine, name)) for name in NAMES}
    finally:
        engine.close()


def format_of(path: Path) -> int:
    return int(json.loads((path / "STORE.json").read_text())["format"])


def files(path: Path) -> list[Path]:
    return list(path.glob("vhosts/*/queues/*/*"))


def test_a_store_is_taken_over_and_given_back(tmp_path: Path) -> None:
    publish(tmp_path, OPTIONS)
    assert format_of(tmp_path) == 2
    before = len(files(tmp_path))
    publish(tmp_path)
    assert format_of(tmp_path) == 3
    assert counts(tmp_path) == {6}
    assert counts(tmp_path, OPTIONS) == {6}
    assert format_of(tmp_path) == 2
    assert not (tmp_path / "commit_log").exists()
    assert len(files(tmp_path)) >= before


def test_small_queues_have_no_files(tmp_path: Path) -> None:
    publish(tmp_path)
    assert files(tmp_path) == []
    assert counts(tmp_path) == {3}
    assert counts(tmp_path) == {3}
    assert files(tmp_path) == []
    assert counts(tmp_path, OPTIONS) == {3}
    assert len(files(tmp_path)) == 3 * len(NAMES)


def test_a_store_whose_log_is_not_there_is_refused(tmp_path: Path) -> None:
    publish(tmp_path)
    (tmp_path / "commit_log/1.log").unlink()
    with pytest.raises(StoreRefused, match=r"1\.log is missing"):
        open_engine(tmp_path)
    assert main(["--data-dir", str(tmp_path), "check"]) == 69
    record = tmp_path / "STORE.json"
    record.write_bytes(changed(record.read_bytes(), format=4))
    with pytest.raises(StoreRefused, match="format 4 is not known"):
        open_engine(tmp_path)


@pytest.mark.parametrize("is_damaged", [False, True])
def test_check_sees_what_a_start_would_find(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], is_damaged: bool
) -> None:
    publish(tmp_path)
    publish(tmp_path, sizes=(300,))
    if is_damaged:
        log = max((tmp_path / "commit_log").iterdir(), key=lambda one: one.stat().st_mtime_ns)
        data = bytearray(log.read_bytes())
        data[data.index(b"300300300") + 5] ^= 1
        log.write_bytes(data)
    code = main(["--data-dir", str(tmp_path), "check"])
    report = capsys.readouterr().out
    assert code == int(is_damaged)
    # What nobody knows to be durable counts as torn, and not as lost: the log's own line says that it was.
    assert f"20 queues, {80 - is_damaged} messages" in report
    assert ("DAMAGED" in report) == is_damaged


def test_a_backup_has_files_and_no_log(tmp_path: Path) -> None:
    path, backup = tmp_path / "data", tmp_path / "backup"
    engine = open_engine(path, WITH_LOG)
    for name in NAMES:
        engine.open_queue("/", name, durable=True).append(0, [message(b"x")], None, 1)
    commit(engine)
    writer = engine._writer
    assert writer is not None
    job = BackupJob(str(backup), {})
    cut = take_cut(writer.context, writer.durable_queues(), job)
    make_backup(writer.context.filesystem, cut, job, lambda _: False)
    assert job.queue_count == len(NAMES)
    assert format_of(backup) == 2
    assert len(files(backup)) == 3 * len(NAMES)
    for options in (OPTIONS, WITH_LOG):
        assert counts(backup, options) == {1}


def test_resegment_writes_such_a_store_anew(tmp_path: Path) -> None:
    publish(tmp_path)
    assert main(["--data-dir", str(tmp_path), "resegment", "--entries", "512"]) == 0
    options = replace(OPTIONS, segment_entry_count=512)
    assert counts(tmp_path, options) == {3}
    assert counts(tmp_path, replace(options, has_log=True)) == {3}


def test_real_files_are_what_the_disk_has(tmp_path: Path) -> None:
    engine = open_engine(tmp_path, replace(WITH_LOG, log_queue_limit=1000))
    log = engine.open_queue("/", "grows", durable=True)
    for number in range(50):
        log.append(number, [message(b"%04d" % number * 50)], None, 200)
        commit(engine)
    assert OsFileSystem().exists(log.names.directory) is False
    assert len(files(tmp_path)) == 3
    found = open_engine(tmp_path, WITH_LOG)
    assert len(read_all(found, "grows")) == 50


@pytest.mark.parametrize("count", [1, 20])
def test_queues_in_files_of_their_own_are_converted_and_back(tmp_path: Path, count: int) -> None:
    """The new files of one are synced in the log, those of many in place."""
    options = replace(WITH_LOG, log_queue_limit=1000)
    engine = open_engine(tmp_path, options)
    logs = [engine.open_queue("/", name, durable=True) for name in NAMES[:count]]
    for number in range(6):
        for log in logs:
            log.append(10 * number, [message(b"%04d" % number * 30)] * 10, None, 1200)
        commit(engine)
    for version in (1, 2):
        for log in logs:
            log.set_version(version)
        commit(engine)
        for _ in range(3):
            engine.idle()
            commit(engine)
        assert engine._writer is not None
        assert engine._writer.conversion.queue_count == 0
        ending = {1: ".idx", 2: ".qi"}[version]
        assert {one.suffix for one in files(tmp_path)} & {".idx", ".qi"} == {ending}
    assert engine.failure is None
    found = open_engine(tmp_path, options)
    assert {len(read_all(found, name)) for name in NAMES[:count]} == {60}


def test_small_queues_that_were_read_take_no_more_memory_than_before(tmp_path: Path) -> None:
    names = [f"q{number}" for number in range(2 * UNPACKED)]
    engine = open_engine(tmp_path, WITH_LOG)
    for name in names:
        engine.open_queue("/", name, durable=True).append(0, [message(b"x")], None, 1)
    commit(engine)
    engine = open_engine(tmp_path, WITH_LOG)
    assert {len(read_all(engine, name)) for name in names} == {1}
    assert engine._writer is not None
    assert engine._writer.is_dirty()
    while engine._writer.is_dirty():
        engine.idle()
    log = engine._writer.context.log
    assert log is not None
    assert not log.groups.small._unpacked
    engine.close()
