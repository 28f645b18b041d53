"""Version 1 of the queue index: what its files hold, when they are written, what damage costs, and conversion.

Covers: storage/queue/v1/blocks.py, storage/queue/v1/journal.py, storage/queue/v1/runs.py, storage/queue/v1/segment_files.py
Covers: storage/queue/convert.py, storage/queue/scan_v1.py, storage/disk/conversion.py, storage/queue/upkeep.py
Covers: storage/queue/entries.py, storage/queue/header.py
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from burrowmq.storage.engine import Engine
from burrowmq.storage.errors import ForeignStore, LimitChanged, UnknownFormat
from burrowmq.storage.loop.queue_log import QueueLog
from burrowmq.storage.queue import header as index_header
from burrowmq.storage.queue.disk import QueueDisk
from burrowmq.storage.queue.v1 import blocks as queue_blocks
from burrowmq.storage.types import RecoveredQueue, StoreOptions
from tests.simulation.store_world import SilentObserver, SimDefinitions, make_message, read_all
from tests.support.sim_filesystem import SimFileSystem
from tests.support.stored_message import FakeMessage

OPTIONS = StoreOptions(segment_entry_count=64, embed_below=200, journal_entries=100)
# Runs of ten messages and more go to the segment files at once.
DIRECT = replace(OPTIONS, journal_run_bytes=10 * (32 + 50), journal_direct_bytes=20_000)
SMALL, LARGE = 50, 500
IDENTITY = b"i" * 16


class Store:
    """An engine on a simulated disk, and its one queue."""

    def __init__(self, version: int = 1, options: StoreOptions = OPTIONS) -> None:
        self.filesystem = SimFileSystem()
        self.options = options
        self.observer = SilentObserver()
        self.rows: dict[tuple[str, str], object] = {}
        self.published = 0
        self.engine, self.log = self.open(version)

    def open(self, version: int) -> tuple[Engine, QueueLog]:
        """Start on what is there."""
        filesystem, rows = self.filesystem, self.rows
        engine = Engine(
            "/data",
            filesystem,
            self.options,
            self.observer,
            FakeMessage,
            lambda _: SimDefinitions(filesystem, rows),
        )
        self.report = engine.recover()
        engine.start_inline()
        self.engine = engine
        self.log = engine.open_queue("/", "q", durable=True, version=version)
        return self.engine, self.log

    def publish(self, count: int, size: int = SMALL, *, persistent: bool = True) -> None:
        """Publish messages and wait for them."""
        first = self.log.next_seq
        messages = [make_message(first + at, size, persistent) for at in range(count)]
        self.log.append(first, messages, None, size * count)
        self.published += count
        self.commit()

    def commit(self) -> None:
        """Hand the batch over and have it synced."""
        self.engine.require_sync()
        self.engine.hand_over()

    def settle(self) -> None:
        """Idle until nothing is left to do."""
        for _ in range(6):
            self.engine.hand_over()
            self.engine.idle()

    def crash(self, version: int = 1) -> None:
        """Kill the process and start again."""
        self.filesystem = self.filesystem.process_killed()
        self.open(version)

    def files(self) -> dict[str, int]:
        """The queue's files and their lengths."""
        directory = self.disk.directory
        if not self.filesystem.exists(directory):
            return {}
        return {
            name: self.filesystem.file_size(f"{directory}/{name}")
            for name in self.filesystem.listdir(directory)
            if not name.startswith(".")
        }

    @property
    def disk(self) -> QueueDisk:
        """The queue's disk side."""
        writer = self.engine._writer
        assert writer is not None
        return next(iter(writer.queues().values()))

    def seqs(self) -> list[int]:
        """What a reader finds."""
        return [seq for seq, _, _ in read_all(self.log, 30)]

    def damage(self, name: str, at: int, data: bytes = b"\xff") -> None:
        """Overwrite bytes of a file of the queue."""
        file = self.filesystem.open(f"{self.disk.directory}/{name}")
        file.pwrite(data, at if at >= 0 else file.size() + at)


@pytest.fixture(params=[1, 2])
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def test_a_commit_writes_one_file() -> None:
    store = Store()
    store.publish(10)
    assert set(store.files()) == {"1.jif"}
    assert store.seqs() == list(range(10))


