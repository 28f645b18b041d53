"""Finding records in damaged files, and which file counts for a segment."""

from __future__ import annotations

import random
from array import array

import pytest

from burrowmq.storage import record
from burrowmq.storage.errors import ForeignStore, LimitChanged, UnknownFormat
from burrowmq.storage.shared.index import make_index
from burrowmq.storage.shared.scan import FileScan, Opened, ScanTerms, open_directory, scan_records
from burrowmq.storage.shared.segment import (
    SegmentHeader,
    TableLayout,
    file_name,
    pack_file_header,
    pack_seal,
    parse_seal,
)
from tests.support.sim_filesystem import SimFileSystem
from tests.support.stored_message import FakeMessage

IDENTITY = b"0123456789abcdef"
SEED = record.seed_of(IDENTITY)
LIMIT = 1 << 20
TERMS = ScanTerms(
    "/v/store",
    "/v/quarantine",
    IDENTITY,
    LIMIT,
    SEED,
    is_durable=True,
    store_index=make_index("array", SimFileSystem(), "/v/store"),
)


def header(segment_no: int, generation: int = 0) -> bytes:
    return pack_file_header(SegmentHeader(segment_no, generation, LIMIT, IDENTITY, 0))


def records(segment_no: int, bodies: list[bytes], first_slot: int = 0) -> bytes:
    messages = [FakeMessage(b"\x01e\x01k", body, len(body)) for body in bodies]
    return record.pack_records(messages, first_slot, segment_no, SEED)[0]


def found(data: bytes, segment_no: int) -> dict[int, bytes]:
    """Read every slot that a scan finds."""
    scan = scan_records(data, segment_no, SEED)
    bodies: dict[int, bytes] = {}
    for layout in scan.layouts:
        for slot in range(len(layout.offsets) - 1):
            if layout.offsets[slot] < layout.offsets[slot + 1]:
                read = record.unpack_record(data, layout.offsets[slot], segment_no, slot, SEED)
                assert read is not None
                bodies[slot] = read[1]
    return bodies


def test_an_intact_file() -> None:
    data = header(3) + records(3, [b"a", b"bb", b""])
    assert found(data, 3) == {0: b"a", 1: b"bb", 2: b""}
    scan = scan_records(data, 3, SEED)
    assert (scan.bad, scan.end) == ([], len(data))
    assert scan_records(header(3), 3, SEED) == FileScan(
        [TableLayout(3, array("I", [64]), None)], [], 64, 64, 1 << 32
    )


def bodies_with_traps(rng: random.Random, segment_no: int) -> list[bytes]:
    magic = b"\xa5\x51\x01\x00"
    whole = records(segment_no, [b"not me"], 5)
    return [
        rng.choice(
            (
                rng.randbytes(rng.randint(0, 400)),
                magic * rng.randint(1, 50),
                magic + segment_no.to_bytes(4, "little") + rng.randbytes(60),
                whole[:-1],
                b"\xff" * 100,
            )
        )
        for _ in range(60)
    ]


def test_a_flipped_bit_costs_one_record() -> None:
    rng = random.Random(1)
    for _ in range(150):
        bodies = bodies_with_traps(rng, 2)
        data = bytearray(header(2) + records(2, bodies))
        place = rng.randrange(64, len(data))
        data[place] ^= 1 << rng.randrange(8)
        got = found(bytes(data), 2)
        assert len(got) == len(bodies) - 1
        assert all(bodies[slot] == body for slot, body in got.items())


def test_behind_damage_a_record_with_a_long_meta_is_found() -> None:
    """What the broker hides behind a routing key may be as long as a table of fields."""
    kept = FakeMessage(b"\x01e\x01k" + bytes(130_000), b"kept", 4, 1 << 21)
    messages = [FakeMessage(b"\x01e\x01k", b"lost", 4), kept]
    data = bytearray(header(2) + record.pack_records(messages, 0, 2, SEED)[0])
    data[64 + 30] ^= 1
    assert found(bytes(data), 2) == {1: b"kept"}


def test_zeroed_and_overwritten_stretches_cost_what_they_touch() -> None:
    rng = random.Random(2)
    for _ in range(150):
        bodies = bodies_with_traps(rng, 2)
        data = bytearray(header(2) + records(2, bodies))
        place = rng.randrange(64, len(data) - 64)
        data[place : place + 64] = rng.choice((bytes(64), rng.randbytes(64)))
        got = found(bytes(data), 2)
        assert len(got) >= len(bodies) - 3
        assert all(bodies[slot] == body for slot, body in got.items())


