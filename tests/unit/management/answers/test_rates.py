"""Rates from two samples."""

from __future__ import annotations

from burrowmq.management.answers import rates as keys
from burrowmq.management.answers.rates import Rates

COLUMNS = ("publish", "ack")


def sample(rates: Rates, now_ms: int, *keys: str, publish: int) -> None:
    rates.begin(now_ms)
    for key in keys:
        rates.add(COLUMNS, key, (publish, 0))
    rates.end()


def test_rate_is_the_slope_between_the_last_two_samples() -> None:
    rates = Rates()
    assert rates.rate("node", "publish") == 0.0
    for now_ms, count in ((0, 0), (5000, 100), (10_000, 150)):
        sample(rates, now_ms, "node", publish=count)
    assert rates.rate("node", "publish") == 10.0
    assert rates.rate("node", "no such column") == 0.0
    assert rates.details("node", {"publish": 150}) == {
        "publish": 150,
        "publish_details": {"rate": 10.0},
    }


def test_what_is_no_longer_sampled_is_forgotten() -> None:
    rates = Rates()
    for now_ms in (0, 5000):
        sample(rates, now_ms, "queue", publish=1)
    assert weighed(rates, "queue")
    sample(rates, 10_000, "other", publish=1)
    assert rates.rate("queue", "publish") == 0.0
    assert not weighed(rates, "queue")


def weighed(rates: Rates, key: str) -> bool:
    """Whether memory is kept for it."""
    return any(key in each for each in (rates._current, rates._previous, rates._pending))


def test_what_rests_is_in_every_round_until_it_wakes() -> None:
    rates = Rates()
    assert not rates.rest(["a"])
    for now_ms, count in ((0, 100), (5000, 200)):
        sample(rates, now_ms, "a", "b", publish=count)
    assert rates.rate("a", "publish") == 20.0
    assert not rates.rest(["a", "stranger"])
    assert rates.rest(["a"])
    for now_ms in (10_000, 15_000):
        sample(rates, now_ms, publish=0)
    assert (rates.rate("a", "publish"), rates.changed_ms("a")) == (0.0, 5000)
    assert (rates.kept("a"), rates.kept("b")) == ((200, 0), None)
    rates.wake(["a"])
    sample(rates, 20_000, "a", publish=300)
    assert (rates.rate("a", "publish"), rates.changed_ms("a")) == (20.0, 20_000)
    assert rates.rest(["a"])
    rates.drop(["a"])
    assert (rates.changed_ms("a"), rates.kept("a")) == (None, None)


def test_two_of_one_name_may_rest_and_wake_or_end_one_by_one() -> None:
    rates = Rates()
    sample(rates, 0, "a", publish=100)
    assert rates.rest(["a"])
    sample(rates, 5000, "a", "channel", publish=7)  # the other one
    assert rates.rest(["a", "channel"])
    rates.drop(["a"])
    rates.wake(["a", "channel"])
    sample(rates, 10_000, "a", "channel", publish=17)
    assert (rates.rate("a", "publish"), rates.rate("channel", "publish")) == (0.0, 2.0)
    assert rates.rest(["a", "channel"])
    rates.drop(["a"])
    rates.drop(["a", "channel"])
    assert (rates.kept("a"), rates.kept("channel")) == (None, None)


def test_what_was_forgotten_has_no_rate_until_two_samples_later() -> None:
    rates = Rates()
    for now_ms, count in ((0, 100), (5000, 200)):
        sample(rates, now_ms, "node", publish=count)
    rates.clear()
    sample(rates, 10_000, "node", publish=0)
    assert rates.rate("node", "publish") == 0.0
    assert len(rates.history) == 0


def test_keys_of_different_things_differ() -> None:
    name = "vhost"
    found = {
        keys.queue_key(name, name), keys.vhost_key(name), keys.exchange_key(name, name),
        keys.connection_key(name), keys.channel_key(name), keys.NODE_KEY,
    }  # fmt: skip
    assert len(found) == 6


def test_it_is_known_since_when_figures_are_the_same() -> None:
    rates = Rates()
    assert rates.changed_ms("node") is None
    for now_ms, count in ((0, 1), (5000, 1), (10_000, 2), (15_000, 2)):
        sample(rates, now_ms, "node", publish=count)
    assert (rates.changed_ms("node"), rates.now_ms) == (10_000, 15_000)
    sample(rates, 20_000, "other", publish=1)
    assert rates.changed_ms("node") is None
