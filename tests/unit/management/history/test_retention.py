"""Retention as the API shows it."""

from __future__ import annotations

from burrowmq.management.history import retention
from burrowmq.management.history.history import History


def test_ages_near_a_round_one_are_shown_as_that() -> None:
    assert retention.shown(History().policies) == {
        "global": [600, 3600, 28_800, 86_400],
        "basic": [600, 3600],
        "detailed": [600],
    }


def test_other_ages_are_shown_as_none_of_the_choices() -> None:
    found = History(((30, 5), (66, 5), (300, 5), (90_000, 60)), ((660, 5),))
    assert retention.shown(found.policies)["global"] == [0, 60, 60, 86_400]
    assert retention.shown(found.policies)["basic"] == [600]
