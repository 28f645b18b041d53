"""Deletions go behind the definitions of their commit, but where a name is used again; behind messages that were moved."""

from __future__ import annotations

import errno
import random

import pytest

from burrowmq.storage.disk.deletions import order_of
from burrowmq.storage.disk.elision import left_to_write
from burrowmq.storage.loop.staged_commit import (
    Ack,
    AckMany,
    Append,
    Command,
    Delete,
    DeleteVhost,
    DropUnclaimed,
    Open,
    SetVersion,
    StagedCommit,
)
from burrowmq.storage.names import QueueNames
from tests.support.disk_side import LARGE, SMALL, DiskSide, messages
from tests.support.disk_side_steps import OTHER, Q, dead_letters


def test_a_queue_that_the_same_commit_opens_again_is_deleted_before_its_new_definition() -> None:
    side = DiskSide()
    side.open()
    side.append(0, 3)
    side.filesystem.fail("commit", errno.EIO, times=2)
    with pytest.raises(Exception, match="EIO"):
        side.commit(Delete(1), Open(2, Q, True), definitions=[("queue", "q", {"id": 2})])
    assert not side.paths(".qi"), "else a power cut would leave the old messages to the new queue"


def test_all_levels_of_a_queue_that_is_declared_again_go_before_its_new_definition() -> None:
    side = DiskSide()
    side.open()
    side.commit(Open(2, QueueNames("/", "q", 1), True))
    for queue_id in (1, 2):
        side.append(0, 3, queue_id=queue_id)
    side.filesystem.fail("commit", errno.EIO, times=2)
    with pytest.raises(Exception, match="EIO"):
        side.commit(Delete(1), Delete(2), Open(3, Q, True), definitions=[("queue", "q", {"id": 2})])
    assert not side.paths(".qi")


def test_what_a_start_found_without_a_definition_goes_before_a_definition_that_may_have_its_name() -> (
    None
):
    before = DiskSide()
    before.open()
    before.append(0, 3)
    side = DiskSide(before.filesystem.process_killed())
    assert side.paths(".qi")
    side.filesystem.fail("commit", errno.EIO, times=2)
    with pytest.raises(Exception, match="EIO"):
        side.commit(DropUnclaimed(0), definitions=[("queue", "q", {"id": 2})])
    assert not side.paths(".qi"), "else a power cut would leave the old messages to the new queue"


def test_a_queue_of_which_the_commit_opened_a_level_before_is_not_declared_again() -> None:
    side = DiskSide()
    side.open()
    side.append(0, 3)
    side.filesystem.fail("commit", errno.EIO, times=2)
    with pytest.raises(Exception, match="EIO"):
        side.commit(
            Open(2, QueueNames("/", "q", 1), True),
            Delete(1),
            Delete(2),
            definitions=[("queue", "q", None)],
        )
    assert side.paths(".qi")


def test_a_queue_whose_deletion_was_not_committed_keeps_its_messages() -> None:
    side = DiskSide()
    side.open()
    side.append(0, 3)
    side.filesystem.fail("commit", errno.EIO, times=2)
    with pytest.raises(Exception, match="EIO"):
        side.commit(Delete(1), definitions=[("queue", "q", None)])
    assert side.paths(".qi")


def test_what_a_queue_gave_away_is_written_before_its_end_where_nothing_is_synced() -> None:
    side = DiskSide(confirm="written")
    for queue_id, name in ((1, "q"), (2, "dead")):
        side.open(queue_id, name)
    side.append(0, 3)
    side.filesystem.fail("commit", errno.EIO, times=2)
    commands = [Append(2, 3, messages(3, 3), None), Ack(1, 0, 2, None), Delete(1)]
    commit = StagedCommit(90, commands, [("queue", "q", None)], touched={1, 2}, is_moving=True)
    with pytest.raises(Exception, match="EIO"):
        side.jobs.apply(commit, side.no_room)
    assert side.writer.counters.written == 6


def test_what_a_queue_gave_away_is_durable_before_its_end_also_in_the_first_commit_of_a_start() -> (
    None
):
    """That deletes what has no definition, too."""
    side = DiskSide()
    for queue_id, name in ((1, "q"), (2, "dead")):
        side.open(queue_id, name)
    side.append(0, 3)
    names = side.names._replace(name="q")[:2], side.names._replace(name="dead")[:2]
    side.filesystem.fail("fdatasync", errno.EIO, times=1 << 30)
    commit = StagedCommit(
        90,
        [DropUnclaimed(0), Append(2, 3, messages(3, 3), None), Ack(1, 0, 2, None), Delete(1)],
        [("queue", "q", None)],
        touched={1, 2},
        sync=True,
        is_moving=True,
        moves={names},
    )
    with pytest.raises(Exception, match="EIO"):
        side.jobs.apply(commit, side.no_room)
    assert side.writer.queues().keys() == {1, 2}


