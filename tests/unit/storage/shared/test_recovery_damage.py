"""Damage at rest, kind by kind and place by place: what a start then does, and what is lost.

The oracle is the table below: each cell refuses to start, loses exactly the touched messages, or
loses nothing. Whatever happens, no message is ever read with other bytes than were written.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from burrowmq.storage import record
from burrowmq.storage.errors import StoreRefused
from burrowmq.storage.shared.references import ReferenceTally
from burrowmq.storage.shared.scan import scan_records
from burrowmq.storage.shared.segment import (
    FILE_HEADER_SIZE,
    pack_file_header,
    parse_file_header,
    read_seal,
)
from burrowmq.storage.shared.store import MessageStore, MessageStoreOptions
from tests.support.sim_filesystem import SimFileSystem
from tests.support.stored_message import FakeMessage

DIRECTORY = "/v/store"
COMPACTED, SEALED, TAIL = "0.g1.seg", "2.g0.seg", "3.g0.seg"
OPTIONS = MessageStoreOptions(
    directory=DIRECTORY,
    quarantine_directory="/v/quarantine",
    identity=b"0123456789abcdef",
    segment_size_limit=4000,
)


class Disk:
    """A store killed in the middle of its work: a compacted file, sealed ones and an open tail."""

    def __init__(self) -> None:
        self.filesystem = SimFileSystem()
        store = MessageStore(self.filesystem, OPTIONS)
        store.recover(ReferenceTally())
        rng = random.Random(1)
        sent = [FakeMessage(b"\x01e\x01k", rng.randbytes(300), 300) for _ in range(44)]
        store.append(sent)
        victims = [message for message in sent if message.handle >> 32 < 2]
        gone = {message.handle for place, message in enumerate(victims) if place % 3}
        store.drop_refs(sorted(gone))
        plan = store.plan(is_idle=True)
        assert plan is not None
        assert plan.step()
        store.put_in_place()
        store.sync()
        self.sent = {message.handle: message for message in sent if message.handle not in gone}
        assert self.filesystem.listdir(DIRECTORY) == [COMPACTED, SEALED, TAIL]
        self.places: dict[int, str] = {}
        self.offsets: dict[int, int] = {}
        self.ends: dict[str, int] = {}
        for name in (COMPACTED, SEALED, TAIL):
            self._look_at(f"{DIRECTORY}/{name}")

    def _look_at(self, path: str) -> None:
        """Note where the records of a file lie, as its seal or its own records say."""
        seed = record.seed_of(OPTIONS.identity)
        sealed = read_seal(self.filesystem.open(path), seed)
        if sealed is None:
            scan = scan_records(self.filesystem.content(path), None, seed)
            sealed = scan.end, scan.layouts
        self.ends[path], layouts = sealed
        for layout in layouts:
            slots = layout.slots or range(len(layout.offsets) - 1)
            for slot, offset in zip(slots, layout.offsets, strict=False):
                handle = layout.segment_no << 32 | slot
                if handle in self.sent:
                    self.places[handle], self.offsets[handle] = path, offset

    def in_file(self, name: str) -> list[int]:
        return [handle for handle, path in self.places.items() if path == f"{DIRECTORY}/{name}"]

    def flip(self, name: str, offset: int) -> None:
        path = f"{DIRECTORY}/{name}"
        self.filesystem.damage(path, offset, bytes([self.filesystem.content(path)[offset] ^ 0x20]))

    def lost_after_start(self) -> set[int]:
        tally = ReferenceTally()
        tally.add(sorted(self.sent))
        store = MessageStore(self.filesystem, OPTIONS)
        store.recover(tally)
        handles = sorted(self.sent)
        found = dict(zip(handles, store.read(handles), strict=True))
        for handle, one in found.items():
            assert one is None or one == self.sent[handle].record
        fresh = [FakeMessage(b"", b"fresh", 5)]
        store.append(fresh)
        assert store.read([fresh[0].handle]) == [fresh[0].record]
        assert fresh[0].handle >> 32 > max(handle >> 32 for handle in handles)
        return {handle for handle, record in found.items() if record is None}


FILES = (COMPACTED, SEALED, TAIL)
PARTS = {"magic": 0, "type": 2, "segment": 5, "slot": 8, "meta length": 12, "body length": 17}
PARTS |= {"check": 21, "meta": 30, "key": 38, "body": 200}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("name", FILES)
def test_a_bit_in_a_record_costs_that_record(name: str, part: str) -> None:
    disk = Disk()
    handles = disk.in_file(name)
    touched = handles[len(handles) // 2]
    disk.flip(name, disk.offsets[touched] + PARTS[part])
    assert disk.lost_after_start() == {touched}


@pytest.mark.parametrize("name", FILES)
def test_a_bit_in_a_file_header_costs_nothing(name: str) -> None:
    for offset in range(FILE_HEADER_SIZE):
        disk = Disk()
        disk.flip(name, offset)
        assert disk.lost_after_start() == set()


@pytest.mark.parametrize("name", [COMPACTED, SEALED])
def test_a_damaged_seal_costs_nothing(name: str) -> None:
    size = Disk().filesystem.file_size(f"{DIRECTORY}/{name}")
    end = Disk().ends[f"{DIRECTORY}/{name}"]
    for offset in range(end, size, 7):
        disk = Disk()
        disk.flip(name, offset)
        assert disk.lost_after_start() == set()
        disk = Disk()
        disk.filesystem.open(f"{DIRECTORY}/{name}").truncate(offset)
        assert disk.lost_after_start() == set()


@pytest.mark.parametrize("name", FILES)
def test_a_zeroed_stretch_costs_what_it_touches(name: str) -> None:
    disk = Disk()
    start = disk.offsets[disk.in_file(name)[1]] + 100
    disk.filesystem.damage(f"{DIRECTORY}/{name}", start, bytes(512))
    touched = {
        handle
        for handle in disk.in_file(name)
        if disk.offsets[handle] < start + 512 and disk.offsets[handle] + 340 > start
    }
    assert disk.lost_after_start() == touched


def test_a_cut_tail_costs_the_records_behind_the_cut() -> None:
    handles = sorted(Disk().in_file(TAIL))
    end = Disk().ends[f"{DIRECTORY}/{TAIL}"]
    for cut in range(Disk().offsets[handles[-1]], end, 11):
        disk = Disk()
        disk.filesystem.open(f"{DIRECTORY}/{TAIL}").truncate(cut)
        assert disk.lost_after_start() == {handles[-1]}


@pytest.mark.parametrize("garbage", [bytes(700), b"\xa5\x51\x01\x00" * 99, b"\xff" * 50])
@pytest.mark.parametrize("name", FILES)
def test_appended_garbage_costs_nothing(name: str, garbage: bytes) -> None:
    disk = Disk()
    path = f"{DIRECTORY}/{name}"
    disk.filesystem.damage(path, disk.filesystem.file_size(path), garbage)
    assert disk.lost_after_start() == set()


def _duplicate(disk: Disk) -> None:
    data = disk.filesystem.content(f"{DIRECTORY}/{SEALED}")
    disk.filesystem.create(f"{DIRECTORY}/9.g0.seg").pwrite(data, 0)


def _swap(disk: Disk) -> None:
    for source, target in ((SEALED, "x"), (TAIL, SEALED), ("x", TAIL)):
        disk.filesystem.rename(f"{DIRECTORY}/{source}", f"{DIRECTORY}/{target}")


def _older_generation(disk: Disk) -> None:
    header = parse_file_header(disk.filesystem.content(f"{DIRECTORY}/{COMPACTED}"))
    assert header is not None
    old = pack_file_header(header._replace(generation=0))
    disk.filesystem.create(f"{DIRECTORY}/0.g0.seg").pwrite(old, 0)


def _other_files(disk: Disk) -> None:
    for name in ("README", "7.g0.tmp", "x.seg"):
        disk.filesystem.create(f"{DIRECTORY}/{name}").pwrite(b"?", 0)


@pytest.mark.parametrize("change", [_duplicate, _swap, _older_generation, _other_files])
def test_files_in_the_wrong_place_cost_nothing(change: Callable[[Disk], None]) -> None:
    disk = Disk()
    change(disk)
    assert disk.lost_after_start() == set()


@pytest.mark.parametrize("size", [None, 0, 10, FILE_HEADER_SIZE])
@pytest.mark.parametrize("name", FILES)
def test_a_missing_or_empty_file_costs_its_messages(name: str, size: int | None) -> None:
    disk = Disk()
    if size is None:
        disk.filesystem.unlink(f"{DIRECTORY}/{name}")
    else:
        disk.filesystem.open(f"{DIRECTORY}/{name}").truncate(size)
    assert disk.lost_after_start() == set(disk.in_file(name))


@pytest.mark.parametrize("field", [{"identity": b"x" * 16}, {"size_limit": 4001}])
@pytest.mark.parametrize("name", FILES)
def test_other_terms_are_refused_and_nothing_is_written(
    name: str, field: dict[str, object]
) -> None:
    disk = Disk()
    path = f"{DIRECTORY}/{name}"
    header = parse_file_header(disk.filesystem.content(path))
    assert header is not None
    disk.filesystem.damage(path, 0, pack_file_header(header._replace(**field)))  # type: ignore[arg-type]
    before = disk.filesystem.operations
    with pytest.raises(StoreRefused, match=name):
        disk.lost_after_start()
    assert disk.filesystem.operations == before
