"""One queue's files fail: its commits say so, others go on, it comes back with everything, and nothing is believed.

Covers: storage/disk/jobs.py, storage/disk/elision.py, storage/disk/refusals.py, storage/disk/writer.py
"""

from __future__ import annotations

import errno
import random
from copy import deepcopy

import pytest

from burrowmq.storage.disk import invariants
from burrowmq.storage.disk.troubles import WRITING
from burrowmq.storage.errors import ReadFailed, SyncFailed, WriteFailed
from burrowmq.storage.loop.staged_commit import (
    Ack,
    AckMany,
    Append,
    Command,
    Delete,
    SetVersion,
    StagedCommit,
)
from burrowmq.storage.types import PERSISTENT, BackupJob, StoredMessage
from tests.support.disk_side import LARGE, SMALL, DiskSide, messages
from tests.support.stored_message import FakeMessage

FOR_GOOD = 1 << 30


class Two:
    """A store with two queues of six messages each; the disk may refuse the files of the first."""

    def __init__(self, version: int = 2, size: int = SMALL, **options: object) -> None:
        self.size = size
        self.side = DiskSide(segment_entry_count=16, **options)
        self.written: list[tuple[int, int]] = []
        self.told: list[tuple[int, str]] = []
        self.side.writer.refused.tell_written = lambda *found: self.written.append(found)
        self.side.writer.troubles.tell = lambda queue_id, kind, reason: self.told.append(
            (queue_id, kind if reason else f"no longer {kind}")
        )
        for queue_id in (1, 2):
            self.side.open(queue_id, f"q{queue_id}", version)
        self.next_seq = 0
        assert self.publish().refused == set()

    @property
    def place(self) -> str:
        return self.side.writer.queues()[1].directory + "/"

    def publish(self, *queue_ids: int, count: int = 6) -> StagedCommit:
        """The same messages to both queues, or to these."""
        first, self.next_seq = self.next_seq, self.next_seq + count
        made = messages(first, count, self.size)
        return self.side.commit(
            *(Append(each, first, list(made), None) for each in queue_ids or (1, 2))
        )

    def refuse(self, operation: str, times: int = FOR_GOOD, part: str = "") -> None:
        self.side.filesystem.fail(operation, errno.EIO, times=times, path_part=part or self.place)

    def heal(self) -> None:
        self.side.filesystem.heal()
        self.side.jobs.idle()

    def check(self) -> None:
        """Every reference is counted, and no file was synced again."""
        side = self.side
        queues = list(side.writer.queues().values())
        assert list(invariants.of_references(side.vhost(), queues)) == []
        assert side.filesystem.resynced == []
        assert side.observer.events["record_lost"] == 0

    def after_kill(self, queue_id: int, version: int = 2) -> list[int]:
        there = deepcopy(self.side.filesystem)  # this life goes on
        again = DiskSide(there.process_killed(), segment_entry_count=16)
        again.take_up(queue_id, f"q{queue_id}", version)
        return again.read(queue_id)


@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize("version", [1, 2])
def test_a_write_that_is_refused_concerns_one_queue(version: int, size: int) -> None:
    two = Two(version, size)
    two.refuse("pwrite")
    refused = [two.publish() for _ in range(3)]
    assert [each.refused for each in refused] == [{1}] * 3
    assert two.publish(2).refused == set()
    assert (two.side.read(1), two.side.read(2)) == (list(range(6)), list(range(30)))
    assert two.after_kill(1, version) == list(range(6))
    two.side.jobs.idle()  # tried again, and refused again
    assert two.written == []
    two.heal()
    assert two.written == [(1, refused[-1].epoch + 1)]
    assert two.told == [(1, WRITING), (1, f"no longer {WRITING}")]
    assert two.side.read(1) == list(range(24))
    assert two.publish().refused == set()
    if size == LARGE:
        two.check()
    assert two.after_kill(1, version) == [*range(24), *range(30, 36)]


