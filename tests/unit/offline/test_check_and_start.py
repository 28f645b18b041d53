"""`burrowmq-store check` says what a start finds: as many messages, and losses where the start tells of some.

Covers: offline/check.py, offline/queue_check.py, offline/segment_check.py, offline/terms_check.py
"""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from burrowmq.broker.words.resource import row_key
from burrowmq.offline.check import Check
from burrowmq.offline.directory import CannotUse, open_directory
from burrowmq.offline.progress import Progress
from burrowmq.offline.report import Totals
from burrowmq.storage.errors import StoreRefused
from burrowmq.storage.queue.header import HEADER_SIZE
from burrowmq.storage.queue.v2.index import entries_at
from burrowmq.storage.record import ENTRY_SIZE
from burrowmq.storage.types import StoreOptions
from tests.simulation.store_world import SilentObserver, make_message
from tests.support import offline_store

NAMES = ("small", "mixed", "also")


class Told(SilentObserver):
    """Keeps what is told to be lost."""

    def __init__(self) -> None:
        super().__init__()
        self.lost: list[str] = []

    def record_lost(self, place: str, seq_or_handle: int, reason: str) -> None:
        self.lost.append(f"{place} {seq_or_handle}: {reason}")


def checked(path: Path) -> tuple[Totals, list[str]]:
    """The totals, and the lines of damage."""
    with open_directory(str(path), only_reads=True) as directory:
        check = Check(directory, Progress(io.StringIO(), "checking", 1))
        lines = [report.line(str(path)) for report in check.files()]
    return check.totals, [line for line in lines if "DAMAGED" in line]