def three_queues() -> DiskSide:
    """One with messages, one for its dead letters, and another one with messages."""
    side = DiskSide()
    for queue_id, name in ((1, "q"), (2, "dead"), (3, "other")):
        side.open(queue_id, name)
    side.append(0, 3)
    side.append(0, 3, queue_id=3)
    return side


@pytest.mark.parametrize("name", ["q", "other"])
def test_what_a_queue_gave_away_is_durable_before_its_end_also_where_a_queue_is_declared_again(
    name: str,
) -> None:
    """Another one, or itself."""
    side = three_queues()
    side.filesystem.fail("fdatasync", errno.EIO, times=1 << 30)
    again = [Open(4, OTHER, True), Delete(1)] if name == "other" else [Open(4, Q, True)]
    with pytest.raises(Exception, match="EIO"):
        side.jobs.apply(dead_letters(2, *again, end=3 if name == "other" else 1), side.no_room)
    assert side.writer.queues().keys() == {1, 2, 3}
    assert not side.rows


@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize("name", ["q", "other"])
def test_a_queue_that_is_declared_again_has_what_was_published_to_it_in_a_commit_with_dead_letters(
    name: str, size: int
) -> None:
    side = three_queues()
    again = [Open(4, OTHER, True), Delete(1)] if name == "other" else [Open(4, Q, True)]
    new = messages(20, 2, size)
    commit = dead_letters(
        2,
        *again,
        SetVersion(4, 1),
        Append(4, 0, list(new), None),
        Append(2, 6, list(new), None),
        end=3 if name == "other" else 1,
        size=size,
    )
    side.jobs.apply(commit, side.no_room)
    assert (side.read(4), side.read(2)) == ([0, 1], [3, 4, 5, 6, 7])
    assert side.writer.queues().keys() == ({2, 4} if name == "other" else {2, 3, 4})
    assert not side.writer.has_acks_left
    after = DiskSide(side.filesystem.cut(random.Random(1)))
    after.take_up(2, "dead")
    after.take_up(4, name)
    assert (after.read(4), after.read(2)) == ([0, 1], [3, 4, 5, 6, 7])


def four_queues() -> DiskSide:
    """The same, and one in another vhost."""
    side = three_queues()
    side.open(5, "q", vhost="v")
    side.append(0, 3, LARGE, queue_id=5)
    return side


@pytest.mark.parametrize("is_again", [False, True])
def test_what_a_queue_gave_away_is_durable_before_its_end_also_where_a_vhost_goes(
    is_again: bool,
) -> None:
    side = four_queues()
    side.filesystem.fail("fdatasync", errno.EIO, times=1 << 30)
    again = [Open(6, QueueNames("v", "new"), True)] if is_again else []
    commit = dead_letters(2, Delete(5), DeleteVhost(0, "v"), *again)
    with pytest.raises(Exception, match="EIO"):
        side.jobs.apply(commit, side.no_room)
    assert side.writer.queues().keys() == {1, 2, 3, 5}
    assert side.context.has_vhost("v")
    assert not side.rows


@pytest.mark.parametrize("name", ["q", "new"])
def test_a_vhost_that_is_made_again_in_a_commit_with_dead_letters_has_what_was_published_to_it(
    name: str,
) -> None:
    side = four_queues()
    new = messages(20, 2, LARGE)
    commit = dead_letters(
        2,
        Delete(5),
        DeleteVhost(0, "v"),
        Open(6, QueueNames("v", name), True),
        Append(6, 0, list(new), None),
        Append(2, 6, messages(30, 2, LARGE), None),
        size=LARGE,
    )
    side.jobs.apply(commit, side.no_room)
    assert (side.read(6), side.read(2)) == ([0, 1], [3, 4, 5, 6, 7])
    assert side.writer.queues().keys() == {2, 3, 6}
    after = DiskSide(side.filesystem.cut(random.Random(1)))
    for queue_id, names in ((2, QueueNames("/", "dead")), (6, QueueNames("v", name))):
        after.writer.bind(queue_id, names)
        after.commit(Open(queue_id, names, True))
    assert (after.read(6), after.read(2)) == ([0, 1], [3, 4, 5, 6, 7])
    assert after.report.lost == 0


