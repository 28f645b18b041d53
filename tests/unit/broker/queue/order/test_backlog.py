"""Backlog: order through returned, RAM and disk; page-outs, late reads, recovery with holes."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from burrowmq.broker.queue.order.backlog import Backlog
from burrowmq.broker.queue.run import DURABLE, LOGGED, TRANSIENT, Kind, returned
from burrowmq.protocol.codec import body_bytes
from tests.support.memory_log import MemoryEngine, MemoryLog
from tests.support.messages import body_of, message

ALL = 1 << 40
ROOM = 1 << 40


@dataclass
class Found:
    """What a start found of a queue."""

    first_seq: int
    next_seq: int
    next_deliver_seq: int
    count: int
    bytes: int


class World:
    def __init__(self, *, answers_later: bool = False, is_durable: bool = True) -> None:
        self.engine = MemoryEngine(answers_later=answers_later)
        self.log = MemoryLog(self.engine)
        self.loads = 0
        self.lost: list[tuple[int, int]] = []
        self.backlog = Backlog(lambda: self.log, self, is_durable=is_durable)

    def on_loaded(self) -> None:
        self.loads += 1

    def on_lost(self, count: int, size: int) -> None:
        self.lost.append((count, size))

    def append(
        self,
        *bodies: bytes,
        kind: Kind = TRANSIENT,
        expiries: list[int] | None = None,
        room: int = ROOM,
    ) -> None:
        messages = [message(body, persistent=kind == DURABLE) for body in bodies]
        self.backlog.append(messages, body_bytes(messages), kind, expiries, room)

    def take(self, count: int = 1000) -> list[bytes]:
        run = self.backlog.take(count, ALL)
        return [] if run is None else [body_of(each.raw) for each in run.messages]

    def drain(self) -> list[bytes]:
        found: list[bytes] = []
        while self.backlog.count:
            taken = self.take()
            if not taken:
                self.backlog.load(1000, ALL)
                self.engine.answer_reads()
            found += taken
        return found


@pytest.mark.parametrize("answers_later", [False, True])
def test_a_run_that_has_partly_room_is_cut(answers_later):
    world = World(answers_later=answers_later)
    world.append(b"a", b"bb", b"ccc", b"dddd", room=2)
    backlog = world.backlog
    assert (backlog.ram_count, backlog.ram_bytes) == (2, 3)
    assert (backlog.disk.count, backlog.disk.bytes) == (2, 7)
    assert sorted(world.log.entries) == [2, 3]
    world.append(b"e")  # there is room again, but not before what is on disk
    assert backlog.disk.count == 3
    assert world.drain() == [b"a", b"bb", b"ccc", b"dddd", b"e"]
    assert (backlog.count, backlog.bytes) == (0, 0)


def test_expiries_are_cut_with_their_run():
    world = World()
    world.append(b"a", b"b", b"c", expiries=[5, 0, 7], room=1)
    assert world.backlog.head() == (world.backlog.ram.messages[0], 5)
    assert world.backlog.take(10, ALL).expiries == [5]
    world.backlog.load(10, ALL)
    assert world.backlog.take(10, ALL).expiries == [0, 7]
    assert not world.backlog.has_expiries


def test_one_batch_is_of_one_kind():
    world = World()
    world.append(b"1", b"2", kind=DURABLE)
    world.append(b"3")
    world.append(b"4", kind=DURABLE)
    kinds = []
    while (run := world.backlog.take(10, ALL)) is not None:
        kinds.append((run.kind, len(run.messages), list(run.seqs)))
    assert kinds == [(DURABLE, 2, [0, 1]), (TRANSIENT, 1, [2]), (DURABLE, 1, [3])]


def test_take_gives_at_least_one_message_however_large():
    world = World()
    world.append(b"x" * 100, b"y" * 100)
    run = world.backlog.take(10, 1)
    assert run is not None
    assert len(run.messages) == 1


def test_what_comes_back_goes_before_everything_else_by_its_id():
    world = World()
    world.append(b"0", b"1", b"2", b"3", b"4")
    first = world.backlog.take(3, ALL)
    entries = [(s, m, 0, first.kind, True) for s, m in zip(first.seqs, first.messages, strict=True)]
    world.backlog.give_back([entries[2]], 1)
    world.backlog.give_back([entries[0]], 1)
    world.backlog.give_back([entries[1]], 1)
    assert world.backlog.ram_bytes == 5
    run = world.backlog.take(10, ALL)
    assert (list(run.seqs), run.redelivered) == ([0, 1, 2], True)
    assert world.backlog.take(10, ALL).redelivered is False


def test_forgetting_tells_the_store_only_what_it_knows():
    world = World()
    world.append(b"0", b"1", b"2", kind=DURABLE)
    world.append(b"3")
    run = world.backlog.take(10, ALL)
    world.backlog.forget(run.seqs[:1], run.messages[:1], run.kind, run.messages[0].size)
    world.backlog.forget((2,), run.messages[2:], run.kind, run.messages[2].size)
    assert sorted(world.log.entries) == [1]
    transient = world.backlog.take(10, ALL)
    world.backlog.forget(transient.seqs, transient.messages, transient.kind, transient.size)
    assert sorted(world.log.entries) == [1]


def test_page_out_writes_only_what_is_not_in_the_store_yet():
    world = World()
    world.append(b"0", kind=DURABLE)
    world.append(b"1", b"2")
    written = []
    plain = world.log.append
    world.log.append = lambda first, *rest: (written.append(first), plain(first, *rest))[1]
    assert world.backlog.page_out() == 3
    assert written == [1]
    assert (world.backlog.ram_count, world.backlog.disk.count) == (0, 3)
    assert world.backlog.page_out() == 0
    assert world.drain() == [b"0", b"1", b"2"]


def test_page_out_during_a_load_makes_the_answer_stale():
    world = World(answers_later=True)
    world.append(b"0", b"1", room=1)
    world.backlog.load(10, ALL)
    assert world.backlog.is_loading
    world.backlog.page_out()
    assert not world.backlog.is_loading
    assert world.loads == 1, "whoever waits for the answer has to ask again"
    world.engine.answer_reads()
    assert (world.backlog.ram_count, world.loads) == (0, 1)
    assert world.drain() == [b"0", b"1"]


def test_a_purge_during_a_load_makes_the_answer_stale():
    world = World(answers_later=True)
    world.append(b"0", b"1", room=0)
    world.backlog.load(10, ALL)
    assert world.backlog.purge() == 2
    world.append(b"2", room=0)
    world.engine.answer_reads()
    assert world.drain() == [b"2"]


def test_one_read_at_a_time():
    world = World(answers_later=True)
    world.append(b"0", b"1", b"2", room=0)
    world.backlog.load(1, ALL)
    world.backlog.load(1, ALL)
    assert len(world.engine.reads) == 1


def recovered(world: World, seqs: list[int], *, next_seq: int, next_deliver_seq: int) -> None:
    for seq in seqs:
        world.log.entries[seq] = (message(b"%d" % seq, persistent=True), 0)
    world.log.end_seq = next_seq
    world.log.recovered = Found(
        first_seq=seqs[0] if seqs else next_seq,
        next_seq=next_seq,
        next_deliver_seq=next_deliver_seq,
        count=len(seqs),
        bytes=sum(len(b"%d" % seq) for seq in seqs),
    )
    world.backlog.recover(world.log)


@pytest.mark.parametrize("answers_later", [False, True])
def test_holes_after_recovery_and_what_was_delivered_before(answers_later):
    world = World(answers_later=answers_later)
    recovered(world, [3, 4, 7, 9, 10, 11], next_seq=20, next_deliver_seq=10)
    assert (world.backlog.count, world.backlog.disk.count) == (6, 6)
    world.append(b"20", b"21", kind=DURABLE)
    flags = []
    while world.backlog.count:
        run = world.backlog.take(10, ALL)
        if run is None:
            world.backlog.load(2, ALL)
            world.engine.answer_reads()
            continue
        assert run.kind == DURABLE
        flags += [(seq, run.redelivered) for seq in run.seqs]
    assert flags == [(s, s < 10) for s in (3, 4, 7, 9, 10, 11, 20, 21)]


def test_nothing_left_after_recovery_goes_on_behind_the_old_ids():
    world = World()
    recovered(world, [], next_seq=32, next_deliver_seq=32)
    world.append(b"x", room=0)
    assert sorted(world.log.entries) == [32]


def test_what_the_store_cannot_deliver_is_gone():
    world = World()
    recovered(world, [0, 1, 2], next_seq=3, next_deliver_seq=0)
    world.log.entries.clear()
    world.backlog.load(10, ALL)
    assert world.backlog.count == 0


@pytest.mark.parametrize("answers_later", [False, True])
@pytest.mark.parametrize("gone", [0, 1, 2])
def test_what_arrives_behind_ids_that_are_gone_keeps_its_own(answers_later, gone):
    """The last ones before a clean stop were transient, or are damaged: some are known to be gone, some turn out to be."""
    world = World(answers_later=answers_later)
    recovered(world, [0, 1, 2, 3][: 4 - gone], next_seq=4, next_deliver_seq=0)
    for seq in (2, 3):
        world.log.entries.pop(seq, None)
    for _ in range(2):
        world.backlog.load(2, ALL)
        world.engine.answer_reads()
    world.append(b"4", kind=DURABLE)
    assert sorted(world.log.entries) == [0, 1, 4]
    taken = []
    while (run := world.backlog.take(10, ALL)) is not None:
        assert not run.redelivered
        taken += zip(run.seqs, (body_of(each.raw) for each in run.messages), strict=True)
    assert taken == [(0, b"0"), (1, b"1"), (4, b"4")]


@pytest.mark.parametrize("answers_later", [False, True])
def test_of_what_came_back_and_went_to_disk_it_is_told_what_is_lost(answers_later):
    world = World(answers_later=answers_later)
    world.append(*[b"%d" % number * 10 for number in range(200)], kind=DURABLE)
    run = world.backlog.take(1000, ALL)
    entries = [
        (seq, each, 0, DURABLE, True) for seq, each in zip(run.seqs, run.messages, strict=True)
    ]
    world.backlog.give_back([entry for entry in entries if entry[0] != 100], run.size - 30)
    world.backlog.park(0, 0)
    for seq in (3, 7, 150):
        del world.log.entries[seq]
    for _ in range(2):
        world.backlog.load(1000, ALL)
        world.engine.answer_reads()
    assert world.backlog.count == 196
    assert [sum(column) for column in zip(*world.lost, strict=True)] == [3, 10 + 10 + 30]


@pytest.mark.parametrize("is_watched", [False, True])
def test_while_it_is_watched_it_tells_of_whatever_leaves_the_disk(is_watched: bool) -> None:
    world = World()
    backlog = world.backlog
    backlog.disk.keep_sizes(is_on=True)
    backlog.is_watched = is_watched
    world.append(*[b"%d" % number for number in range(6)], kind=DURABLE, room=0)
    assert backlog.take_unread(1, ALL) is not None
    backlog.load(2, ALL)
    run = backlog.take(2, ALL)
    assert backlog.take_unread(1, ALL) is not None, "what was read leaves the rest's sizes known"
    backlog.give_back(returned(run.seqs, run.messages, None, DURABLE, redelivered=True), run.size)
    backlog.park(0, 0)
    backlog.load(2, ALL)
    backlog.remove({5: message(b"5", persistent=True)})
    assert world.lost == [(0, 0)] * (5 if is_watched else 0)


def test_recovered_transient_copies_are_logged_but_not_durable():
    world = World(is_durable=False)
    world.append(b"t", kind=LOGGED, room=0)
    world.backlog.load(1, ALL)
    assert world.backlog.take(1, ALL).kind == LOGGED


def test_dropping_from_disk_unread():
    world = World()
    world.backlog.disk.keep_sizes(is_on=True)
    world.append(b"aa", b"bb", b"c", room=0)
    assert world.backlog.take_unread(10, 3) == (range(2), 2, TRANSIENT)
    assert sorted(world.log.entries) == [0, 1, 2], "whoever took them tells the store"
    assert world.backlog.take_unread(10, ALL) == (range(2, 3), 1, TRANSIENT)
    assert world.backlog.take_unread(10, ALL) is None
    assert (world.backlog.count, world.backlog.bytes) == (0, 0)


def test_what_was_taken_unread_while_it_was_read_is_left_out():
    world = World(answers_later=True)
    world.backlog.disk.keep_sizes(is_on=True)
    world.append(b"a", b"b", b"c", room=0)
    world.backlog.load(10, ALL)
    assert world.backlog.take_unread(2, ALL) == (range(2), 1, TRANSIENT)
    world.engine.answer_reads()
    assert (world.backlog.count, world.backlog.ram_count) == (1, 1)
    assert world.backlog.take(10, ALL).seqs == range(2, 3)


def test_what_was_paged_out_can_be_taken_unread():
    world = World()
    world.backlog.disk.keep_sizes(is_on=True)
    world.append(b"a", b"bb", kind=DURABLE)
    world.append(b"cc", kind=TRANSIENT)
    world.backlog.page_out()
    world.append(b"d", room=0)
    taken = [world.backlog.take_unread(10, ALL) for _ in range(4)]
    assert taken == [
        (range(1), 1, DURABLE),
        (range(1, 2), 2, DURABLE),
        (range(2, 3), 2, TRANSIENT),
        (range(3, 4), 1, TRANSIENT),
    ]


def test_what_arrives_behind_dropped_messages_goes_to_disk():
    world = World()
    world.backlog.dying_count = 1
    world.append(b"a")
    assert (world.backlog.ram_count, world.backlog.disk.count) == (0, 1)


def test_the_head_in_ram_is_not_passed_over_by_a_drop_on_disk():
    world = World()
    world.backlog.disk.keep_sizes(is_on=True)
    world.append(b"a", b"b", room=1)
    assert world.backlog.take_unread(1, ALL) is None


def test_how_many_at_the_head_have_expired():
    world = World()
    world.append(b"a", b"b", b"c", b"d", expiries=[5, 6, 0, 5])
    assert world.backlog.expired_count(5) == 1
    assert world.backlog.expired_count(10) == 2  # the third never expires and hides the fourth
    run = world.backlog.take(1, ALL)
    world.backlog.give_back([(0, run.messages[0], 5, run.kind, True)], 1)
    assert world.backlog.expired_count(10) == 1
    assert world.backlog.expired_count(4) == 0
