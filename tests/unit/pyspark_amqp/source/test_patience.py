"""Steps are tried again while a restart of the broker can mend them."""

from __future__ import annotations

import pytest

from pyspark_amqp.source.patience import Clock, persist
from pyspark_amqp.wire import (
    ChannelClosed,
    ConnectFailed,
    ConnectionClosed,
    ConnectionLost,
    LoginRefused,
    StepTimeout,
    WireError,
)


class FakeClock(Clock):
    """Time that passes by pauses only."""

    def __init__(self) -> None:
        self.at_s = 100.0

    def now_s(self) -> float:
        return self.at_s

    def pause(self, seconds: float) -> None:
        self.at_s += seconds


class Failing:
    """A step that fails some times, then returns how often it was called."""

    def __init__(self, error: WireError, times: int) -> None:
        self.error = error
        self.times = times
        self.count = 0

    def __call__(self) -> int:
        self.count += 1
        if self.count <= self.times:
            raise self.error
        return self.count


def test_a_password_in_a_file_may_be_rotated() -> None:
    refused = LoginRefused("p", "s", "403")
    assert persist(Failing(refused, 5), 60.0, FakeClock(), may_rotate=True) == 6
    with pytest.raises(LoginRefused):
        persist(Failing(refused, 1), 60.0, FakeClock())
    with pytest.raises(LoginRefused):
        persist(Failing(refused, 1000), 60.0, FakeClock(), may_rotate=True)


@pytest.mark.parametrize(
    "error",
    [
        ConnectFailed("p", "s", "refused"),
        ConnectionLost("p", "s", "reset"),
        StepTimeout("p", "s", "slow"),
        ConnectionClosed("p", "s", 320, "CONNECTION_FORCED"),
    ],
)
def test_a_broker_that_comes_back(error: WireError) -> None:
    step = Failing(error, 5)
    assert persist(step, 60.0, FakeClock()) == 6


def test_a_broker_that_stays_away() -> None:
    clock, step = FakeClock(), Failing(ConnectFailed("p", "s", "refused"), 1 << 30)
    with pytest.raises(ConnectFailed):
        persist(step, 60.0, clock)
    assert 158.0 <= clock.at_s <= 160.0
    assert step.count < 40


def test_without_time_there_is_one_attempt() -> None:
    step = Failing(ConnectFailed("p", "s", "refused"), 1)
    with pytest.raises(ConnectFailed):
        persist(step, 0.0, FakeClock())


@pytest.mark.parametrize(
    "error",
    [
        LoginRefused("p", "s", "403"),
        ChannelClosed("p", "s", 404, "NOT_FOUND"),
        ConnectionClosed("p", "s", 530, "NOT_ALLOWED"),
    ],
)
def test_what_waiting_does_not_mend_is_raised_at_once(error: WireError) -> None:
    step = Failing(error, 1)
    with pytest.raises(type(error)):
        persist(step, 60.0, FakeClock())
    assert step.count == 1