def test_what_is_refused_between_two_commits_is_noted_in_neither() -> None:
    two = Two()
    quiet = two.side.commit(Append(1, 6, list(messages(6, 2)), None), sync=False)
    two.refuse("fdatasync")
    two.side.jobs.idle()
    assert len(two.side.writer.refusals) == 1
    assert quiet.refused == set()


def test_the_second_attempt_counts() -> None:
    two = Two()
    two.refuse("pwrite", times=1)
    assert (two.publish().refused, two.told) == (set(), [])


@pytest.mark.parametrize("operation", ["mkdir", "create"])
def test_a_queue_that_cannot_be_made_is_made_later(operation: str) -> None:
    two = Two()
    two.side.open(3, "q3")
    place = two.side.writer.queues()[3].directory
    two.refuse(operation, part=place)
    assert two.publish(3).refused == {3}
    assert two.publish(3, 2).refused == {3}
    two.heal()
    assert two.side.read(3) == list(range(6, 18))
    assert two.after_kill(3) == list(range(6, 18))


def test_what_is_acked_meanwhile_does_not_come_back() -> None:
    two = Two(size=LARGE)
    two.refuse("pwrite")
    two.publish()
    two.publish()
    two.side.commit(Ack(1, 4, 8, None), AckMany(1, [10, 16]))
    two.side.commit(Ack(1, 0, 2, None))
    two.heal()
    assert two.side.read(1) == [3, 9, 11, 12, 13, 14, 15, 17]
    two.check()
    two.side.jobs.idle()
    assert two.after_kill(1) == [3, 9, 11, 12, 13, 14, 15, 17]


@pytest.mark.parametrize("version", [1, 2])
def test_what_got_through_although_it_was_refused_does_not_come_back(version: int) -> None:
    """The entries are whole in the index, and their messages in the shared store: the next start would believe them."""
    two = Two(version, LARGE)
    two.side.filesystem.fail("pwrite", errno.EIO, times=2, path_part=two.place, keep=1 << 20)
    assert two.publish().refused == {1}
    two.side.commit(Ack(1, 6, 9, None), AckMany(1, [11]))
    two.heal()
    assert two.side.read(1) == [*range(6), 10]
    two.check()
    two.side.jobs.idle()
    assert two.after_kill(1, version) == [*range(6), 10]


def test_a_deleted_queue_is_owed_nothing() -> None:
    two = Two(size=LARGE)
    two.refuse("pwrite")
    two.publish()
    two.side.commit(Delete(1))
    assert not two.side.writer.refusals
    two.check()
    assert two.side.read(2) == list(range(12))


@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize("version", [1, 2])
def test_a_file_whose_sync_fails_twice_is_written_anew_and_never_synced_again(
    version: int, size: int
) -> None:
    two = Two(version, size)
    two.refuse("fdatasync")
    assert two.publish().refused == {1}
    with pytest.raises(ReadFailed, match=r"nobody knows what is on disk: .*fdatasync failed"):
        two.side.read(1)
    assert two.side.read(2) == list(range(12))
    assert two.publish().refused == {1}
    two.side.jobs.idle()
    two.heal()
    assert two.side.read(1) == list(range(18))
    assert two.publish().refused == set()
    assert two.side.filesystem.resynced == []
    assert two.side.observer.events["record_lost"] == 0
    assert two.after_kill(1, version) == list(range(24))


def test_a_sync_that_fails_while_it_comes_back_is_written_from_memory() -> None:
    two = Two()
    two.refuse("pwrite")
    two.publish()
    two.side.filesystem.heal()
    two.refuse("fdatasync", times=3)
    two.side.jobs.idle()
    assert two.written == []
    two.side.jobs.idle()
    assert two.written
    assert two.side.filesystem.resynced == []
    assert two.after_kill(1) == list(range(12))