def test_a_queue_of_dead_letters_that_is_declared_again_gets_them_after_its_deletion() -> None:
    side = three_queues()
    commit = dead_letters(4, Delete(2), Open(4, QueueNames("/", "dead"), True), first_seq=0)
    append = commit.commands.pop(0)
    commit.commands.append(append)
    side.jobs.apply(commit, side.no_room)
    assert side.read(4) == [0, 1, 2]
    assert side.writer.queues().keys() == {3, 4}


def test_a_queue_that_the_same_commit_took_up_is_not_made_again_after_its_deletion() -> None:
    before = DiskSide()
    before.open()
    before.append(0, 3)
    side = DiskSide(before.filesystem.process_killed())
    side.writer.bind(1, Q)
    side.commit(Open(1, Q, True), Delete(1), Open(2, Q, True))
    assert side.writer.queues().keys() == {2}
    assert not side.paths(".qi")


@pytest.mark.parametrize("is_again", [False, True])
def test_a_queue_of_dead_letters_that_one_commit_makes_deletes_and_declares_again_keeps_them(
    is_again: bool,
) -> None:
    side = DiskSide()
    side.open()
    side.append(0, 3)
    dead = QueueNames("/", "dead")
    old = [Open(2, dead, True), SetVersion(2, 1), Append(2, 0, messages(3, 1), None), Delete(2)]
    commit = StagedCommit(
        90,
        [*old, Open(3, dead, True), Append(3, 0, messages(3, 2), None), AckMany(1, [0, 1])]
        if is_again
        else [*old, AckMany(1, [0, 1])],
        touched={1, 2, 3},
        sync=True,
        is_moving=True,
        moves={(Q[:2], ("/", "dead"))},
    )
    side.jobs.apply(commit, side.no_room)
    assert side.writer.queues().keys() == ({1, 3} if is_again else {1})
    after = DiskSide(side.filesystem.cut(random.Random(1)))
    after.take_up(1, "q")
    assert after.read(1) == [2]
    if is_again:
        after.take_up(3, "dead")
        assert after.read(3) == [0, 1]
    else:
        assert len(after.paths(".qi")) == 1


def both_end(*, is_opened: bool, is_there: bool) -> tuple[DiskSide, StagedCommit]:
    """A queue is declared again, and that of its dead letters ends, with which it may have begun, or been taken up."""
    side = DiskSide()
    side.open()
    side.append(0, 3)
    commit = dead_letters(2, Delete(2), Open(3, Q, True), first_seq=0)
    if is_opened:
        commit.commands.insert(0, Open(2, QueueNames("/", "dead"), True))
    if is_there:
        side.open(2, "dead")
    return side, commit


HOW = pytest.mark.parametrize(
    ("is_opened", "is_there"), [(False, True), (True, False), (True, True)]
)


@HOW
def test_what_a_queue_gave_away_is_durable_before_its_end_also_where_it_ends_in_the_other_one(
    is_opened: bool, is_there: bool
) -> None:
    """The definitions say later that the queue of dead letters is gone."""
    side, commit = both_end(is_opened=is_opened, is_there=is_there)
    is_made = is_opened and not is_there  # which a commit of definitions comes before
    side.filesystem.fail("commit", errno.EIO, nth=1 + is_made, times=2)
    with pytest.raises(Exception, match="EIO"):
        side.jobs.apply(commit, side.no_room)
    after = DiskSide(side.filesystem.cut(random.Random(1)))
    after.take_up(2, "dead")
    assert after.read(2) == [0, 1, 2]


@HOW
def test_a_queue_of_dead_letters_that_ends_is_gone_with_them(
    is_opened: bool, is_there: bool
) -> None:
    side, commit = both_end(is_opened=is_opened, is_there=is_there)
    commit.commands.append(Append(3, 0, messages(9, 1), None))
    side.jobs.apply(commit, side.no_room)
    assert side.writer.queues().keys() == {3}
    after = DiskSide(side.filesystem.cut(random.Random(1)))
    assert [one[:2] for one in after.report.queues] == [Q[:2]]


def lives_of_dead_letters(
    *lives: tuple[QueueNames, int], first_id: int, end_seq: int = 0
) -> StagedCommit:
    """A queue is declared again; that of its dead letters lives several times in one commit, and gets some each time.

    `lives`: name and how many it gets. The first life has `first_id`, and has had what is before `end_seq`.
    """
    commands: list[Command] = []
    number = 30
    for queue_id, (names, count) in enumerate(lives, first_id):
        first = end_seq if queue_id == 2 else 0
        if queue_id > 2:
            commands.append(Open(queue_id, names, True))
        for seq in range(first, first + count):  # a run each
            commands.append(Append(queue_id, seq, messages(number, 1), None))
            number += 1
        commands.append(Delete(queue_id, first + count))
    commands += [Ack(1, 0, 2, None), Delete(1, 3), Open(99, Q, True)]
    commit = StagedCommit(90, commands, [("queue", "q", {"id": 99})], sync=True, is_moving=True)
    commit.touched = {one.queue_id for one in commands}
    commit.moves = {(Q[:2], ("/", "dead"))}
    return commit


