"""Starts: clean and not, refused, after damage."""

from __future__ import annotations

import errno
import random
from collections.abc import Callable, Sequence
from copy import deepcopy
from pathlib import Path

import pytest

from burrowmq.storage.directory.recovery import definitions_bytes
from burrowmq.storage.directory.removals import WHOLE
from burrowmq.storage.directory.terms import read_recorded
from burrowmq.storage.errors import (
    LimitChanged,
    StorageError,
    StoreRefused,
    SyncFailed,
    UnknownFormat,
    WriteFailed,
)
from burrowmq.storage.files.cache import parent_of
from burrowmq.storage.files.filesystem import File, OsFileSystem
from burrowmq.storage.loop.staged_commit import Ack, Append, Open, SetVersion, StagedCommit
from burrowmq.storage.names import QueueNames
from burrowmq.storage.queue.v2.index import entries_at
from burrowmq.storage.record import ENTRY_SIZE
from tests.simulation.store_world import make_message, read_all
from tests.support.disk_side import LARGE, SMALL, DiskSide, messages
from tests.support.engine_on_disk import engine_on, publish, unopened
from tests.support.machine_disk import MachineDisk
from tests.support.sim_filesystem import PowerCut, SimFileSystem
from tests.support.store_record import changed

COUNT = 64
Q_TWO = QueueNames("/", "two")
Rows = dict[tuple[str, str], object]


def filled(*, clean: bool = False) -> tuple[SimFileSystem, Rows]:
    """A store with 100 messages in q, every tenth in the shared store too."""
    filesystem, rows = SimFileSystem(), Rows()
    engine = engine_on(filesystem, rows, segment_entry_count=COUNT)
    engine.definitions.put("queue", "q", {})
    log = engine.open_queue("/", "q", durable=True)
    for seq in range(100):
        publish(log, seq, 1, 5000 if seq % 10 == 0 else 50)
    log.set_delivered(7)
    engine.require_sync()
    engine.hand_over()
    if clean:
        engine.close()
    return filesystem, rows


def reopen(filesystem: SimFileSystem, rows: Rows, **options: object):
    engine = engine_on(filesystem, rows, **{"segment_entry_count": COUNT, **options})
    log = engine.open_queue("/", "q", durable=True)
    return engine, log, [seq for seq, _, _ in read_all(log, 33)]


def path_of(filesystem: SimFileSystem, ending: str) -> str:
    return next(path for path in filesystem.paths() if path.endswith(ending))


@pytest.mark.parametrize("clean", [True, False])
def test_everything_is_there_again(clean: bool) -> None:
    filesystem, rows = filled(clean=clean)
    _, log, found = reopen(filesystem, rows)
    assert found == list(range(100))
    recovered = log.recovered
    assert recovered is not None
    assert (recovered.first_seq, recovered.count, recovered.persistent_count) == (0, 100, 100)
    assert recovered.bytes == sum(
        make_message(0, size, True).size for size in [5000] * 10 + [50] * 90
    )
    # After a clean stop it goes on where it was; otherwise in a new segment, all of it redelivered.
    assert (recovered.next_seq, recovered.next_deliver_seq) == ((100, 7) if clean else (128, 128))


@pytest.mark.parametrize("clean", [True, False])
def test_acks_hold_and_positions_stay(clean: bool) -> None:
    filesystem, rows = filled()
    engine, log, _ = reopen(filesystem, rows)
    log.ack(0, 29, None)
    log.ack_many([31, 40, 99])
    engine.hand_over()
    engine.idle()
    if clean:
        engine.close()
    engine, log, found = reopen(filesystem, rows)
    assert found == [30, *(seq for seq in range(32, 99) if seq != 40)]
    assert engine.stats()["shared_live_messages"] == 6


