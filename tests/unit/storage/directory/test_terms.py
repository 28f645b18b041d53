"""The files of a clean stop and of the recorded limits: what they hold, and when they count."""

from __future__ import annotations

import errno
import json
import random

import pytest

from burrowmq.storage.directory.terms import (
    CLEAN_FILE,
    ENTRY_COUNT_KEY,
    FILE_SIZE_KEY,
    FORMAT,
    NAMED_LEVELS,
    STORE_FILE,
    TERMS_FILE,
    dump_json,
    load_json,
    read_recorded,
    recorded_store,
    replace_file,
    reserve_segments,
    take_terms,
    write_terms,
)
from burrowmq.storage.errors import LimitChanged, StoreRefused, UnknownFormat, WriteFailed
from burrowmq.storage.types import StoreOptions
from tests.support.machine_disk import MachineDisk
from tests.support.sim_filesystem import SimFileSystem
from tests.support.store_record import changed

DATA = "/data"


def made(filesystem: SimFileSystem | None = None) -> SimFileSystem:
    """A data directory with its record."""
    filesystem = filesystem or SimFileSystem()
    recorded_store(filesystem, DATA, StoreOptions())
    return filesystem


def test_the_terms_come_back_once() -> None:
    filesystem = made()
    write_terms(filesystem, DATA, [b"first", b"", b"x" * 1000])
    assert filesystem.exists(f"{DATA}/{CLEAN_FILE}")
    assert take_terms(filesystem, DATA) == [b"first", b"", b"x" * 1000]
    assert not filesystem.exists(f"{DATA}/{CLEAN_FILE}")
    assert take_terms(filesystem, DATA) is None


@pytest.mark.parametrize("name", [TERMS_FILE, CLEAN_FILE])
@pytest.mark.parametrize("offset", [0, 3])
def test_damaged_terms_are_none(name: str, offset: int) -> None:
    filesystem = made()
    write_terms(filesystem, DATA, [b"first"])
    path = f"{DATA}/{name}"
    filesystem.damage(path, offset, bytes([filesystem.content(path)[offset] ^ 1]))
    assert take_terms(filesystem, DATA) is None
    assert not filesystem.exists(f"{DATA}/{CLEAN_FILE}"), "they are not asked for again"


def test_a_mark_without_terms_is_none() -> None:
    filesystem = made()
    write_terms(filesystem, DATA, [b"first"])
    filesystem.unlink(f"{DATA}/{TERMS_FILE}")
    assert take_terms(filesystem, DATA) is None


def test_no_power_cut_brings_the_mark_back() -> None:
    filesystem = made()
    write_terms(filesystem, DATA, [b"first"])
    assert take_terms(filesystem, DATA)
    for seed in range(8):
        assert not filesystem.cut(random.Random(seed)).exists(f"{DATA}/{CLEAN_FILE}")


def test_the_mark_is_written_after_the_terms() -> None:
    filesystem = made()
    filesystem.fail("rename", times=2, path_part=TERMS_FILE)
    with pytest.raises(OSError, match="no"):
        write_terms(filesystem, DATA, [b"first"])
    assert not filesystem.exists(f"{DATA}/{CLEAN_FILE}")


def test_a_file_is_replaced_whole_or_not_at_all() -> None:
    filesystem = made()
    replace_file(filesystem, f"{DATA}/x", b"old")
    for operation in ("create", "pwrite", "fdatasync", "rename"):
        filesystem.fail(operation, times=2)
        with pytest.raises(OSError, match="no"):
            replace_file(filesystem, f"{DATA}/x", b"new")
        assert filesystem.content(f"{DATA}/x") == b"old"
    replace_file(filesystem, f"{DATA}/x", b"new")
    assert filesystem.content(f"{DATA}/x") == b"new"
    assert not filesystem.exists(f"{DATA}/x.tmp")


def test_a_new_directory_gets_an_identity_of_its_own() -> None:
    first, second = (read_recorded(made(), DATA) for _ in range(2))
    assert first.identity != second.identity
    assert first.limits == {FILE_SIZE_KEY: 16 * 1024 * 1024, ENTRY_COUNT_KEY: 16_384}
    text = json.loads(made().content(f"{DATA}/{STORE_FILE}"))
    assert (text["format"], text["checksum"]) == (NAMED_LEVELS, "crc32")
    assert "taking_over" not in text


def test_the_names_that_lead_to_a_new_directory_are_durable() -> None:
    for seed in range(20):
        disk = MachineDisk()
        recorded_store(disk, "/srv/mq/data", StoreOptions())
        found = disk.cut(random.Random(seed))
        assert read_recorded(found, "/srv/mq/data")


def test_a_parent_that_may_not_be_read_was_there_before() -> None:
    filesystem = SimFileSystem()
    filesystem.fail("fsync_dir", errno.EACCES)
    assert read_recorded(made(filesystem), DATA)
    filesystem = SimFileSystem()
    filesystem.fail("fsync_dir", errno.EIO)
    with pytest.raises(OSError, match="Input/output"):
        made(filesystem)


