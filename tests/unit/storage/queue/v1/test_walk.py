"""Version 1 files after a crash, some of them damaged: what is found, also by the second start."""

from __future__ import annotations

from array import array
from dataclasses import replace
from random import Random

import pytest

from burrowmq.storage.queue import header as index_header
from burrowmq.storage.queue.v1 import blocks as queue_blocks
from burrowmq.storage.record import ENTRY_SIZE
from burrowmq.storage.types import RecoveredQueue
from tests.support.bench.observer import RecordingObserver
from tests.support.one_queue import DIRECT, LARGE, OneQueue
from tests.support.sim_filesystem import Fate

ENTRIES_AT = index_header.HEADER_SIZE + queue_blocks.BLOCK_SIZE  # of a file's first block


@pytest.fixture(params=[1, 2])
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def test_a_torn_large_run_costs_what_is_torn_also_at_the_second_start() -> None:
    store = OneQueue(options=DIRECT)
    for _ in range(4):
        store.publish(10)
    file = store.file("0.idx")
    file.truncate(file.size() - 10)
    for _ in range(3):
        store.crash()
        assert store.seqs() == list(range(39))
        assert store.log.recovered is not None
        assert store.log.recovered.count == 39
        store.settle()


def test_an_entry_of_a_torn_large_run_that_is_cut_in_two_is_no_damage_at_the_second_start() -> None:
    """What is appended behind the block fills the entry up, so that it fails its check then."""
    store = OneQueue(options=DIRECT)
    observer = store.observer = RecordingObserver()  # type: ignore[assignment]
    store.publish(10)
    file = store.file("0.idx")
    begins = file.size()
    store.publish(10)
    file.truncate(begins + queue_blocks.BLOCK_SIZE + 4 * ENTRY_SIZE + 16)
    for _ in range(3):
        store.crash()
        assert store.seqs() == list(range(10))
        assert not observer.named("record_lost")
        store.settle()
    assert file.size() > begins + queue_blocks.BLOCK_SIZE + 4 * ENTRY_SIZE + 16


def test_a_torn_large_run_is_found_when_only_acks_name_the_last_journal() -> None:
    """The segments with the messages of the later journals are gone; an ack that says how far they went is left."""
    store = OneQueue(options=DIRECT)
    store.publish(10)
    file = store.file("0.idx")
    file.pwrite(queue_blocks.pack_acks(0, 0, 0b1, 9, store.seed()), file.size())
    store.crash()
    store.publish(10)
    file = store.file("1.idx")
    file.truncate(file.size() - 10)
    for _ in range(2):
        store.crash()
        assert store.log.recovered is not None
        assert store.log.recovered.count == 18
        assert store.seqs() == [*range(1, 10), *range(64, 73)]
        store.settle()


@pytest.mark.parametrize("is_mixed", [False, True])
def test_an_unclean_start_finds_what_a_clean_one_does(version: int, is_mixed: bool) -> None:
    store = OneQueue(version)
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
    store = OneQueue()
    for _ in range(4):
        store.publish(5)
    directory = store.directory()
    file = store.filesystem.open(f"{directory}/1.jif")
    file.truncate(file.size() - 10)
    store.crash()
    assert store.seqs() == list(range(19))


def test_a_damaged_block_costs_its_messages_and_nothing_behind_it() -> None:
    store = OneQueue()
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
    store = OneQueue()
    store.publish(60)
    store.settle()
    store.damage("0.idx", -1)
    assert store.seqs() == list(range(59))
    store.settle()
    store.damage("0.idx", 3)  # the file's own head: its blocks check themselves
    store.crash()
    assert store.seqs() == list(range(59))


