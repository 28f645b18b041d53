"""What the servers refuse is told once, and shown for as long as it goes on.

Covers: broker/replicated/troubles.py
"""

from __future__ import annotations

from burrowmq.broker.replicated.troubles import LASTS_MS, MOST, Troubles


def test_each_kind_is_told_once_while_it_goes_on() -> None:
    told: list[str] = []
    troubles = Troubles(told.append)
    troubles.hear("a", "a 1", 0.0, 1_000)
    troubles.hear("b", "b 1", 10.0, 1_010)
    troubles.hear("a", "a 2", LASTS_MS - 1, 2_000)
    assert told == ["a 1", "b 1"]
    assert troubles.shown(LASTS_MS) == (("a 1", "b 1"), 1_000)
    assert troubles.shown(LASTS_MS + 10) == (("a 1",), 1_000)
    assert troubles.shown(2 * LASTS_MS - 1) == ((), 0)
    troubles.hear("a", "a 3", 2 * LASTS_MS, 9_000)
    assert told == ["a 1", "b 1", "a 3"]


def test_what_is_not_tried_again_is_shown_until_the_connection_ends() -> None:
    told: list[str] = []
    troubles = Troubles(told.append)
    troubles.hear("a", "a", 0.0, 1_000, is_lasting=True)
    assert troubles.shown(1e9) == (("a",), 1_000)
    troubles.lost(1e9)
    troubles.hear("a", "a", 1e9 + 1, 2_000, is_lasting=True)
    assert told == ["a"]
    troubles.lost(2e9)
    assert troubles.shown(2e9 + LASTS_MS) == ((), 0)


def test_they_have_a_limit() -> None:
    told: list[str] = []
    troubles = Troubles(told.append)
    for number in range(MOST + 1):
        troubles.hear(str(number), str(number), 0.0, 0)
    assert len(told) == MOST
