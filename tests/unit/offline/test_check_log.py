"""`burrowmq-store check` with a commit log: what the log says of a queue counts, not what the disk has of it.

Covers: offline/check.py, offline/directory.py, storage/log/view.py
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from burrowmq.offline.__main__ import main
from burrowmq.storage.engine import Engine
from burrowmq.storage.loop.queue_log import QueueLog
from tests.simulation.store_world import make_message
from tests.support import offline_store

WITH_LOG = replace(offline_store.OPTIONS, has_log=True)


def fill(engine: Engine, count: int, version: int) -> QueueLog:
    log = engine.open_queue("/", "q", durable=True, version=version)
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
