"""Appending, rolling, syncing, failing, stopping and starting."""

from __future__ import annotations

import contextlib
import errno
import random
from pathlib import Path

import pytest

from burrowmq.storage import record
from burrowmq.storage.errors import DiskFull, StoreClosed, SyncFailed, WriteFailed
from burrowmq.storage.files.filesystem import OsFileSystem
from burrowmq.storage.record import LARGE_RECORD
from burrowmq.storage.shared.references import ReferenceTally
from burrowmq.storage.shared.segment import read_seal
from burrowmq.storage.shared.store import MessageStore, MessageStoreOptions
from tests.support.sim_filesystem import SimFileSystem
from tests.support.stored_message import FakeMessage

DIRECTORY = "/v/store"
IDENTITY = b"0123456789abcdef"
SEED = record.seed_of(IDENTITY)


def options(limit: int = 4000, *, is_durable: bool = True) -> MessageStoreOptions:
    return MessageStoreOptions(
        directory=DIRECTORY,
        quarantine_directory="/v/quarantine",
        identity=IDENTITY,
        segment_size_limit=limit,
        is_durable=is_durable,
    )


def opened(filesystem: SimFileSystem, limit: int = 4000) -> MessageStore:
    store = MessageStore(filesystem, options(limit))
    store.recover(ReferenceTally())
    return store


def some(count: int, size: int = 200) -> list[FakeMessage]:
    return [FakeMessage(b"\x00\x01q", bytes([n % 256]) * size, size) for n in range(count)]


def handles_of(messages: list[FakeMessage]) -> list[int]:
    return [message.handle for message in messages]


def records_of(messages: list[FakeMessage]) -> list[object]:
    return [message.record for message in messages]


def test_handles_are_segment_and_slot() -> None:
    store = opened(SimFileSystem())
    messages = some(40)
    store.append(messages[:5])
    store.append(messages[5:])
    by_segment: dict[int, list[int]] = {}
    for handle in handles_of(messages):
        by_segment.setdefault(handle >> 32, []).append(handle & 0xFFFFFFFF)
    assert list(by_segment) == [0, 1, 2]
    assert all(slots == list(range(len(slots))) for slots in by_segment.values())
    assert store.read(handles_of(messages)) == records_of(messages)
    assert [store.refs_of(handle) for handle in handles_of(messages)] == [1] * 40


def test_nothing_is_on_disk_before_the_first_message() -> None:
    filesystem = SimFileSystem()
    store = opened(filesystem)
    store.append([])
    store.roll()
    store.sync()
    store.close()
    assert filesystem.paths() == []


def test_a_segment_is_durable_before_use_and_sealed_after() -> None:
    filesystem = SimFileSystem()
    store = opened(filesystem)
    store.append(some(1))
    after = filesystem.cut(random.Random(1))
    assert after.exists(f"{DIRECTORY}/0.g0.seg")
    assert len(after.content(f"{DIRECTORY}/0.g0.seg")) >= 64
    store.append(some(30))
    assert store.stats()["rolled"] == 1
    sealed = read_seal(filesystem.open(f"{DIRECTORY}/0.g0.seg"), SEED)
    assert sealed is not None
    assert len(sealed[1][0].offsets) == 18


def test_what_a_power_cut_could_take() -> None:
    filesystem = SimFileSystem()
    store = opened(filesystem)
    assert store.unsynced_bytes == 0
    store.append(some(3))
    assert store.unsynced_bytes > 600
    syncs = filesystem.counters.calls["fdatasync"]
    store.sync()
    assert filesystem.counters.calls["fdatasync"] == syncs + 1
    assert store.unsynced_bytes == 0
    store.append(some(25))  # fills the segment: its records were synced by the roll
    syncs = filesystem.counters.calls["fdatasync"]
    store.sync()
    assert filesystem.counters.calls["fdatasync"] == syncs + 2  # the seal, and the new segment
    store.sync()
    assert filesystem.counters.calls["fdatasync"] == syncs + 2


def test_a_large_record_has_a_segment_of_its_own() -> None:
    store = opened(SimFileSystem(), 64 << 20)
    messages = [*some(2), FakeMessage(b"", bytes(LARGE_RECORD), LARGE_RECORD), *some(2)]
    store.append(messages)
    assert [handle >> 32 for handle in handles_of(messages)] == [0, 0, 1, 2, 2]
    before = store.total_bytes
    store.drop_refs([messages[2].handle])
    assert before - store.total_bytes > LARGE_RECORD