@pytest.mark.parametrize("clean", [True, False])
def test_transient_messages_and_queues_are_gone(clean: bool) -> None:
    filesystem, rows = SimFileSystem(), Rows()
    engine = engine_on(filesystem, rows)
    durable = engine.open_queue("/", "d", durable=True)
    other = engine.open_queue("/", "t", durable=False)
    for size in (50, 5000):
        seq = durable.next_seq
        mixed = [make_message(seq + at, size, at % 2 == 0) for at in range(6)]
        durable.append(seq, list(mixed), None, 6 * size)
        other.append(seq, list(mixed), None, 6 * size)
    engine.require_sync()
    engine.hand_over()
    if clean:
        engine.close()
    engine = engine_on(filesystem, rows)
    log = engine.open_queue("/", "d", durable=True)
    assert [seq for seq, _, _ in read_all(log, 9)] == [0, 2, 4, 6, 8, 10]
    gone = engine.open_queue("/", "t", durable=False)
    assert (gone.recovered, read_all(gone, 9)) == (None, [])
    assert not [
        path for path in filesystem.paths() if "/transient/" in path or "transient/1" in path
    ]


def test_a_clean_stop_that_is_tried_again_drops_each_reference_once() -> None:
    filesystem, rows = SimFileSystem(), Rows()
    engine = engine_on(filesystem, rows, ballast_bytes=1000)
    durable = engine.open_queue("/", "d", durable=True)
    other = engine.open_queue("/", "t", durable=False)
    messages = [make_message(at, 5000, True) for at in range(3)]
    for log in (durable, other):
        log.append(0, list(messages), None, 3 * 5000)
    engine.require_sync()
    engine.hand_over()
    filesystem.fail("pwrite", errno.ENOSPC, path_part="/terms")
    engine.close()
    assert filesystem.exists("/data/CLEAN")
    engine = engine_on(filesystem, rows)
    log = engine.open_queue("/", "d", durable=True)
    assert [seq for seq, _, _ in read_all(log, 9)] == [0, 1, 2]


def test_the_mark_of_a_clean_stop_is_gone_while_running() -> None:
    filesystem, rows = filled(clean=True)
    assert filesystem.exists("/data/CLEAN")
    reopen(filesystem, rows)
    assert not filesystem.exists("/data/CLEAN")


def test_queues_that_nobody_opens_are_removed() -> None:
    filesystem, rows = filled()
    rows["removal", "1"] = [["/", WHOLE]]
    engine = engine_on(filesystem, rows, segment_entry_count=COUNT)
    assert not engine.discard_unclaimed()
    engine.hand_over()
    assert not [path for path in filesystem.paths() if "/queues/" in path]
    assert engine.stats()["shared_live_messages"] == 0


@pytest.mark.parametrize("keep", [0, 1])
def test_what_nobody_opens_goes_though_the_first_attempt_fails(keep: int) -> None:
    filesystem, rows = SimFileSystem(), Rows({("queue", "x"): {}})
    engine = engine_on(filesystem, rows)
    for name in "abc":
        publish(engine.open_queue("/", name, durable=True), 0, 3, 5000)
    engine.require_sync()
    engine.hand_over()
    engine.close()
    rows["removal", "1"] = [["/", WHOLE]]
    engine = engine_on(filesystem, rows)
    engine.discard_unclaimed()
    filesystem.fail("rmtree", errno.EMFILE, nth=2, keep=keep)
    engine.require_sync()
    engine.hand_over()
    engine.idle()
    assert not [path for path in filesystem.paths() if "/queues/" in path]
    publish(engine.open_queue("/", "c", durable=True), 0, 2)
    engine.require_sync()
    engine.hand_over()
    again = unopened(filesystem.process_killed(), rows)
    assert again.recover().queues[QueueNames("/", "c")].count == 2


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"segment_entry_count": 128}, "queue_index_segment_entry_count is 128 .* made with 64"),
        ({"segment_size_limit": 1 << 20}, "msg_store_file_size_limit is 1048576 .* with 16777216"),
    ],
)
def test_changed_limits_are_refused_and_nothing_is_written(
    options: dict[str, int], name: str
) -> None:
    filesystem, rows = filled(clean=True)
    before = {path: filesystem.content(path) for path in filesystem.paths()}
    with pytest.raises(LimitChanged, match=name):
        reopen(filesystem, rows, **options)
    assert {path: filesystem.content(path) for path in filesystem.paths()} == before
    assert reopen(filesystem, rows)[2] == list(range(100))