DEAD = QueueNames("/", "dead")


@pytest.mark.parametrize("counts", [(0, 2), (1, 2), (1, 0, 2), (1, 1, 1)])
def test_a_queue_whose_deletion_was_not_committed_keeps_its_messages_though_its_name_was_used_again(
    counts: tuple[int, ...],
) -> None:
    """What those of its name got that the commit makes and deletes lies in it, behind all that it has had."""
    side = DiskSide(segment_entry_count=8)
    side.open()
    side.append(0, 3)
    side.open(2, "dead")
    side.append(0, 7, queue_id=2)
    side.ack(4, 6, queue_id=2)
    side.jobs.idle()
    side.filesystem.fail("commit", errno.EIO, times=2)
    commit = lives_of_dead_letters(*((DEAD, each) for each in counts), first_id=2, end_seq=7)
    with pytest.raises(Exception, match="EIO"):
        side.jobs.apply(commit, side.no_room)
    places = [one.directory for one in side.writer.queues().values()]
    assert len(places) == len(set(places)), "a directory is one queue's"
    for seed in range(5):
        after = DiskSide(side.filesystem.cut(random.Random(seed)), segment_entry_count=8)
        after.take_up(2, "dead")
        assert after.read(2) == [*range(4), *range(7, 7 + sum(counts))]
        assert after.report.lost == 0


def test_of_queues_of_one_name_that_a_commit_makes_and_deletes_the_first_has_what_all_got() -> None:
    side = DiskSide()
    side.open()
    side.append(0, 3)
    side.filesystem.fail("commit", errno.EIO, nth=2, times=2)
    level = DEAD._replace(level=1)
    commit = lives_of_dead_letters((DEAD, 1), (level, 1), (DEAD, 1), (level, 2), first_id=3)
    with pytest.raises(Exception, match="EIO"):
        side.jobs.apply(commit, side.no_room)
    assert (side.read(3), side.read(4)) == ([0, 1], [0, 1, 2])
    assert side.writer.queues().keys() == {3, 4}


@pytest.mark.parametrize("counts", [(0, 2), (1, 2), (1, 0, 2)])
def test_queues_of_one_name_that_a_commit_ends_in_turn_are_gone_with_it(
    counts: tuple[int, ...],
) -> None:
    side = DiskSide()
    side.open()
    side.append(0, 3)
    side.open(2, "dead")
    side.append(0, 3, queue_id=2)
    commit = lives_of_dead_letters(*((DEAD, each) for each in counts), first_id=2, end_seq=3)
    commit.commands.append(Append(99, 0, messages(9, 1), None))
    side.jobs.apply(commit, side.no_room)
    assert side.writer.queues().keys() == {99}
    after = DiskSide(side.filesystem.cut(random.Random(1)))
    assert [one[:2] for one in after.report.queues] == [Q[:2]]


def test_a_queue_of_dead_letters_that_ends_with_its_vhost_gets_none_of_another_vhosts() -> None:
    side = four_queues()
    side.open(7, "dead", vhost="v")
    commit = dead_letters(7, Delete(7), Delete(5), DeleteVhost(0, "v"), Open(6, Q, True))
    commit.moves = {(Q[:2], ("v", "dead"))}
    side.jobs.apply(commit, side.no_room)
    assert side.writer.queues().keys() == {2, 3, 6}
    assert not side.context.has_vhost("v")


class Counted(int):
    """A queue's id that counts with how many it is compared."""

    comparisons = 0

    def __eq__(self, other: object) -> bool:
        Counted.comparisons += 1
        return int(self) == other

    __hash__ = int.__hash__


def test_what_it_costs_to_declare_many_queues_again_does_not_grow_with_the_square() -> None:
    count = 200
    names = [QueueNames("/", f"q{number}") for number in range(count)]
    ids = [Counted(number) for number in range(2 * count)]
    side = DiskSide()
    side.commit(
        *(Open(one, name, True) for one, name in zip(ids[:count], names, strict=True)),
    )
    again: list[Command] = []
    for at, name in enumerate(names):
        again += [Delete(ids[at]), Open(ids[count + at], name, True)]
    commit = StagedCommit(2, again, touched=set(ids))
    left = left_to_write(commit)
    Counted.comparisons = 0
    order = order_of(left, side.writer.queues(), commit)
    assert (len(order.before), len(order.after)) == (count, count)
    assert Counted.comparisons < 20 * count
