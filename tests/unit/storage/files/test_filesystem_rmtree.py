"""A directory of which nobody can say whether it is there is not one that is gone.

Covers: storage/files/filesystem.py
"""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from burrowmq.storage.files.filesystem import OsFileSystem
from tests.simulation.store_world import make_message
from tests.support import offline_store


def _refuse_once(monkeypatch: pytest.MonkeyPatch, ending: str) -> list[str]:
    """The first `stat` of such a path finds that the disk does not read; gives what was refused."""
    refused: list[str] = []
    real = os.stat

    def stat(path: Any, *arguments: Any, **named: Any) -> os.stat_result:
        if not refused and str(path).endswith(ending):
            refused.append(str(path))
            raise OSError(errno.EIO, "Input/output error", path)
        return real(path, *arguments, **named)

    monkeypatch.setattr(os, "stat", stat)
    return refused


def test_rmtree_raises_where_nobody_can_say_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tree").mkdir()
    assert not _refuse_once(monkeypatch, "/tree")
    with pytest.raises(OSError, match="Input/output error"):
        OsFileSystem().rmtree(f"{tmp_path}/tree")


@pytest.mark.parametrize("is_declared_at_once", [True, False])
@pytest.mark.parametrize("has_log", [True, False])
def test_messages_of_a_deleted_queue_do_not_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_log: bool, is_declared_at_once: bool
) -> None:
    options = replace(offline_store.OPTIONS, has_log=has_log, log_queue_limit=100)
    engine = offline_store.open_engine(tmp_path, options)
    count = 3 * offline_store.ENTRIES
    log = engine.open_queue("/", "q", durable=True)
    messages = [make_message(at, offline_store.SMALL, True) for at in range(count)]
    for at in range(0, count, 128):
        log.append(at, messages[at : at + 128], None, 128 * offline_store.SMALL)
        offline_store.commit(engine)
    (directory,) = tmp_path.glob("vhosts/*/queues/*")
    refused = _refuse_once(monkeypatch, f"/{directory.name}")
    log.delete()
    offline_store.commit(engine)
    assert refused == [str(directory)]
    engine.idle()
    if is_declared_at_once:
        log = engine.open_queue("/", "q", durable=True)
        log.append(0, [make_message(5, offline_store.SMALL, True)], None, offline_store.SMALL)
        offline_store.commit(engine)
    engine.idle()  # killed here
    again = offline_store.open_engine(tmp_path, options)
    found = offline_store.read_all(again, "q")
    assert len(found) == is_declared_at_once
