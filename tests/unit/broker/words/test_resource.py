"""burrowmq.broker.words.resource: names in texts, keys and arguments in rows."""

from __future__ import annotations

import pytest

from burrowmq.broker.words.resource import (
    check_same_fields,
    describe,
    not_found,
    pack_arguments,
    row_key,
    unpack_arguments,
)
from burrowmq.protocol.errors import PreconditionFailed
from burrowmq.protocol.table import Byte, FieldTable, Long, Timestamp, encode_table


def test_texts() -> None:
    assert describe("queue", "q{}%s", "/") == "queue 'q{}%s' in vhost '/'"
    assert not_found("exchange", "x", "v").text == "no exchange 'x' in vhost 'v'"


def test_keys_are_unambiguous() -> None:
    assert row_key("a", "b,c") != row_key("a,b", "c")
    assert row_key('a","b') != row_key("a", "b")


def test_arguments_keep_their_types() -> None:
    arguments: FieldTable = {
        "a": Byte(1),
        "b": Long(2),
        "c": Timestamp(3),
        "d": [1, "x", None, {"n": True}],
        "e": b"\xff",
        "f": 1.5,
    }
    assert encode_table(unpack_arguments(pack_arguments(arguments))) == encode_table(arguments)
    assert unpack_arguments(pack_arguments({})) == {}


def test_what_differs_is_told_in_rabbitmqs_words() -> None:
    check_same_fields("queue 'q' in vhost '/'", ("durable", True, True))
    with pytest.raises(PreconditionFailed) as caught:
        check_same_fields("exchange 'e' in vhost '/'", ("durable", True, True), ("type", "x", "y"))
    assert str(caught.value).endswith(
        "inequivalent arg 'type' for exchange 'e' in vhost '/': received 'x' but current is 'y'"
    )
    with pytest.raises(PreconditionFailed, match="received 'true' but current is 'false'"):
        check_same_fields("queue 'q' in vhost '/'", ("durable", True, False))