def test_emptied_segments_go() -> None:
    filesystem = SimFileSystem()
    store = opened(filesystem)
    messages = some(60)
    store.append(messages)
    handles = handles_of(messages)
    store.add_refs(handles[:10])
    store.drop_refs(handles)
    assert filesystem.exists(f"{DIRECTORY}/0.g0.seg")
    store.drop_range(handles[0], handles[9])
    left = [path for path in filesystem.paths() if path.endswith(".seg")]
    assert left == [f"{DIRECTORY}/3.g0.seg"]
    assert store.live_bytes == 0


def test_an_idle_dead_segment_gives_its_space_back() -> None:
    filesystem = SimFileSystem()
    store = opened(filesystem, 4 << 20)
    messages = some(20, 100_000)
    store.append(messages)
    store.release_idle()
    assert store.stats()["files"] == 1
    store.drop_refs(handles_of(messages))
    store.release_idle()
    assert store.total_bytes == 0
    assert filesystem.file_size(f"{DIRECTORY}/0.g0.seg") == 64
    again = some(1)
    store.append(again)
    assert again[0].handle >> 32 == 1
    assert not filesystem.exists(f"{DIRECTORY}/0.g0.seg")


@pytest.mark.parametrize("restart", ["clean", "unclean"])
def test_segment_numbers_never_come_again(restart: str) -> None:
    filesystem = SimFileSystem()
    seen: set[int] = set()
    snapshot = b""
    for life in range(6):
        store = MessageStore(filesystem, options())
        if life and restart == "clean":
            assert store.open_clean(snapshot)
        else:
            store.recover(ReferenceTally())
        messages = some(life % 3 * 20)
        store.append(messages)
        numbers = {handle >> 32 for handle in handles_of(messages)}
        assert not numbers & seen
        seen |= numbers
        store.drop_refs(handles_of(messages))
        if restart == "clean":
            store.close()
            snapshot = store.snapshot_terms()


def test_a_clean_stop_keeps_everything() -> None:
    filesystem = SimFileSystem()
    store = opened(filesystem)
    messages = some(50)
    store.append(messages)
    handles = handles_of(messages)
    for _ in range(260):
        store.add_refs(handles[7:8])
    store.drop_refs(handles[::3])
    store.close()
    store.close()
    stats = store.stats()
    again = MessageStore(filesystem.cut(random.Random(1)), options())
    assert again.open_clean(store.snapshot_terms())
    for handle in handles:
        assert again.refs_of(handle) == store.refs_of(handle)
    assert (again.live_bytes, again.total_bytes) == (stats["live_bytes"], stats["total_bytes"])
    with pytest.raises(StoreClosed):
        store.append(some(1))


def test_clean_and_unclean_start_agree() -> None:
    filesystem = SimFileSystem()
    store = opened(filesystem)
    messages = some(50)
    store.append(messages)
    store.drop_refs(handles_of(messages)[::3])
    store.close()
    clean = MessageStore(filesystem, options())
    assert clean.open_clean(store.snapshot_terms())
    tally = ReferenceTally()
    tally.add([h for h in handles_of(messages) if store.refs_of(h)])
    unclean = MessageStore(filesystem, options())
    assert unclean.recover(tally) == (frozenset(), frozenset(), frozenset(), 0)
    for name in ("live_bytes", "total_bytes", "live_messages", "files"):
        assert clean.stats()[name] == unclean.stats()[name]


def test_the_transient_store_syncs_nothing_and_begins_empty() -> None:
    filesystem = SimFileSystem()
    store = MessageStore(filesystem, options(is_durable=False))
    store.open_empty(1 << 30)
    messages = some(60)
    store.append(messages)
    store.drop_refs(handles_of(messages)[2:18] + handles_of(messages)[20:35])
    plan = store.plan(is_idle=True)
    assert plan is not None
    calls = dict(filesystem.counters.calls)
    assert store.unsynced_bytes == 0
    store.sync()
    assert calls.get("fdatasync", 0) == 0
    assert messages[0].handle >> 32 == 1 << 30
    again = MessageStore(filesystem, options(is_durable=False))
    again.open_empty()
    assert filesystem.paths() == []