def test_a_cut_leaves_an_exact_prefix() -> None:
    rng = random.Random(3)
    bodies = bodies_with_traps(rng, 2)
    data = header(2) + records(2, bodies)
    for end in rng.sample(range(64, len(data)), 100):
        got = found(data[:end] + bytes(rng.choice((0, 600))), 2)
        assert got == dict(enumerate(bodies[: len(got)]))
        assert scan_records(data[:end], 2, SEED).bad == []


def test_records_of_other_segments_and_old_slots_are_no_records() -> None:
    foreign, stale = records(9, [b"foreign"]), records(2, [b"stale"], 1)
    data = header(2) + records(2, [b"a", b"b"]) + foreign + stale + records(2, [b"d"], 3)
    assert found(data, 2) == {0: b"a", 1: b"b", 3: b"d"}
    scan = scan_records(data, 2, SEED)
    start = 64 + len(records(2, [b"a", b"b"]))
    assert scan.bad == [(start, start + len(foreign) + len(stale))]


def test_a_merged_file_without_a_seal() -> None:
    one, two = records(4, [b"x", b"y"], 7), records(6, [b"z"], 2)
    data = header(4, 1) + one + two
    scan = scan_records(data, None, SEED)
    assert [(layout.segment_no, list(layout.slots or ())) for layout in scan.layouts] == [
        (4, [7, 8]),
        (6, [2]),
    ]
    assert scan.layouts[0].offsets[-1] == 64 + len(one)


# Opening a directory --------------------------------------------------------------------------


def disk(files: dict[str, bytes]) -> SimFileSystem:
    filesystem = SimFileSystem()
    filesystem.mkdir("/v/store")
    for name, data in files.items():
        file = filesystem.create(f"/v/store/{name}")
        file.pwrite(data, 0)
        file.fdatasync()
    filesystem.fsync_dir("/v/store")
    return filesystem


def sealed(segment_no: int, generation: int, bodies: list[bytes]) -> bytes:
    data = header(segment_no, generation) + records(segment_no, bodies)
    layouts = scan_records(data, segment_no, SEED).layouts
    return data + pack_seal(layouts, segment_no, len(data), SEED)


def names(opened: Opened) -> list[str]:
    return sorted(file.path.rpartition("/")[2] for file in opened.files)


def test_sealed_and_unsealed_files() -> None:
    torn = header(1) + records(1, [b"b", b"c"]) + b"\xa5\x51 torn"
    filesystem = disk({"0.g0.seg": sealed(0, 0, [b"a"]), "1.g0.seg": torn, "2.g0.tmp": b""})
    opened = open_directory(filesystem, TERMS)
    assert names(opened) == ["0.g0.seg", "1.g0.seg"]
    assert (set(opened.scanned), opened.highest, opened.quarantined) == ({1}, 1, 0)
    assert not filesystem.exists("/v/store/2.g0.tmp")
    end = len(torn) - 7
    seal = filesystem.content("/v/store/1.g0.seg")[end:]
    assert parse_seal(seal, end, SEED) is not None
    assert open_directory(filesystem, TERMS).scanned == {}


def test_the_highest_generation_counts() -> None:
    filesystem = disk({"0.g0.seg": sealed(0, 0, [b"a"] * 9), "0.g3.seg": sealed(0, 3, [b"a"])})
    assert names(open_directory(filesystem, TERMS)) == ["0.g3.seg"]
    assert filesystem.listdir("/v/store") == ["0.g3.seg"]


def test_the_file_that_counts_is_durably_there_before_another_goes() -> None:
    """Its name may not be: the process that gave it was killed before it synced the directory."""
    for seed in range(20):
        filesystem = disk({"0.g0.seg": sealed(0, 0, [b"a"] * 9), "0.tmp": sealed(0, 1, [b"a"])})
        filesystem.rename("/v/store/0.tmp", "/v/store/0.g1.seg")
        open_directory(filesystem, TERMS)
        found = filesystem.cut(random.Random(seed))
        assert names(open_directory(found, TERMS)) == ["0.g1.seg"]


