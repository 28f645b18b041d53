"""What the simulated machine's clients may count on when a sync has failed: whether they waited, and when it was."""

from __future__ import annotations

import pytest

from tests.simulation.machine.model import Copy, Home, Model, Publication

PROCESS = 3


def published(
    model: Model, *, is_silent: bool, number: int = 1, is_persistent: bool = True
) -> Copy:
    """A message to the queue `a`, which is declared if need be; gives its copy there."""
    if "a" not in model.current:
        model.current["a"] = Home("a", 1, is_durable=True, is_declared=True)
        model.homes.append(model.current["a"])
    publication = Publication(number, b"body", is_persistent, 1, 0, None, is_silent=is_silent)
    model.publications[number] = publication
    model.route(publication, "a", is_certain=True)
    return publication.copies[0]


@pytest.mark.parametrize("is_silent", [False, True])
def test_a_clean_stop_leaves_what_nobody_waits_for_too(is_silent: bool) -> None:
    model = Model()
    copy = published(model, is_silent=is_silent)
    model.stopped(PROCESS)
    assert copy.is_promised


@pytest.mark.parametrize("is_silent", [False, True])
def test_but_not_what_a_failed_sync_took_before_it(is_silent: bool) -> None:
    model = Model()
    copy = published(model, is_silent=is_silent)
    model.lose_pages(PROCESS)
    later = published(model, is_silent=True, number=2)
    model.stopped(PROCESS)
    assert copy.is_promised is not is_silent
    assert later.is_promised, "it came when that sync had failed"


def test_pages_that_an_earlier_process_lost_are_none_of_this_one() -> None:
    model = Model()
    copy = published(model, is_silent=True)
    model.lose_pages(PROCESS)
    assert copy.may_have_gone_in(PROCESS)
    assert not copy.may_have_gone_in(PROCESS + 1)
    model.stopped(PROCESS + 1)
    assert copy.is_promised


def test_what_is_promised_or_waited_for_is_written_elsewhere() -> None:
    model = Model()
    silent, waited = (
        published(model, is_silent=True),
        published(model, is_silent=False, number=2),
    )
    fleeting = published(model, is_silent=False, number=3, is_persistent=False)
    promised = published(model, is_silent=True, number=4)
    promised.is_promised = True
    model.lose_pages(PROCESS)
    gone = [copy.may_have_gone_in(PROCESS) for copy in (silent, waited, fleeting, promised)]
    assert gone == [True, False, True, False]


def test_a_dead_letter_that_is_found_late_may_have_been_in_the_page_of_its_origin() -> None:
    model = Model()
    origin = published(model, is_silent=True)
    origin.home.has_dead_letters, origin.deadline_ms = True, 0
    model.current["dead"] = Home("dead", 2, is_durable=True, is_declared=True)
    model.lose_pages(PROCESS)
    heir = model.find(model.current["dead"], origin.number)
    assert heir is not None
    assert heir.origin is origin
    assert heir.may_have_gone_in(PROCESS)


def test_pages_whose_sync_failed_are_doubtful_until_the_power_has_gone() -> None:
    model = Model()
    for is_suspicious, is_after_power_cut, are_suspect in (
        (False, False, False),
        (True, False, True),
        (False, False, True),  # a kill writes nothing either
        (False, True, False),
    ):
        model.begin_start(is_suspicious=is_suspicious, is_after_power_cut=is_after_power_cut)
        assert model.are_pages_suspect is are_suspect
