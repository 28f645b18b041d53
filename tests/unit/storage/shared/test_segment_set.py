"""Reading through the tables: batches, damage, files that go away meanwhile."""

from __future__ import annotations

import pytest

from burrowmq.storage import record
from burrowmq.storage.errors import ReadFailed
from burrowmq.storage.shared.references import ReferenceTally
from burrowmq.storage.shared.segment_set import SegmentSet
from burrowmq.storage.shared.store import MessageStore, MessageStoreOptions
from tests.support.sim_filesystem import SimFileSystem
from tests.support.stored_message import FakeMessage


def store_of(filesystem: SimFileSystem, *, limit: int = 4000, open_files: int = 4) -> MessageStore:
    store = MessageStore(
        filesystem,
        MessageStoreOptions(
            directory="/v/store",
            quarantine_directory="/v/quarantine",
            identity=b"0123456789abcdef",
            segment_size_limit=limit,
            open_files=open_files,
        ),
    )
    store.recover(ReferenceTally())
    return store


def filled(store: MessageStore, count: int, size: int = 200) -> list[FakeMessage]:
    messages = [FakeMessage(b"\x00\x01q", bytes([n % 256]) * size, size) for n in range(count)]
    store.append(messages)
    return messages


def reads(filesystem: SimFileSystem) -> int:
    return filesystem.counters.calls.get("pread", 0)


def test_neighbours_come_with_one_read() -> None:
    filesystem = SimFileSystem()
    store = store_of(filesystem, limit=1 << 30)
    messages = filled(store, 1000)
    before = reads(filesystem)
    handles = [message.handle for message in messages]
    assert store.read(handles[::2]) == [message.record for message in messages[::2]]
    assert reads(filesystem) - before == 1
    assert store.read([handles[0], handles[999]]) == [messages[0].record, messages[999].record]
    assert reads(filesystem) - before == 3


def test_any_order_and_repetition() -> None:
    store = store_of(SimFileSystem())
    messages = filled(store, 100)
    chosen = [messages[n] for n in (99, 0, 50, 50, 49, 51, 3)]
    assert store.read([m.handle for m in chosen]) == [m.record for m in chosen]
    assert store.read([]) == []


def test_a_large_read_is_cut() -> None:
    filesystem = SimFileSystem()
    store = store_of(filesystem, limit=1 << 30)
    messages = filled(store, 30, 100_000)
    before = reads(filesystem)
    assert store.read([m.handle for m in messages]) == [m.record for m in messages]
    assert reads(filesystem) - before == 3


def test_what_is_not_there_is_none() -> None:
    store = store_of(SimFileSystem())
    messages = filled(store, 3)
    assert store.read([messages[1].handle, 3, 9 << 32, 1 << 40])[1:] == [None, None, None]
    assert store.stats()["unreadable_records"] == 3


def test_damage_costs_one_message() -> None:
    filesystem = SimFileSystem()
    store = store_of(filesystem)
    messages = filled(store, 5)
    filesystem.damage("/v/store/0.g0.seg", 64 + 250 * 2, b"\xff\xff")
    found = store.read([message.handle for message in messages])
    assert [item is None for item in found].count(True) == 1


def test_a_failing_read_is_tried_once_more() -> None:
    filesystem = SimFileSystem()
    store = store_of(filesystem)
    messages = filled(store, 2)
    handles = [message.handle for message in messages]
    filesystem.fail("pread")
    assert store.read(handles) == [message.record for message in messages]
    filesystem.fail("pread", times=2)
    with pytest.raises(ReadFailed, match=r"seg: pread failed: .*EIO"):
        store.read(handles)
    assert store.read(handles) == [message.record for message in messages]
    assert store.stats()["read_errors"] == 3


