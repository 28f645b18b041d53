from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pika.data import encode_table as pika_encode

from pyspark_amqp.wire.table import BadTable, Timestamp, decode_table, encode_table

NAMES = st.text(max_size=40)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=30)
    | st.binary(max_size=30)
    | st.integers(0, 2**64 - 1).map(Timestamp)
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.slow
@given(st.dictionaries(NAMES, VALUES, max_size=6))
def test_a_table_comes_back_as_it_was(table: dict) -> None:
    assert decode_table(encode_table(table)) == table


def test_all_types_of_the_wire_are_read() -> None:
    fields = b"".join(
        [
            b"\x01aI\xff\xff\xff\xff\x01bl\xff\xff\xff\xff\xff\xff\xff\xff\x01cs\xff\xfe",
            b"\x01du\xff\xfe\x01eb\xff\x01fB\xff\x01gi\xff\xff\xff\xff\x01hf\x3f\x80\x00\x00",
            b"\x01iD\x02\x00\x00\x00\x7b\x01jT\x00\x00\x00\x00\x00\x00\x00\x05\x01kV\x01lt\x01",
            b"\x01aS\x00\x00\x00\x01x",
        ]
    )
    found = decode_table(len(fields).to_bytes(4, "big") + fields)
    integers = dict(zip("abcdefg", [-1, -1, -2, 65534, -1, 255, 2**32 - 1], strict=True))
    assert found == integers | {"h": 1.0, "i": Decimal("1.23"), "j": 5, "k": None, "l": True}
    assert isinstance(found["j"], Timestamp)


def test_what_pika_writes_is_read() -> None:
    table = {"s": "text", "n": 5, "l": [1, "x", {"t": True}], "none": None}
    pieces: list[bytes] = []
    pika_encode(pieces, table)
    assert decode_table(b"".join(pieces)) == table


@given(st.binary(max_size=60))
def test_any_octets_are_a_table_or_bad(octets: bytes) -> None:
    try:
        decode_table(len(octets).to_bytes(4, "big") + octets)
    except BadTable:
        pass


@pytest.mark.parametrize("octets", [b"", b"\x00\x00\x00\x05", b"\x00\x00\x00\x00x"])
def test_a_wrong_length_is_bad(octets: bytes) -> None:
    with pytest.raises(BadTable):
        decode_table(octets)


def test_nesting_has_a_limit() -> None:
    octets = b""
    for _ in range(128):
        octets = b"\x01nF" + len(octets).to_bytes(4, "big") + octets
    with pytest.raises(BadTable, match="deep"):
        decode_table(len(octets).to_bytes(4, "big") + octets)


@pytest.mark.parametrize("value", [2**63, Decimal("1E+30"), Timestamp(-1), Decimal("NaN")])
def test_what_does_not_fit_is_bad(value: object) -> None:
    with pytest.raises(BadTable):
        encode_table({"k": value})  # type: ignore[dict-item]
    with pytest.raises(BadTable, match="255"):
        encode_table({"k" * 256: 1})