# Failing --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "error"), [(errno.ENOSPC, DiskFull), (errno.EIO, WriteFailed)])
@pytest.mark.parametrize("nth", [1, 2, 3, 4, 5, 6])
def test_a_failed_append_leaves_no_trace(number: int, error: type[Exception], nth: int) -> None:
    filesystem = SimFileSystem()
    store = opened(filesystem)
    kept = some(5)
    store.append(kept)
    filesystem.fail("pwrite", number, nth=nth, keep=77)
    messages = some(70)
    with contextlib.suppress(error):
        store.append(messages)  # a failing seal (the second and fifth write) is nobody's concern
    if messages[0].handle == -1:
        assert set(handles_of(messages)) == {-1}
        assert store.stats()["live_messages"] == 5
        store.append(messages)
    assert store.read(handles_of(messages)) == records_of(messages)
    assert store.read(handles_of(kept)) == records_of(kept)
    store.close()
    tally = ReferenceTally()
    tally.add(handles_of(kept) + handles_of(messages))
    again = MessageStore(filesystem, options())
    assert again.recover(tally) == (frozenset(), frozenset(), frozenset(), 0)
    assert again.read(handles_of(messages)) == records_of(messages)


def test_a_full_disk() -> None:
    filesystem = SimFileSystem()
    store = opened(filesystem)
    kept = some(5)
    store.append(kept)
    filesystem.free_bytes = 1000
    messages = some(10)
    with pytest.raises(DiskFull):
        store.append(messages)
    filesystem.free_bytes = None
    store.append(messages)
    assert store.read(handles_of(kept + messages)) == records_of(kept + messages)


def test_a_tail_that_cannot_be_cut_is_left() -> None:
    filesystem = SimFileSystem()
    store = opened(filesystem)
    kept = some(5)
    store.append(kept)
    filesystem.fail("pwrite", keep=100)
    filesystem.fail("truncate")
    messages = some(3)
    store.append(messages)
    assert messages[0].handle >> 32 == 1
    tally = ReferenceTally()
    tally.add(handles_of(kept + messages))
    again = MessageStore(filesystem, options())
    assert again.recover(tally) == (frozenset(), frozenset(), frozenset(), 0)


@pytest.mark.parametrize(
    ("operation", "times"), [("create", 2), ("pwrite", 2), ("fdatasync", 1), ("fsync_dir", 1)]
)
def test_a_segment_that_cannot_be_begun(operation: str, times: int) -> None:
    filesystem = SimFileSystem()
    store = opened(filesystem)
    filesystem.fail(operation, times=times)
    messages = some(3)
    with pytest.raises((WriteFailed, SyncFailed)):
        store.append(messages)
    assert handles_of(messages) == [-1] * 3
    store.append(messages)
    assert store.read(handles_of(messages)) == records_of(messages)


def test_a_seal_that_cannot_be_written_costs_a_scan() -> None:
    filesystem = SimFileSystem()
    store = opened(filesystem)
    messages = some(5)
    store.append(messages)
    filesystem.fail("pwrite", keep=9)
    store.roll()
    store.append(some(1))
    tally = ReferenceTally()
    tally.add(handles_of(messages))
    again = MessageStore(filesystem, options())
    assert again.recover(tally) == (frozenset(), frozenset(), frozenset(), 0)
    assert again.read(handles_of(messages)) == records_of(messages)


@pytest.mark.parametrize("failing", ["write", "torn", "seal"])
def test_a_segment_that_was_left_is_sealed_by_a_clean_stop(failing: str) -> None:
    filesystem = SimFileSystem()
    store = opened(filesystem)
    messages = some(5)
    store.append(messages)
    filesystem.fail("pwrite", keep=77)
    if failing == "torn":
        filesystem.fail("truncate")
    if failing == "seal":
        store.roll()
    more = some(3)
    store.append(more)
    assert {handle >> 32 for handle in handles_of(messages + more)} == {0, 1}
    store.close()
    again = MessageStore(filesystem.cut(random.Random(1)), options())
    assert again.open_clean(store.snapshot_terms())
    assert again.read(handles_of(messages + more)) == records_of(messages + more)


