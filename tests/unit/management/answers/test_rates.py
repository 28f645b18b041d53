"""Rates from two samples."""

from __future__ import annotations

from burrowmq.management.answers.rates import Rates


def test_rate_is_the_slope_between_the_last_two_samples() -> None:
    rates = Rates()
    assert rates.rate("node", "publish") == 0.0
    for now_s, count in ((0.0, 0), (5.0, 100), (10.0, 150)):
        rates.add("node", now_s, {"publish": count})
        rates.finish()
    assert rates.rate("node", "publish") == 10.0
    assert rates.details("node", {"publish": 150}) == {
        "publish": 150,
        "publish_details": {"rate": 10.0},
    }


def test_what_is_no_longer_sampled_is_forgotten() -> None:
    rates = Rates()
    for _ in range(2):
        rates.add("queue", 0.0, {"publish": 1})
        rates.finish()
    rates.finish()
    rates.finish()
    assert rates.rate("queue", "publish") == 0.0
    assert rates._current == rates._previous == {}


def test_what_was_forgotten_has_no_rate_until_two_samples_later() -> None:
    rates = Rates()
    for now_s, count in ((0.0, 100), (5.0, 200)):
        rates.add("node", now_s, {"publish": count})
        rates.finish()
    rates.clear()
    rates.add("node", 10.0, {"publish": 0})
    rates.finish()
    assert rates.rate("node", "publish") == 0.0
