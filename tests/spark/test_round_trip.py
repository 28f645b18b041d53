"""The messages of the round trip: each tells its number, whatever octets that number has."""

from __future__ import annotations

import pytest

from tests.spark.round_trip import number_of, properties_of


# 93804 is 0x00016E6C: in its octets stands what the header of a larger number begins with.
@pytest.mark.parametrize("n", [0, 1, 2999, 93_804])
def test_a_message_tells_its_number(n: int) -> None:
    assert number_of(properties_of(n)) == n


def test_another_message_has_none() -> None:
    assert number_of(b"\x10\x00\x02") == -1
