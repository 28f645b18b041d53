"""SQLite's log of the definitions: a bit that flipped is told from what a power cut leaves."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from pathlib import Path
from random import Random

import pytest

from burrowmq.storage.directory.definition_log import FRAME, HEADER, check_log
from burrowmq.storage.directory.definition_store import DefinitionChange, SqliteDefinitionStore
from burrowmq.storage.errors import NoDescriptors, ReadFailed, StoreRefused
from burrowmq.storage.files.filesystem import OsFileSystem
from tests.support.sim_filesystem import SimFileSystem

SECTOR = 512
FRAME_BYTES = FRAME.size + 4096
PATH = "/data/definitions.db-wal"


def disk_with(log: bytes) -> SimFileSystem:
    disk = SimFileSystem()
    disk.mkdir("/data")
    disk.create(PATH).pwrite(log, 0)
    return disk


def is_refused(log: bytes) -> bool:
    try:
        check_log(disk_with(log), PATH)
    except StoreRefused:
        return True
    return False


class Log:
    """A database whose log is written by SQLite itself; other connections may go on with it."""

    def __init__(self, directory: Path, rng: Random, page_size: int) -> None:
        self._path = directory / f"{rng.random()}.db"
        self._rng = rng
        self._connection = sqlite3.connect(self._path, isolation_level=None)
        for statement in (
            f"PRAGMA page_size={page_size}", "PRAGMA journal_mode=WAL", "PRAGMA synchronous=OFF",
            "PRAGMA wal_autocheckpoint=0", "CREATE TABLE rows (key PRIMARY KEY, value)",
        ):  # fmt: skip
            self._connection.execute(statement)

    def commit(self, rows: int) -> None:
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        for _ in range(rows):
            size = self._rng.choice([1, 100, 3000])
            value = self._rng.choice([bytes(size), self._rng.randbytes(size)])
            execute("INSERT OR REPLACE INTO rows VALUES (?,?)", (self._rng.randrange(200), value))
        execute("COMMIT")

    def restart(self) -> None:
        """Begin another generation over this one."""
        self._connection.execute("PRAGMA wal_checkpoint(RESTART)")

    def content(self) -> bytes:
        return Path(f"{self._path}-wal").read_bytes()

    def started_with(self, log: bytes) -> None:
        """What a power cut left is gone on with, and nobody has emptied it."""
        found = self._path.with_name(f"{self._rng.random()}.db")
        shutil.copy(self._path, found)
        Path(f"{found}-wal").write_bytes(log)
        self._connection.close()
        self._path = found
        self._connection = sqlite3.connect(found, isolation_level=None)
        self._connection.execute("PRAGMA synchronous=OFF")
        self._connection.execute("PRAGMA wal_autocheckpoint=0")

    def close(self) -> None:
        self._connection.close()


def torn(before: bytes, after: bytes, rng: Random) -> bytes:
    """Some sectors of what the last transaction wrote; the file may be shorter, or have zeros there."""
    found = bytearray(before.ljust(len(after), b"\0"))
    share = rng.choice([0.05, 0.5, 0.95])
    size = rng.choice([SECTOR, SECTOR, 4096])
    for start in range(0, len(after), size):
        if rng.random() < share:
            found[start : start + size] = after[start : start + size]
    if rng.random() < 0.3 and len(after) > len(before):
        del found[rng.randrange(len(before), len(after)) // SECTOR * SECTOR :]
        found += before[len(found) :]
    return bytes(found)


def cut_everywhere(before: bytes, after: bytes) -> list[bytes]:
    """The last transaction up to each sector, and from each sector on."""
    old = before.ljust(len(after), b"\0")
    places = [at for at in range(0, len(after), SECTOR) if old[at:] != after[at:]]
    return [
        *(after[:at] + old[at:] for at in places),
        *(after[:at] + bytes(len(after) - at) for at in places if at >= len(before)),
        *(after[:at] for at in places if at >= len(before)),
        *(old[:at] + after[at:] for at in places),
    ]


@pytest.mark.parametrize("seed", range(8))
def test_what_a_power_cut_leaves_of_the_last_transaction_is_never_refused(
    tmp_path: Path, seed: int
) -> None:
    rng = Random(seed)
    log = Log(tmp_path, rng, rng.choice([512, 1024, 4096]))
    for _ in range(rng.randrange(1, 4)):
        for _ in range(rng.randrange(4, 12)):
            log.commit(rng.choice([1, 1, 6]))
        log.restart()
    for _ in range(rng.randrange(12)):
        log.commit(1)
    for _ in range(3):  # the second and third time, over what was torn
        before = log.content()
        log.commit(rng.choice([1, 3, 12]))
        after = log.content()
        assert not is_refused(after)
        found = [torn(before, after, rng) for _ in range(40)]
        found += rng.sample(cuts := cut_everywhere(before, after), min(40, len(cuts)))
        for each in found:
            header_is_synced = after[: HEADER.size] + each[HEADER.size :]
            assert not is_refused(header_is_synced)
        log.started_with(after[: HEADER.size] + rng.choice(found)[HEADER.size :])
    log.close()


def test_fields_of_two_writes_are_no_end_of_a_transaction(tmp_path: Path) -> None:
    """A sector may begin between the size of the database and the salt of a frame: that of an older end stays."""
    log = Log(tmp_path, Random(1), 4096)
    frame = next(k for k in range(99) if (HEADER.size + k * FRAME_BYTES + 8) % SECTOR == 0)
    while len(log.content()) < HEADER.size + (frame + 1) * FRAME_BYTES:
        log.commit(1)
    log.restart()
    log.commit(1)
    before = log.content()
    log.commit(400)
    after = log.content()
    border = HEADER.size + frame * FRAME_BYTES + 8
    found = bytearray(after)
    old = before[border - SECTOR : border - 4] + (9).to_bytes(4, "big")  # an end
    found[border - SECTOR : border] = old
    assert len(after) > border + FRAME_BYTES
    assert not is_refused(bytes(found))
    log.close()


STATES = [("queue", f'["/","queue-{at}"]', {"durable": True, "at": at}) for at in range(7)]


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a killed process leaves: each row is a transaction, one of several pages among them."""
    path = tmp_path_factory.mktemp("killed")
    store = SqliteDefinitionStore(str(path / "definitions.db"))
    for at, row in enumerate(STATES):
        wide: list[DefinitionChange] = [("wide", f"{at} {n}", "x" * 2000) for n in range(4)]
        store.commit([row, *(wide if at in (2, 5) else [])])
    (path / "found").mkdir()
    for name in ("definitions.db", "definitions.db-wal"):
        shutil.copy(path / name, path / "found" / name)
    store.close()
    return path / "found"


