"""When a server that answers, and has nobody behind it, is left."""

from __future__ import annotations

import pytest

from burrowmq.broker.replicated.silence import PATIENCE_MAX_MS, PATIENCE_MS, Silence
from burrowmq.cluster.api import STREAM_NOT_FOUND, Document, Refusal
from burrowmq.cluster.questions import ANSWER_MS, LINK_LOST, NO_ANSWER

LEADERLESS = Refusal(503, 10008, "JetStream system temporarily unavailable")
NOBODY = Refusal(503, 0, "no responders")


@pytest.mark.parametrize("found", [LEADERLESS, NOBODY])
def test_it_is_borne_for_a_while_and_longer_each_time(found: Refusal) -> None:
    silence, now_ms = Silence(), 0.0
    waited = []
    for _ in range(6):
        began_ms = now_ms
        while not silence.is_too_long(found, now_ms):
            now_ms += 100.0
        waited.append(now_ms - began_ms)
        silence.opened()
    assert waited == [PATIENCE_MS * n for n in (1, 2, 4)] + [PATIENCE_MAX_MS] * 3


def test_without_an_answer_it_began_when_that_was_asked_for() -> None:
    silence = Silence()
    assert not silence.is_too_long(NO_ANSWER, 60_000.0)
    assert not silence.is_too_long(NO_ANSWER, 60_000.0 + PATIENCE_MS - ANSWER_MS - 1.0)
    assert silence.is_too_long(NO_ANSWER, 60_000.0 + PATIENCE_MS - ANSWER_MS)


@pytest.mark.parametrize("found", [{"config": {}}, Refusal(404, STREAM_NOT_FOUND, "not found")])
def test_any_answer_ends_it(found: Document | Refusal) -> None:
    silence = Silence()
    assert not silence.is_too_long(NOBODY, 0.0)
    assert not silence.is_too_long(found, PATIENCE_MS / 2)
    assert not silence.is_too_long(NOBODY, PATIENCE_MS)
    assert silence.is_too_long(NOBODY, 2 * PATIENCE_MS)


def test_a_connection_that_ends_says_nothing_of_the_next() -> None:
    silence = Silence()
    silence.is_too_long(NOBODY, 0.0)
    silence.opened()
    assert not silence.is_too_long(LINK_LOST, PATIENCE_MS)
    assert not silence.is_too_long(NOBODY, PATIENCE_MS)
