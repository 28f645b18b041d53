"""Flag word and properties give the message's flags, or -1; the reference codec makes the properties."""

from __future__ import annotations

import pytest
from pamqp import commands

from burrowmq.protocol.codec._header_py import header_flags
from burrowmq.protocol.constants import MAYBE_CC, PERSISTENT, PROP_PRIORITY


def payload(**properties: object) -> bytes:
    """A content header's payload: class, weight, size, then flag word and properties."""
    return b"\0" * 12 + commands.Basic.Properties(**properties).marshal()


def test_every_property_is_stepped_over() -> None:
    assert header_flags(
        payload(
            content_type="t", content_encoding="e", headers={"a": 1}, delivery_mode=2, priority=5,
            correlation_id="c", reply_to="r", expiration="1", message_id="m", message_type="y",
            user_id="u", app_id="p",
        )
    ) & (PERSISTENT | PROP_PRIORITY) == PERSISTENT | PROP_PRIORITY  # fmt: skip


def test_only_delivery_mode_2_is_persistent() -> None:
    assert not header_flags(payload(delivery_mode=1)) & PERSISTENT
    assert header_flags(payload(delivery_mode=2)) & PERSISTENT


@pytest.mark.parametrize("name", ["CC", "BCC"])
def test_headers_that_may_add_routes_are_announced(name: str) -> None:
    assert header_flags(payload(headers={name: ["k"]})) & MAYBE_CC
    assert not header_flags(payload(headers={"x": "k"})) & MAYBE_CC


@pytest.mark.parametrize("cut", [1, 3])
def test_what_is_cut_short_or_too_long_is_malformed(cut: int) -> None:
    whole = payload(headers={"a": 1}, message_id="m")
    assert header_flags(whole[:-cut]) == -1
    assert header_flags(whole + b"\0" * cut) == -1