def queues_found(path: Path) -> list[DefinitionChange]:
    store = SqliteDefinitionStore(str(path / "definitions.db"))
    try:
        return [row for row in store.load() if row[0] == "queue"]
    finally:
        store.close()


def places(size: int) -> list[int]:
    """Bits of the log: of all heads, and some of each page."""
    rng = Random(5)
    bits = list(range(HEADER.size * 8))
    for start in range(HEADER.size, size, FRAME_BYTES):
        bits += rng.sample(range(start * 8, (start + FRAME.size) * 8), 60)
        bits += rng.sample(range(start * 8, (start + FRAME_BYTES) * 8), 10)
    return bits


def test_a_flipped_bit_costs_the_last_transaction_at_most(killed: Path, tmp_path: Path) -> None:
    log = (killed / "definitions.db-wal").read_bytes()
    last, at_end = len(log) - FRAME_BYTES, 0
    for bit in places(len(log)):
        found = bytearray(log)
        found[bit // 8] ^= 1 << bit % 8
        if is_refused(bytes(found)):
            assert bit // 8 < last
            continue
        if bit // 8 >= last:
            at_end += 1
            if at_end % 10:
                continue
        shutil.copy(killed / "definitions.db", tmp_path)
        (tmp_path / "definitions.db-wal").write_bytes(found)
        assert queues_found(tmp_path) in (STATES, STATES[:-1]), bit
    assert at_end > 60


def test_an_end_whose_mark_has_flipped_is_one(tmp_path: Path) -> None:
    """The database has two pages: one bit makes none of them, and the frame would be in the midst of a transaction."""
    store = SqliteDefinitionStore(str(tmp_path / "definitions.db"))
    for row in STATES[:3]:
        store.commit([row])
    found = bytearray((tmp_path / "definitions.db-wal").read_bytes())
    store.close()
    pages = len(found) - 2 * FRAME_BYTES + 4
    assert found[pages : pages + 4] == (2).to_bytes(4, "big")
    found[pages + 3] = 0
    assert is_refused(bytes(found))


def test_a_refused_log_is_left_as_it_is(killed: Path, tmp_path: Path) -> None:
    shutil.copytree(killed, tmp_path, dirs_exist_ok=True)
    log = tmp_path / "definitions.db-wal"
    at = HEADER.size + FRAME_BYTES + 100
    content = bytearray(log.read_bytes())
    content[at] ^= 4
    log.write_bytes(content)
    whole = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    begins = HEADER.size + FRAME_BYTES
    with pytest.raises(StoreRefused, match=rf"db-wal is damaged at byte {begins}, and later .* or"):
        SqliteDefinitionStore(str(tmp_path / "definitions.db"))
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == whole
    log.unlink()  # as it says
    assert queues_found(tmp_path) == []


@pytest.mark.parametrize(
    "log", [b"", b"\1" * 31, bytes(32), bytes(9000), b"\1" * 32, b"\1" * 32 + bytes(5000)]
)
def test_a_log_without_anything_in_it_says_nothing(log: bytes) -> None:
    check_log(disk_with(log), PATH)
    check_log(OsFileSystem(), "/nowhere/definitions.db-wal")


def test_a_header_that_fails_before_something_is_damage() -> None:
    with pytest.raises(StoreRefused, match="damaged at byte 0"):
        check_log(disk_with(b"\1" * 32 + bytes(2_000_000) + b"\1"), PATH)


def test_the_other_order_of_words_is_read(killed: Path) -> None:
    """SQLite writes it on machines with big endian words, and reads both."""
    assert not is_refused(in_other_order((killed / "definitions.db-wal").read_bytes()))
    found = bytearray(in_other_order((killed / "definitions.db-wal").read_bytes()))
    found[HEADER.size + 500] ^= 1
    assert is_refused(bytes(found))


def in_other_order(log: bytes) -> bytes:
    def added(data: bytes) -> bytes:
        for at in range(0, len(data), 8):
            sums[0] += int.from_bytes(data[at : at + 4], "big") + sums[1]
            sums[1] += int.from_bytes(data[at + 4 : at + 8], "big") + sums[0]
        sums[:] = [each % 2**32 for each in sums]
        return b"".join(each.to_bytes(4, "big") for each in sums)

    sums = [0, 0]
    head = (0x377F0683).to_bytes(4, "big") + log[4:24]
    parts = [head + added(head)]
    for at in range(HEADER.size, len(log), FRAME_BYTES):
        frame, page = log[at : at + 16], log[at + 24 : at + FRAME_BYTES]
        parts.append(frame + added(frame[:8] + page) + page)
    return b"".join(parts)


@pytest.mark.parametrize("operation", ["open", "pread"])
@pytest.mark.parametrize(("number", "kind"), [(errno.EIO, ReadFailed), (errno.EMFILE, NoDescriptors)])  # fmt: skip
def test_a_log_that_cannot_be_read_is_not_taken_for_damaged(
    killed: Path, operation: str, number: int, kind: type[Exception]
) -> None:
    disk = disk_with((killed / "definitions.db-wal").read_bytes())
    disk.fail(operation, number, path_part="-wal")
    check_log(disk, PATH)
    disk.fail(operation, number, times=2, path_part="-wal")
    with pytest.raises(kind, match=r"definitions\.db-wal"):
        check_log(disk, PATH)
