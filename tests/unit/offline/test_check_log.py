"""`burrowmq-store check` with a commit log: what the log says of a queue counts, not what the disk has of it.

Covers: offline/check.py, offline/directory.py, storage/log/view.py
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from burrowmq.broker.words.resource import row_key
from burrowmq.offline.__main__ import main
from burrowmq.storage.engine import Engine
from burrowmq.storage.files.filesystem import File, OsFileSystem
from burrowmq.storage.loop.queue_log import QueueLog
from burrowmq.storage.names import QueueNames, vhost_directory
from tests.simulation.store_world import SilentObserver, make_message
from tests.support import offline_store
from tests.support.stored_message import FakeMessage


class Refusing(OsFileSystem):
    """Syncs no queue's directory."""

    def sync_all(
        self, files: Sequence[File], directories: Sequence[str]
    ) -> list[tuple[File | str, OSError]]:
        failed = super().sync_all(files, directories)
        queues = [path for path in directories if "/queues/" in path]
        return failed + [(path, OSError(errno.EIO, "Input/output error", path)) for path in queues]


WITH_LOG = replace(offline_store.OPTIONS, has_log=True)


def fill(engine: Engine, count: int, version: int) -> QueueLog:
    log = engine.open_queue("/", "q", durable=True, version=version)
    engine.definitions.put("queue", row_key("/", "q"), {})  # without it a start goes on deleting it
    messages = [make_message(at, offline_store.SMALL, True) for at in range(count)]
    log.append(0, messages, None, count * offline_store.SMALL)
    offline_store.commit(engine)
    return log


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("version", [1, 2])
def test_a_queue_that_was_deleted_and_declared_again_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], version: int, is_clean: bool
) -> None:
    engine = offline_store.open_engine(tmp_path, WITH_LOG)
    fill(engine, 3, version).delete()
    offline_store.commit(engine)
    fill(engine, 5, version)
    if is_clean:
        engine.close()
    else:
        engine.idle()
    code = main(["--data-dir", str(tmp_path), "check"])
    report = capsys.readouterr().out
    assert code == 0, report
    assert "queue 'q' in vhost '/'" in report
    assert "1 queues, 5 messages" in report
    assert "0 damaged files, 0 lost messages" in report
    assert len(offline_store.read_all(offline_store.open_engine(tmp_path, WITH_LOG), "q")) == 5


def test_what_a_power_cut_brought_back_of_a_queue_in_the_log_is_not_looked_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """docs/formats/commit_log.md: a directory that is on the disk and in the log is the log's."""
    engine = offline_store.open_engine(tmp_path, WITH_LOG)
    fill(engine, 1, 2)
    engine.idle()  # nobody closes it
    left = tmp_path / "vhosts" / vhost_directory("/") / "queues" / QueueNames("/", "q").directory
    left.mkdir(parents=True)
    (left / "7.qi").write_bytes(bytes(100))
    code = main(["--data-dir", str(tmp_path), "check"])
    found = capsys.readouterr()
    assert code == 0, found.err
    assert "1 queues, 1 messages" in found.out


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_queue_that_could_not_move_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], is_clean: bool
) -> None:
    options = replace(WITH_LOG, log_queue_limit=2000)
    engine = Engine(str(tmp_path), Refusing(), options, SilentObserver(), FakeMessage)
    engine.recover()
    engine.start_inline()
    log = engine.open_queue("/", "q", durable=True, version=2)
    count = offline_store.ENTRIES
    for first in range(0, 2 * count, 64):  # the files of both segments are left on the disk
        messages = [make_message(first + at, offline_store.SMALL, True) for at in range(64)]
        log.append(first, messages, None, 64 * offline_store.SMALL)
        offline_store.commit(engine)
    log.ack(0, count - 1)  # the first of them goes from the log
    offline_store.commit(engine)
    engine.idle()
    if is_clean:
        engine.close()
    assert len(list(tmp_path.glob("vhosts/*/queues/*/0.qs"))) == 1
    code = main(["--data-dir", str(tmp_path), "check"])
    found = capsys.readouterr()
    assert code == 0, found.err
    assert f"1 queues, {count} messages" in found.out
