# ruff: noqa: E402 - without pyarrow the file is skipped before its imports
from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pa = pytest.importorskip(
    "pyarrow", reason="pyarrow is not installed: pip install 'burrowmq[spark]'"
)

from pyspark_amqp.convert.texts import table_texts
from pyspark_amqp.wire.table import BadTable, Timestamp, decode_table, encode_table


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is", "as it is"),
        ("\udcff", "\ufffd"),
        ("5", "5"),
        (5, "5"),
        (True, "true"),
        (None, "null"),
        (1.5, "1.5"),
        (float("nan"), '"NaN"'),
        (float("-inf"), '"-Infinity"'),
        (Timestamp(7), "7"),
        (b"\x00\xff", '"AP8="'),
        (Decimal("1.25"), "1.25"),
        (Decimal(3), "3"),
        ({"a": [1, "x", None]}, '{"a":[1,"x",null]}'),
    ],
)
def test_what_a_value_becomes(value: object, text: str) -> None:
    assert table_texts(encode_table({"k": value})) == [("k", text)]  # type: ignore[dict-item]


def test_x_death_is_not_among_the_texts() -> None:
    table = encode_table({"x-death": [{"count": 3}], "x-first-death-queue": "q"})
    assert table_texts(table) == [("x-first-death-queue", "q")]


def test_numbers_of_all_sizes() -> None:
    fields = {
        b"b\xff": "-1",
        b"B\xff": "255",
        b"s\xff\xff": "-1",
        b"u\xff\xff": "65535",
        b"I\xff\xff\xff\xff": "-1",
        b"i\xff\xff\xff\xff": "4294967295",
        b"l" + b"\xff" * 8: "-1",
        b"L" + b"\xff" * 8: "-1",
        b"f\x3f\x80\x00\x00": "1.0",
    }
    for octets, text in fields.items():
        body = b"\x01k" + octets
        assert table_texts(len(body).to_bytes(4, "big") + body) == [("k", text)]


def test_of_equal_names_the_first_counts() -> None:
    body = b"\x01kt\x01\x01kt\x00\x01tF\x00\x00\x00\x08\x01kt\x01\x01kt\x00"
    table = len(body).to_bytes(4, "big") + body
    assert table_texts(table) == [("k", "true"), ("t", '{"k":true}')]


NAMES = st.text(max_size=5)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(NAMES, VALUES, max_size=4))
def test_what_is_no_string_is_json(table: dict[str, Any]) -> None:
    table.pop("x-death", None)
    found = dict(table_texts(encode_table(table)))
    assert list(found) == list(table)
    for name, value in table.items():
        if isinstance(value, str):
            assert found[name] == value
        else:
            assert found[name] == json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@given(st.dictionaries(NAMES, VALUES, max_size=4), st.data())
def test_what_decodes_has_texts_and_nothing_else(table: dict[str, Any], data: Any) -> None:
    octets = bytearray(encode_table(table))
    at = data.draw(st.integers(0, len(octets) - 1))
    octets[at] = data.draw(st.integers(0, 255))
    assert is_accepted(table_texts, bytes(octets)) == is_accepted(decode_table, bytes(octets))


def test_nesting_ends_where_decoding_ends() -> None:
    for depth in (126, 127, 128, 129, 200):
        value: Any = 1
        for _ in range(depth):
            value = [value]
        octets = encode_table({"k": value})
        assert (
            is_accepted(table_texts, octets) == is_accepted(decode_table, octets) == (depth < 128)
        )


def is_accepted(read: Any, octets: bytes) -> bool:
    try:
        read(octets)
    except BadTable:
        return False
    return True