def test_the_journal_goes_into_the_segment_files_when_the_queue_is_quiet() -> None:
    store = Store()
    store.publish(100)
    store.publish(10, LARGE)
    store.settle()
    assert set(store.files()) == {"0.idx", "1.idx"}
    assert store.seqs() == list(range(110))
    assert store.disk.memory_bytes < 4_000 + 31 * 64


def test_a_large_run_is_written_once_and_goes_to_the_segment_files() -> None:
    store = Store(options=DIRECT)
    store.publish(100)
    store.publish(10, LARGE)
    store.publish(9)  # a small run: the journal
    assert set(store.files()) == {"0.idx", "1.idx", "1.jif"}
    assert store.seqs() == list(range(119))
    written = store.files()
    store.settle()
    files = store.files()
    assert set(files) == {"0.idx", "1.idx"}
    assert sum(files.values()) <= sum(written.values())
    store.log.ack_many([5, 70, 115])
    store.settle()
    store.crash()
    assert store.seqs() == [seq for seq in range(119) if seq not in (5, 70, 115)]


def test_what_is_read_while_large_runs_arrive_is_all_of_it() -> None:
    store = Store(options=DIRECT)
    for _ in range(12):
        store.publish(10)
        store.publish(3)
        assert store.seqs() == list(range(store.published))
    store.log.ack(0, 99)
    assert store.seqs() == list(range(100, store.published))


def test_a_torn_large_run_costs_what_is_torn_also_at_the_second_start() -> None:
    store = Store(options=DIRECT)
    for _ in range(4):
        store.publish(10)
    file = store.filesystem.open(f"{store.disk.directory}/0.idx")
    file.truncate(file.size() - 10)
    for _ in range(3):
        store.crash()
        assert store.seqs() == list(range(39))
        assert store.log.recovered is not None
        assert store.log.recovered.count == 39
        store.settle()


def test_a_torn_large_run_is_found_when_only_acks_name_the_last_journal() -> None:
    """The segments with the messages of the later journals are gone; an ack that says how far they went is left."""
    store = Store(options=DIRECT)
    store.publish(10)
    file = store.filesystem.open(f"{store.disk.directory}/0.idx")
    file.pwrite(queue_blocks.pack_acks(0, 0, 0b1, 9, store.disk.index.seed), file.size())
    store.crash()
    store.publish(10)
    file = store.filesystem.open(f"{store.disk.directory}/1.idx")
    file.truncate(file.size() - 10)
    for _ in range(2):
        store.crash()
        assert store.log.recovered is not None
        assert store.log.recovered.count == 18
        assert store.seqs() == [*range(1, 10), *range(64, 73)]
        store.settle()


def test_after_many_large_runs_an_empty_journal_says_that_they_are_durable() -> None:
    store = Store(options=DIRECT)
    for _ in range(40):
        store.publish(20)
    store.settle()
    journal = store.disk.files_v1().journal
    assert journal.durable > 1
    assert not any(name.endswith(".jif") for name in store.files())
    durable = journal.durable
    store.publish(20)
    store.crash()
    assert store.disk.files_v1().journal.durable == durable
    assert store.seqs() == list(range(820))


def test_the_tail_of_a_queue_that_runs_empty_is_not_made_again_each_time() -> None:
    store = Store(options=DIRECT)
    made: set[int] = set()
    for first in range(0, 60, 10):
        store.publish(10)
        store.log.ack(first, first + 9)
        store.commit()
        made.add(store.disk.index.segments[0].store_end)
    assert len(made) == 6  # it grew
    store.settle()
    assert store.files() == {}


def test_a_full_journal_is_flushed_and_stays_bounded() -> None:
    store = Store()
    for _ in range(120):
        store.publish(5)
    names = store.files()
    assert sum(name.endswith(".jif") for name in names) <= 2
    assert sum(name.endswith(".idx") for name in names) >= 6
    assert store.seqs() == list(range(600))


def test_what_is_acked_in_the_journal_is_never_written_to_a_segment_file() -> None:
    store = Store()
    store.publish(60)
    store.log.ack(0, 59)
    store.settle()
    assert store.files() == {}
    store.publish(60)
    store.log.ack_many(list(range(60, 110)))
    store.settle()
    assert sum(store.files().values()) < 64 * 2 + 10 * 300
    assert store.seqs() == list(range(110, 120))


