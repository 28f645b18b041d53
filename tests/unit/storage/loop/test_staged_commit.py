"""What makes a staged commit worth handing over."""

from __future__ import annotations

import pytest

from burrowmq.storage.loop.staged_commit import (
    ACKED_BYTES,
    Ack,
    Delete,
    ReadRequest,
    StagedCommit,
)
from burrowmq.storage.types import ALL, BackupJob
from tests.support.stored_message import FakeMessage


def test_a_new_one_is_empty_whatever_its_epoch() -> None:
    assert StagedCommit(7).is_empty()


@pytest.mark.parametrize(
    "content",
    [
        {"commands": [Delete(1)]},
        {"definitions": [("queue", "q", None)]},
        {"sync": True},
        {"backup": BackupJob("/backup")},
    ],
)
def test_whatever_somebody_waits_for_makes_it_worth_handing_over(
    content: dict[str, object],
) -> None:
    assert not StagedCommit(1, **content).is_empty()  # type: ignore[arg-type]


def test_notes_about_commands_are_no_commands() -> None:
    assert StagedCommit(1, touched={3}, deleted={("/", "q")}).is_empty()


def test_no_two_share_their_lists() -> None:
    first, second = StagedCommit(1), StagedCommit(2)
    first.commands.append(Delete(1))
    first.touched.add(1)
    assert second.is_empty()
    assert not second.touched


def test_a_read_wants_everything_unless_it_says_otherwise() -> None:
    assert ReadRequest(1, 0, 10, 5, 100, lambda *_: None).wanted == ALL


def test_what_moves_to_a_queue_may_have_moved_on_from_it_in_the_same_commit() -> None:
    a, b, c, d = (("/", name) for name in "abcd")
    assert StagedCommit(1, moves={(a, b), (b, c), (c, a), (d, d)}).moves_on() == {
        a: {a, b, c},
        b: {a, b, c},
        c: {a, b, c},
        d: {d},
    }
    assert StagedCommit(1).moves_on() == {}


def test_who_passes_on_to_a_queue_through_others_does_so() -> None:
    a, b, c, d = (("/", name) for name in "abcd")
    commit = StagedCommit(1, passed_on={(a, b), (b, c)}, moves={(d, c)})
    assert commit.passing_on_to({c}) == {a, b}
    assert commit.passing_on_to({a, d}) == set()


def test_the_first_ack_of_a_commit_may_be_of_more_than_it_keeps() -> None:
    """A purge, or one acknowledgement of many large messages, while the commit before is at the disk."""
    commit = StagedCommit(1)
    size = ACKED_BYTES // 2 + 1
    large = [FakeMessage(b"", b"", size)] * 2
    commit.take_ack(Ack(7, 0, 1, large), 2 * size)
    commit.take_ack(Ack(7, 2, 3, large), 2 * size)
    commit.take_ack(Ack(8, 4, 5, large), 2 * size)
    assert commit.commands == [Ack(7, 0, 3, None), Ack(8, 4, 5, None)]
