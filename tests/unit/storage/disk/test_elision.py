"""What is left to write of a commit: acked messages are left out, touching runs become one, order is kept."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from burrowmq.storage.disk.elision import QueueChanges, left_to_write
from burrowmq.storage.loop.staged_commit import (
    Ack,
    AckMany,
    Append,
    Delete,
    Open,
    SetVersion,
    StagedCommit,
)
from burrowmq.storage.names import QueueNames
from tests.support.disk_side import messages


def commit_of(*commands: object) -> StagedCommit:
    return StagedCommit(1, list(commands))  # type: ignore[arg-type]


def written(changes: QueueChanges) -> list[int]:
    return [seq for run in changes.runs for seq in range(run.first_seq, run.end_seq)]


def test_runs_that_touch_become_one_and_what_is_acked_goes() -> None:
    made = messages(0, 10)
    changes = QueueChanges()
    changes.append(Append(1, 0, made[:4], None))
    changes.append(Append(1, 4, made[4:], None))
    assert len(changes.runs) == 1
    changes.ack(Ack(1, 2, 3, None))
    changes.ack_seqs([7, 99])
    changes.ack(Ack(1, 0, 0, None))
    kept = written(changes)
    assert kept == [1, 4, 5, 6, 8, 9]
    assert [m for run in changes.runs for m in run.messages] == [made[seq] for seq in kept]
    assert (changes.elided, changes.acked_seqs, changes.acks) == (4, [99], [])
    changes.ack(Ack(1, 8, 20, None))
    assert changes.acks == [Ack(1, 8, 20, None)], "some of it is on disk"


def test_expiries_stay_with_their_messages() -> None:
    changes = QueueChanges()
    changes.append(Append(1, 0, messages(0, 2), [10, 11]))
    changes.append(Append(1, 2, messages(2, 2), [12, 13]))
    changes.append(Append(1, 4, messages(4, 2), None))
    assert [(run.first_seq, run.expiries) for run in changes.runs] == [
        (0, [10, 11, 12, 13]),
        (4, None),
    ]
    changes.ack(Ack(1, 1, 2, None))
    assert [(run.first_seq, run.expiries) for run in changes.runs] == [
        (0, [10]),
        (3, [13]),
        (4, None),
    ]


def test_the_lists_that_the_loop_gave_are_not_changed() -> None:
    first, second = messages(0, 2), messages(2, 2)
    expiries = [1, 2]
    changes = QueueChanges()
    changes.append(Append(1, 0, first, expiries))
    changes.append(Append(1, 2, second, [3, 4]))
    assert (len(first), len(second), expiries) == (2, 2, [1, 2])


def test_a_run_without_messages_is_none() -> None:
    changes = QueueChanges()
    changes.append(Append(1, 0, [], None))
    assert changes.runs == []


def test_acks_of_what_is_on_disk_are_kept_as_they_are() -> None:
    changes = QueueChanges()
    changes.append(Append(1, 10, messages(10, 2), None))
    changes.ack(Ack(1, 3, 5, None))
    assert (changes.acks, changes.elided) == ([Ack(1, 3, 5, None)], 0)


def test_what_a_deleted_queue_had_to_write_is_forgotten() -> None:
    left = left_to_write(
        commit_of(Append(1, 0, messages(0, 2), [5, 6]), AckMany(1, [7]), Delete(1))
    )
    assert (left.queues, left.control) == ({}, [Delete(1)])


def test_queues_are_told_apart_and_control_commands_keep_their_order() -> None:
    names = QueueNames("/", "q")
    control = [Open(1, names, True), SetVersion(2, 1), Delete(3), Open(4, names, False)]
    left = left_to_write(
        commit_of(
            control[0],
            Append(1, 0, messages(0, 2), None),
            control[1],
            Append(2, 0, messages(0, 3), None),
            *control[2:],
            Ack(1, 0, 0, None),
        )
    )
    assert left.control == control
    assert {queue_id: written(changes) for queue_id, changes in left.queues.items()} == {
        1: [1],
        2: [0, 1, 2],
    }


def test_runs_with_a_gap_between_them_stay_two() -> None:
    changes = QueueChanges()
    changes.append(Append(1, 0, messages(0, 2), None))
    changes.append(Append(1, 5, messages(5, 2), None))
    assert [(run.first_seq, run.end_seq) for run in changes.runs] == [(0, 2), (5, 7)]


def test_an_ack_is_kept_for_the_one_message_of_it_that_is_on_disk() -> None:
    changes = QueueChanges()
    changes.append(Append(1, 10, messages(10, 2), None))
    changes.append(Append(1, 12, messages(12, 2), None))
    changes.ack(Ack(1, 10, 11, None))
    changes.ack(Ack(1, 11, 13, None))
    assert (written(changes), changes.acks) == ([], [Ack(1, 11, 13, None)])


class Counted(int):
    """A sequence number that counts how often it is compared."""

    comparisons = 0

    def __lt__(self, other: int) -> bool:
        Counted.comparisons += 1
        return int(self) < int(other)

    def __gt__(self, other: int) -> bool:
        Counted.comparisons += 1
        return int(self) > int(other)

    __hash__ = int.__hash__


def test_what_single_acks_cost_does_not_grow_with_the_square() -> None:
    """Of two consumers one acknowledges each of its messages, and the other one waits: every second one is left."""
    count = 1000
    changes = QueueChanges()
    changes.append(Append(1, 0, list(messages(0, count)), None))
    Counted.comparisons = 0
    changes.ack_seqs([Counted(seq) for seq in range(0, count, 2)])
    assert written(changes) == list(range(1, count, 2))
    assert len(changes.runs) == count // 2
    assert Counted.comparisons < 30 * count


@pytest.mark.parametrize("seed", range(40))
def test_whatever_comes_in_whatever_order_what_is_not_acked_is_written(seed: int) -> None:
    """Also an older message that is paged out behind a younger one."""
    rng = random.Random(seed)
    made = messages(0, 120)
    cuts = sorted({0, 120, *rng.sample(range(120), 12)})
    ranges = [(first, end) for first, end in pairwise(cuts) if rng.random() < 0.8]
    for _ in range(rng.choice((0, 0, 3))):
        at = rng.randrange(len(ranges))
        ranges.insert(rng.randrange(len(ranges)), ranges.pop(at))
    later = {seq for first, end in ranges for seq in range(first, end)}
    changes, there, acked = QueueChanges(), set[int](), set[int]()
    for first, end in ranges:
        changes.append(Append(1, first, list(made[first:end]), None))
        there.update(range(first, end))
        later.difference_update(range(first, end))
        for _ in range(rng.randrange(4)):
            low = rng.randrange(120)
            gone = set(range(low, min(120, low + rng.randrange(1, 9)))) - later
            if rng.random() < 0.5:
                changes.ack_seqs(rng.sample(sorted(gone), len(gone)))
            elif gone and len(gone) == max(gone) - min(gone) + 1:
                changes.ack(Ack(1, min(gone), max(gone), None))
            else:
                continue
            acked |= gone
    told = {seq for one in changes.acks for seq in range(one.first_seq, one.last_seq + 1)}
    told.update(changes.acked_seqs)
    assert sorted(set(written(changes)) - told) == sorted(there - acked)
    assert acked - there <= told, "they are on disk"
    assert changes.elided == len(there) - len(written(changes))
    assert len(written(changes)) == len(set(written(changes)))
    assert all(run.messages == made[run.first_seq : run.end_seq] for run in changes.runs)
