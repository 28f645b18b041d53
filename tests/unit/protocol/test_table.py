from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pamqp import decode, encode

from burrowmq.protocol import table
from burrowmq.protocol.table import (
    Byte,
    DecimalValue,
    Float,
    Long,
    MalformedTable,
    Short,
    TableLimit,
    Timestamp,
    UnsignedByte,
    UnsignedInt,
    UnsignedShort,
)
from tests.support.steps import steps_of

EVERY_TYPE = {
    "S": "text",
    "I": -5,
    "l": Long(5),
    "s": Short(-2),
    "u": UnsignedShort(65535),
    "b": Byte(-128),
    "B": UnsignedByte(255),
    "i": UnsignedInt(2**32 - 1),
    "T": Timestamp(1700000000),
    "d": 1.5,
    "f": Float(0.5),
    "t": True,
    "D": DecimalValue(2, 314),
    "F": {"inner": {"deep": [1, "x", {}]}},
    "A": [Long(1), None, [], False],
    "x": b"\x00\xff",
    "V": None,
}
TYPE_NAMES = {
    "S": "longstr",
    "I": "signedint",
    "l": "long",
    "s": "short",
    "u": "unsignedshort",
    "b": "byte",
    "B": "unsignedbyte",
    "i": "unsignedint",
    "T": "timestamp",
    "d": "double",
    "f": "float",
    "t": "bool",
    "D": "decimal",
    "F": "table",
    "A": "array",
    "x": "binary",
    "V": "void",
}


def wire(fields: bytes) -> bytes:
    return struct.pack(">I", len(fields)) + fields


@pytest.mark.parametrize("tag", EVERY_TYPE)
def test_each_type_survives_both_ways(tag: str) -> None:
    octets = table.encode_table({"k": EVERY_TYPE[tag]})
    assert octets[6:7] == tag.encode()
    decoded = table.decode_table(octets)
    assert decoded == {"k": EVERY_TYPE[tag]}
    assert type(decoded["k"]) is type(EVERY_TYPE[tag])
    assert table.encode_table(decoded) == octets
    assert table.type_name(decoded["k"]) == TYPE_NAMES[tag]


def test_both_64_bit_tags_go_back_as_one() -> None:
    octets = wire(b"\x01kL" + struct.pack(">q", 7))
    assert table.encode_table(table.decode_table(octets)) == octets.replace(b"L", b"l")


def test_plain_integers_take_the_width_that_they_need() -> None:
    assert table.encode_value(2**31 - 1)[:1] == b"I"
    assert table.encode_value(2**31)[:1] == b"l"
    assert table.type_name(2**31) == "long"


def test_foreign_octets_survive() -> None:
    octets = wire(b"\x02\xff\xfeS" + struct.pack(">I", 2) + b"\xc3\x28")
    assert table.encode_table(table.decode_table(octets)) == octets


def test_of_duplicate_keys_the_first_counts() -> None:
    assert table.decode_table(wire(b"\x01kt\x01\x01kt\x00")) == {"k": True}


@pytest.mark.slow
@given(
    st.dictionaries(
        st.text("abc", max_size=3),
        st.recursive(
            st.booleans() | st.integers(-(2**31), 2**31 - 1) | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.text("xyz", min_size=1, max_size=2), inner, max_size=3)
            ),
            max_leaves=8,
        ),
        max_size=5,
    )
)
def test_pamqp_reads_what_is_encoded(fields: dict[str, object]) -> None:
    octets = table.encode_table(fields)
    assert decode.field_table(octets) == (len(octets), fields)
    assert table.decode_table(encode.field_table(fields)) == fields


@given(st.binary(max_size=80))
def test_any_octets_decode_or_are_malformed(octets: bytes) -> None:
    try:
        decoded = table.decode_table(octets)
    except MalformedTable:
        return
    assert table.decode_table(table.encode_table(decoded)) == decoded or "nan" in repr(decoded)


@pytest.mark.parametrize(
    "octets",
    [
        b"",
        b"\x00\x00\x00",
        b"\x00\x00\x00\x05",
        wire(b"\x01k"),
        wire(b"\x05k"),
        wire(b"\x01kz"),
        wire(b"\x01kS\x00\x00\x00\x09x"),
        wire(b"\x01kI\x00"),
        wire(b"\x01kF\x00\x00\x00\x63"),
        wire(b"\x01kA\x00\x00\x00\x01S"),
        wire(b"") + b"x",
    ],
)
def test_malformed_tables(octets: bytes) -> None:
    with pytest.raises(MalformedTable):
        table.decode_table(octets)


