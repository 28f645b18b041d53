"""Medians, ratios and verdicts from synthetic measurements."""

from dataclasses import replace

import pytest

from bench.report import (
    MISSED,
    NOT_RUN,
    OK,
    Change,
    change,
    compare,
    judge,
    markdown,
    ratios,
    regressions,
    round_ratios,
)
from bench.results import Measure, Results
from bench.scenarios import Figure


def _results(
    rates: dict[str, list[float]], cpu_us: float = 1.0, *, is_full: bool = True
) -> Results:
    found = Results(is_full, 3, "2026-01-01T00:00:00+00:00", {"cpu": "x"}, {"rabbitmq": "3.10.8"})
    for peer, values in rates.items():
        for number, rate in enumerate(values):
            measured = {"rate": rate, "cpu_us": cpu_us, "rss_after": 80e6}
            found.measures.append(Measure("1p1c-16", peer, number, measured, "cached", "broker"))
    return found


_RATIO = Figure(title="t", scenario="1p1c-16", relative_to="rabbitmq", must=15, reach=40)
_SIZE = Figure(
    title="s", scenario="1p1c-16", value="rss_after", must=90e6, is_at_most=True, only_full=True
)


def test_ratios_are_formed_within_a_round() -> None:
    found = _results({"burrowmq": [100.0, 900.0, 30.0], "rabbitmq": [10.0, 30.0]})
    assert ratios(found, "1p1c-16", "rate", ("burrowmq", "rabbitmq")) == [10.0, 30.0]


@pytest.mark.parametrize(("rate", "word"), [(150.0, OK), (149.0, MISSED)])
def test_must_is_compared_with_the_median_ratio(rate: float, word: str) -> None:
    found = _results({"burrowmq": [1.0, rate, 900.0], "rabbitmq": [10.0, 10.0, 10.0]})
    assert judge(found, _RATIO).word == word


def test_two_rows_of_one_broker_are_compared_round_by_round() -> None:
    found = _results({"burrowmq": [1.0, 1.0]}, cpu_us=2.0)
    found.measures += [
        Measure("keys-10", "burrowmq", number, {"cpu_us": cpu_us})
        for number, cpu_us in ((0, 6.0), (1, 12.0), (2, 99.0))
    ]
    figure = Figure(
        title="k", scenario="keys-10", value="cpu_us", over="1p1c-16", must=4, is_at_most=True
    )
    verdict = judge(found, figure)
    assert (verdict.value, verdict.word) == (4.5, MISSED)


def test_a_broker_for_orientation_has_no_rows_where_it_is_not_installed() -> None:
    assert "LavinMQ" not in markdown(_results({"burrowmq": [1.0]}))


def test_a_figure_without_measurements_is_not_run() -> None:
    assert judge(_results({"rabbitmq": [1.0]}), _RATIO).word == NOT_RUN


def test_a_full_size_promise_is_not_kept_by_a_quick_run() -> None:
    rates = {"burrowmq": [1.0]}
    assert judge(_results(rates), _SIZE).word == OK
    assert judge(_results(rates, is_full=False), _SIZE).word == "ok at quick size"
    assert judge(_results(rates, is_full=False), replace(_SIZE, must=70e6)).word == MISSED


def test_markdown_names_failures_modes_and_limits() -> None:
    found = _results({"burrowmq": [200.0], "rabbitmq": [10.0]})
    found.measures.append(Measure("restart", "burrowmq", 0, {}, failure="3 left of 4"))
    text = markdown(found)
    assert "- restart on BurrowMQ (compiled), round 1: 3 left of 4" in text
    assert "| 20.0 x |" in text
    assert "| broker | cached |" in text


def test_a_small_part_of_what_another_needs_is_told_exactly() -> None:
    found = _results({"burrowmq": [1.0], "rabbitmq": [1.0]})
    measures = [
        replace(
            measure,
            scenario="keys-10",
            values={"cpu_us": 0.22 if measure.peer == "burrowmq" else 20.0},
        )
        for measure in found.measures
    ]
    text = markdown(replace(found, measures=measures))
    assert "| 0.0110 x (to RabbitMQ) | ≤ 0.0250 x | 0.0111 x | ok |" in text


def test_compare_judges_by_cpu_and_not_by_rate() -> None:
    old = _results({"burrowmq": [100.0]}, cpu_us=1.0)
    assert regressions(old, _results({"burrowmq": [10.0]}, cpu_us=1.1)) == 0
    assert regressions(old, _results({"burrowmq": [900.0]}, cpu_us=1.5)) == 1
    assert "+50.0%" in compare(old, _results({"burrowmq": [900.0]}, cpu_us=1.5))


def test_below_six_rounds_nothing_is_said_of_where_the_change_lies() -> None:
    assert change([1.0] * 5) == Change(1.0, None, None)
    assert change([]) is None


def test_a_round_says_the_median_of_its_turns_each_beside_its_neighbour() -> None:
    # The machine slows down between turns of the first round, which is no change; a turn of the second was disturbed.
    before = {(0, 0): 1.0, (0, 1): 5.0, (1, 0): 1.0, (1, 1): 1.0, (1, 2): 1.0, (2, 0): 0.0}
    after = {(0, 0): 1.1, (0, 1): 5.5, (1, 0): 1.0, (1, 1): 9.0, (1, 2): 1.2, (2, 0): 1.0}
    assert round_ratios(before, after) == [pytest.approx(1.1), 1.2]
    assert round_ratios(before, {}) == []


def test_the_interval_of_a_change_is_that_of_the_sign_test() -> None:
    # Of 12 rounds the third lowest and the third highest: the true median lies between in 96 of 100 such runs.
    ratios = [1.0 + number / 100 for number in range(12)]
    found = change(ratios)
    assert found is not None
    assert (round(found.ratio, 3), found.low, found.high) == (1.055, 1.02, 1.09)
    six = change(ratios[:6])
    assert six is not None
    assert (six.low, six.high) == (1.0, 1.05)


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [
        (1.04, 1.2, "WORSE"),
        (1.02, 1.2, "unsettled"),
        (0.98, 1.03, "no worse"),
        (0.5, 0.99, "better"),
        (0.5, 1.5, "unsettled"),
    ],
)
def test_a_change_is_called_worse_or_not_only_when_the_rounds_leave_no_doubt(
    low: float, high: float, word: str
) -> None:
    assert Change((low + high) / 2, low, high).word == word


def test_a_disturbed_run_says_so() -> None:
    found = _results({"burrowmq": [200.0]})
    assert "No load row was run" in markdown(found)
    found.measures.append(Measure("1p1c-16", "burrowmq", 1, {"others_cores": 0.1}))
    assert "None of 1 load runs" in markdown(found)
    found.measures.append(Measure("1p1c-16", "rabbitmq", 0, {"others_cores": 1.5}))
    assert "1 of 2 load runs were disturbed" in markdown(found)
