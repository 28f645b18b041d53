# ruff: noqa: E402 - without pyarrow the file is skipped before its imports
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pa = pytest.importorskip(
    "pyarrow", reason="pyarrow is not installed: pip install 'burrowmq[spark]'"
)

from pyspark_amqp.convert.columns import split_blocks
from pyspark_amqp.wire import properties as p

SHORT = st.text(max_size=12)
BY_KIND = {
    p.SHORTSTR: SHORT,
    p.OCTET: st.integers(0, 255),
    p.STAMP: st.integers(0, 2**64 - 1),
    p.TABLE: st.dictionaries(SHORT, SHORT, max_size=2),
}
PROPERTIES = st.fixed_dictionaries({}, optional={n: BY_KIND[k] for n, k in p.KINDS.items()})


def one(block: bytes, name: str) -> object:
    """Return a property the simple way."""
    span = p.spans(block).get(name)
    if span is None:
        return None
    octets = block[slice(*span)]
    return int.from_bytes(octets, "big") if p.KINDS[name] in {p.OCTET, p.STAMP} else octets


@given(st.lists(PROPERTIES, max_size=8), st.sets(st.sampled_from(p.NAMES)))
def test_columns_are_what_single_blocks_hold(rows: list[dict], wanted: set[str]) -> None:
    blocks = [p.encode(row) for row in rows]
    found = split_blocks(blocks, wanted)
    assert found.keys() <= wanted
    for name in wanted:
        expected = [one(block, name) for block in blocks]
        assert found.get(name, [None] * len(blocks)) == expected


@given(st.lists(st.fixed_dictionaries({n: BY_KIND[p.KINDS[n]] for n in p.NAMES}), max_size=5))
def test_blocks_with_all_properties(rows: list[dict]) -> None:
    blocks = [p.encode(row) for row in rows]
    found = split_blocks(blocks, set(p.NAMES))
    for name, column in found.items():
        assert column == [one(block, name) for block in blocks]


@pytest.mark.parametrize(
    "bad",
    [
        *(b"", b"\x80", b"\x80\x00", b"\x80\x00\x05ab"),
        *(b"\x80\x80\x01a\x04mm", b"\x20\x00\x00\x00\x00\x09x", b"\x00\x40\x00\x00\x00"),
    ],
)
def test_a_malformed_block_empties_its_own_row_only(bad: bytes) -> None:
    good = p.encode({"content_type": "text", "message_id": "m", "headers": {}, "timestamp": 7})
    found = split_blocks([good, bad, good], {"content_type", "message_id", "headers", "timestamp"})
    assert found["message_id"] == [b"m", None, b"m"]
    assert found["content_type"] == [b"text", None, b"text"]
    assert found["headers"] == [b"\0\0\0\0", None, b"\0\0\0\0"]
    assert found["timestamp"] == [7, None, 7]
    assert {v for column in split_blocks([bad] * 3, set(p.NAMES)).values() for v in column} <= {
        None
    }
