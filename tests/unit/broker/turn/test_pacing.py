"""When the loop pauses between turns, and when it must not."""

from typing import Any, cast

import pytest

from burrowmq.broker.report.metrics import NodeMetrics
from burrowmq.broker.turn.busy_wait import WAIT_S, BusyWait
from burrowmq.broker.turn.pacing import FAST_RATE, PAUSE_S, SMALL_TURN, WINDOW_TURNS, Pacing


class _Traffic:
    """Turns of a made-up load, on a clock that only turns and pauses move."""

    def __init__(self, busy_wait: BusyWait | None = None) -> None:
        self.now = 0.0
        self.pauses = 0
        self.metrics = NodeMetrics()
        self.pacing = Pacing(self.metrics, busy_wait, monotonic=lambda: self.now, sleep=self._sleep)

    def _sleep(self, seconds: float) -> None:
        self.pauses += 1
        self.now += seconds

    def windows(self, count: int, *, rate: float, turn: int, answers: int = 0) -> None:
        """`count` windows of turns of `turn` messages that arrived at `rate`, and those that came during pauses."""
        for _ in range(count * WINDOW_TURNS):
            paused = PAUSE_S if self.pacing.is_on else 0.0
            self.now += turn / rate
            self.metrics.messages_received += turn + round(paused * rate)
            self.metrics.messages_acknowledged += answers
            self.pacing.turn_ended()


@pytest.fixture
def traffic() -> _Traffic:
    return _Traffic()


def test_fast_small_turns_are_paced(traffic: _Traffic) -> None:
    traffic.windows(3, rate=2 * FAST_RATE, turn=2)
    assert traffic.pacing.is_on
    assert traffic.pauses == 2 * WINDOW_TURNS + 1


def test_what_gathers_in_the_pauses_does_not_end_them(traffic: _Traffic) -> None:
    rate = 20 * FAST_RATE
    assert rate * PAUSE_S > SMALL_TURN
    traffic.windows(6, rate=rate, turn=2)
    assert traffic.pacing.is_on


@pytest.mark.parametrize(
    ("rate", "turn", "answers"),
    [
        pytest.param(FAST_RATE / 2, 1, 0, id="a client in lock step, or a moderate rate"),
        pytest.param(2 * FAST_RATE, 2 * SMALL_TURN, 0, id="turns that are large by themselves"),
        pytest.param(2 * FAST_RATE, 4, 2, id="somebody waits for answers"),
    ],
)
def test_nobody_else_is_paced(traffic: _Traffic, rate: float, turn: int, answers: int) -> None:
    traffic.windows(5, rate=rate, turn=turn, answers=answers)
    assert traffic.pauses == 0


@pytest.mark.parametrize("answer", ["messages_rejected", "messages_confirmed", "messages_refused"])
def test_whatever_answers_is_an_answer_like_an_ack(traffic: _Traffic, answer: str) -> None:
    traffic.windows(2, rate=2 * FAST_RATE, turn=3)
    assert traffic.pacing.is_on
    setattr(traffic.metrics, answer, getattr(traffic.metrics, answer) + 100 * WINDOW_TURNS)
    traffic.windows(1, rate=2 * FAST_RATE, turn=3)
    assert not traffic.pacing.is_on


def test_pauses_end_with_the_load(traffic: _Traffic) -> None:
    traffic.windows(3, rate=2 * FAST_RATE, turn=2)
    traffic.windows(1, rate=FAST_RATE / 100, turn=1)
    before = traffic.pauses
    traffic.windows(2, rate=FAST_RATE / 100, turn=1)
    assert not traffic.pacing.is_on
    assert traffic.pauses == before


def test_a_few_acks_beside_a_flood_do_not_end_them(traffic: _Traffic) -> None:
    traffic.windows(2, rate=2 * FAST_RATE, turn=3)
    traffic.metrics.messages_acknowledged += 5
    traffic.windows(1, rate=2 * FAST_RATE, turn=3)
    assert traffic.pacing.is_on


def test_a_window_that_took_no_time_tells_nothing(traffic: _Traffic) -> None:
    for _ in range(WINDOW_TURNS):
        traffic.pacing.turn_ended()
    assert not traffic.pacing.is_on


class _Awake:
    """Counts the turns after which the loop was asked to stay awake."""

    def __init__(self) -> None:
        self.turns = 0

    def turn_ended(self) -> None:
        self.turns += 1


@pytest.mark.parametrize(
    ("rate", "turns"),
    [
        pytest.param(2 / WAIT_S, 2 * WINDOW_TURNS + 1, id="steady"),
        pytest.param(0.5 / WAIT_S, 0, id="too slow to wait for"),
        pytest.param(2 * FAST_RATE, 0, id="so fast that pauses pay"),
    ],
)
def test_steady_turns_are_waited_for_awake(rate: float, turns: int) -> None:
    awake = _Awake()
    traffic = _Traffic(cast("Any", awake))
    traffic.windows(3, rate=rate, turn=1)
    assert awake.turns == turns


def test_answers_do_not_end_that() -> None:
    awake = _Awake()
    _Traffic(cast("Any", awake)).windows(2, rate=2 / WAIT_S, turn=1, answers=1)
    assert awake.turns == WINDOW_TURNS + 1


@pytest.mark.parametrize(
    ("moving", "turns"),
    [
        pytest.param("", 0, id="connections that come and go"),
        pytest.param("messages_received", WINDOW_TURNS + 1, id="publishes"),
        pytest.param("messages_delivered", WINDOW_TURNS + 1, id="deliveries"),
        pytest.param(
            "messages_get_empty", WINDOW_TURNS + 1, id="a queue that is asked for its next message"
        ),
        pytest.param("messages_confirmed", WINDOW_TURNS + 1, id="confirms"),
        pytest.param("queues_declared", WINDOW_TURNS + 1, id="queues that come"),
        pytest.param("queues_deleted", WINDOW_TURNS + 1, id="queues that go"),
    ],
)
def test_only_turns_about_messages_or_queues_are_waited_for_awake(moving: str, turns: int) -> None:
    awake = _Awake()
    traffic = _Traffic(cast("Any", awake))
    for turn in range(2 * WINDOW_TURNS):
        traffic.now += WAIT_S / 2
        if moving and turn % 2:
            setattr(traffic.metrics, moving, getattr(traffic.metrics, moving) + 1)
        traffic.pacing.turn_ended()
    assert awake.turns == turns
