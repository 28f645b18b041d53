"""A queue's stream while nobody answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from burrowmq.broker.replicated.stream import AGAIN_S, SOON_COUNT, SOON_S, QueueStream
from burrowmq.cluster.api import Refusal, Request, StreamSettings
from burrowmq.cluster.questions import LINK_LOST, NO_ANSWER


class Away:
    """A cluster that nobody reaches, and less time than the next attempt waits for."""

    def __init__(self, refusal: Refusal) -> None:
        self._refusal = refusal
        self.answers: list[Callable[[], None]] = []
        self.attempts: list[Callable[[], None]] = []
        self.delays_s: list[float] = []

    def ask(self, request: Request, then: Callable[[Any], None]) -> None:
        """Say so when this call has returned."""
        self.answers.append(lambda: then(self._refusal))

    def when_gone(self, stream: str, then: Callable[[str], None]) -> None:
        """There was no other."""
        then("")

    def call_later(self, delay_s: float, then: Callable[[], None]) -> None:
        """What is to be done then."""
        self.delays_s.append(delay_s)
        self.attempts.append(then)

    def answer(self) -> None:
        """All that was asked."""
        answers, self.answers = self.answers, []
        for each in answers:
            each()


def ignore() -> None:
    """Nobody is told."""


def test_however_often_one_asks_there_is_one_next_attempt() -> None:
    away = Away(NO_ANSWER)
    found = StreamSettings(name="Q", subjects=("Q",), replicas=1)
    stream = QueueStream(found, cast("Any", away), cast("Any", away), ignore, ignore, is_ours=True)
    told: list[str] = []
    for _ in range(20):
        stream.ask(told.append)
        away.answer()
    assert told == [NO_ANSWER.text] * 20  # each at once
    for _ in range(2):
        (attempt,) = away.attempts
        away.attempts.clear()
        attempt()
        away.answer()
    assert len(away.attempts) == 1
    assert set(away.delays_s) == {AGAIN_S}


def test_with_a_new_connection_it_is_looked_at_soon_for_a_while() -> None:
    """Who led it may have died with the old one, and acknowledgements wait for the look."""
    away = Away(NO_ANSWER)
    found = StreamSettings(name="Q", subjects=("Q",), replicas=1)
    stream = QueueStream(found, cast("Any", away), cast("Any", away), ignore, ignore, is_ours=True)
    stream.lost()
    stream.meet()
    for _ in range(SOON_COUNT + 2):
        away.answer()
        (attempt,) = away.attempts
        away.attempts.clear()
        attempt()
    assert away.delays_s == [SOON_S] * SOON_COUNT + [AGAIN_S] * 2


def test_without_a_connection_the_next_attempt_is_the_next_connection() -> None:
    away = Away(LINK_LOST)
    found = StreamSettings(name="Q", subjects=("Q",), replicas=1)
    stream = QueueStream(found, cast("Any", away), cast("Any", away), ignore, ignore, is_ours=True)
    told: list[str] = []
    stream.ask(told.append)
    away.answer()
    assert told == [LINK_LOST.text]
    assert not away.attempts


def test_who_asks_for_one_that_is_gone_is_told_so() -> None:
    away = Away(LINK_LOST)
    found = StreamSettings(name="Q", subjects=("Q",), replicas=1)
    stream = QueueStream(found, cast("Any", away), cast("Any", away), ignore, ignore, is_ours=False)
    stream.end()
    told: list[str] = []
    stream.ask(told.append)
    assert told == ["the queue is deleted"]