def test_changed_limits_are_refused_with_both_ways_out() -> None:
    filesystem = made()
    with pytest.raises(
        LimitChanged, match=r"is 7 but .* made with 16384: set it back, or .*resegment"
    ):
        recorded_store(filesystem, DATA, StoreOptions(segment_entry_count=7))


def test_a_store_without_its_record_is_refused() -> None:
    filesystem = SimFileSystem()
    filesystem.mkdir(f"{DATA}/vhosts")
    with pytest.raises(StoreRefused, match="restore that file"):
        made(filesystem)
    assert not filesystem.exists(f"{DATA}/{STORE_FILE}")


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"format": FORMAT + 1}, UnknownFormat),
        ({"format": 0}, UnknownFormat),
        ({"identity": "no"}, StoreRefused),
        ({"segment_ceiling": None}, StoreRefused),
    ],
)
def test_a_record_that_cannot_be_understood_is_refused(
    change: dict[str, object], kind: type[Exception]
) -> None:
    filesystem = made()
    path = f"{DATA}/{STORE_FILE}"
    replace_file(filesystem, path, changed(filesystem.content(path), **change))
    with pytest.raises(kind):
        read_recorded(filesystem, DATA)


def test_a_format_from_before_has_to_be_taken_over() -> None:
    filesystem = made()
    path = f"{DATA}/{STORE_FILE}"
    replace_file(filesystem, path, changed(filesystem.content(path), has_check=False, format=1))
    recorded = read_recorded(filesystem, DATA)
    assert recorded.taking_over
    recorded.begin_takeover(filesystem)
    assert json.loads(filesystem.content(path))["format"] == NAMED_LEVELS
    assert read_recorded(filesystem, DATA).taking_over, "a start that was cut off goes on"
    recorded.end_takeover(filesystem)
    assert not read_recorded(filesystem, DATA).taking_over


def test_reserved_numbers_are_not_used_by_the_next_start() -> None:
    filesystem = made()
    recorded = read_recorded(filesystem, DATA)
    recorded.begin_above(recorded.ceiling + 10)
    recorded.begin_above(3)
    reserve_segments(filesystem, recorded)
    again = read_recorded(filesystem, DATA)
    assert again.first_segment == again.ceiling == recorded.ceiling > recorded.first_segment


def test_a_reservation_that_cannot_be_written_is_none() -> None:
    filesystem = made()
    recorded = read_recorded(filesystem, DATA)
    known = recorded.ceiling
    recorded.begin_above(known)
    filesystem.fail("pwrite", errno.ENOSPC)
    with pytest.raises(WriteFailed):
        reserve_segments(filesystem, recorded)
    assert recorded.ceiling == known == read_recorded(filesystem, DATA).ceiling


def test_values_of_the_terms_are_json() -> None:
    value = {"queues": [["/", "q", 1]], "none": None}
    assert load_json(dump_json(value)) == value  # type: ignore[arg-type]
    assert b" " not in dump_json(value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text", [b"", b"5", b"[]", b"null", b'"x"', b"true", b"{}", b"{", b"\xff", b"[" * 100_000]
)
def test_a_record_that_is_no_record_is_refused(text: bytes) -> None:
    filesystem = made()
    path = f"{DATA}/{STORE_FILE}"
    replace_file(filesystem, path, text)
    with pytest.raises(StoreRefused, match=f"^{path} cannot be read: .*; restore that file$"):
        read_recorded(filesystem, DATA)


_NUMBERS = ("format", "segment_ceiling", FILE_SIZE_KEY, ENTRY_COUNT_KEY)
_NO_NUMBERS = ("x", "2", [], {}, None, True, 2.5, 1 << 32, 10**30)


@pytest.mark.parametrize("has_check", [True, False])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, value) for name in _NUMBERS for value in _NO_NUMBERS),
        *((name, -1) for name in _NUMBERS[1:]),
        *((name, 0) for name in _NUMBERS[2:]),
        *(("taking_over", value) for value in ("x", 1, None, [])),
        *(("identity", value) for value in (5, None, [], "", "00", "x" * 32, "00" * 17)),
    ],
)
def test_a_value_of_another_kind_is_refused(name: str, value: object, has_check: bool) -> None:
    filesystem = made()
    path = f"{DATA}/{STORE_FILE}"
    replace_file(
        filesystem,
        path,
        changed(filesystem.content(path), has_check=has_check, **{name: value}),
    )
    with pytest.raises(StoreRefused, match=f"^{path} cannot be read: .*; restore that file$"):
        read_recorded(filesystem, DATA)


def test_a_newer_format_is_named_whatever_else_it_says() -> None:
    filesystem = made()
    path = f"{DATA}/{STORE_FILE}"
    newer = changed(
        filesystem.content(path), format=FORMAT + 1, identity=None, segment_ceiling="many"
    )
    replace_file(filesystem, path, newer)
    with pytest.raises(UnknownFormat, match="start the version that wrote it"):
        read_recorded(filesystem, DATA)