def started(
    path: Path, options: StoreOptions = offline_store.OPTIONS, names: tuple[str, ...] = NAMES
) -> tuple[int, list[str]]:
    """How many messages can be read after a start, and which it or a reader is told are lost."""
    told = Told()
    engine = offline_store.open_engine(path, options, observer=told)
    count = sum(len(offline_store.read_all(engine, name)) for name in names)
    engine.close()
    return count, told.lost


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def cut(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


@pytest.mark.parametrize("version", [1, 2])
def test_an_index_file_that_is_cut_off_after_a_clean_stop(tmp_path: Path, version: int) -> None:
    """Nothing in it is wrong: only the terms know that there was more."""
    offline_store.make_store(tmp_path, version=version)
    file = max(tmp_path.glob(f"vhosts/*/queues/*/0.{('idx', 'qi')[version - 1]}"))
    cut(file, file.stat().st_size - 20 * ENTRY_SIZE)
    totals, (line,) = checked(tmp_path)
    assert version == 1 or "are missing since the clean stop" in line
    count, lost = started(tmp_path)
    assert (totals.messages, totals.lost_messages) == (count, len(lost))
    assert count + len(lost) == 900


def test_acks_whose_newer_copy_is_damaged_after_a_clean_stop(tmp_path: Path) -> None:
    """A start goes by the terms, and none of the acknowledged ones comes back."""
    offline_store.make_store(tmp_path)
    copy = (entries_at(offline_store.ENTRIES) - HEADER_SIZE) // 2
    for file in tmp_path.glob("vhosts/*/queues/*/0.qi"):
        for at in (HEADER_SIZE, HEADER_SIZE + copy):
            flip(file, at + copy - 1)
    totals, _ = checked(tmp_path)
    assert (totals.messages, totals.lost_messages) == (900, 0)
    assert started(tmp_path) == (900, [])


def test_a_damaged_message_that_queues_share_is_none_of_those_that_are_left(tmp_path: Path) -> None:
    offline_store.make_store(tmp_path)
    flip(next(tmp_path.rglob("5.g0.seg")), 500)
    totals, _ = checked(tmp_path)
    count, lost = started(tmp_path)
    assert (totals.messages, totals.lost_messages) == (count, len(lost)) == (898, 2)


def test_messages_that_had_gone_before_a_kill_do_not_count(tmp_path: Path) -> None:
    """Their segment went with the last of them; that they were acknowledged did not reach the disk."""
    offline_store.make_store(tmp_path, is_clean=False)
    next(tmp_path.rglob("5.g0.seg")).unlink()
    totals, damage = checked(tmp_path)
    assert (totals.lost_messages, damage) == (0, [])
    assert (totals.messages, []) == started(tmp_path)
    assert totals.messages < 900


def test_a_file_that_is_cut_off_before_what_was_durable(tmp_path: Path) -> None:
    """No kill and no power cut does that."""
    offline_store.make_store(tmp_path, is_clean=False)
    file = max(tmp_path.glob("vhosts/*/queues/*/0.qs"))
    cut(file, file.stat().st_size - 5000)
    totals, _ = checked(tmp_path)
    engine = offline_store.open_engine(tmp_path)
    assert engine.report.lost == totals.lost_messages
    assert engine.report.messages == totals.messages
    assert totals.lost_messages > 0
    engine.close()


def test_what_was_never_known_to_be_durable_is_not_lost(tmp_path: Path) -> None:
    """A power cut may leave any bytes of it: nothing there was confirmed."""
    engine = offline_store.open_engine(tmp_path)
    log = engine.open_queue("/", "mixed", durable=True)
    log.append(0, [make_message(at, 5000, True) for at in range(3)], None, 15000)
    engine.hand_over()
    engine.idle()
    flip(next(tmp_path.rglob("0.g0.seg")), 5500)  # the one in the middle
    totals, damage = checked(tmp_path)
    assert (totals.messages, totals.lost_messages, damage) == (2, 0, [])
    assert started(tmp_path, names=("mixed",)) == (2, [])


def test_a_loss_is_told_beside_damaged_terms(tmp_path: Path) -> None:
    """The stop was a clean one all the same: what an index names was there."""
    offline_store.make_store(tmp_path)
    flip(tmp_path / "terms", 50)
    next(tmp_path.rglob("5.g0.seg")).unlink()
    totals, _ = checked(tmp_path)
    count, lost = started(tmp_path)
    assert (totals.messages, totals.lost_messages) == (count, len(lost))
    assert lost


# -- any damage, in any store ------------------------------------------------------------------------------------

Damage = Callable[[bytearray, random.Random], None]


def _flip(data: bytearray, source: random.Random) -> None:
    data[source.randrange(len(data))] ^= 1 << source.randrange(8)


def _cut(data: bytearray, source: random.Random) -> None:
    del data[source.randrange(len(data)) :]


def _zero(data: bytearray, source: random.Random) -> None:
    first = source.randrange(len(data))
    size = min(source.choice([1, 64, 512, 4096]), len(data) - first)
    data[first : first + size] = bytes(size)


DAMAGES: list[Damage] = [_flip, _flip, _cut, _zero]


def made(path: Path, source: random.Random) -> tuple[StoreOptions, tuple[str, ...]]:
    """A store of some queues that share messages, some of which are gone; stopped, or killed."""
    options = replace(
        offline_store.OPTIONS,
        has_log=source.random() < 0.5,
        segment_entry_count=source.choice([16, 64, 256]),
        segment_size_limit=source.choice([64 * 1024, 256 * 1024]),
    )
    engine = offline_store.open_engine(path, options)
    names = tuple(f"q{number}" for number in range(source.randint(1, 4)))
    logs = {}
    for name in names:
        logs[name] = engine.open_queue("/", name, durable=True, version=source.choice([1, 2]))
        engine.definitions.put("queue", row_key("/", name), {})
    live: dict[str, set[int]] = {name: set() for name in names}
    for step in range(source.randint(2, 12)):
        size, count = source.choice([30, 300, 5000, 9000]), source.choice([1, 3, 20, 60])
        run = [make_message(100 * step + at, size, source.random() < 0.9) for at in range(count)]
        for name in source.sample(names, source.randint(1, len(names))):
            first = logs[name].next_seq
            logs[name].append(first, run, None, count * size)
            live[name].update(range(first, first + count))
        if source.random() < 0.7:
            offline_store.commit(engine)
        for name, seqs in live.items():
            if seqs and source.random() < 0.4:
                gone = sorted(source.sample(sorted(seqs), source.randint(1, len(seqs))))
                logs[name].ack_many(gone)
                seqs.difference_update(gone)
        if source.random() < 0.3:
            offline_store.commit(engine)
            engine.idle()
    offline_store.commit(engine)
    if source.random() < 0.5:
        engine.close()
    return options, names


def damaged(path: Path, source: random.Random) -> str:
    """Damage a file, or remove it; gives what was done."""
    files = sorted(
        file
        for file in path.rglob("*")
        if file.is_file() and not file.name.startswith(("LOCK", "STORE", "definitions"))
    )
    file = source.choice(files)
    data = bytearray(file.read_bytes())
    if not data or source.random() < 0.2:
        file.unlink()
        return f"{file.name} removed"
    how = source.choice(DAMAGES)
    how(data, source)
    file.write_bytes(data)
    return f"{file.name} {how.__name__}"


@pytest.mark.parametrize("seed", range(40))
def test_whatever_is_damaged(tmp_path: Path, seed: int) -> None:
    source = random.Random(seed)
    options, names = made(tmp_path, source)
    what = [damaged(tmp_path, source) for _ in range(source.choice([0, 1, 1, 1, 2]))]
    try:
        totals, _ = checked(tmp_path)
    except CannotUse:
        with pytest.raises(StoreRefused):
            started(tmp_path, options, names)
        return
    count, lost = started(tmp_path, options, names)
    assert totals.messages == count, what
    assert bool(totals.lost_messages) == bool(lost), (what, lost)