def test_many_messages_in_one_journal_flush_by_memory() -> None:
    store = Store(options=replace(OPTIONS, journal_entries=1_000_000))
    for _ in range(4):
        for _ in range(600):
            store.log.append(store.log.next_seq, [make_message(1, 8, True)], None, 8)
            store.engine.hand_over()
    assert store.disk.memory_bytes < 1_200_000
    assert sum(name.endswith(".idx") for name in store.files()) > 20


def test_a_clean_stop_leaves_segment_files_only_and_is_trusted(version: int) -> None:
    store = Store(version)
    store.publish(100)
    store.publish(20, LARGE)
    store.log.ack_many([1, 5, 70])
    store.engine.close()
    store.open(version)
    assert store.report.clean
    assert not any(name.endswith(".jif") for name in store.files())
    assert store.seqs() == [seq for seq in range(120) if seq not in (1, 5, 70)]
    assert store.log.recovered is not None
    assert store.log.recovered.count == 117


@pytest.mark.parametrize("is_mixed", [False, True])
def test_an_unclean_start_finds_what_a_clean_one_does(version: int, is_mixed: bool) -> None:
    store = Store(version)
    store.publish(100)
    store.publish(40, LARGE)
    store.publish(3, persistent=False)
    store.log.ack_many([0, 1, 2, 64, 110])
    if is_mixed:
        store.log.set_version(3 - version)
        store.publish(70)
    store.engine.close()
    found: list[tuple[RecoveredQueue, list[int]]] = []
    for is_clean in (True, False):
        if not is_clean:
            store.filesystem = store.filesystem.process_killed()
        store.open(version)
        assert store.report.clean is is_clean
        recovered = store.log.recovered
        assert recovered is not None
        seqs = store.seqs()
        found.append(
            (
                replace(recovered, next_seq=0, next_deliver_seq=0),
                seqs,
            )  # an unclean start leaves a gap
        )
    assert found[0] == found[1]
    assert len(found[0][1]) == 135 + 70 * is_mixed


def test_a_torn_journal_costs_what_is_torn() -> None:
    store = Store()
    for _ in range(4):
        store.publish(5)
    directory = store.disk.directory
    file = store.filesystem.open(f"{directory}/1.jif")
    file.truncate(file.size() - 10)
    store.crash()
    assert store.seqs() == list(range(19))


def test_a_damaged_block_costs_its_messages_and_nothing_behind_it() -> None:
    store = Store()
    for _ in range(4):
        store.publish(5)
    block = (store.files()["1.jif"] - index_header.HEADER_SIZE) // 4
    store.damage("1.jif", index_header.HEADER_SIZE + block + 9)  # its head
    entry = index_header.HEADER_SIZE + 2 * block + queue_blocks.BLOCK_SIZE + 32
    store.damage("1.jif", entry + 20)
    store.crash()
    assert store.seqs() == [seq for seq in range(20) if not 5 <= seq < 10 and seq != 11]
    assert store.observer.events["record_lost"] == 1


def test_a_damaged_body_costs_one_message() -> None:
    store = Store()
    store.publish(60)
    store.settle()
    store.damage("0.idx", -1)
    assert store.seqs() == list(range(59))
    store.settle()
    store.damage("0.idx", 3)  # the file's own head: its blocks check themselves
    store.crash()
    assert store.seqs() == list(range(59))


def test_a_queue_is_converted_while_it_is_used(version: int) -> None:
    store = Store(version)
    store.publish(200)
    store.publish(30, LARGE)
    store.log.ack_many([0, 3, 100])
    store.settle()
    store.log.set_version(3 - version)
    store.publish(20)
    store.log.ack(10, 20)
    store.settle()
    suffixes = {name.rpartition(".")[2] for name in store.files()}
    assert suffixes == ({"qi", "qs"} if version == 1 else {"idx"})
    gone = {0, 3, 100, *range(10, 21)}
    assert store.seqs() == [seq for seq in range(250) if seq not in gone]
    assert store.engine.stats()["converting_queues"] == 0
    assert store.engine.stats()["converted_segments"] >= 4
    name = store.filesystem.read_file(f"{store.disk.directory}/.queue_name")
    assert name.endswith(f"INDEX: v{3 - version}\n".encode())
    store.crash(3 - version)
    assert store.seqs() == [seq for seq in range(250) if seq not in gone]
    assert store.log.recovered is not None
    assert store.log.recovered.persistent_count == 250 - len(gone)


