"""Why a handle has no record, and when a snapshot is not used."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from burrowmq.storage.shared.recovery import make_directory
from burrowmq.storage.shared.references import ReferenceTally
from burrowmq.storage.shared.segment import pack_file_header, parse_file_header
from burrowmq.storage.shared.store import MessageStore, MessageStoreOptions
from tests.support.sim_filesystem import SimFileSystem
from tests.support.stored_message import FakeMessage

OPTIONS = MessageStoreOptions(
    directory="/v/store",
    quarantine_directory="/v/quarantine",
    identity=b"0123456789abcdef",
    segment_size_limit=2000,
)


def messages(count: int, size: int = 100) -> list[FakeMessage]:
    return [FakeMessage(b"\x00\x01q", bytes([number]) * size, size) for number in range(count)]


def opened(filesystem: SimFileSystem) -> MessageStore:
    store = MessageStore(filesystem, OPTIONS)
    store.recover(ReferenceTally())
    return store


def tally_of(handles: list[int]) -> ReferenceTally:
    tally = ReferenceTally()
    tally.add(sorted(handles))
    return tally


def test_missing_handles_are_sorted() -> None:
    filesystem = SimFileSystem()
    store = opened(filesystem)
    sent = messages(30)
    store.append(sent)
    store.sync()
    store.append(messages(1))  # which says that what lies before it is durable
    handles = [message.handle for message in sent]
    size = len(filesystem.content("/v/store/0.g0.seg"))
    assert store.stats()["segments"] == 3
    last = max(handles) + 1
    path = f"/v/store/{last >> 32}.g0.seg"
    filesystem.damage(path, 64 + 60, b"????")
    filesystem.unlink("/v/store/0.g0.seg")
    again = MessageStore(filesystem, OPTIONS)
    recovery = again.recover(tally_of([*handles, last + 1, (last >> 32) + 5 << 32]))
    assert recovery.torn == {last + 1}
    assert recovery.lost == {(last >> 32) << 32}
    assert recovery.gone == {*(h for h in handles if h < 1 << 32), (last >> 32) + 5 << 32}
    assert recovery.quarantined == 1
    assert size > 2000
    fresh = messages(1)
    again.append(fresh)
    assert fresh[0].handle == (last >> 32) + 6 << 32


@pytest.mark.parametrize("follows", ["nothing", "its own write", "a sync"])
def test_what_a_power_cut_tore_out_of_an_unsynced_write_is_not_lost(follows: str) -> None:
    """Any sectors of it may be there, the last ones too; damage is what was durable once."""
    filesystem = SimFileSystem()
    store = opened(filesystem)
    first, second = messages(2), messages(6)
    store.append(first)
    store.sync()
    store.append(second[:5])
    if follows == "a sync":
        store.sync()
    store.append(second[5:])
    path = "/v/store/0.g0.seg"
    size = (len(filesystem.content(path)) - 64) // 8
    torn = second[1:3] if follows != "nothing" else second[1:]
    for message in torn:
        filesystem.damage(path, 64 + size * message.handle, bytes(size))
    handles = [message.handle for message in first + second]
    again = MessageStore(filesystem, OPTIONS)
    recovery = again.recover(tally_of(handles))
    missing = {message.handle for message in torn}
    is_lost = follows == "a sync"
    assert (recovery.lost, recovery.torn) == ((missing, set()) if is_lost else (set(), missing))
    found = dict(zip(handles, again.read(handles), strict=True))
    assert {handle for handle, one in found.items() if one is None} == missing


def test_what_was_durable_is_lost_also_when_more_was_written_since() -> None:
    filesystem = SimFileSystem()
    store = opened(filesystem)
    sent = messages(6)
    for batch in (sent[:3], sent[3:]):
        store.append(batch)
        store.sync()
    path = "/v/store/0.g0.seg"
    size = (len(filesystem.content(path)) - 64) // 6
    filesystem.damage(path, 64 + size, bytes(size))
    filesystem.damage(path, 64 + 4 * size, bytes(size))
    recovery = MessageStore(filesystem, OPTIONS).recover(tally_of([each.handle for each in sent]))
    assert (recovery.lost, recovery.torn) == ({1}, {4})


def test_a_segment_of_an_earlier_version_does_not_tell_of_syncs() -> None:
    filesystem = SimFileSystem()
    store = opened(filesystem)
    sent = messages(3)
    store.append(sent)
    path = "/v/store/0.g0.seg"
    size = (len(filesystem.content(path)) - 64) // 3
    header = parse_file_header(filesystem.content(path)[:64])
    assert header is not None
    filesystem.damage(path, 0, pack_file_header(header._replace(flags=0)))
    filesystem.damage(path, 64 + size, bytes(size))
    recovery = MessageStore(filesystem, OPTIONS).recover(tally_of([each.handle for each in sent]))
    assert (recovery.lost, recovery.torn) == ({1}, set())


def test_a_removed_record_is_gone_not_lost() -> None:
    filesystem = SimFileSystem()
    store = opened(filesystem)
    sent = messages(40)
    store.append(sent)
    handles = [message.handle for message in sent]
    store.drop_refs(handles[0:30:2] + handles[1:30:4])
    plan = store.plan(is_idle=True)
    assert plan is not None
    while not plan.step(500):
        pass
    store.put_in_place()
    recovery = MessageStore(filesystem, OPTIONS).recover(tally_of(handles))
    assert (recovery.torn, recovery.lost) == (frozenset(), frozenset())
    assert recovery.gone <= set(handles[:30])
    assert recovery.gone


@pytest.mark.parametrize("change", ["none", "unseal", "lose", "other"])
def test_a_snapshot_that_does_not_fit_is_not_used(change: str) -> None:
    filesystem = SimFileSystem()
    store = opened(filesystem)
    store.append(messages(30))
    store.close()
    snapshot = store.snapshot_terms()
    paths = [path for path in filesystem.paths() if PurePosixPath(path).suffix == ".seg"]
    if change == "unseal":
        filesystem.open(paths[-1]).truncate(filesystem.file_size(paths[-1]) - 1)
    elif change == "lose":
        filesystem.unlink(paths[0])
    elif change == "other":
        other = opened(SimFileSystem())
        other.append(messages(3))
        other.close()
        snapshot = other.snapshot_terms()
    assert MessageStore(filesystem, OPTIONS).open_clean(snapshot) is (change == "none")
    assert not MessageStore(filesystem, OPTIONS).open_clean(b"")


def test_the_directory_is_made_durably() -> None:
    filesystem = SimFileSystem()
    make_directory(filesystem, "/a/b")
    make_directory(filesystem, "/a/b")
    assert filesystem.counters.calls == {"exists": 2, "mkdir": 1, "fsync_dir": 1}
