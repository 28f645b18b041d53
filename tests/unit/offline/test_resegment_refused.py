"""`burrowmq-store resegment` where the disk refuses something, or nobody knows whose a directory is: the old store stays.

Covers: offline/resegment.py, storage/types.py
"""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from burrowmq.offline.__main__ import main
from burrowmq.offline.directory import StoreDirectory
from burrowmq.offline.resegment import resegment
from burrowmq.storage.directory import quarantine
from burrowmq.storage.directory.terms import ENTRY_COUNT_KEY, FILE_SIZE_KEY, read_recorded
from burrowmq.storage.errors import LimitChanged, StorageError
from burrowmq.storage.files.filesystem import OsFileSystem
from tests.simulation.store_world import make_message
from tests.support import offline_store
from tests.support.offline_store import LARGE, SMALL
from tests.support.sim_filesystem import SimFileSystem

WANTED = {FILE_SIZE_KEY: 128 * 1024, ENTRY_COUNT_KEY: 512}
NEW = replace(offline_store.OPTIONS, segment_size_limit=128 * 1024, segment_entry_count=512)
PLACES = (("/", "a", 2), ("/", "b", 1), ("other", "a", 2), ("other", "b", 1))


def made() -> tuple[SimFileSystem, dict[tuple[str, str], list[bytes]]]:
    """A store of two vhosts that was stopped, and the bodies in it."""
    filesystem = SimFileSystem(strict=False)
    engine = offline_store.open_engine(Path("/data"), filesystem=filesystem)
    bodies = {}
    for at, (vhost, name, version) in enumerate(PLACES):
        messages = [make_message(100 * at + n, (SMALL, LARGE)[n % 2], True) for n in range(8)]
        log = engine.open_queue(vhost, name, durable=True, version=version)
        log.append(0, messages, None, sum(message.size for message in messages))
        offline_store.commit(engine)
        bodies[vhost, name] = [message.raw for message in messages]
    engine.close()
    return filesystem, bodies


def rewrite(filesystem: SimFileSystem) -> None:
    recorded = read_recorded(filesystem, "/data")
    directory: Any = SimpleNamespace(path="/data", filesystem=filesystem, recorded=recorded)
    resegment(cast("StoreDirectory", directory), dict(WANTED), offline_store.streams())


def bodies_on(filesystem: SimFileSystem) -> dict[tuple[str, str], list[bytes]]:
    try:
        engine = offline_store.open_engine(Path("/data"), filesystem=filesystem)
    except LimitChanged:
        engine = offline_store.open_engine(Path("/data"), NEW, filesystem)
    found = {}
    for vhost, name, version in PLACES:
        log = engine.open_queue(vhost, name, durable=True, version=version)
        answer = log.read(0, 100, 1 << 20, lambda *_: None) or ([], 0)
        found[vhost, name] = [message.raw for _, message, _ in answer[0]]
    engine.close()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("number", [errno.EMFILE, errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("times", [2, 12])
def test_whatever_the_disk_refuses_meanwhile_nothing_is_missing(number: int, times: int) -> None:
    refused = first = 0
    while True:
        first += 1
        filesystem, bodies = made()
        filesystem.fail_from(first, number, times=times)
        try:
            rewrite(filesystem)
        except (OSError, StorageError):
            refused += 1
        if not filesystem.failed:
            break
        filesystem.heal()
        assert bodies_on(filesystem.process_killed()) == bodies, first
    assert refused > 10


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_vhost_that_no_file_names_is_not_left_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], is_clean: bool
) -> None:
    bodies = offline_store.make_store(tmp_path, is_clean=is_clean, scale=10)
    said = {path: path.read_bytes() for path in tmp_path.rglob(".*_name")}
    assert len(said) == 4
    for path in said:
        path.write_bytes(b"")
    if is_clean:  # the terms name them
        assert main(["--data-dir", str(tmp_path), "resegment", "--entries", "512"]) == 0
        new = replace(offline_store.OPTIONS, segment_entry_count=512)
        assert offline_store.bodies_of(tmp_path, new) == bodies
        return
    assert main(["--data-dir", str(tmp_path), "resegment", "--entries", "512"]) == 69
    assert "start the node, which knows its vhosts" in capsys.readouterr().err
    (tmp_path / "CLEAN").unlink(missing_ok=True)
    for path, data in said.items():
        path.write_bytes(data)
    assert offline_store.bodies_of(tmp_path) == bodies


def damage_small(path: Path, count: int) -> None:
    """The last messages of the queue `small`."""
    (store,) = [
        each
        for each in path.glob("vhosts/*/queues/*/0.qs")
        if b"small" in each.with_name(".queue_name").read_bytes()
    ]
    data = bytearray(store.read_bytes())
    size = (len(data) - 64) // 256
    for at in range(count):
        data[len(data) - 10 - at * size] ^= 1
    store.write_bytes(data)


@pytest.mark.parametrize("count", [5, 20])
def test_each_damaged_message_is_in_quarantine_before_the_old_store_goes(
    tmp_path: Path, count: int
) -> None:
    offline_store.make_store(tmp_path)
    damage_small(tmp_path, count)
    assert main(["--data-dir", str(tmp_path), "resegment", "--entries", "512"]) == 1
    assert len(list(tmp_path.glob("quarantine/*.msg"))) == count


def test_damaged_messages_that_the_quarantine_has_no_room_for_keep_the_old_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    offline_store.make_store(tmp_path)
    damage_small(tmp_path, 20)
    monkeypatch.setattr(quarantine, "LIMIT", 12)
    assert main(["--data-dir", str(tmp_path), "resegment", "--entries", "512"]) == 69
    assert "8 damaged messages cannot be kept in quarantine" in capsys.readouterr().err
    assert len(list(tmp_path.glob("quarantine/*.msg"))) == 12
    assert len(offline_store.bodies_of(tmp_path)["also"]) == 400


@pytest.mark.parametrize("is_enough", [True, False])
def test_a_message_that_queues_share_needs_room_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    is_enough: bool,
) -> None:
    engine = offline_store.open_engine(tmp_path)
    run = [make_message(at, 1_000_000, True) for at in range(4)]
    for name in range(25):
        engine.open_queue("/", f"q{name}", durable=True).append(0, run, None, 4_000_000)
    offline_store.commit(engine)
    engine.close()
    free = 72_000_000 if is_enough else 70_000_000  # with what is kept free
    monkeypatch.setattr(OsFileSystem, "disk_free", lambda *_: free)
    code = main(["--data-dir", str(tmp_path), "resegment", "--file-size", "131072"])
    assert code == (0 if is_enough else 69)
    assert ("are needed, 70.0 MB are free" in capsys.readouterr().err) != is_enough
