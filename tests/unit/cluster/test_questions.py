"""Each request has one answer, whoever gives it."""

from __future__ import annotations

import tracemalloc

from burrowmq.cluster import questions
from burrowmq.cluster.api import (
    NOT_PERMITTED,
    Document,
    Refusal,
    Request,
    delete_stream,
    stream_state,
)
from burrowmq.cluster.questions import LINK_LOST, NO_ANSWER, TOO_MANY, Questions
from burrowmq.cluster.wire import Delivered

Answer = Document | Refusal


def asked(found: Questions, answers: list[Answer], now_ms: float = 0.0) -> bytes:
    return found.ask(stream_state("s"), answers.append, now_ms)


def test_an_answer_goes_to_who_asked() -> None:
    found = Questions(b"in.q")
    first: list[Answer] = []
    second: list[Answer] = []
    assert asked(found, first) == b"PUB $JS.API.STREAM.INFO.s in.q.1 0\r\n\r\n"
    assert b" in.q.2 " in asked(found, second)
    found.answered(Delivered(1, b"in.q.2", b"", b"", b'{"a": 2}'))
    found.answered(Delivered(1, b"in.q.2", b"", b"", b'{"a": 3}'))  # a second one says nothing
    found.answered(Delivered(1, b"in.q.x", b"", b"", b"{}"))
    assert (first, second) == ([], [{"a": 2}])


def test_who_is_not_answered_is_told() -> None:
    found = Questions(b"in.q")
    first: list[Answer] = []
    second: list[Answer] = []
    asked(found, first, 0.0)
    asked(found, second, 100.0)
    found.expire(4_999.0)
    assert first == []
    found.expire(5_000.0)
    assert (first, second) == ([NO_ANSWER], [])
    found.lost()
    assert second == [LINK_LOST]


def test_what_is_sent_once_is_not_kept_until_the_answer_comes() -> None:
    """Messages go to other front-ends so: of one that stands still they would fill the memory for five seconds."""
    found = Questions(b"in.q")
    answers: list[Answer] = []
    tracemalloc.start()
    for _ in range(20):
        found.ask(Request(b"burrowmq.home.a", bytes(1 << 20)), answers.append, 0.0)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size < 1 << 20
    found.lost()
    assert answers == [LINK_LOST] * 20


def test_a_state_that_nobody_tells_is_asked_for_again() -> None:
    """A server leaves it unanswered while it is elected; what changes something is sent once."""
    found = Questions(b"in.q")
    answers: list[Answer] = []
    request = asked(found, answers, 0.0)
    found.ask(delete_stream("s"), answers.append, 0.0)
    assert found.expire(499.0) == b""
    assert found.expire(1_000.0) == request
    assert found.expire(2_999.0) == b""
    assert found.expire(3_000.0) == request
    found.answered(Delivered(1, b"in.q.1", b"", b"", b"{}"))
    assert answers == [{}]
    found.answered(Delivered(1, b"in.q.1", b"", b"", b"{}"))
    assert found.expire(5_000.0) == b""
    assert answers == [{}, NO_ANSWER]


def test_who_asks_again_when_told_waits_for_the_next_answer() -> None:
    found = Questions(b"in.q")
    answers: list[Answer] = []

    def again(answer: Answer) -> None:
        answers.append(answer)
        asked(found, answers)

    found.ask(stream_state("s"), again, 0.0)
    found.lost()
    assert answers == [LINK_LOST]
    found.answered(Delivered(1, b"in.q.2", b"", b"", b"{}"))
    assert answers == [LINK_LOST, {}]


def test_requests_have_a_limit() -> None:
    found = Questions(b"in.q")
    answers: list[Answer] = []
    for _ in range(questions.WAITING_MAX):
        asked(found, answers)
    assert answers == []
    assert asked(found, answers) == b""
    assert answers == [TOO_MANY]


def test_who_asked_of_what_is_not_passed_on_is_answered_with_that() -> None:
    found = Questions(b"in.q")
    first: list[Answer] = []
    second: list[Answer] = []
    other: list[Answer] = []
    found.ask(stream_state("t"), other.append, 0.0)
    asked(found, first)
    asked(found, second)
    denied = Refusal(403, NOT_PERMITTED, "no")
    found.refused(b"$JS.API.STREAM.INFO.s", denied)
    assert (first, second, other) == ([denied], [], [])
    found.refused(b"$JS.API.STREAM.INFO.s", denied)
    found.refused(b"$JS.API.STREAM.INFO.s", denied)
    assert (first, second, other) == ([denied], [denied], [])
