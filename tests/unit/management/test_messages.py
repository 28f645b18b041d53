"""Messages as the API shows them."""

from __future__ import annotations

import pytest

from burrowmq.management import messages
from burrowmq.management.answers.reply import ApiError
from burrowmq.protocol import properties as basic
from burrowmq.protocol.codec import join_address


def test_a_row_has_payload_and_properties() -> None:
    given = messages._properties({"delivery_mode": "2", "headers": {"a": 1}, "type": "t"})
    message = basic.build(join_address(b"ex", b"key"), given, b"caf\xc3\xa9")
    row = messages.row((message, True, 7), "auto", None)
    assert (row["exchange"], row["routing_key"], row["message_count"], row["redelivered"]) == (
        "ex",
        "key",
        7,
        True,
    )
    assert (row["payload"], row["payload_encoding"], row["payload_bytes"]) == ("café", "string", 5)
    assert row["properties"] == {"headers": {"a": 1}, "delivery_mode": 2, "type": "t"}


def test_bytes_that_are_no_text_are_base64() -> None:
    message = basic.build(join_address(b"", b"q"), basic.Properties(), b"\xff\xfe")
    row = messages.row((message, False, 0), "auto", 1)
    assert (row["payload"], row["payload_encoding"], row["properties"]) == ("/w==", "base64", [])


@pytest.mark.parametrize("given", [{"nosuch": 1}, {"priority": "high"}, {"headers": []}])
def test_bad_properties(given: dict[str, object]) -> None:
    with pytest.raises(ApiError):
        messages._properties(given)