def test_an_unreadable_or_missing_store_file_is_refused() -> None:
    filesystem, rows = filled(clean=True)
    content = filesystem.content("/data/STORE.json")
    filesystem.damage("/data/STORE.json", 0, b"x")
    with pytest.raises(StoreRefused, match="cannot be read"):
        reopen(filesystem, rows)
    filesystem.damage("/data/STORE.json", 0, changed(content, format=7))
    with pytest.raises(UnknownFormat):
        reopen(filesystem, rows)
    filesystem.unlink("/data/STORE.json")
    with pytest.raises(StoreRefused, match="restore that file"):
        reopen(filesystem, rows)


@pytest.mark.parametrize(
    ("path", "is_something"),
    [
        (".vhost_name", False),
        ("msg_store_persistent/index/0.page", False),
        ("queues/0123/.queue_name", False),
        ("queues/0123/0.qi", True),
        ("msg_store_persistent/0.g0.seg", True),
    ],
)
def test_a_virtual_host_that_was_hardly_begun_is_no_loss(path: str, is_something: bool) -> None:
    """Its name was not on disk yet when the power went, but an earlier kill had let a start go on in it."""
    filesystem = SimFileSystem()
    engine_on(filesystem).close()
    path = f"/data/vhosts/feed/{path}"
    filesystem.mkdir(parent_of(path))
    filesystem.create(path)
    filesystem.unlink("/data/CLEAN")
    report = unopened(filesystem).recover()
    assert (report.lost, filesystem.exists("/data/vhosts/feed")) == (is_something, is_something)


def test_what_is_left_of_a_deleted_virtual_host_without_its_name_is_no_loss() -> None:
    """The power went before it was durable that its files are gone, but of the one with its name it is."""
    filesystem, rows = SimFileSystem(), Rows()
    engine = engine_on(filesystem, rows)
    publish(engine.open_queue("feed", "q", durable=True), 0, 1, 5000)
    engine.require_sync()
    engine.hand_over()
    engine.delete_vhost("feed")
    rows["removal", "1"] = [["feed", WHOLE]]
    filesystem = filesystem.cut(random.Random(1), names=False)
    for ending in (".vhost_name", ".queue_name", ".qi"):
        filesystem.unlink(path_of(filesystem, ending))
    found = unopened(filesystem, rows).recover()
    assert (found.lost, found.unnamed_vhosts) == (0, [])
    engine = engine_on(filesystem.process_killed(), rows)
    assert engine.discard_unclaimed() == {}
    engine.hand_over()
    assert not [path for path in engine._setup.filesystem.paths() if path.endswith(".seg")]


def flip(filesystem: SimFileSystem, path: str, offset: int) -> None:
    filesystem.damage(path, offset, bytes((filesystem.content(path)[offset] ^ 0x10,)))


# What a flipped bit in each place may cost at most, after a stop that was not clean.
DAMAGES: dict[str, tuple[str, Callable[[bytes], int], int]] = {
    "index header": ("/0.qi", lambda data: 20, 0),
    "ack copy A": ("/0.qi", lambda data: 70, 0),
    "ack copy B": ("/0.qi", lambda data: 64 + 40 + 8, 0),
    "index entry": ("/0.qi", lambda data: entries_at(COUNT) + 5 * ENTRY_SIZE + 9, 1),
    "store header": ("/0.qs", lambda data: 5, 0),
    "record header": ("/0.qs", lambda data: 64 + 3, 1),
    "record body": ("/0.qs", lambda data: 64 + 60, 1),
    "last record": ("/1.qs", lambda data: len(data) - 2, 1),
    "shared record": (".seg", lambda data: 3000, 1),
    "queue name": ("/.queue_name", lambda data: 9, 0),
    "vhost name": ("/.vhost_name", lambda data: 0, 0),
}


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_flipped_bit_costs_one_message_at_most(damage: str, clean: bool) -> None:
    ending, place, cost = DAMAGES[damage]
    filesystem, rows = filled(clean=clean)
    path = path_of(filesystem, ending)
    flip(filesystem, path, place(filesystem.content(path)))
    engine, log, found = reopen(filesystem, rows)
    assert len(found) >= 100 - cost
    assert found == sorted(set(found))
    publish(log, log.next_seq, 2)
    engine.require_sync()
    engine.hand_over()
    engine.idle()
    again = [seq for seq, _, _ in read_all(log, 33)]
    assert again[:-2] == found


