"""Numbers of any length are read or refused by the option's name."""

from __future__ import annotations

import pytest

from pyspark_amqp.options import (
    BadOptions,
    read_sink_options,
    read_stream_options,
    read_stream_queue_options,
)
from pyspark_amqp.wire.address import CONNECT_TIMEOUT_MAX_S

DIGITS = "9" * 5000


@pytest.mark.parametrize(
    "name", ["pollTimeoutMs", "prefetch", "maxBytesPerTask", "inDoubtRetention"]
)
def test_thousands_of_digits_are_refused_by_name(name: str) -> None:
    unit = "d" if name == "inDoubtRetention" else ""
    with pytest.raises(BadOptions, match=f"option '{name}'"):
        read_stream_options({"queue": "q", "spoolLocation": "/s", name: DIGITS + unit})


def test_so_are_those_of_an_address_and_of_an_offset() -> None:
    with pytest.raises(BadOptions, match=r"option 'amqp\.uri'.*heartbeat"):
        read_sink_options({"routingKey": "q", "amqp.uri": f"amqp://h?heartbeat={DIGITS}"})
    for text in (DIGITS, '{"q":' * 20_000):
        with pytest.raises(BadOptions, match="option 'startingOffsets'"):
            read_stream_queue_options({"queue": "q", "startingOffsets": text})
    with pytest.raises(BadOptions, match="option 'queue'"):
        read_stream_options({"queue": "[" * 20_000, "spoolLocation": "/s"})


def test_the_largest_of_the_jvm_are_waits_that_do_not_end() -> None:
    longest = str((1 << 63) - 1)
    given = {"routingKey": "q", "confirmTimeoutMs": longest, "amqp.connectionTimeoutMs": longest}
    found = read_sink_options(given)
    assert found.confirm_timeout_s > 1e15
    assert (
        found.addresses[0].connect_timeout_s == CONNECT_TIMEOUT_MAX_S
    )  # a socket takes no longer one
