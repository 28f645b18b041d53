from __future__ import annotations

import pika
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_amqp.wire import properties as p
from pyspark_amqp.wire.table import BadTable

SHORT = st.text(max_size=60)
BY_KIND = {
    p.SHORTSTR: SHORT,
    p.OCTET: st.integers(0, 255),
    p.STAMP: st.integers(0, 2**64 - 1),
    p.TABLE: st.dictionaries(SHORT, SHORT | st.integers(-5, 5), max_size=3),
}
PROPERTIES = st.fixed_dictionaries({}, optional={n: BY_KIND[k] for n, k in p.KINDS.items()})


@given(PROPERTIES)
def test_a_block_comes_back_as_it_was(properties: dict) -> None:
    block = p.encode(properties)
    assert p.decode(block) == properties
    assert p.message_id(block) == properties.get("message_id")


def test_the_block_is_that_of_pika() -> None:
    values = {
        "content_type": "text/plain",
        "headers": {"k": "v"},
        "delivery_mode": 2,
        "message_id": "m1",
        "timestamp": 1_700_000_000,
        "type": "t",
    }
    assert p.encode(values) == b"".join(pika.BasicProperties(**values).encode())


@given(st.binary(max_size=40))
def test_any_octets_are_properties_or_bad(octets: bytes) -> None:
    p.message_id(octets)
    try:
        p.decode(octets)
    except (p.BadProperties, BadTable):
        pass


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"message_id": "x" * 256}, "message_id"),
        ({"priority": 256}, "priority"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_what_does_not_fit_is_named(values: dict, says: str) -> None:
    with pytest.raises(p.BadProperties, match=says):
        p.encode(values)
