"""What is asked of streams that keep what was read, and what their answers say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from burrowmq.cluster import retained
from burrowmq.cluster.api import MS
from burrowmq.cluster.retained import Amount, Limits, RetainedSettings, Start


def test_a_stream_lets_go_of_the_oldest() -> None:
    found = RetainedSettings(
        name="S_x", subjects=("S_x.*",), limits=Limits(5_000, 7_000)
    ).document()
    assert (found["retention"], found["discard"]) == ("limits", "old")
    assert (found["max_bytes"], found["max_age"]) == (5_000, 7_000 * MS)
    assert (found["name"], found["subjects"], found["num_replicas"]) == ("S_x", ["S_x.*"], 3)


def test_duplicates_are_known_no_longer_than_messages_are_kept() -> None:
    assert Limits(None, 7_000).fields()["duplicate_window"] == 7_000 * MS
    for age_ms in (None, 86_400_000):
        assert Limits(None, age_ms).fields()["duplicate_window"] == 600_000 * MS


def test_limits_are_changed_and_nothing_else() -> None:
    config: dict[str, Any] = {"name": "S_x", "num_replicas": 5, "placement": {"tags": ["a"]}}
    config |= Limits(1, 2).fields()
    assert retained.change_limits({"config": config}, Limits(1, 2)) is None
    assert retained.change_limits({}, Limits(1, 2)) is None
    request = retained.change_limits({"config": config}, retained.NO_LIMITS)
    assert request is not None
    assert request.subject == b"$JS.API.STREAM.UPDATE.S_x"
    wanted = json.loads(request.payload)
    assert wanted == config | {"max_bytes": -1, "max_age": 0, "duplicate_window": 600_000 * MS}


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (
            {"subjects": {"S_x.1": 3, "S_x.40": 2}, "bytes": 9, "first_seq": 4, "last_seq": 8},
            Amount(83, 9, 4, 8),
        ),
        ({"bytes": 0, "first_seq": 0, "last_seq": 0}, Amount(0, 0, 1, 0)),
        ({"subjects": {"S_x.odd": 3, "S_x.2": "3"}, "first_seq": 1, "last_seq": 3}, Amount(0, 0, 1, 3)),
        (None, Amount(0, 0, 1, 0)),
    ],
)  # fmt: skip
def test_how_many_there_are(state: object, expected: Amount) -> None:
    assert retained.amount_of({"state": state}) == expected
    assert json.loads(retained.counted_state("S_x").payload) == {"subjects_filter": ">"}


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (retained.FIRST, {"deliver_policy": "all"}),
        (retained.LAST, {"deliver_policy": "last"}),
        (retained.NEXT, {"deliver_policy": "new"}),
        (retained.at_sequence(7), {"deliver_policy": "by_start_sequence", "opt_start_seq": 7}),
        (retained.at_sequence(-7), {"deliver_policy": "by_start_sequence", "opt_start_seq": 1}),
        (
            retained.at_time(1_500_000_000_123),
            {"deliver_policy": "by_start_time", "opt_start_time": "2017-07-14T02:40:00.123Z"},
        ),
    ],
)
def test_where_a_reader_begins(start: Start, expected: dict[str, object]) -> None:
    request = retained.create_reader("S_x", "r1", start)
    assert request.subject == b"$JS.API.CONSUMER.CREATE.S_x.r1"
    found = json.loads(request.payload)
    assert found["stream_name"] == "S_x"
    config = found["config"]
    assert expected.items() <= config.items()
    assert (config["ack_policy"], config["num_replicas"], config["name"]) == ("none", 1, "r1")


@pytest.mark.parametrize(
    ("wall_ms", "text"),
    [
        (-(10**12), "1970-01-01T00:00:00.000Z"),
        (10**17, "9999-01-01T00:00:00.000Z"),
        (-(10**30), "1970-01-01T00:00:00.000Z"),
        (10**30, "9999-01-01T00:00:00.000Z"),
    ],
)
def test_a_time_that_no_calendar_has_is_the_nearest(wall_ms: int, text: str) -> None:
    assert dict(retained.at_time(wall_ms).fields)["opt_start_time"] == text


def test_what_a_reader_is_given_first_and_which_delivery_one_is() -> None:
    assert retained.position_in({"delivered": {"consumer_seq": 0, "stream_seq": 4}}) == 5
    assert retained.position_in({}) == 1
    assert retained.number_of(b"$JS.ACK.S_x.r1.1.30.2.1795746048530630418.0") == 2
    assert retained.delete_reader("S_x", "r1").subject == b"$JS.API.CONSUMER.DELETE.S_x.r1"