def test_the_file_with_the_name_is_replaced_because_a_backup_may_share_it(version: int) -> None:
    store = Store(version)
    store.publish(3)
    store.settle()
    path = f"{store.disk.directory}/.queue_name"
    before = store.filesystem.content(path)
    store.filesystem.link(path, "/backup")
    store.log.set_version(3 - version)
    store.settle()
    assert store.filesystem.content(path) != before
    assert store.filesystem.content("/backup") == before


def test_a_queue_that_is_never_quiet_is_converted() -> None:
    store = Store(1, replace(OPTIONS, convert_slice=1))
    store.publish(200)
    store.log.set_version(2)
    for _ in range(10):  # every slice finds something in the journal
        store.publish(3)
    assert store.engine.stats()["converting_queues"] == 0
    assert {name.rpartition(".")[2] for name in store.files()} == {"qi", "qs"}
    assert store.seqs() == list(range(230))


def test_a_start_with_another_version_converts(version: int) -> None:
    store = Store(version)
    store.publish(150)
    store.engine.close()
    store.open(3 - version)
    assert store.seqs() == list(range(150))
    store.settle()
    assert not store.disk.has_other_version(3 - version)
    assert store.seqs() == list(range(150))


def test_a_conversion_takes_the_corrupt_out(version: int) -> None:
    store = Store(version)
    store.publish(60)
    store.settle()
    entries = 64 + 2 * (32 + 8) if version == 2 else 64 + queue_blocks.BLOCK_SIZE
    store.damage("0.qi" if version == 2 else "0.idx", entries + 5 * 32 + 10)
    store.disk.files_v1().trim()
    store.log.set_version(3 - version)
    store.settle()
    assert store.seqs() == [seq for seq in range(60) if seq != 5]
    assert store.observer.events["record_lost"] == 1


def test_a_queue_that_is_not_durable_keeps_no_journal() -> None:
    store = Store()
    log = store.engine.open_queue("/", "t", durable=False, version=1)
    for first in range(0, 300, 50):
        messages = [make_message(at, SMALL, False) for at in range(50)]
        log.append(first, messages, None, 50 * SMALL)
        store.engine.hand_over()
    assert [seq for seq, _, _ in read_all(log, 60)] == list(range(300))
    log.ack(0, 299)
    store.settle()
    paths = [path for path in store.filesystem.paths() if "/transient/" in path]
    assert [path for path in paths if path.endswith((".jif", ".idx"))] == []


def test_headers_tell_other_terms_apart() -> None:
    head = index_header.pack(queue_blocks.SEGMENT_MAGIC, 5, 64, 3, IDENTITY)
    assert queue_blocks.read_header(head, "p", 64, IDENTITY) == 3
    assert queue_blocks.read_header(head[:63], "p", 64, IDENTITY) is None
    with pytest.raises(LimitChanged, match=r"64.*128"):
        queue_blocks.read_header(head, "p", 128, IDENTITY)
    with pytest.raises(ForeignStore):
        queue_blocks.read_header(head, "p", 64, b"j" * 16)
    other = index_header.pack(b"BQX1", 5, 64, 3, IDENTITY)
    with pytest.raises(UnknownFormat):
        queue_blocks.read_header(other, "p", 64, IDENTITY)


def test_acks_are_ranges() -> None:
    block = queue_blocks.pack_acks(3, 0, 0b1110_0001, 0, 7)
    data = bytes(index_header.HEADER_SIZE) + block
    (found,) = queue_blocks.blocks_of(data, 7)
    assert (found.kind, found.segment, found.rows) == (queue_blocks.ACKS, 3, 2)
    assert queue_blocks.acked_by(data, found) == 0b1110_0001
    assert list(queue_blocks.blocks_of(data, 8)) == []
    torn = data[:-1] + b"\xff"
    (found,) = queue_blocks.blocks_of(torn, 7)
    assert queue_blocks.acked_by(torn, found) == 0
