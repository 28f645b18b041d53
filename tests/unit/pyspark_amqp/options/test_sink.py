"""What a write may say."""

from __future__ import annotations

import pytest

from pyspark_amqp.options import BadOptions, read_sink_options


def test_defaults_lose_nothing() -> None:
    found = read_sink_options({"routingKey": "q", "checkpointLocation": "/c", "queryName": "n"})
    assert (found.exchange, found.routing_key) == ("", "q")
    assert found.is_mandatory
    assert found.fails_on_return
    assert (found.delivery_mode, found.confirm_window) == (2, 2000)
    assert found.message_ids == "deterministic"
    assert found.max_rate_per_task is None


def test_everything() -> None:
    found = read_sink_options(
        {
            "exchange": "x",
            "confirmWindow": "10",
            "confirmTimeoutMs": "5s",
            "mandatory": "false",
            "onReturn": "count",
            "deliveryMode": "1",
            "messageIdMode": "COLUMN",
            "maxRatePerTask": "100",
        }
    )
    assert (found.confirm_window, found.confirm_timeout_s) == (10, 5.0)
    assert not found.is_mandatory
    assert not found.fails_on_return
    assert not found.has_routing_key
    assert (found.delivery_mode, found.message_ids, found.max_rate_per_task) == (1, "column", 100)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"declareQueue": "true"}, "'declareQueue' declares the queue that 'routingKey' names"),
        ({"declareQueue": "true", "routingKey": "q", "exchange": "x"}, "and no exchange"),
        ({"routingKey": "k" * 256}, "longer than 255 octets"),
        ({"messageIdPrefix": "p", "messageIdMode": "none"}, "needs messageIdMode=deterministic"),
        ({"deliveryMode": "3"}, "no whole number from 1 to 2"),
        ({"queue": "q"}, "option 'queue' is not known here"),
    ],
)
def test_what_a_write_refuses(options: dict[str, str], problem: str) -> None:
    with pytest.raises(BadOptions) as raised:
        read_sink_options(options)
    assert problem in str(raised.value)
