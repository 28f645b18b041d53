"""The segment that is appended to: begun durably, ended before its seal, its number never used twice."""

from __future__ import annotations

import errno
import random

import pytest

from burrowmq.storage import record
from burrowmq.storage.errors import DiskFull, SyncFailed, WriteFailed
from burrowmq.storage.shared.active_segment import ActiveSegment
from burrowmq.storage.shared.index import make_index
from burrowmq.storage.shared.scan import ScanTerms
from burrowmq.storage.shared.segment import FILE_HEADER_SIZE, read_seal
from burrowmq.storage.shared.segment_set import SegmentSet
from burrowmq.storage.shared.unsynced import Unsynced
from tests.support.sim_filesystem import SimFileSystem
from tests.support.stored_message import FakeMessage

DIRECTORY = "/v/store"
IDENTITY = b"0123456789abcdef"
SEED = record.seed_of(IDENTITY)


class Setup:
    """An active segment and what it works with."""

    def __init__(self, limit: int = 4000, *, is_durable: bool = True) -> None:
        self.filesystem = SimFileSystem()
        self.filesystem.mkdir(DIRECTORY)
        self.filesystem.fsync_dir("/v")
        index = make_index("array", self.filesystem, DIRECTORY)
        index.open()
        terms = ScanTerms(DIRECTORY, "/v/quarantine", IDENTITY, limit, SEED, is_durable, index)
        self.segments = SegmentSet(self.filesystem, SEED, 8)
        self.unsynced = Unsynced(is_durable=is_durable)
        self.active = ActiveSegment(self.filesystem, terms, self.segments, self.unsynced)

    def append(self, count: int, size: int = 200) -> list[int]:
        """Give the handles."""
        messages = [FakeMessage(b"\x00\x01q", b"b" * size, size) for _ in range(count)]
        handles: list[int] = []
        while len(handles) < count:
            first, done = self.active.append(messages, len(handles))
            handles += range(first, first + done)
        return handles

    def files(self) -> list[str]:
        return [path.rpartition("/")[2] for path in self.filesystem.paths()]


def test_what_is_removed_waits_for_no_sync() -> None:
    setup = Setup()
    setup.append(3)
    assert setup.active.table is not None
    setup.active.remove(setup.active.table.file)
    assert setup.unsynced.files() == {}


def test_the_first_message_begins_a_segment_that_is_durable_before_it() -> None:
    setup = Setup()
    assert setup.active.table is None
    assert setup.append(1) == [0]
    after = setup.filesystem.cut(random.Random(1))
    assert len(after.content(f"{DIRECTORY}/0.g0.seg")) >= FILE_HEADER_SIZE
    assert (setup.active.next_segment_no, setup.active.top_segment_no) == (1, 0)


def test_a_full_segment_is_synced_sealed_and_followed_by_another() -> None:
    setup = Setup()
    handles = setup.append(20)
    assert {handle >> 32 for handle in handles} == {0, 1}
    sealed = read_seal(setup.filesystem.open(f"{DIRECTORY}/0.g0.seg"), SEED)
    assert sealed is not None
    assert len(sealed[1][0].offsets) - 1 == sum(handle >> 32 == 0 for handle in handles)
    assert (setup.active.rolled, setup.active.appended_messages) == (1, 20)
    assert setup.active.appended_bytes == setup.active.rolled * (sealed[0] - 64) + (
        setup.filesystem.file_size(f"{DIRECTORY}/1.g0.seg") - 64
    )


def test_one_write_ends_at_the_limit() -> None:
    setup = Setup()
    messages = [FakeMessage(b"\x00\x01q", b"b" * 200, 200) for _ in range(50)]
    _, count = setup.active.append(messages, 0)
    assert 10 < count < 30


def test_a_large_record_has_a_segment_of_its_own() -> None:
    setup = Setup(64 << 20)
    numbers = [
        setup.append(count, size)[0] >> 32
        for count, size in ((2, 200), (1, record.LARGE_RECORD), (2, 200))
    ]
    assert numbers == [0, 1, 2]


@pytest.mark.parametrize(
    ("operation", "number", "kind"),
    [
        ("create", errno.ENOSPC, DiskFull),
        ("pwrite", errno.ENOSPC, DiskFull),
        ("fdatasync", errno.EIO, SyncFailed),
        ("fsync_dir", errno.EIO, SyncFailed),
        ("fsync_dir", errno.EMFILE, DiskFull),
    ],
)
def test_a_segment_that_cannot_be_begun_costs_its_number_only(
    operation: str, number: int, kind: type[Exception]
) -> None:
    setup = Setup()
    setup.filesystem.fail(operation, number)
    with pytest.raises(kind):
        setup.append(1)
    assert setup.active.table is None
    assert setup.files() == []
    assert setup.append(1) == [1 << 32]


