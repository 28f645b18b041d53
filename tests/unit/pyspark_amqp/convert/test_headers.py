# ruff: noqa: E402 - without pyarrow the file is skipped before its imports
from __future__ import annotations

import pytest

pa = pytest.importorskip(
    "pyarrow", reason="pyarrow is not installed: pip install 'burrowmq[spark]'"
)

from pyspark_amqp.convert.headers import (
    YEAR_10000_S,
    deaths,
    microseconds,
    table_octets,
)
from pyspark_amqp.wire.table import Timestamp, decode_table


def test_x_death_is_typed() -> None:
    entry = {
        "count": 3,
        "reason": "expired",
        "queue": "q",
        "time": Timestamp(1_700_000_000),
        "exchange": "",
        "routing-keys": ["q", "r"],
        "original-expiration": "60000",
    }
    assert deaths({"x-death": [entry]}) == [
        {
            "queue": "q",
            "reason": "expired",
            "count": 3,
            "exchange": "",
            "routing_keys": ["q", "r"],
            "time": 1_700_000_000_000_000,
            "original_expiration": "60000",
        }
    ]


@pytest.mark.parametrize("odd", ["text", 5, None, {"queue": "q"}])
def test_an_x_death_of_somebody_s_own_is_none(odd: object) -> None:
    assert deaths({"x-death": odd}) is None  # type: ignore[dict-item]


def test_odd_entries_of_x_death_do_no_harm() -> None:
    found = deaths({"x-death": [5, {"count": "many", "routing-keys": "k", "queue": 7}]})
    assert found is not None
    assert [(one["count"], one["routing_keys"], one["queue"]) for one in found] == [
        (None, None, "7")
    ]


def test_times_that_no_calendar_has_are_null() -> None:
    assert microseconds(5) == 5_000_000
    assert microseconds(YEAR_10000_S) is None
    assert microseconds(-1) is None


def test_the_way_back_makes_strings() -> None:
    assert decode_table(table_octets([("a", "1"), ("b", None)])) == {"a": "1", "b": None}
