"""A bit of the definitions flipped: fewer or other rows, and the files of queues that have none would go."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from burrowmq.storage.directory.definition_store import SqliteDefinitionStore
from burrowmq.storage.errors import StorageError

ROWS = [("queue", f'["/","queue-{at}"]', {"durable": True}) for at in range(3)]


def killed(path: Path, *, is_stopped: bool) -> str:
    """The files as a killed process leaves them, or one that stopped."""
    store = SqliteDefinitionStore(str(path / "definitions.db"))
    for row in ROWS:
        store.commit([row])
    if is_stopped:
        store.close()
    (path / "found").mkdir()
    for file in path.glob("definitions.db*"):
        shutil.copy(file, path / "found")
    store.close()
    return str(path / "found" / "definitions.db")


def flip(path: str, offset: int) -> None:
    data = bytearray(Path(path).read_bytes())
    data[offset] ^= 1
    Path(path).write_bytes(bytes(data))


def keys_or_refused(path: str) -> list[str] | None:
    try:
        store = SqliteDefinitionStore(path)
    except StorageError:
        return None
    try:
        return [key for _, key, _ in store.load()]
    except StorageError:
        return None
    finally:
        store.close()


@pytest.mark.parametrize("offset", [20, 32 + 24 + 100])  # its salt, the first frame's page
def test_a_flipped_bit_in_the_log_takes_no_committed_row(tmp_path: Path, offset: int) -> None:
    path = killed(tmp_path, is_stopped=False)
    flip(f"{path}-wal", offset)
    assert keys_or_refused(path) in (None, [key for _, key, _ in ROWS])


def test_a_flipped_bit_in_a_key_makes_no_other_queue_of_it(tmp_path: Path) -> None:
    path = killed(tmp_path, is_stopped=True)
    flip(path, Path(path).read_bytes().index(b"queue-1"))
    assert keys_or_refused(path) in (None, [key for _, key, _ in ROWS])
