"""Acks that are due with a commit: again where the disk refused them, until a nack has told."""

from __future__ import annotations

import pytest

from burrowmq.broker.session.demands import Demands


def test_of_what_the_disk_refused_only_that_counts_which_was_due_with_the_commit() -> None:
    demands = Demands()
    demands.note(3, {1, 2})
    demands.note(4, {2})
    demands.note(4, {7})
    assert demands.refused(3, {2, 5}) == {2}
    assert demands.refused(4, {1, 2, 7}) == {2, 7}
    assert demands.refused(5, {2}) == set()
    demands.note(5, {1})
    assert demands.refused(3, {1}) == set(), "that commit was reported long ago"


def test_refused_acks_are_due_until_a_nack_has_told_and_once_more_for_who_did_not_see_it() -> None:
    demands = Demands()
    for is_waiting in (False, True, False):
        assert demands.due_again(1, {1}, is_nacked=False, is_waiting=is_waiting) == {1}
    assert demands.due_again(2, {1}, is_nacked=True, is_waiting=True) == {1}
    assert demands.due_again(3, {1, 2}, is_nacked=True, is_waiting=True) == {2}
    assert demands.due_again(4, {1, 2}, is_nacked=True, is_waiting=False) == set()
    assert demands.due_again(5, {1}, is_nacked=False, is_waiting=False) == {1}, "younger ones"


@pytest.mark.parametrize("is_first", [False, True])
def test_of_acks_that_came_before_the_nack_of_others_of_that_queue_it_has_not_told(
    is_first: bool,
) -> None:
    """A publish sent before their own nack covers them, though another of the queue's was told by then."""
    demands = Demands()
    demands.note(1, {7})
    if is_first:
        demands.note(2, {7})
    assert demands.due_again(1, {7}, is_nacked=True, is_waiting=True) == {7}
    demands.note_again(2, {7})
    if not is_first:
        demands.note(2, {7})
    assert demands.due_again(2, {7}, is_nacked=True, is_waiting=True) == {7}
    demands.note_again(3, {7})
    assert demands.refused(3, {7}) == {7}
    assert demands.due_again(3, {7}, is_nacked=True, is_waiting=True) == set()
