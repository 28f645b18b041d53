"""So many messages a second, and no burst after a pause."""

from __future__ import annotations

import pytest

from pyspark_amqp.sink.pace import BURST_S, Clock, Pace


class FakeClock(Clock):
    """Time that passes by pauses only."""

    def __init__(self) -> None:
        self.at_s = 0.0

    def now_s(self) -> float:
        return self.at_s

    def pause(self, seconds: float) -> None:
        self.at_s += seconds


@pytest.mark.parametrize("rate", [1, 7, 1000, 250_000])
def test_the_rate_is_kept(rate: int) -> None:
    clock = FakeClock()
    pace = Pace(rate, clock)
    sent = 0
    while clock.at_s < 10:
        pace.take(pace.most)
        sent += pace.most
    assert sent <= rate * (clock.at_s + BURST_S) + 1
    assert sent >= rate * clock.at_s - pace.most


def test_a_pause_is_not_made_up_for() -> None:
    clock = FakeClock()
    pace = Pace(1000, clock)
    pace.take(pace.most)
    clock.at_s += 60
    before = clock.at_s
    for _ in range(10):
        pace.take(pace.most)
    assert clock.at_s - before >= 0.9 - 1e-6