def test_a_damaged_record_is_read_once_more_and_given_as_it_is() -> None:
    filesystem = SimFileSystem()
    store = store_of(filesystem)
    messages = filled(store, 2)
    handles = [message.handle for message in messages]
    raw = store.raw(handles[1])
    assert raw is not None
    path, offset, data = raw
    filesystem.damage(path, offset + len(data) - 1, b"?")
    before = filesystem.counters.calls["pread"]
    assert store.read(handles) == [messages[0].record, None]
    assert filesystem.counters.calls["pread"] == before + 2
    assert store.raw(handles[1]) == (path, offset, data[:-1] + b"?")
    assert store.raw(99 << 32) is None


def test_a_reader_goes_on_when_the_file_is_swapped(monkeypatch: pytest.MonkeyPatch) -> None:
    filesystem = SimFileSystem()
    store = store_of(filesystem)
    messages = filled(store, 40)
    handles = [message.handle for message in messages]
    store.drop_refs(handles[:16:2] + handles[1:16:4])
    store.sync()
    store.release_files()
    opened: list[str] = []
    plain = filesystem.open

    def open_late(path: str) -> object:
        """Let the compaction end between the look-up and the open."""
        if not opened:
            opened.append(path)
            monkeypatch.setattr(filesystem, "open", plain)
            plan = store.plan(is_idle=True)
            assert plan is not None
            assert plan.step()
            store.put_in_place()
            assert not filesystem.exists(path)
        return plain(path)

    monkeypatch.setattr(filesystem, "open", open_late)
    assert store.read([handles[3]]) == [messages[3].record]
    assert opened == ["/v/store/0.g0.seg"]


def test_a_file_that_cannot_be_opened() -> None:
    filesystem = SimFileSystem()
    store = store_of(filesystem)
    messages = filled(store, 40)
    store.sync()
    store.release_files()
    filesystem.unlink("/v/store/0.g0.seg")
    assert store.read([messages[0].handle]) == [None]


def test_a_failing_open_is_tried_again() -> None:
    filesystem = SimFileSystem()
    store = store_of(filesystem)
    messages = filled(store, 1)
    store.sync()
    store.release_files()
    filesystem.fail("open", times=1)
    assert store.read([messages[0].handle]) == [messages[0].record]
    store.release_files()
    filesystem.fail("open", times=2)
    with pytest.raises(ReadFailed, match=r"seg: open failed: .*EIO"):
        store.read([messages[0].handle])
    assert store.read([messages[0].handle]) == [messages[0].record]


def test_few_files_stay_open() -> None:
    store = store_of(SimFileSystem(), open_files=4)
    messages = filled(store, 400)
    assert store.stats()["files"] > 20
    for message in messages:
        assert store.read([message.handle]) == [message.record]
        assert store.stats()["open_files"] <= 5


def test_unlinking_is_tried_again() -> None:
    filesystem = SimFileSystem()
    filesystem.create("/f")
    segments = SegmentSet(filesystem, record.seed_of(b""), 4)
    filesystem.fail("unlink")
    segments.unlink("/f")
    assert filesystem.exists("/f")
    segments.unlink_leftovers()
    assert not filesystem.exists("/f")
    segments.unlink("/f")
    segments.unlink_leftovers()


def test_references_to_nothing_are_counted() -> None:
    store = store_of(SimFileSystem())
    messages = filled(store, 2)
    store.add_refs([messages[0].handle, 77 << 32])
    store.drop_refs([messages[0].handle, 78 << 32])
    assert store.stats()["stray_drops"] == 2
    assert store.refs_of(messages[0].handle) == 1
    assert store.refs_of(77 << 32) == store.refs_of(50) == 0


def test_the_descriptor_of_what_is_gone_is_let_go_of() -> None:
    """Not by the collector of circles: what a start has found is out of its sight."""
    filesystem = SimFileSystem()
    store = store_of(filesystem)
    messages = filled(store, 60)
    store.sync()
    segments = store._segments
    files = list(segments.files.values())
    assert store.read([message.handle for message in messages]) == [m.record for m in messages]
    assert len(files) > 2
    assert all(file.is_open for file in files)
    store.drop_refs([message.handle for message in messages])
    *gone, written_to = files
    assert not any(file.is_open for file in gone)
    assert (segments.deleted_files, written_to.is_open) == (len(gone), True)