def test_a_directory_that_cannot_be_synced_waits_for_the_next_start() -> None:
    two = Two()
    two.publish(count=4)
    two.refuse("fsync_dir", part=two.place[:-1])
    assert two.publish(count=10).refused == {1}  # a new file
    two.heal()
    assert two.publish().refused == {1}
    with pytest.raises(ReadFailed, match="fsync_dir failed"):
        two.side.read(1)
    assert two.side.read(2) == list(range(26))
    with pytest.raises(
        WriteFailed, match=r"the disk refuses what is in memory: .*fsync_dir failed"
    ):
        two.side.jobs.close({})
    found = two.after_kill(1)
    assert found[:10] == list(range(10))


def test_a_directory_that_cannot_be_synced_keeps_no_other_queue_from_the_log() -> None:
    """A file was renamed in it, as the log says until that is durable; the log begins anew many times meanwhile."""
    side = DiskSide(
        segment_entry_count=16,
        has_log=True,
        log_limit=20_000,
        log_queue_limit=2000,
        rewrite_above=200,
    )
    for queue_id in (1, 2):
        side.open(queue_id, f"q{queue_id}")
    side.append(0, 20, 4 * SMALL)
    side.append(20, 1)
    place = side.writer.queues()[1].directory
    side.filesystem.fail("fsync_dir", errno.EIO, nth=3, times=FOR_GOOD, path_part=place)
    renames = side.filesystem.counters.calls["rename"]
    side.commit(Ack(1, 0, 12, None))
    assert side.filesystem.counters.calls["rename"] == renames + 1
    assert side.writer.refusals.has(1)
    for seq in range(600):
        made = list(messages(seq, 1))
        commit = side.commit(Ack(2, seq - 1, seq - 1, None), Append(2, seq, made, None))
        assert commit.refused == set()
    for seed in range(5):
        disk = side.filesystem.cut(random.Random(seed))
        again = DiskSide(disk, segment_entry_count=16, has_log=True)
        again.take_up(1, "q1")
        again.take_up(2, "q2")
        assert (again.read(1), again.read(2)[-1]) == (list(range(13, 21)), 599)


def test_a_disk_that_takes_nothing_ends_the_store() -> None:
    two = Two()
    two.refuse("pwrite", part="/data/")
    with pytest.raises(WriteFailed, match="pwrite failed"):
        two.publish()
    two = Two()
    two.refuse("fdatasync", part="/data/")
    with pytest.raises(SyncFailed, match="fdatasync failed"):
        two.publish()


def test_acks_that_a_confirm_waits_for_and_that_are_refused_are_named() -> None:
    two = Two()
    two.refuse("pwrite")
    commit = StagedCommit(90, [Ack(1, 0, 2, None)], touched={1}, sync=True, acks_of={1})
    two.side.jobs.apply(commit, two.side.no_room)
    assert (commit.refused, commit.unwritten_acks) == (set(), {1})
    two.publish()
    commit = StagedCommit(91, [Ack(1, 3, 3, None)], touched={1}, sync=True, acks_of={1})
    two.side.jobs.apply(commit, two.side.no_room)
    assert (commit.refused, commit.unwritten_acks) == ({1}, {1})
    two.heal()
    assert two.after_kill(1) == [4, 5, *range(6, 12)]


def test_acks_that_were_written_and_whose_sync_fails_twice_are_told_as_refused() -> None:
    two = Two()
    two.refuse("fdatasync")
    commit = StagedCommit(90, [Ack(1, 0, 2, None)], touched={1}, sync=True, acks_of={1})
    two.side.jobs.apply(commit, two.side.no_room)
    assert (commit.refused, commit.unwritten_acks) == ({1}, {1})