@pytest.mark.parametrize("ending", ["/0.qs", "/1.qi", ".seg"])
def test_a_missing_file_costs_what_was_in_it(ending: str) -> None:
    filesystem, rows = filled()
    filesystem.unlink(path_of(filesystem, ending))
    _, _, found = reopen(filesystem, rows)
    shared = [seq for seq in range(100) if seq % 10 == 0]
    assert (
        set(found)
        == {
            "/0.qs": {*range(64, 100), *shared},
            "/1.qi": set(range(64)),
            ".seg": set(range(100)) - set(shared),
        }[ending]
    )


def test_a_missing_file_is_told_though_the_terms_of_the_clean_stop_are_damaged() -> None:
    """All was in the files then, whatever became of the terms."""
    filesystem, rows = filled(clean=True)
    filesystem.unlink(path_of(filesystem, ".seg"))
    flip(filesystem, "/data/terms", 20)
    report = unopened(filesystem, rows, segment_entry_count=COUNT).recover()
    assert (report.messages, report.lost) == (90, 10)


def test_a_store_file_that_ends_before_what_was_durable_is_told() -> None:
    """No kill and no power cut cuts it there."""
    filesystem, rows = filled()
    path = path_of(filesystem, "/0.qs")
    filesystem.open(path).truncate(len(filesystem.content(path)) // 2)
    report = unopened(filesystem, rows, segment_entry_count=COUNT).recover()
    assert report.lost == 100 - report.messages > 20
    assert report.dropped == 0


def test_leftovers_are_removed() -> None:
    filesystem, rows = filled()
    directory = path_of(filesystem, "/0.qi")[: -len("/0.qi")]
    for name in ("0.qi.tmp", "0.g1.qs", "7.qs"):
        filesystem.create(f"{directory}/{name}").pwrite(b"left", 0)
    _, log, found = reopen(filesystem, rows)
    assert found == list(range(100))
    assert not [path for path in filesystem.paths() if path.endswith((".tmp", ".g1.qs", "7.qs"))]
    assert log.next_seq == 8 * COUNT


def killed_with_leftovers() -> SimFileSystem:
    """A queue of each version, with a journal and files that nothing refers to."""
    side = DiskSide(segment_entry_count=16, journal_run_bytes=500, rewrite_above=0)
    for queue_id, name in enumerate(("one", "two"), start=1):
        side.open(queue_id, name, version=queue_id)
        side.append(0, 20, queue_id=queue_id)
        side.ack(0, 3, queue_id=queue_id)
    side.append(20, 4, LARGE, queue_id=2)
    for _ in range(3):
        side.jobs.idle()
    side.append(20, 4, queue_id=1)
    queue, store = side.writer.queues()[2].directory, parent_of(side.paths(".seg")[0])
    for path in (f"{queue}/1.qi.tmp", f"{queue}/1.g9.qs", f"{queue}/9.qs", f"{store}/7.tmp"):
        side.filesystem.create(path).pwrite(b"left", 0)
    return side.filesystem.process_killed()


def two_queues(filesystem: SimFileSystem) -> tuple[DiskSide, list[list[int]]]:
    """A start, and what it finds in both."""
    side = DiskSide(filesystem, segment_entry_count=16, journal_run_bytes=500)
    side.take_up(1, "one", version=1)
    side.take_up(2, "two")
    return side, [side.read(1), side.read(2)]


def test_a_start_that_cannot_remove_what_nothing_refers_to_goes_on_and_the_next_removes_it() -> (
    None
):
    nth = 1
    while True:
        filesystem = killed_with_leftovers()
        filesystem.fail("unlink", errno.EIO, nth=nth)
        side, found = two_queues(filesystem)
        if not filesystem.failed:
            break
        nth += 1
        assert found == [list(range(4, 24))] * 2
        side.append(side.report.queues[Q_TWO].next_seq, 1, queue_id=2)
        for _ in range(4):  # syncs
            side.jobs.idle()
        assert not side.paths(".jif")
        side, found = two_queues(filesystem.process_killed())
        assert [len(each) for each in found] == [20, 21]
        assert not [path for path in side.paths("") if path.endswith((".tmp", ".g9.qs", "/9.qs"))]
    assert nth > 5


@pytest.mark.parametrize("version", [1, 2])
def test_a_start_that_cannot_remove_a_file_that_may_count_later_is_refused(version: int) -> None:
    """Two index files for one segment: when the one that counts is empty and goes, the other would bring acks back."""
    side = DiskSide(segment_entry_count=16, journal_run_bytes=500)
    side.open(version=version)
    side.append(0, 16)
    (old,) = [path for path in side.paths("") if path.endswith(("/0.idx", "/0.qi"))]
    content = side.filesystem.content(old)
    side.commit(SetVersion(1, 3 - version))
    side.jobs.convert()
    assert not side.filesystem.exists(old)
    side.filesystem.create(old).pwrite(content, 0)
    filesystem = side.filesystem.process_killed()
    filesystem.fail("unlink", errno.EIO, path_part=old)
    with pytest.raises(WriteFailed):
        DiskSide(filesystem, segment_entry_count=16)
    assert DiskSide(filesystem, segment_entry_count=16).report.messages == 16


def test_clean_and_unclean_starts_agree() -> None:
    filesystem, rows = filled(clean=True)
    clean = reopen(filesystem, rows)
    unclean = reopen(filesystem, rows)
    assert clean[2] == unclean[2]
    for name in ("first_seq", "count", "bytes", "persistent_count", "persistent_bytes"):
        assert getattr(clean[1].recovered, name) == getattr(unclean[1].recovered, name)


def test_the_first_start_of_all_comes_after_no_unclean_stop() -> None:
    filesystem = SimFileSystem()
    assert unopened(filesystem).recover().clean
    filesystem, rows = filled()
    killed = unopened(filesystem.process_killed(), rows, segment_entry_count=COUNT)
    assert not killed.recover().clean


@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize("journal_run_bytes", [100, 100_000])
@pytest.mark.parametrize("version", [1, 2])
def test_what_a_killed_process_wrote_is_durable_once_a_start_has_taken_it(
    version: int, journal_run_bytes: int, size: int
) -> None:
    options = {"segment_entry_count": 16, "journal_run_bytes": journal_run_bytes}
    side = DiskSide(MachineDisk(), **options)
    names = QueueNames("/", "q")
    made = messages(0, 4, size)
    side.commit(Open(1, names, True, version), Append(1, 0, list(made), None), sync=False)
    started = DiskSide(side.filesystem.process_killed(), **options)
    for seed in range(20):
        found = DiskSide(started.filesystem.cut(random.Random(seed)), **options)
        found.take_up(version=version)
        assert found.read() == [0, 1, 2, 3], seed
        assert found.report.unnamed_count == 0, seed


@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize("kept", [0, 3, 16])
@pytest.mark.parametrize("version", [1, 2])
def test_acks_that_a_start_has_found_stay_whatever_becomes_of_the_power(
    version: int, kept: int, size: int
) -> None:
    """They are in files of full segments, or these are removed; the killed process had synced neither."""
    options = {"segment_entry_count": 16, "journal_run_bytes": 100}
    side = DiskSide(MachineDisk(), **options)
    side.open(version=version)
    side.append(0, 32, size)
    for _ in range(4):
        side.jobs.idle()
    side.commit(Ack(1, 0, 31 - kept, None), sync=False)
    side.jobs.upkeep()
    started = DiskSide(side.filesystem.process_killed(), **options)
    started.take_up(version=version)
    left = list(range(32 - kept, 32))
    assert started.read() == left
    for seed in range(20):
        found = DiskSide(started.filesystem.cut(random.Random(seed)), **options)
        found.take_up(version=version)
        assert found.read() == left, seed


class CountingDisk(SimFileSystem):
    """How many files each sync has."""

    def __init__(self, *, strict: bool = True) -> None:
        super().__init__(strict=strict)
        self.counts: list[int] = []

    def sync_all(
        self, files: Sequence[File], directories: Sequence[str]
    ) -> list[tuple[File | str, OSError]]:
        """Make durable, and count."""
        self.counts.append(len(files))
        return super().sync_all(files, directories)


@pytest.mark.parametrize("version", [1, 2])
def test_a_start_syncs_a_queue_of_many_segments_piece_by_piece(version: int) -> None:
    """Else it would run out of descriptors: a file stays open until it is synced."""
    side = DiskSide(CountingDisk(), segment_entry_count=16, journal_run_bytes=100)
    side.open(version=version)
    for first in range(0, 640, 16):
        side.append(first, 16)
    disk = side.filesystem.process_killed()
    found = DiskSide(disk, segment_entry_count=16, open_files=12)
    found.take_up(version=version)
    assert len(found.read()) == 640
    assert sum(disk.counts) >= 40
    assert max(disk.counts) <= 12


def test_a_start_is_refused_where_a_sync_of_what_it_has_found_fails_between_two_segments() -> None:
    side = DiskSide(segment_entry_count=16)
    side.open()
    for first in range(0, 640, 16):
        side.append(first, 16)
    disk = side.filesystem.process_killed()
    disk.fail("fdatasync", errno.EIO, path_part="/0.qi")
    with pytest.raises(SyncFailed):
        DiskSide(disk, segment_entry_count=16, open_files=12)
    assert DiskSide(disk, segment_entry_count=16, open_files=12).report.messages == 640


@pytest.mark.parametrize("version", [1, 2])
def test_a_start_may_be_cut_off_anywhere(version: int) -> None:
    """What it has sealed or repaired by then is not more than the disk has."""
    side = DiskSide(MachineDisk(), segment_entry_count=16)
    side.open(version=version)
    side.append(0, 3, LARGE)
    side.commit(Append(1, 3, list(messages(3, 3, LARGE)), None), sync=False)
    side.commit(Append(1, 6, list(messages(6, 3)), None), sync=False)
    for number in range(1000):
        disk = deepcopy(side.filesystem).process_killed()
        disk.cut_before = disk.operations + number
        try:
            DiskSide(disk, segment_entry_count=16)
        except PowerCut:
            is_done = False
        else:
            is_done = True
        disk.cut_before = None
        for seed in range(4):
            found = DiskSide(disk.cut(random.Random(seed)), segment_entry_count=16)
            assert (found.report.lost, found.report.quarantined) == (0, 0), number
            found.take_up(version=version)
            assert set(found.read()) >= {0, 1, 2}, number
            assert found.observer.events["record_lost"] == 0, number
        if is_done:
            return
    raise AssertionError("a start does not end")


@pytest.mark.parametrize("version", [1, 2])
def test_acks_of_before_a_crash_hold_in_each_start_that_follows(version: int) -> None:
    options = {"segment_entry_count": 16, "journal_run_bytes": 100}
    side = DiskSide(**options)
    side.open(version=version)
    side.append(0, 8)
    acks = StagedCommit(90, [Ack(1, 1, 3, None)], touched={1}, sync=True, acks_of={1})
    side.jobs.apply(acks, side.no_room)
    for count in range(3):
        side = DiskSide(side.filesystem.process_killed(), **options)
        side.take_up(version=version)
        for _ in range(3):
            side.jobs.idle()
        side.append(160 * (count + 1), 1)
        assert side.read()[:5] == [0, 4, 5, 6, 7]


def test_each_start_after_a_crash_has_segment_numbers_of_its_own() -> None:
    """A power cut may take the ack of an entry back that names one, though its file is long gone."""
    side = DiskSide()
    side.open()
    side.append(0, 1, LARGE)
    for count in range(1, 4):
        ceiling = read_recorded(side.filesystem, "/data").ceiling
        side.ack(0, count)
        side.jobs.idle()
        side = DiskSide(side.filesystem.process_killed())
        side.take_up()
        side.append(100_000 * count, 1, LARGE)
        assert read_recorded(side.filesystem, "/data").ceiling > ceiling
        assert side.vhost().persistent.next_segment_no > ceiling


def test_starts_that_append_nothing_use_no_segment_numbers_up() -> None:
    """There are 2**30: a node that ends as soon as it has started would have used them all up in a week."""
    side = DiskSide()
    side.open()
    side.append(0, 1, LARGE)
    ceiling = read_recorded(side.filesystem, "/data").ceiling
    for _ in range(3):
        side = DiskSide(side.filesystem.process_killed())
        assert read_recorded(side.filesystem, "/data").ceiling == ceiling
    side.take_up()
    side.append(100_000, 1, LARGE)
    assert side.vhost().persistent.next_segment_no > ceiling
    assert side.read() == [0, 100_000]


def test_numbers_that_a_crash_may_have_used_are_not_used_after_a_clean_stop_either() -> None:
    side = DiskSide()
    side.open()
    side.append(0, 1, LARGE)
    side = DiskSide(side.filesystem.process_killed())
    first = side.vhost().persistent.next_segment_no
    side.jobs.close({})
    again = DiskSide(side.filesystem)
    assert again.report.clean
    assert again.vhost().persistent.next_segment_no >= first > 1


def test_a_store_that_cannot_move_out_of_its_log_keeps_it() -> None:
    side = DiskSide(has_log=True)
    side.open()
    side.append(0, 3)
    disk = side.filesystem.process_killed()
    disk.fail("mkdir", errno.EIO, path_part="/queues/", times=50)
    with pytest.raises((StorageError, OSError)):
        DiskSide(disk, has_log=False)
    disk.heal()
    for has_log in (True, False):
        side = DiskSide(disk.process_killed(), has_log=has_log)
        side.take_up()
        assert side.read() == [0, 1, 2]


def test_a_log_that_a_cut_off_start_left_is_not_read_again() -> None:
    side = DiskSide(has_log=True)
    side.open()
    side.append(0, 3)
    disk = side.filesystem.process_killed()
    for _ in range(3):  # each begins a younger generation
        disk = DiskSide(disk, has_log=True).filesystem.process_killed()
    left = {path: disk.content(path) for path in disk.paths() if "/commit_log/" in path}
    side = DiskSide(disk, has_log=False)
    side.take_up()
    side.ack(0, 1)
    side.jobs.idle()
    disk = disk.process_killed()
    disk.mkdir("/data/commit_log")
    for path, content in left.items():
        disk.create(path).pwrite(content, 0)
    for _ in range(2):
        side = DiskSide(disk, has_log=True)
        side.take_up()
        assert side.read() == [2]
        disk = disk.process_killed()


@pytest.mark.parametrize("version", [1, 2])
def test_the_directory_of_an_empty_queue_that_a_killed_process_made_is_durable(
    version: int,
) -> None:
    side = DiskSide(MachineDisk())
    names = QueueNames("/", "q")
    side.commit(Open(1, names, True, version), Append(1, 0, list(messages(0, 2)), None), sync=False)
    side.commit(Ack(1, 0, 1, None), sync=False)
    side.jobs.upkeep()
    started = DiskSide(side.filesystem.process_killed())
    started.take_up(version=version)
    started.append(50_000, 2)
    for seed in range(20):
        found = DiskSide(started.filesystem.cut(random.Random(seed))).report.by_directory
        assert [one.count for one in found.values()] == [2], seed


def test_what_definitions_take_is_known_before_anything_is_opened(tmp_path: Path) -> None:
    assert definitions_bytes(OsFileSystem(), str(tmp_path)) == 0
    (tmp_path / "definitions.db").write_bytes(bytes(3))
    (tmp_path / "definitions.db-wal").write_bytes(bytes(4))
    assert definitions_bytes(OsFileSystem(), str(tmp_path)) == 7