def test_a_file_whose_sync_failed_is_not_sealed_either() -> None:
    filesystem = SimFileSystem()
    store = opened(filesystem)
    messages = some(5)
    store.append(messages)
    store.sync()
    more = some(1)
    store.append(more)
    filesystem.fail("pwrite")
    store.append(some(3))
    filesystem.fail("fdatasync", path_part="0.g0")
    with pytest.raises(SyncFailed):
        store.sync()
    store.abandon_unsynced()
    store.close()
    assert read_seal(filesystem.open(f"{DIRECTORY}/0.g0.seg"), SEED) is None
    assert not MessageStore(filesystem, options()).open_clean(store.snapshot_terms())


def test_a_failed_sync_is_answered_with_a_new_segment() -> None:
    filesystem = SimFileSystem()
    store = opened(filesystem)
    safe, suspect = some(4), some(4)
    store.append(safe)
    store.sync()
    store.append(suspect)
    filesystem.fail("fdatasync")
    with pytest.raises(SyncFailed):
        store.sync()
    old = handles_of(suspect)
    assert store.abandon_unsynced() == [(old[0], old[-1])]
    syncs = filesystem.counters.calls["fdatasync"]
    for message in suspect:
        message.handle = -1
    store.append(suspect)
    store.drop_refs(old)
    store.sync()
    assert {handle >> 32 for handle in handles_of(suspect)} == {1}
    assert filesystem.counters.calls["fdatasync"] == syncs + 2  # the new segment's only
    after = filesystem.cut(random.Random(1))
    tally = ReferenceTally()
    tally.add(handles_of(safe) + handles_of(suspect))
    again = MessageStore(after, options())
    assert again.recover(tally).lost == frozenset()
    assert again.read(handles_of(safe + suspect)) == records_of(safe + suspect)


def test_nothing_unsynced_is_nothing_to_abandon() -> None:
    filesystem = SimFileSystem()
    store = opened(filesystem)
    store.append(some(17))
    store.roll()  # only the seal waits now
    syncs = filesystem.counters.calls["fdatasync"]
    assert store.abandon_unsynced() == []
    store.sync()
    assert filesystem.counters.calls["fdatasync"] == syncs  # given up: never synced again


def test_a_roll_that_cannot_sync() -> None:
    filesystem = SimFileSystem()
    store = opened(filesystem)
    messages = some(17)
    store.append(messages)
    filesystem.fail("fdatasync")
    more = some(2)
    with pytest.raises(SyncFailed):
        store.append(more)
    assert handles_of(more) == [-1, -1]
    assert store.abandon_unsynced() == [(messages[0].handle, messages[-1].handle)]
    store.append(more)
    assert more[0].handle >> 32 == 1


def test_a_dead_top_segment_that_cannot_be_cut() -> None:
    filesystem = SimFileSystem()
    store = opened(filesystem)
    messages = some(3)
    store.append(messages)
    store.drop_refs(handles_of(messages))
    filesystem.fail("truncate")
    store.roll()
    assert store.total_bytes == 0
    store.append(messages)
    assert not filesystem.exists(f"{DIRECTORY}/0.g0.seg")


def test_limits_out_of_range() -> None:
    for limit in (0, -1, 1 << 32):
        with pytest.raises(ValueError, match="out of range"):
            MessageStore(SimFileSystem(), options(limit))


def test_on_the_real_file_system(tmp_path: Path) -> None:
    real = MessageStoreOptions(
        directory=str(tmp_path / "store"),
        quarantine_directory=str(tmp_path / "quarantine"),
        identity=IDENTITY,
        segment_size_limit=50_000,
        open_files=3,
    )
    store = MessageStore(OsFileSystem(), real)
    store.recover(ReferenceTally())
    messages = some(1000)
    store.append(messages)
    handles = handles_of(messages)
    store.drop_refs([handle for place, handle in enumerate(handles) if place % 3])
    while (plan := store.plan(is_idle=True)) is not None:
        while not plan.step():
            pass
        store.put_in_place()
    assert store.read(handles[::3]) == records_of(messages[::3])
    store.close()
    again = MessageStore(OsFileSystem(), real)
    assert again.open_clean(store.snapshot_terms())
    assert again.read(handles[::3]) == records_of(messages[::3])


def test_the_largest_file_size_that_the_configuration_takes() -> None:
    """`msg_store_file_size_limit = 2GiB`."""
    store = opened(SimFileSystem(), 2**31)
    store.append(some(3))
    store.sync()
    assert store.options.segment_size_limit == 2**31
    with pytest.raises(ValueError, match="out of range"):
        opened(SimFileSystem(), 2**31 + 1)