def test_acks_whose_sync_failed_before_anybody_waited_are_refused_to_who_does() -> None:
    two = Two()
    two.side.commit(Ack(1, 0, 2, None), sync=False)
    two.refuse("fdatasync")
    two.side.jobs.keep_acks_young(100.0)
    commit = StagedCommit(90, [], sync=True, acks_of={1})
    two.side.jobs.apply(commit, two.side.no_room)
    assert commit.unwritten_acks == {1}
    two.heal()
    commit = StagedCommit(91, [], sync=True, acks_of={1})
    two.side.jobs.apply(commit, two.side.no_room)
    assert commit.unwritten_acks == set()
    assert two.after_kill(1) == [3, 4, 5]


def test_acks_that_waited_for_a_refused_queue_are_young_when_it_is_back() -> None:
    """A busy store has no idle moment, and its commits may not be synced."""
    two = Two()
    two.refuse("pwrite")
    two.publish(1)
    two.side.commit(Ack(1, 0, 1, None), sync=False)
    two.side.jobs.keep_acks_young(100.0)
    two.side.filesystem.heal()
    two.side.jobs.keep_acks_young(200.0)
    assert two.written
    for seed in range(10):
        after = DiskSide(two.side.filesystem.cut(random.Random(seed)), segment_entry_count=16)
        after.take_up(1, "q1")
        assert after.read(1) == list(range(2, 12))


def moving(two: Two, source: int, target: int, *more: Command) -> StagedCommit:
    """The first three messages of one queue become dead letters in the other; `more` comes after that."""
    first, two.next_seq = two.next_seq, two.next_seq + 3
    copies = messages(first, 3, two.size)
    names = [two.side.writer.queues()[each].names[:2] for each in (source, target)]
    commit = StagedCommit(
        80 + first,
        [Append(target, first, list(copies), None), Ack(source, 0, 2, None), *more],
        touched={source, target},
        sync=True,
        is_moving=True,
        moves={(names[0], names[1])},
    )
    two.side.jobs.apply(commit, two.side.no_room)
    return commit


@pytest.mark.parametrize("operation", ["pwrite", "fdatasync"])
@pytest.mark.parametrize("confirm", ["fsync", "written"])
@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_a_dead_letter_that_is_refused_leaves_its_original(
    size: int, confirm: str, operation: str
) -> None:
    two = Two(size=size, confirm=confirm)
    two.refuse(operation)
    if confirm == "written" and operation == "fdatasync":
        two.side.jobs.sync(None)  # nobody waits for one
    assert moving(two, 2, 1).refused == {1}
    two.side.jobs.idle()
    assert two.after_kill(2) == list(range(6))
    assert two.side.read(2) == [3, 4, 5]
    two.heal()
    assert (two.side.read(1), two.side.read(2)) == ([*range(9)], [3, 4, 5])
    two.side.jobs.idle()
    assert (two.after_kill(1), two.after_kill(2)) == ([*range(9)], [3, 4, 5])
    if operation == "pwrite":
        two.check()


@pytest.mark.parametrize("version", [1, 2])
def test_a_refused_queue_that_comes_back_does_not_write_acks_of_dead_letters_that_are_owed(
    version: int,
) -> None:
    two = Two(version)
    two.refuse("pwrite")
    its_own = two.side.writer.queues()[2].directory + "/"
    two.refuse("pwrite", times=2, part=its_own)
    commit = moving(two, 2, 1, Append(2, 9, messages(9, 2), None))
    assert commit.refused == {1, 2}
    two.side.jobs.reopen(is_last=True)
    assert two.side.writer.refusals.has(1)
    assert not two.side.writer.refusals.has(2)
    assert two.after_kill(2, version) == [*range(6), 9, 10]
    assert two.side.read(2) == [3, 4, 5, 9, 10]


