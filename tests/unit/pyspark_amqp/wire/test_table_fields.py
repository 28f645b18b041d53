"""A table's fields as octets: each keeps its type, and the first of equal names is not the only one."""

from __future__ import annotations

import pytest

from pyspark_amqp.wire.table import BadTable, decode_table, encode_table, fields_of, table_of

FIELDS = [
    b"\x01as\x00\x05",
    b"\x01bf\x40\x00\x00\x00",
    b"\x01cl" + bytes(8),
    b"\x01cV",
    b"\x00t\x01",
]


def test_they_are_cut_out_and_put_together() -> None:
    octets = table_of(FIELDS)
    assert fields_of(octets) == [
        (name, field) for name, field in zip(["a", "b", "c", "c", ""], FIELDS, strict=True)
    ]
    assert decode_table(octets) == {"a": 5, "b": 2.0, "c": 0, "": True}
    assert fields_of(table_of([])) == []
    nested = encode_table({"d": {"e": [1, "x"]}, "f": b"\xff"})
    assert table_of(field for _, field in fields_of(nested)) == nested


@pytest.mark.parametrize("octets", [b"", b"\x00\x00\x00\x01", b"\x00\x00\x00\x03\x01a?"])
def test_what_is_no_table_is_refused(octets: bytes) -> None:
    with pytest.raises(BadTable):
        fields_of(octets)