def test_after_a_failed_write_the_file_ends_where_it_did() -> None:
    setup = Setup()
    setup.append(2)
    path = f"{DIRECTORY}/0.g0.seg"
    size = setup.filesystem.file_size(path)
    setup.filesystem.fail("pwrite", errno.ENOSPC, keep=50)
    with pytest.raises(DiskFull):
        setup.append(1)
    assert setup.filesystem.file_size(path) == size
    assert setup.append(1) == [2]


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_a_torn_tail_that_cannot_be_cut_is_not_appended_to(number: int) -> None:
    setup = Setup()
    setup.append(2)
    setup.filesystem.fail("pwrite", number, keep=50)
    setup.filesystem.fail("truncate")
    if number == errno.ENOSPC:
        with pytest.raises(DiskFull):
            setup.append(1)
    assert setup.append(1) == [1 << 32]


@pytest.mark.parametrize("first", [0, 2])
@pytest.mark.parametrize("operation", ["pwrite", "create"])
def test_what_a_segment_refuses_is_written_to_another_one_once(operation: str, first: int) -> None:
    setup = Setup()
    setup.append(first)
    if operation == "create" and first:
        setup.active.roll()
    setup.filesystem.fail(operation, keep=50)
    new = setup.append(3)
    assert new == [(new[0] >> 32 << 32) + slot for slot in range(3)]
    assert new[0] >> 32 == (2 if operation == "create" and first else 1)
    # What is left of the first try is a name at most, which the next segment takes away.
    assert len(setup.files()) == 1 + bool(first)
    setup.filesystem.fail(operation, times=2)
    if operation == "create":
        setup.active.roll()
    with pytest.raises(WriteFailed):
        setup.append(1)


def test_a_segment_whose_first_records_are_refused_is_gone_when_the_next_one_is_durable() -> None:
    setup = Setup()
    setup.filesystem.fail("pwrite", nth=2)
    assert setup.append(1) == [1 << 32]
    assert setup.files() == ["1.g0.seg"]


def test_a_roll_that_cannot_sync_writes_no_seal() -> None:
    setup = Setup()
    setup.append(2)
    setup.filesystem.fail("fdatasync")
    with pytest.raises(SyncFailed):
        setup.active.roll()
    assert read_seal(setup.filesystem.open(f"{DIRECTORY}/0.g0.seg"), SEED) is None
    assert setup.active.table is None


def test_a_seal_that_cannot_be_written_is_done_without() -> None:
    setup = Setup()
    setup.append(2)
    setup.filesystem.fail("pwrite")
    setup.active.roll()
    assert setup.append(1) == [1 << 32]


def test_one_that_has_no_descriptor_is_written_at_the_stop() -> None:
    setup = Setup()
    setup.append(2)
    setup.unsynced.sync()
    setup.segments.release_files()
    setup.filesystem.fail("open", errno.EMFILE)
    setup.active.roll()
    assert read_seal(setup.filesystem.open(f"{DIRECTORY}/0.g0.seg"), SEED) is None
    setup.active.seal_left()
    assert read_seal(setup.filesystem.open(f"{DIRECTORY}/0.g0.seg"), SEED) is not None


def test_an_idle_moment_ends_a_segment_that_is_large_and_mostly_dead() -> None:
    setup = Setup(16 << 20)
    (first, *rest) = setup.append(20, 100_000)
    setup.unsynced.sync()
    setup.active.roll_idle()
    assert setup.active.table is not None, "all of it is live"
    setup.segments.drop_range(rest[0], rest[-1])
    setup.active.roll_idle()
    assert setup.active.table is None
    assert setup.segments.refs_of(first) == 1


def test_a_small_segment_is_not_ended_early() -> None:
    setup = Setup()
    handles = setup.append(3)
    setup.segments.drop_range(handles[0], handles[-1])
    setup.active.roll_idle()
    assert setup.active.table is not None


def test_the_top_file_stays_as_a_header_until_a_higher_one_is_durable() -> None:
    setup = Setup()
    handles = setup.append(3)
    setup.segments.drop_range(handles[0], handles[-1])
    setup.active.roll()
    path = f"{DIRECTORY}/0.g0.seg"
    assert setup.filesystem.file_size(path) == FILE_HEADER_SIZE
    assert setup.append(1) == [1 << 32]
    assert not setup.filesystem.exists(path)


def test_a_top_file_that_a_backup_copies_keeps_its_bytes() -> None:
    setup = Setup()
    handles = setup.append(3)
    (file,) = setup.segments.files.values()
    assert setup.active.is_top(file)
    setup.active.keep_whole(file)
    setup.segments.drop_range(handles[0], handles[-1])
    setup.active.roll()
    assert setup.filesystem.file_size(file.path) > FILE_HEADER_SIZE


def test_a_segment_whose_sync_failed_is_given_up() -> None:
    setup = Setup()
    setup.append(2)
    tables, ranges = setup.unsynced.abandon()
    setup.active.give_up(tables)
    assert ranges == [(0, 1)]
    assert setup.append(1) == [1 << 32]
    setup.active.give_up(tables)
    assert setup.append(1) == [1 << 32 | 1], "only if it is one of these"


def test_a_store_that_is_not_durable_syncs_nothing() -> None:
    setup = Setup(is_durable=False)
    before = setup.filesystem.counters.calls["fsync_dir"]
    setup.append(20)
    assert setup.filesystem.counters.calls.get("fdatasync", 0) == 0
    assert setup.filesystem.counters.calls["fsync_dir"] == before