@pytest.mark.parametrize("operation", ["pwrite", "fdatasync"])
@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_a_queue_is_not_deleted_with_the_last_copies_of_dead_letters(
    size: int, operation: str
) -> None:
    """Neither in the commit in which the disk refuses these, nor in a later one: the store ends, and has them."""
    for is_later in (False, True):
        two = Two(size=size)
        two.refuse(operation)
        with pytest.raises(WriteFailed, match="to be deleted, and the disk refuses its dead let"):
            if is_later:
                moving(two, 2, 1)
                two.side.commit(Delete(2), definitions=[("queue", "q2", None)])
            else:
                moving(two, 2, 1, Delete(2))
        assert two.after_kill(2) == list(range(6))
        assert not two.side.rows


@pytest.mark.parametrize(("operation", "times"), [("pwrite", 2), ("fdatasync", 3)])
@pytest.mark.parametrize("is_later", [False, True])
def test_before_a_queue_is_deleted_its_refused_dead_letters_are_tried_once_more(
    operation: str, times: int, is_later: bool
) -> None:
    two = Two()
    two.refuse(operation, times)
    if is_later:
        assert moving(two, 2, 1).refused == {1}
        two.side.commit(Delete(2))
    else:
        assert moving(two, 2, 1, Delete(2)).refused == set(), "all of it is durable"
    assert two.after_kill(1) == list(range(9))
    assert two.side.writer.queues().keys() == {1}
    assert [epoch for queue_id, epoch in two.written if queue_id == 1]
    if operation == "pwrite":
        two.check()


def test_queues_are_deleted_with_what_one_of_them_owes_the_other() -> None:
    two = Two()
    two.refuse("pwrite")
    moving(two, 2, 1)
    two.side.commit(Delete(2), Delete(1))
    assert not two.side.writer.queues()
    assert not two.side.writer.refusals.withheld()


def test_a_refused_queue_is_neither_converted_nor_backed_up() -> None:
    two = Two()
    two.refuse("pwrite")
    two.publish()
    two.side.commit(SetVersion(1, 1))
    assert not two.side.jobs.convert()
    job = BackupJob("/backup", {})
    assert two.side.jobs.backups.cut(job) is None
    assert "the disk refuses what is in memory" in job.reason
    two.heal()
    while two.side.jobs.convert():
        pass
    two.check()
    assert two.after_kill(1, 1) == list(range(12))


def test_a_conversion_that_cannot_be_put_in_place_refuses_its_queue() -> None:
    two = Two()
    two.side.commit(SetVersion(1, 1))
    two.refuse("rename")
    two.side.jobs.convert()
    assert two.side.writer.refusals.has(1)
    assert two.publish().refused == {1}
    two.side.filesystem.heal()
    assert two.after_kill(1, 1)[:6] == list(range(6))


def named(*names: str) -> tuple[DiskSide, dict[str, str]]:
    """A store with queues of these names, and their directories."""
    side = DiskSide(segment_entry_count=16)
    for queue_id, name in enumerate(names, 1):
        side.open(queue_id, name)
    return side, {one.names.name: one.directory + "/" for one in side.writer.queues().values()}


def take_nothing(side: DiskSide, directory: str) -> None:
    for operation in ("pwrite", "create"):
        side.filesystem.fail(operation, errno.EIO, times=FOR_GOOD, path_part=directory)


def moved(side: DiskSide, *commands: Command, moves: tuple[tuple[str, str], ...]) -> StagedCommit:
    commit = StagedCommit(
        90,
        list(commands),
        touched={command.queue_id for command in commands},
        sync=True,
        is_moving=True,
        moves={(("/", source), ("/", target)) for source, target in moves},
    )
    side.jobs.apply(commit, side.no_room)
    return commit


def after_kill(side: DiskSide, *names: str) -> dict[str, list[int]]:
    there = deepcopy(side.filesystem)
    there.heal()
    again = DiskSide(there.process_killed(), segment_entry_count=16)
    found: dict[str, list[int]] = {}
    for queue_id, name in enumerate(names, 1):
        again.take_up(queue_id, name)
        found[name] = again.read(queue_id)
    return found