def nested(depth: int) -> dict[str, object]:
    value: dict[str, object] = {}
    for _ in range(depth - 1):
        value = {"k": value}
    return value


def test_what_is_beyond_a_limit_is_refused_by_its_name() -> None:
    assert table.decode_table(table.encode_table(nested(128))) == nested(128)
    with pytest.raises(TableLimit, match="field table nested deeper than 128 levels"):
        table.decode_table(table.encode_table(nested(129)))
    with pytest.raises(TableLimit, match="field table larger than 131072 octets"):
        table.decode_table(table.encode_table({"k": "x" * (128 * 1024)}))


@pytest.mark.parametrize("field", [b"\x00V", b"\x01kA\x00\x00\x00\x00", b"\x00t\x01"])
def test_a_table_may_have_as_many_fields_as_its_octets_hold(field: bytes) -> None:
    assert len(table.decode_table(wire(field * (128 * 1024 // len(field))))) == 1


@pytest.mark.slow
@pytest.mark.parametrize("item", [b"V", b"t\x01", b"A\x00\x00\x00\x00", b"S\x00\x00\x00\x00"])
def test_the_smallest_values_cost_no_more_each_the_more_they_are(item: bytes) -> None:
    def steps(size: int) -> int:
        items = item * (size // len(item))
        octets = wire(b"\x01kA" + len(items).to_bytes(4, "big") + items)
        return steps_of(lambda: table.decode_table(octets))

    small = steps(8 * 1024)
    assert steps(128 * 1024 - 8) < 17 * small


def test_json_that_no_table_may_hold_is_refused() -> None:
    assert table.from_json(nested(128)) == nested(128)
    with pytest.raises(TableLimit, match="nested deeper than 128"):
        table.from_json(nested(129))
    with pytest.raises(TableLimit, match="nested deeper than 128"):
        table.from_json(nested(5000))
    with pytest.raises(TableLimit, match="larger than 131072 octets"):
        table.from_json({"k": ["x" * 128 * 1024]})
    with pytest.raises(MalformedTable, match="64 bits"):
        table.from_json({"k": 2**63})
    with pytest.raises(MalformedTable, match="longer than 255 octets"):
        table.from_json({"k" * 256: 1})


def test_a_body_without_its_length() -> None:
    octets = table.encode_table({"LOGIN": "guest"})
    assert table.decode_table_body(octets[4:]) == {"LOGIN": "guest"}


def test_a_key_that_does_not_fit_is_refused() -> None:
    with pytest.raises(MalformedTable):
        table.encode_table({"k" * 256: 1})
    with pytest.raises(TypeError):
        table.encode_value(object())


@pytest.mark.parametrize(
    ("current", "received", "is_same"),
    [
        (None, None, True),
        (10, Long(10), True),
        (Byte(1), UnsignedShort(1), True),
        (10, 20, False),
        (10, "10", False),
        (1, True, False),
        (1.5, Float(1.5), True),
        (1, 1.0, False),
        (None, 10, False),
        ("a", "a", True),
        ("a", b"a", True),
        ("a", b"b", False),
        (b"1", 1, False),
        (Timestamp(1), 1, True),
        (Timestamp(1), 2, False),
        (Timestamp(1), True, False),
    ],
)
def test_equivalence(current: object, received: object, is_same: bool) -> None:
    assert table.equivalent(current, received) is is_same


def test_whole_numbers_of_json_are_longs() -> None:
    found = table.from_json({"a": 1, "b": [True, 2.5, {"c": 3}], "d": None})
    assert found == {"a": 1, "b": [True, 2.5, {"c": 3}], "d": None}
    assert [type(found["a"]), type(found["b"][0]), type(found["b"][2]["c"])] == [Long, bool, Long]


def test_what_is_an_integer_argument() -> None:
    assert all(map(table.is_integer, [1, Long(1), Byte(1), UnsignedInt(1)]))
    assert not any(map(table.is_integer, [True, "1", 1.0, None, Timestamp(1)]))