@pytest.mark.parametrize("is_head_gone", [False, True])
def test_an_entry_in_a_journal_that_a_power_cut_tore_in_two_is_no_damage(
    is_head_gone: bool,
) -> None:
    """It lies across the edge of a sector of which one side never reached the disk, and whole blocks follow."""
    store = OneQueue()
    observer = store.observer = RecordingObserver()  # type: ignore[assignment]
    store.publish(1)
    (name,) = [name for name in store.files() if name.endswith(".jif")]
    edge = at = 0
    while not at < edge < at + ENTRY_SIZE:
        store.publish(1)
        data = store.filesystem.read_file(f"{store.directory()}/{name}")
        *_, last = queue_blocks.blocks_of(data, store.seed())
        at = last.table_at
        edge = -(-at // 512) * 512
    torn = store.published - 1
    store.publish(1)
    begins, ends = (at, edge) if is_head_gone else (edge, at + ENTRY_SIZE)
    store.damage(name, begins, bytes(ends - begins))
    store.crash()
    assert store.seqs() == [seq for seq in range(store.published) if seq != torn]
    assert not observer.named("record_lost")


def power_cut(store: OneQueue, fates: dict[str, Fate]) -> None:
    """The power goes; what it leaves of a file's un-synced writes is told by the file's name."""
    store.filesystem = store.filesystem.cut(
        Random(1), fate_of=lambda kind, path: fates.get(f"{kind} {path.rpartition('/')[2]}")
    )
    store.open(1)


def test_a_torn_large_run_that_nobody_waits_for_is_not_taken_for_durable() -> None:
    """Transient messages are synced for nobody's sake, whatever is said of the journal that was in use as they came."""
    store = OneQueue(options=DIRECT)
    observer = store.observer = RecordingObserver()  # type: ignore[assignment]
    store.publish(60)
    store.publish(4)  # small: the journal has them
    store.publish(10, persistent=False)
    store.settle()
    assert set(store.files()) == {"0.idx", "1.idx"}
    store.log.ack(0, 0)
    store.settle()  # this ack says that what was written in the journal's time is durable
    store.filesystem.sector = 64
    power_cut(store, {"name 1.idx": "kept", "content 1.idx": "holed"})
    for _ in range(2):
        assert store.seqs() == list(range(1, 64))
        assert not observer.named("record_lost")
        store.settle()
        store.crash()


def settled(*counts: int) -> tuple[OneQueue, RecordingObserver]:
    """A queue with runs of so many messages in its segment files; the ack of the first says that all is durable."""
    store = OneQueue(options=DIRECT)
    observer = store.observer = RecordingObserver()  # type: ignore[assignment]
    for count in counts:
        store.publish(count)
    store.settle()
    store.log.ack(0, 0)
    store.settle()
    assert store.suffixes() == {"idx"}
    return store, observer


@pytest.mark.parametrize("counts", [(20, 1), (1,) * 21], ids=["past the journal", "through it"])
def test_entries_of_zeros_in_a_durable_block_are_damage_and_told(counts: tuple[int, ...]) -> None:
    """A write that the disk has lost leaves zeros, as a row without an entry has: the block says that it has none."""
    store, observer = settled(*counts)
    store.damage("0.idx", ENTRIES_AT + 3 * ENTRY_SIZE, bytes(2 * ENTRY_SIZE))
    store.crash()
    assert store.seqs() == [1, 2, *range(5, 21)]
    assert [each[1:] for each in observer.named("record_lost")] == [(0, "2 bad index entries")]


def test_entries_of_zeros_are_no_damage_where_a_block_does_not_say_so() -> None:
    """A flush leaves out what was acked meanwhile: its rows are empty, and no file has the acks any more."""
    store = OneQueue(options=DIRECT)
    observer = store.observer = RecordingObserver()  # type: ignore[assignment]
    store.publish(9)
    store.log.ack_many([3, 4])
    store.commit()
    store.settle()
    file = store.file("0.idx")
    file.pwrite(queue_blocks.pack_acks(0, 0, 1 << 8, 9, store.seed()), file.size())
    store.crash()
    assert store.seqs() == [0, 1, 2, 5, 6, 7]
    assert not observer.named("record_lost")


@pytest.mark.parametrize("persistent", [False, True])
def test_damage_of_transient_messages_is_nobodys_loss(persistent: bool) -> None:
    store, observer = settled(60, 4, 10)
    store.publish(2, persistent=persistent)
    (name,) = [name for name in store.files() if name.endswith(".jif")]
    store.damage(name, ENTRIES_AT + ENTRY_SIZE + 20)
    store.crash()
    assert store.seqs() == [*range(1, 74), *([74] if persistent else [])]
    assert len(observer.named("record_lost")) == persistent


def test_a_durable_block_that_the_files_end_cuts_off_is_told() -> None:
    store, observer = settled(60, 4, 10)
    store.file("1.idx").truncate(ENTRIES_AT + 6 * ENTRY_SIZE + 7)
    store.crash()
    assert [each[1:] for each in observer.named("record_lost")] == [(1, "4 bad index entries")]


def test_a_torn_run_that_was_not_durable_is_not_told_later_either() -> None:
    """What a start finds torn it acks there, rows of zeros too: later blocks say that all before them is durable."""
    store = OneQueue(options=DIRECT)
    observer = store.observer = RecordingObserver()  # type: ignore[assignment]
    for count in (60, 4, 10):
        store.publish(count)
    store.damage("1.idx", ENTRIES_AT + 2 * ENTRY_SIZE, bytes(5 * ENTRY_SIZE))
    for first in range(3):
        store.crash()
        assert store.seqs() == [*range(first, 66), 71, 72, 73]
        assert not observer.named("record_lost")
        store.log.ack(first, first)
        store.settle()


@pytest.mark.parametrize("whole", [0, 7])
def test_a_torn_copy_hides_none_of_the_whole_messages_before_it(whole: int) -> None:
    """A start that moved a journal's messages once more was cut short, and that journal went with the power."""
    store = OneQueue(options=DIRECT)
    observer = store.observer = RecordingObserver()  # type: ignore[assignment]
    store.publish(10)
    file = store.file("0.idx")
    end = file.size()
    (block,) = queue_blocks.blocks_of(file.pread(end, 0), store.seed())
    rows = queue_blocks.entries_in(file.pread(end, 0), block, store.seed())
    body_at = end + block.body_at - block.table_at + queue_blocks.BLOCK_SIZE
    moved = rows._replace(
        locations=array("Q", (at - block.body_at + body_at for at in rows.locations))
    )
    journals = (block.journal, block.durable)
    table = queue_blocks.pack_messages(
        (0, 0, 0), moved, end - block.body_at, journals, store.seed()
    )
    file.pwrite(table, end)
    file.pwrite(file.pread(sum(rows.sizes[:whole]), block.body_at), body_at)
    for _ in range(3):
        store.crash()
        assert store.seqs() == list(range(10))
        assert not observer.named("record_lost")
        store.settle()
