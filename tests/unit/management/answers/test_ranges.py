"""Ages and increments as RabbitMQ takes them, and the samples that they bring; on a fake clock."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiohttp.test_utils import make_mocked_request

from burrowmq.management.answers import ranges
from burrowmq.management.answers.access import TRUSTED
from burrowmq.management.answers.rates import NODE_KEY, Rates, queue_key
from burrowmq.management.answers.reply import ApiError, Call
from burrowmq.management.history import history as kinds
from tests.support.fake_scheduler import FakeScheduler

# A multiple of ten minutes.
BEGAN_MS = 1_700_000_400_000
KEY = queue_key("/", "q")


class Sampled:
    """A queue whose every figure is as told, sampled each five seconds."""

    def __init__(self) -> None:
        self.clock = FakeScheduler(BEGAN_MS)
        self.rates = Rates()

    def sample(self, *figures: int) -> None:
        for figure in figures:
            self.clock.now_ms += 5000
            values = (figure,) * len(kinds.QUEUE.columns)
            now_ms = int(self.clock.monotonic() * 1000)
            self.rates.begin(now_ms)
            self.rates.history.begin(now_ms)
            self.rates.add(kinds.QUEUE.columns, KEY, values)
            self.rates.history.add(kinds.QUEUE, KEY, values)
            self.rates.end()
            self.rates.history.end()

    def call(self, query: str) -> Call:
        host = SimpleNamespace(running=SimpleNamespace(scheduler=self.clock))
        request = make_mocked_request("GET", f"/?{query}")
        return Call(request, cast("Any", host), TRUSTED, self.rates)

    def row(self, query: str, **row: Any) -> dict[str, Any]:
        call = self.call(query)
        return ranges.with_past(call, kinds.QUEUE, KEY, dict(row), ranges.ranges_of(call))


@pytest.fixture
def sampled() -> Sampled:
    """Nothing sampled yet."""
    return Sampled()


def test_without_parameters_there_is_a_rate_alone(sampled: Sampled) -> None:
    sampled.sample(10, 30)
    assert sampled.row("", messages=30) == {"messages": 30, "messages_details": {"rate": 4.0}}


@pytest.mark.parametrize(
    "query",
    ["lengths_age=10", "lengths_incr=5", "lengths_age=x&lengths_incr=5", "lengths_age=5.5&lengths_incr=5",
     "lengths_age=&lengths_incr=", "lengths_age=%205&lengths_incr=5", "lengths_age=1_0&lengths_incr=5",
     "lengths_age=%D9%A1&lengths_incr=1", "msg_rates_age=60&msg_rates_incr=5"],
)  # fmt: skip
def test_what_is_no_range_of_lengths_means_nothing(sampled: Sampled, query: str) -> None:
    sampled.sample(1, 1)
    assert sampled.row(query, messages=1)["messages_details"] == {"rate": 0.0}


@pytest.mark.parametrize(
    ("age", "incr"),
    [("0", "5"), ("-5", "5"), ("5", "0"), ("5", "-1"), ("5010", "10"), ("1" + "0" * 18, "1" + "0" * 18),
     ("9" * 5000, "5")],
)  # fmt: skip
def test_ranges_that_make_no_sense_are_refused(sampled: Sampled, age: str, incr: str) -> None:
    with pytest.raises(ApiError) as refusal:
        ranges.ranges_of(sampled.call(f"node_stats_age={age}&node_stats_incr={incr}"), error="e")
    assert (refusal.value.status, refusal.value.error) == (400, "e")
    assert str(refusal.value.reason).startswith("Invalid range parameters: age ")


def test_samples_come_the_newest_first_with_averages(sampled: Sampled) -> None:
    sampled.sample(10, 20, 40)
    sampled.clock.now_ms += 2000
    found = sampled.row("lengths_age=10&lengths_incr=5", messages=41)
    end = BEGAN_MS + 15_000
    assert found["messages_details"] == {
        "avg": pytest.approx(70 / 3),
        "avg_rate": 3.0,
        "rate": 4.0,
        "samples": [
            {"sample": 40, "timestamp": end},
            {"sample": 20, "timestamp": end - 5000},
            {"sample": 10, "timestamp": end - 10_000},
        ],
    }


def test_some_lengths_end_at_the_next_point(sampled: Sampled) -> None:
    sampled.sample(10, 20)
    sampled.clock.now_ms += 1
    call = sampled.call("lengths_age=5&lengths_incr=5&msg_rates_age=5&msg_rates_incr=5")
    found = ranges.ranges_of(call, are_lengths_rounded_up=True)
    assert found.lengths is not None
    assert found.msg_rates is not None
    assert (found.lengths.last_ms, found.msg_rates.last_ms) == (
        BEGAN_MS + 15_000,
        BEGAN_MS + 10_000,
    )


def test_an_age_below_the_increment_has_one_sample_and_no_average(sampled: Sampled) -> None:
    sampled.sample(10, 20, 30, 40)
    found = sampled.row("lengths_age=5&lengths_incr=10", messages=40)["messages_details"]
    assert found == {"rate": 0.0, "samples": [{"sample": 30, "timestamp": BEGAN_MS + 15_000}]}


def test_counters_follow_their_own_family(sampled: Sampled) -> None:
    sampled.sample(10, 20)
    query = "msg_rates_age=5&msg_rates_incr=5"
    found = sampled.row(query, messages=20, message_stats={"publish": 20, "publish_details": {}})
    assert found["messages_details"] == {"rate": 2.0}
    assert [each["sample"] for each in found["message_stats"]["publish_details"]["samples"]] == [
        20,
        10,
    ]
    assert sampled.row(query, message_stats={}) == {}


def test_before_the_queue_there_was_nothing_in_it(sampled: Sampled) -> None:
    sampled.sample(10)
    found = sampled.row("lengths_age=15&lengths_incr=5", messages=10)["messages_details"]
    assert [each["sample"] for each in found["samples"]] == [10, 0, 0, 0]


def test_a_jump_of_the_wall_clock_moves_all_samples(sampled: Sampled) -> None:
    sampled.sample(10, 20)
    jump = SimpleNamespace(
        wall_ms=lambda: sampled.clock.now_ms + 86_400_000, monotonic=sampled.clock.monotonic
    )
    call = sampled.call("lengths_age=5&lengths_incr=5")
    cast("Any", call.host).running.scheduler = jump
    found = ranges.Past(call, kinds.QUEUE, [KEY], ranges.ranges_of(call)).details(
        "messages", "lengths"
    )
    assert [(each["sample"], each["timestamp"] - BEGAN_MS) for each in found["samples"]] == [
        (20, 86_410_000), (10, 86_405_000),
    ]  # fmt: skip


def test_figures_of_some_together(sampled: Sampled) -> None:
    sampled.sample(10, 20)
    call = sampled.call("lengths_age=5&lengths_incr=5")
    for keys, samples in (([KEY, KEY], [40, 20]), ([KEY, ("/", "none")], [20, 10]), ([], [])):
        past = ranges.Past(call, kinds.QUEUE, keys, ranges.ranges_of(call))
        found = past.details("messages", "lengths")
        assert [each["sample"] for each in found["samples"]] == samples
    without = ranges.Past(call, kinds.QUEUE, [KEY, KEY], ranges.NO_RANGES)
    assert without.details("messages", "lengths") == {"rate": 4.0}


def test_a_page_gets_columns(sampled: Sampled) -> None:
    sampled.sample(10, 20)
    assert ranges.history_of(sampled.call(""), kinds.QUEUE, [KEY], ("publish",)) is None
    found = ranges.history_of(sampled.call("history=60"), kinds.QUEUE, [KEY], ("publish",))
    assert found is not None
    assert (found["age"], found["incr"], found["from"]) == (60, 5, BEGAN_MS - 50_000)
    assert found["columns"] == {"publish": [*[0] * 11, 10, 20]}
    new = ranges.history_of(sampled.call("history=3600"), kinds.QUEUE, [("/", "new")], ("ack",))
    assert new is not None
    assert new["columns"] == {"ack": [0] * 61}
    whole = ranges.history_of(sampled.call("history=3600"), kinds.NODE, [NODE_KEY], ("ack",))
    assert whole is not None
    assert whole["columns"] == {"ack": [None] * 61}
    with pytest.raises(ApiError) as refusal:
        ranges.history_of(sampled.call("history=61"), kinds.QUEUE, [KEY], ())
    assert refusal.value.status == 400


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("", None),
        ("lengths_age=60&lengths_incr=5", 500),
        ("lengths_age=500&lengths_incr=1", 62),
        ("&".join(f"{family}_age=500&{family}_incr=1" for family in ranges.FAMILIES), 15),
    ],
)
def test_an_answer_has_so_many_samples_at_most(
    sampled: Sampled, query: str, rows: int | None
) -> None:
    found = ranges.finish_of(print, ranges.ranges_of(sampled.call(query)))
    assert (found and found.rows_max) == rows
