"""broker.resource: names in texts, keys and arguments in rows."""

from __future__ import annotations

from broker.resource import describe, not_found, pack_arguments, row_key, unpack_arguments
from protocol.table import Byte, FieldTable, Long, Timestamp, encode_table


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