def test_a_compacted_file_is_durably_there_before_another_is_empty() -> None:
    """All files count here, but the other may go as soon as it is seen that nothing in it is alive."""
    for seed in range(20):
        filesystem = disk({"1.g0.seg": sealed(1, 0, [b"b"]), "0.tmp": sealed(0, 1, [b"a"])})
        filesystem.rename("/v/store/0.tmp", "/v/store/0.g1.seg")
        assert names(open_directory(filesystem, TERMS)) == ["0.g1.seg", "1.g0.seg"]
        filesystem.unlink("/v/store/1.g0.seg")
        found = filesystem.cut(random.Random(seed))
        assert "0.g1.seg" in names(open_directory(found, TERMS))


def test_a_compacted_file_with_a_bad_seal_yields() -> None:
    bad = sealed(0, 1, [b"a"])[:-1]
    filesystem = disk({"0.g0.seg": sealed(0, 0, [b"a"] * 9), "0.g1.seg": bad})
    assert names(open_directory(filesystem, TERMS)) == ["0.g0.seg"]
    filesystem = disk({"0.g1.seg": bad})
    assert names(open_directory(filesystem, TERMS)) == ["0.g1.seg"]


def test_bad_stretches_go_to_quarantine() -> None:
    bodies = [b"a" * 50, b"b" * 50, b"c" * 50]
    data = bytearray(header(0) + records(0, bodies))
    data[64 + 100] ^= 1
    filesystem = disk({"0.g0.seg": bytes(data)})
    opened = open_directory(filesystem, TERMS)
    assert opened.quarantined == 1
    size = len(records(0, [b"a" * 50]))
    kept = filesystem.content(f"/v/quarantine/0.g0.seg.{64 + size}")
    assert kept == data[64 + size : 64 + 2 * size]


def test_a_second_start_finds_nothing_to_do_and_a_third_neither() -> None:
    data = bytearray(header(0) + records(0, [b"a" * 50, b"b" * 50, b"c" * 50]))
    data[64 + 100] ^= 1
    for terms in (TERMS, TERMS._replace(is_durable=False)):
        filesystem = disk({"0.g0.seg": bytes(data)})
        filesystem.mkdir("/v/quarantine")
        filesystem.create("/v/quarantine/0.g0.seg.150")  # an interrupted start was here
        open_directory(filesystem, terms)
        operations = filesystem.operations
        assert open_directory(filesystem, terms).scanned == {}
        assert filesystem.operations == operations


def test_a_damaged_file_header_costs_nothing() -> None:
    data = bytearray(sealed(0, 0, [b"a"]))
    data[20] ^= 1
    filesystem = disk({"0.g0.seg": bytes(data)})
    opened = open_directory(filesystem, TERMS)
    assert len(opened.files[0].tables[0]) == 1


def test_swapped_and_copied_files_keep_their_segments() -> None:
    zero, one = sealed(0, 0, [b"zero"]), header(1) + records(1, [b"one"])
    filesystem = disk({"0.g0.seg": one, "1.g0.seg": zero, file_name(8, 0): zero})
    opened = open_directory(filesystem, TERMS)
    tables = {table.segment_no: len(table) for file in opened.files for table in file.tables}
    assert tables == {0: 1, 1: 1}
    assert opened.highest >= 1


@pytest.mark.parametrize(
    ("limit", "identity", "version", "error"),
    [
        (LIMIT * 2, IDENTITY, 1, LimitChanged),
        (LIMIT, b"another store..!", 1, ForeignStore),
        (LIMIT, IDENTITY, 9, UnknownFormat),
    ],
)
def test_refusals_write_nothing(
    limit: int, identity: bytes, version: int, error: type[Exception]
) -> None:
    data = bytearray(pack_file_header(SegmentHeader(5, 0, limit, identity, 0)))
    data[4] = version
    data[60:] = record.zlib.crc32(data[:60]).to_bytes(4, "little")
    filesystem = disk({"0.g0.seg": header(0) + b"torn", "5.g0.seg": bytes(data), "1.tmp": b""})
    operations = filesystem.operations
    with pytest.raises(error, match=r"5\.g0\.seg|format 9"):
        open_directory(filesystem, TERMS)
    assert filesystem.operations == operations


def test_what_is_behind_the_seal_of_a_scanned_file_is_cut_off() -> None:
    whole = header(1) + records(1, [b"b", b"c"])
    filesystem = disk({"1.g0.seg": whole + b"\xa5\x51 torn" * 40})
    open_directory(filesystem, TERMS)
    sealed_text = filesystem.content("/v/store/1.g0.seg")
    assert sealed_text[: len(whole)] == whole
    assert b"torn" not in sealed_text