def test_a_directory_that_fails_while_another_finds_no_room_is_refused() -> None:
    side, directories = named("q1", "q2")
    for queue_id in (1, 2):
        side.append(0, 3, queue_id=queue_id)
    side.filesystem.fail("fsync_dir", errno.EIO, path_part=directories["q1"][:-1])
    side.filesystem.fail("fsync_dir", errno.ENOSPC, path_part=directories["q2"][:-1])
    made = messages(16, 3)
    commit = side.commit(Append(1, 16, list(made), None), Append(2, 16, list(made), None))
    assert commit.refused == {1}


def test_a_message_that_comes_and_is_moved_in_one_commit_is_in_its_queue_where_the_copy_is_refused() -> (
    None
):
    """Whoever published it has a confirm, for its queue is well."""
    side, directories = named("q", "dead")
    for queue_id in (1, 2):
        side.append(0, 2, queue_id=queue_id)
    take_nothing(side, directories["dead"])
    made = messages(2, 1)
    commit = moved(
        side,
        Append(1, 2, list(made), None),
        Append(2, 2, list(messages(20, 1)), None),
        Ack(1, 2, 2, list(made)),
        moves=(("q", "dead"),),
    )
    assert commit.refused == {2}
    assert after_kill(side, "q", "dead") == {"q": [0, 1, 2], "dead": [0, 1]}


def test_what_goes_on_at_once_to_a_refused_queue_is_kept_where_it_came_from() -> None:
    """The queue between has a limit of none, and stores nothing."""
    side, directories = named("q", "none", "dead")
    side.append(0, 3)
    take_nothing(side, directories["dead"])
    moves = (("q", "none"), ("none", "dead"))
    copies = list(messages(20, 2))
    moved(side, Append(3, 0, copies, None), Ack(1, 0, 1, None), moves=moves)
    assert after_kill(side, "q")["q"] == [0, 1, 2]


def test_what_went_on_from_a_refused_queue_is_kept_where_it_came_from_until_it_has_arrived() -> (
    None
):
    side, directories = named("q", "d", "d2")
    side.append(0, 2)
    take_nothing(side, directories["d"])
    for seq in (0, 1):
        copies = list(messages(20 + seq, 1))
        moved(side, Append(2, seq, copies, None), Ack(1, seq, seq, None), moves=(("q", "d"),))
    take_nothing(side, directories["d2"])
    moved(side, Append(3, 0, list(messages(30, 1)), None), Ack(2, 1, 1, None), moves=(("d", "d2"),))
    side.filesystem.heal()
    take_nothing(side, directories["d2"])
    side.jobs.reopen(is_last=True)
    side.jobs.idle()
    assert not side.writer.refusals.has(2)
    assert 1 in after_kill(side, "q")["q"]


def of_headers_only(count: int) -> list[StoredMessage]:
    """Messages without a body, and with large headers."""
    return [FakeMessage(b"\0\3key", b"h" * 100_000, 0, PERSISTENT) for _ in range(count)]


def test_headers_count_for_what_refused_queues_are_owed() -> None:
    two = Two()
    two.refuse("pwrite")
    two.side.commit(Append(1, 6, of_headers_only(100), None))
    assert two.side.writer.refusals.bytes >= 100 * 100_000


def test_what_a_refused_queue_has_in_memory_is_there_once() -> None:
    """Each attempt writes it elsewhere, and then a sync fails, and what is written after that, too."""
    two = Two(1)
    two.refuse("pwrite")
    two.publish(1)
    two.side.filesystem.heal()
    for attempt in range(8):
        for _ in range(3):
            two.publish(1)
        two.side.filesystem.heal()
        nth = 3 if attempt else 1
        place = two.place
        two.side.filesystem.fail("fdatasync", errno.EIO, nth=nth, times=100, path_part=place)
        two.side.jobs.reopen(is_last=True)
    runs = two.side.writer.refusals.in_memory()[1]
    assert sum(len(run.messages) for run in runs) <= two.next_seq
