"""Tables and properties as the differential suite writes and reads them, against pamqp."""

from __future__ import annotations

import pytest
from pamqp import decode, encode

from tests.support.field_table import (
    Typed,
    decode_properties,
    decode_table,
    encode_properties,
    encode_table,
)

TABLE = {
    "S": "text",
    "I": -5,
    "l": Typed("l", 5),
    "s": Typed("s", -300),
    "t": True,
    "d": 1.5,
    "V": None,
    "A": [1, "a", [None]],
    "F": {"inner": {"deep": 1}},
}


def test_the_reference_reads_what_is_written() -> None:
    _, found = decode.field_table(encode_table(TABLE))
    assert found == {
        **{key: value for key, value in TABLE.items() if key not in ("l", "s")},
        "l": 5,
        "s": -300,
    }


def test_what_the_reference_writes_is_read() -> None:
    octets = encode.field_table({"a": 1 << 40, "b": "x", "c": [True]})
    assert decode_table(octets)[0] == {"a": "l:1099511627776", "b": "S:x", "c": ["t:True"]}


def test_types_and_order_are_told() -> None:
    table = {
        "z": Typed("l", 1),
        "a": 1,
        "x": b"\x00",
        "T": Typed("T", 5),
        "D": Typed("D", (2, 314)),
    }
    found, end = decode_table(encode_table(table))
    assert list(found.items()) == [
        ("z", "l:1"),
        ("a", "I:1"),
        ("x", "x:\x00"),
        ("T", "T:5"),
        ("D", "D:2,314"),
    ]
    assert end == len(encode_table(table))


def test_properties_come_back() -> None:
    given = {"content_type": "a", "delivery_mode": 2, "timestamp": 7, "user_id": "u", "headers": {}}
    assert decode_properties(encode_properties(given)) == given
    with pytest.raises(ValueError, match="no such properties"):
        encode_properties({"colour": "red"})
    with pytest.raises(ValueError, match="after the properties"):
        decode_properties(encode_properties({}) + b"x")
